"""Whole stacks as a user starts them: Redis, every pool as a process of its own, on a data folder of the test's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import psutil
import pytest

from orchestrator.client import Ramify
from orchestrator.local.background import down, start
from shared.settings import Settings, load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.support.redis_server import redis_binary

NOTES = Path(__file__).parents[2] / "examples" / "notes"
Launch = Callable[..., Ramify]
_NUMBERS = count(1)
#: Settings, as JSON, of pools that run on other hosts: the tests are a client of these then, and start none.
ELSEWHERE = os.environ.get("RAMIFY_TEST_ELSEWHERE", "")


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
    """RAMIFY_TEST_BROKER_URL: all of them over another broker; "{}" in it stands for a number of each stack's own."""
    if ELSEWHERE:
        if options:
            pytest.skip("the pools that run elsewhere have settings of their own")
        with Ramify(load_settings(data_dir=folder, **json.loads(ELSEWHERE))) as client:
            yield client
        return
    redis_binary()
    off, broker = {"enabled": False}, {"url": os.environ.get("RAMIFY_TEST_BROKER_URL", "").format(next(_NUMBERS))}
    settings: Settings = load_settings(data_dir=folder, **{"flower": off, "server": off, "broker": broker, **options})
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


class Shared:
    """What the modules of this folder share: each stack is started for the first that asks, and ends with the last."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._stacks: dict[str, Ramify] = {}
        self._fake: FakeOpenAI | None = None
        self._collector: OtlpReceiver | None = None

    @property
    def fake(self) -> FakeOpenAI:
        if self._fake is None:
            self._fake = self._open.enter_context(FakeOpenAI())
        return self._fake

    @property
    def collector(self) -> OtlpReceiver:
        if self._collector is None:
            self._collector = self._open.enter_context(OtlpReceiver())
        return self._collector

    def stack(self, folder: Path, notes: Sequence[Path], **options: object) -> Ramify:
        """The stack of this folder's name; the folder itself is used by the first call."""
        name = folder.name.rstrip("0123456789")
        if name not in self._stacks:
            client = self._open.enter_context(contextmanager(launched)(folder, **options))
            self._stacks[name] = ingested(client, *notes) if notes else client
        return self._stacks[name]

    def after(self, nextitem: pytest.Item | None) -> None:
        """What a test has scripted is forgotten; outside of this folder nothing is needed any more."""
        if self._fake is not None:
            self._fake.forget()
        if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
            self._stacks, self._fake, self._collector = {}, None, None
            self._open.close()


SHARED = Shared()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    SHARED.after(nextitem)


@pytest.fixture(scope="module")
def ramify(tmp_path_factory: pytest.TempPathFactory) -> Ramify:
    """The embedded stack with the sample corpus, without any model. What a test adds must not disturb the others."""
    return SHARED.stack(tmp_path_factory.mktemp("stack"), [NOTES])


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Ramify:
    """The embedded stack without a corpus, for tests that bring their own."""
    return SHARED.stack(tmp_path_factory.mktemp("bare"), [])


@pytest.fixture(scope="module")
def fake() -> FakeOpenAI:
    return SHARED.fake


@pytest.fixture(scope="module")
def collector() -> OtlpReceiver:
    return SHARED.collector


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory, fake: FakeOpenAI, collector: OtlpReceiver) -> Ramify:
    """The stack with LLM, embedding and rerank servers, all of them the fake one. It is traced, and logs JSON."""
    models = {
        "llm_base_url": fake.url,
        "llm_model": "fake",
        "llm_timeout_s": 2,
        "llm_attempts": 2,
        "telemetry": {"otlp_url": collector.url, "logs": "json"},
        # The faults of one test must not be the next one's: breakers have tests of their own, tests/faults.
        "providers": {"breaker": {"failures": 0}},
        "embedding": {"provider": "endpoint", "base_url": fake.url, "model": "fake", "dim": 64, "timeout_s": 2},
        "rerank": {"provider": "endpoint", "base_url": fake.url, "model": "fake", "timeout_s": 2},
    }
    notes = [NOTES / "en" / "queues", NOTES / "zh" / "databases"]
    return SHARED.stack(tmp_path_factory.mktemp("models"), notes, **models)
