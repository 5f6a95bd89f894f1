"""How far it is from a task to the work that it is for: the frames of our own between Celery and the search engine."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis

from shared.cache import Cache
from shared.contract import TaskMessage
from shared.jobs import JobStore, new_id
from shared.jobs.budget import Ledger
from shared.models import Chunk, Facet, JobRequest, Node
from shared.providers.encoders import Bm25Encoder
from shared.providers.gates import gate
from shared.settings import Settings, load_settings
from shared.store import BuiltWith, ChunkPoint
from shared.tasks.work_tracker import WorkTracker
from workers.search import engine, leaf
from workers.search.resources import SearchResources

ROOT = Path(__file__).parents[3]
MOST_FRAMES = 12
SPARSE = Bm25Encoder(10.0)
LEAF = Node(id="0.1", parent_id="0", level=1, facet=Facet.CORE, query="zebra")


@pytest.fixture
def settings(redis_url: str, tmp_path: Path) -> Settings:
    return load_settings(redis={"url": redis_url}, data_dir=tmp_path, search={"strategy": "keyword"})


@pytest.fixture
def resources(settings: Settings) -> Iterator[SearchResources]:
    opened = SearchResources(settings)
    opened.store("default").create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    chunk = Chunk(
        chunk_id="6b1e5a4e-5f0c-4b43-9a5e-0d6f3f7f8d11", doc_id="d", path="a.md", title="a", text="a striped zebra"
    )
    point = ChunkPoint(chunk=chunk, document_hash="h", source="s", sparse=SPARSE.encode_passage(chunk.text))
    opened.store("default").upsert([point])
    yield opened
    opened.close()


@pytest.fixture
def tasks(
    client: redis.Redis, redis_url: str, settings: Settings, resources: SearchResources, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    """The search pool's tasks, on this Redis and these resources, with the cache on."""
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    monkeypatch.setattr(gate, "_process_store", gate._process_store)  # the import tells the gates of the Redis
    from workers.search import tasks

    store, cache = JobStore(client, settings), Cache(client, settings)
    monkeypatch.setattr(tasks.registry, "settings", settings)
    monkeypatch.setattr(tasks.registry, "jobs", store)
    monkeypatch.setattr(tasks.registry, "_tracker", WorkTracker(store))
    monkeypatch.setattr(tasks.registry, "_ledger", Ledger(client, settings))
    monkeypatch.setattr(tasks, "search_resources", lambda: resources)
    monkeypatch.setattr(tasks, "shared_cache", lambda: cache)
    return tasks


def texts_of_a_leaf(tasks: ModuleType) -> list[str]:
    """What the task finds for the one leaf of a new job."""
    jobs, job_id = tasks.registry.jobs, new_id()
    jobs.enqueue([(job_id, JobRequest(question="zebra"))])
    jobs.start_planning(job_id, "t")
    jobs.start_searching(job_id, [LEAF])
    tasks.search_leaf.apply(args=(TaskMessage(job_id=job_id, node_id=LEAF.id).wire(),), throw=True)
    found = jobs.candidates(job_id, LEAF.id)
    assert found is not None
    return [hit.text for hit in found.hits]


def frames_of_ours(stack: traceback.StackSummary) -> list[str]:
    """`<file>:<function>` of the product's frames, outermost first."""
    rooms = tuple(str(ROOT / room) for room in ("shared", "orchestrator", "workers"))
    ours = [frame for frame in stack if frame.filename.startswith(rooms)]
    return [f"{Path(frame.filename).relative_to(ROOT)}:{frame.name}" for frame in ours]


@pytest.fixture
def stacks(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The product's frames at each run of the first stage."""
    assert settings.cache.enabled
    assert settings.cache.leaves
    stacks: list[list[str]] = []
    stage = engine.STAGES["lexical"]

    def probe(*args: Any) -> Any:
        stacks.append(frames_of_ours(traceback.extract_stack()))
        return stage(*args)

    monkeypatch.setitem(engine.STAGES, "lexical", probe)  # type: ignore[arg-type]
    return stacks


def test_given_leaves_that_are_cached_when_one_is_searched_then_few_frames_lie_between_task_and_engine(
    tasks: ModuleType, stacks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaf, "_worth_keeping", lambda *_: True)  # as with a model
    assert [texts_of_a_leaf(tasks) for _ in range(2)] == [["a striped zebra"]] * 2
    assert len(stacks) == 1, "the second leaf came from the cache"
    assert stacks[0][0] == "shared/tasks/task_run.py:run"
    assert stacks[0][-1] == "workers/search/engine.py:run"
    assert "shared/cache.py:get_or_compute" in stacks[0]
    assert len(stacks[0]) <= MOST_FRAMES, "\n".join(stacks[0])


def test_given_keywords_and_the_embedded_store_when_leaves_are_searched_then_the_cache_is_not_asked(
    tasks: ModuleType, stacks: list[list[str]], client: redis.Redis
) -> None:
    assert [texts_of_a_leaf(tasks) for _ in range(2)] == [["a striped zebra"]] * 2
    assert len(stacks) == 2
    assert "shared/cache.py:get_or_compute" not in stacks[0]
    assert client.keys("ramify:cache:*") == []
