"""Whole stacks as a user starts them: Redis, every pool as a process of its own, on a data folder of the test's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.client import Ramify
from orchestrator.local.background import start
from orchestrator.local.down import down
from shared.settings import Settings, load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.support.redis_server import redis_binary

NOTES = Path(__file__).parents[2] / "examples" / "notes"
Launch = Callable[..., Ramify]


def _family(folder: Path) -> list[int]:
    """Processes whose environment names this data folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("RAMIFY_DATA_DIR") == str(folder):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def launched(folder: Path, **options: object) -> Iterator[Ramify]:
    redis_binary()
    settings: Settings = load_settings(data_dir=folder, flower={"enabled": False}, **options)
    start(settings, bound=True)
    try:
        with Ramify(settings) as client:
            yield client
    finally:
        down(settings)
        assert _family(folder) == [], "no orphans"


def ingested(client: Ramify, *paths: Path) -> Ramify:
    for _ in client.ingest(paths or (NOTES,)):
        pass
    return client


@pytest.fixture(scope="module")
def ramify(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ramify]:
    """The embedded stack with the sample corpus, without any model."""
    for client in launched(tmp_path_factory.mktemp("stack")):
        yield ingested(client)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory, fake: FakeOpenAI) -> Iterator[Ramify]:
    """The stack with LLM, embedding and rerank servers, all of them the fake one."""
    models = {
        "llm_base_url": fake.url,
        "llm_model": "fake",
        "llm_timeout_s": 2,
        "llm_attempts": 2,
        # The faults of one test must not be the next one's: breakers have tests of their own, tests/faults.
        "providers": {"breaker": {"failures": 0}},
        "embedding": {"provider": "endpoint", "base_url": fake.url, "model": "fake", "dim": 64, "timeout_s": 2},
        "rerank": {"provider": "endpoint", "base_url": fake.url, "model": "fake", "timeout_s": 2},
    }
    for client in launched(tmp_path_factory.mktemp("models"), **models):
        yield ingested(client, NOTES / "en" / "queues", NOTES / "zh" / "databases")
