"""The planner of lists asks what exists and shares the scan out; what it cannot find out, it says."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.planning.lists import planner
from shared.errors import NotRunningError
from shared.models import JobRequest
from shared.models.enumeration import Scan, Values, ValuesReply, ValuesRequest
from shared.settings import Settings, load_settings

INSTEAD = "Searched, not listed."


class Pool:
    """The search pool: values, then the count of the scan it is asked about."""

    def __init__(self, documents: int = 0, error: str | None = None) -> None:
        self.documents, self.error = documents, error
        self.asked: list[Scan] = []

    def __call__(self, app: object, settings: object, name: str, request: ValuesRequest, timeout_s: float) -> str:
        assert 0 < timeout_s <= 15
        if self.error:
            return ValuesReply(error=self.error).model_dump_json()
        if request.symbol:
            values = Values(documents=request.symbol == "Store.open")
        elif request.scan is None:
            values = Values(tags={"redis": 3}, kinds={"memory": 2}, folders=("archive/",), index_version=7)
        else:
            self.asked.append(request.scan)
            values = Values(documents=self.documents, index_version=7)
        return ValuesReply(values=values).model_dump_json()


class Kept:
    """A Redis that only takes what is set."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def set(self, key: str, value: bytes, ex: int) -> None:
        assert value
        assert ex > 0
        self.keys.append(key)


def planned(
    monkeypatch: pytest.MonkeyPatch,
    pool: Any,
    question: str,
    settings: Settings | None = None,
    *,
    possible: bool = False,
) -> Any:
    monkeypatch.setattr(planner, "call_pool", pool)
    job = SimpleNamespace(
        id="job0000001", request=JobRequest(question=question), leaf_reserve=1.0, remaining=lambda _: 60.0
    )
    kept = Kept()
    step: Any = SimpleNamespace(job=job, jobs=SimpleNamespace(client=kept))
    app: Any = None
    return planner.plan_list(step, app, settings or load_settings(), possible=possible), kept


def test_given_a_list_when_planned_then_the_question_and_every_shard_are_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Pool(documents=5000)
    grown, kept = planned(monkeypatch, pool, "List all notes tagged redis")
    assert [node.id for node in grown.nodes] == ["0.0", "0.1", "0.2", "0.3"]
    assert [node.shard.number if node.shard else 0 for node in grown.nodes] == [0, 1, 2, 3]
    assert grown.nodes[1].query == "part 1 of 3: tag = redis"
    assert len(kept.keys) == 1


def test_given_paths_that_are_never_shown_when_planned_then_they_are_not_listed_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, pool = load_settings(search={"excludes": ["archive/"]}), Pool(documents=1)
    grown, _ = planned(monkeypatch, pool, "List all notes tagged redis", settings)
    assert grown.nodes[1].query == "part 1 of 1: tag = redis, not path = archive/"
    planned(monkeypatch, pool, "List all notes in archive/", settings)
    assert [scan.without_paths for scan in pool.asked] == [("archive/",), ()]


@pytest.mark.parametrize(("documents", "said"), [(0, "None is listed, but"), (3, "the list may hold")])
def test_given_unread_words_when_nothing_is_listed_then_it_is_told_that_documents_may_be_missing(
    monkeypatch: pytest.MonkeyPatch, documents: int, said: str
) -> None:
    grown, _ = planned(monkeypatch, Pool(documents), "Which grumpy notes tagged redis are there?")
    assert [("grumpy" in each, said in each) for each in grown.warnings if "grumpy" in each] == [(True, True)]


def test_given_words_unread_and_words_guessed_when_nothing_is_listed_then_none_of_them_tells_of_too_many() -> None:
    told = [planner.told(name, [word], "?") for name, word in (("list_unread", "grumpy"), ("list_guessed", "loud"))]
    reading = planner.Reading(unread=("grumpy",), guessed=("loud",))
    (only,) = planner._of_none(reading, told, "?")
    assert [word in only for word in ("None is listed", "grumpy", "loud", "may hold")] == [True, True, True, False]


@pytest.mark.parametrize("question", ["list the", "notes from May 2025 to March 2025"])
def test_given_a_question_that_is_not_understood_when_planned_then_it_is_to_be_searched(
    monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    grown, kept = planned(monkeypatch, Pool(), question)
    assert grown.nodes == ()
    assert grown.warnings[-1] == INSTEAD
    assert kept.keys == []


def test_given_a_pool_that_fails_when_planned_then_it_is_to_be_searched_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown, _ = planned(monkeypatch, Pool(error="the store is locked."), "List all notes")
    assert grown.warnings == ("What is to be listed could not be found out: the store is locked.", INSTEAD)

    def silent(*_: object) -> str:
        raise NotRunningError("no search worker answered in 15 s")

    begun = time.thread_time()
    grown, _ = planned(monkeypatch, silent, "List all notes")
    assert "no search worker answered" in grown.warnings[0]
    assert time.thread_time() - begun < 5


def test_given_a_possible_list_when_planned_then_it_is_one_only_where_the_corpus_has_what_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown, _ = planned(monkeypatch, Pool(documents=1), "redis memories of 2026", possible=True)
    assert grown.nodes[1].query == "part 1 of 1: kind = memory, dated 2026-01-01 to 2026-12-31, tag = redis"
    for pool, question in (
        (Pool(), "redis lodgers of 2026"),
        (Pool(), "redis memory"),
        (Pool(error="gone"), "memories"),
    ):
        grown, kept = planned(monkeypatch, pool, question, possible=True)
        assert (grown.nodes, grown.warnings, kept.keys) == ((), (), [])


@pytest.mark.parametrize(
    ("question", "word"),
    [("Which lodgers of 2026 are redis people?", "lodgers"), ("Which redis clusters are up?", "clusters")],
)
def test_given_the_form_of_a_list_when_it_is_searched_instead_then_the_words_that_were_not_read_are_named(
    monkeypatch: pytest.MonkeyPatch, question: str, word: str
) -> None:
    grown, _ = planned(monkeypatch, Pool(), question, possible=True)
    assert grown.nodes == ()
    assert "(unread words)" in grown.warnings[0]
    assert word in grown.warnings[0]


def test_given_a_symbol_when_the_corpus_is_asked_then_only_one_that_it_defines_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known(pool: Pool, symbol: str) -> bool:
        monkeypatch.setattr(planner, "call_pool", pool)
        app: Any = None
        return planner.defines(JobRequest(question="q"), app, load_settings(), symbol, 60.0)

    assert known(Pool(), "Store.open")
    assert not known(Pool(), "Store.shut")
    assert not known(Pool(error="the store is locked."), "Store.open"), "a list is made then, which says so itself"
