"""A leaf of a replay from the rerank on: what the old job had found, else what the same search finds again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

from shared.jobs import JobStore
from shared.models import Cost, Facet, Hit, JobRequest, Node, SearchResult
from shared.models.replay import Replay, ReplayStage
from shared.providers.gates import gate
from shared.settings import Settings

HIT = Hit(chunk_id="c", doc_id="d", path="p", title="t", text="x", score=1.0)
NODE = Node(id="0.1", parent_id="0", level=1, facet=Facet.CORE, query="who?")
REPLAY = Replay(of="old", start=ReplayStage.RERANK, strategies={"0.1": "bm25_only"})


@pytest.fixture
def searching(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    monkeypatch.setattr(gate, "_process_store", gate._process_store)  # the import tells the gates of the Redis
    from workers.search import tasks

    searched: list[str] = []

    def search(leaf: Any, *_: object) -> SearchResult:
        searched.append(leaf.strategy)
        return SearchResult(mode=leaf.strategy)

    monkeypatch.setattr(tasks, "run_search_stages", search)
    monkeypatch.setattr(tasks, "search_resources", lambda: None)
    monkeypatch.setattr(tasks, "shared_cache", lambda: None)
    return SimpleNamespace(tasks=tasks, searched=searched)


@pytest.fixture
def old(client: redis.Redis, settings: Settings) -> JobStore:
    """A job whose leaf has its candidates yet."""
    store = JobStore(client, settings)
    store.enqueue([("old", JobRequest(question="who?"))])
    store.admit()
    store.start_planning("old", "t")
    store.start_searching("old", [NODE])
    store.put_candidates("old", "0.1", SearchResult(mode="default", hits=(HIT,), cost=Cost(embed_calls=1)))
    return store


def replayed(searching: Any, store: JobStore, node: Node) -> SearchResult:
    job = SimpleNamespace(request=JobRequest(question="who?", strategy="deep", replay=REPLAY))
    found = searching.tasks._as_recorded(SimpleNamespace(jobs=store, job=job), node, REPLAY, 5.0)
    assert isinstance(found, SearchResult)
    return found


def test_given_candidates_that_are_kept_then_they_are_taken_and_cost_nothing(searching: Any, old: JobStore) -> None:
    found = replayed(searching, old, NODE)
    assert (found.hits, found.cost, searching.searched) == ((HIT,), Cost(), [])


@pytest.mark.parametrize("change", [{"id": "0.2"}, {"query": "who is Ada?"}])
def test_given_none_or_those_of_another_query_then_the_leaf_is_searched_as_it_was(
    searching: Any, old: JobStore, change: dict[str, str]
) -> None:
    replayed(searching, old, NODE.model_copy(update=change))
    assert searching.searched == ["bm25_only" if "query" in change else "deep"]
