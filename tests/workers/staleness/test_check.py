"""Which kept answers a change of the corpus makes stale, over a real Redis and an embedded store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from shared.errors import TransientError
from shared.jobs.hit_blobs import pack_answer, unpack_answer
from shared.jobs.keys import JobKeys, StandingKeys, changed_documents, rechecks, stale_answers
from shared.models import Filters, Hit, SearchResult
from shared.models.stale import StaleBy, StaleMark
from shared.models.standing import StandingState
from shared.providers.fallbacks import fell_back
from shared.settings import Settings
from tests.fakes.kept_answers import KeptAnswers
from workers.question_search import Search
from workers.search.leaf import LeafQuery
from workers.staleness import entering
from workers.staleness.basis import KeptChunk, LeafBasis
from workers.staleness.entering import Moved, NewChunks, moved_in

PUMP = "# Pump P-100\n\nThe pump P-100 delivers 40 litres a minute.\n"
VALVE = "# Valve V-7\n\nThe valve V-7 opens at 5 bar.\n"
RIVER = "# Cooling\n\nThe cooling water comes from the river.\n"


@pytest.fixture
def kept(client: redis.Redis, settings: Settings) -> Iterator[KeptAnswers]:
    found = KeptAnswers(client, settings)
    found.put(pump=PUMP, valve=VALVE, river=RIVER)
    yield found
    found.close()


def test_a_changed_document_touches_the_leaves_that_have_kept_a_passage_of_it_and_no_other(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?", "Where does the cooling water come from?")
    valve = kept.ask("At which pressure does the valve V-7 open?")
    checked = kept.put(pump=PUMP.replace("40", "55"))
    assert (checked.answers, checked.checked) == (1, 2)
    assert (kept.stale_by(pump), kept.stale_by(valve)) == ({"pump": "changed"}, {})
    (mark,) = kept.marks(pump)
    assert (mark.leaves, mark.path, mark.rank) == (("0.0",), "docs/pump.md", 1)


def test_what_goes_back_is_fresh_again_and_keeps_its_time_until_then(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    kept.put(pump=PUMP.replace("40", "55"))
    (first,) = kept.marks(pump)
    kept.put(pump=PUMP.replace("40", "60"))
    assert kept.marks(pump)[0].since == first.since
    assert kept.put(pump=PUMP).fresh == 1
    assert kept.stale_by(pump) == {}
    assert not kept.jobs.client.exists(stale_answers("default"))
    assert not [name for name in kept.jobs.client.hkeys(JobKeys(pump).job) if name.startswith(b"stale:")]


def test_a_document_that_is_gone_and_comes_back(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    assert kept.put(pump="").answers == 1
    assert kept.stale_by(pump) == {"pump": "gone"}
    assert kept.put(pump=PUMP).fresh == 1


def test_a_new_passage_touches_a_leaf_only_where_it_would_be_kept(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    assert kept.put(cat="# Cats\n\nCats sleep all day.\n").answers == 0
    kept.put(more="# Upgrade\n\nSince May the pump P-100 delivers 70 litres a minute.\n")
    assert kept.stale_by(pump) == {"more": "new"}
    kept.put(more="")
    assert kept.stale_by(pump) == {}


def test_among_many_better_passages_a_worse_one_touches_nothing(kept: KeptAnswers) -> None:
    for start in range(0, 60, 20):
        kept.put(
            check=False,
            **{f"p{n}": f"# Pump {n}\n\nThe pump P-100 delivers {n} litres." for n in range(start, start + 20)},
        )
    pump = kept.ask("How much does the pump P-100 deliver?")
    assert kept.put(weak="# Stations\n\n" + "Some words of no weight at all. " * 20 + "There is a pump.").answers == 0
    assert kept.put(strong="# How much the pump P-100 does deliver\n\nThe pump P-100 does deliver much.").answers == 1
    assert kept.stale_by(pump) == {"strong": "new"}


def leaf_of(*chunks: str, whole: bool = True) -> LeafBasis:
    query = LeafQuery(text="why?", strategy="default", filters=Filters(), tenant="default", wanted=50)
    known = {chunk: KeptChunk(f"doc {chunk}", 0) for chunk in chunks}
    return LeafBasis("0.0", query, known, most=3, per_kind=1.0, floor={}, whole=whole)


@pytest.mark.parametrize(
    ("now", "moved"),
    [
        ("abc", {}),
        ("acb", {"c": Moved(2, is_new=False)}),
        ("bc", {"a": Moved(1, is_new=False)}),
        ("abn", {"n": Moved(3, is_new=True)}),
        ("xab", {"x": Moved(1, is_new=False)}),
        ("nba", {"n": Moved(1, is_new=True), "b": Moved(2, is_new=False)}),
    ],
)
def test_what_a_leaf_finds_otherwise_is_told_with_its_place(now: str, moved: dict[str, Moved]) -> None:
    hits = [
        Hit(chunk_id=one, doc_id=f"doc {one}", path=f"{one}.md", title="T", text="t", score=1.0, ordinal=0)
        for one in now
    ]
    new = NewChunks.of({"doc n": ()})
    assert moved_in(leaf_of("a", "b", "c"), hits, new) == {f"doc {one}": place for one, place in moved.items()}
    new_alone = {f"doc {one}": place for one, place in moved.items() if place.is_new}
    assert moved_in(leaf_of("a", "b", "c", whole=False), hits, new) == new_alone


def test_a_mark_of_a_document_that_had_only_moved_goes_when_its_leaf_finds_what_it_did(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    moved = StaleMark(doc_id="d", path="docs/river.md", by=StaleBy.MOVED, since=1.0, leaves=("0.0",))
    kept.stale.mark("default", {pump: ([moved], [])})
    assert kept.put(cats="# Cats\n\nCats sleep all day.\n").fresh == 0
    assert kept.look_closely().fresh == 1
    assert kept.stale_by(pump) == {}


def test_without_close_looks_the_look_at_the_end_of_the_ingest_says_what_is_back(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    moved = StaleMark(doc_id="d", path="docs/river.md", by=StaleBy.MOVED, since=1.0, leaves=("0.0",))
    kept.stale.mark("default", {pump: ([moved], [])})
    options = kept.settings.staleness.model_copy(update={"close_s": 0.0})
    kept.check._settings = kept.settings.model_copy(update={"staleness": options})
    assert kept.put(cats="# Cats\n\nCats sleep all day.\n").fresh == 1
    assert (kept.stale_by(pump), kept.stale.rechecks("default")) == ({}, {})


def test_a_new_title_counts_as_a_change(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    kept.put(pump=f"---\ntitle: The old pump\n---\n\n{PUMP}")
    assert kept.stale_by(pump) == {"pump": "changed"}


def test_what_changed_while_an_answer_was_made_is_held_against_it_when_it_has_ended(kept: KeptAnswers) -> None:
    walked = kept.begin("How much does the pump P-100 deliver?")
    kept.put(pump=PUMP.replace("40", "55"))
    assert kept.stale.tenants_with_rechecks() == ["default"]
    assert kept.check.run_rechecks("default").answers == 0, "it has not ended"
    pump = kept.end(walked)
    assert kept.stale_by(pump) == {}
    assert kept.check.run_rechecks("default").answers == 1
    assert kept.stale_by(pump) == {"pump": "changed"}
    assert kept.stale.tenants_with_rechecks() == []


def test_the_answers_of_another_tenant_are_left_alone(kept: KeptAnswers) -> None:
    kept.put("acme", pump=PUMP)
    own, other = (kept.ask("How much does the pump P-100 deliver?", tenant=name) for name in ("default", "acme"))
    kept.put("acme", pump=PUMP.replace("40", "55"))
    assert (kept.stale_by(own), kept.stale_by(other)) == ({}, {"pump": "changed"})


def test_an_answer_is_marked_by_fifty_documents_at_most_and_every_key_expires(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    kept.put(**{f"n{n}": f"# Pump {n}\n\nHow much the pump P-100 does deliver, {n}." for n in range(60)})
    assert len(kept.marks(pump)) <= 50
    keys = [stale_answers("default"), changed_documents("default"), JobKeys(pump).events]
    kept.begin("another?")
    kept.put(pump="")
    for key in (*keys, rechecks("default")):
        assert 0 < kept.jobs.client.ttl(key) <= kept.settings.jobs.ttl_s, key


def test_the_event_says_how_many_documents_an_answer_is_stale_by(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")
    kept.put(pump="")
    kept.put(pump=PUMP)
    told = [one["documents"] for one in kept.jobs.events(pump, 100) if one["type"] == "stale"]
    assert told == ["1", "0"]


def test_without_the_setting_nothing_is_marked(client: redis.Redis, settings: Settings) -> None:
    off = settings.model_copy(update={"staleness": settings.staleness.model_copy(update={"enabled": False})})
    kept = KeptAnswers(client, off)
    kept.put(pump=PUMP)
    pump = kept.ask("How much does the pump P-100 deliver?")
    assert kept.put(pump="").checked == 0
    assert kept.marks(pump) == ()
    kept.close()


def test_what_a_killed_ingest_has_done_and_not_told_of_is_found_by_its_time(kept: KeptAnswers) -> None:
    pump, valve = kept.ask("How much does the pump P-100 deliver?"), kept.ask("At which pressure does the valve open?")
    began = kept.jobs.clock.now()
    kept.put(check=False, valve="", more="# Upgrade\n\nHow much does the pump P-100 deliver? 70 litres.\n")
    found = kept.check.run("default", [], since=began - 1)
    assert found.answers == 2
    assert (kept.stale_by(valve)["valve"], kept.stale_by(pump)["more"]) == ("gone", "new")


def test_what_there_was_no_time_for_is_checked_later_and_keeps_its_marks_until_then(
    client: redis.Redis, settings: Settings
) -> None:
    hurried = settings.model_copy(update={"staleness": settings.staleness.model_copy(update={"check_s": 1e-9})})
    kept = KeptAnswers(client, hurried)
    kept.put(pump=PUMP)
    pump = kept.ask("How much does the pump P-100 deliver?")
    checked = kept.put(more="# Upgrade\n\nSince May the pump P-100 delivers 70 litres a minute.\n", pump="")
    assert (checked.left, checked.unchecked, kept.stale_by(pump)) == (1, (pump,), {"pump": "gone"})
    kept.put(more="# Upgrade\n\nSince June the pump P-100 delivers 75 litres a minute.\n")
    assert kept.stale_by(pump) == {"pump": "gone"}
    kept.check._settings = settings
    assert kept.check.run_rechecks("default").left == 0
    assert kept.stale_by(pump) == {"pump": "gone", "more": "new"}
    assert kept.stale.tenants_with_rechecks() == []
    kept.close()


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What leaves have asked that were searched again."""
    found, real = list[str](), entering.leaf_search

    def noted(*given: Any) -> Search:
        search = real(*given)
        return lambda query: (found.append(query.text), search(query))[1]

    monkeypatch.setattr(entering, "leaf_search", noted)
    return found


def test_the_answer_of_a_standing_question_is_searched_again_whatever_is_new(
    kept: KeptAnswers, searched: list[str]
) -> None:
    standing, other = (kept.ask(f"How much does the pump P-100 deliver, {n}?") for n in range(2))
    kept.jobs.client.hset(StandingKeys.states, "sq_1", StandingState(answer=standing).model_dump_json())
    kept.put(cats="# Cats\n\nCats sleep all day.\n")
    assert searched == ["How much does the pump P-100 deliver, 0?"]
    assert (kept.stale_by(standing), kept.stale_by(other)) == ({}, {})


def rewritten(kept: KeptAnswers, job_id: str) -> bytes:
    """Have an answer with its results in the other order; returns it as it was."""
    key = JobKeys(job_id).answer
    was = kept.jobs.client.get(key)
    answer = unpack_answer(was)
    kept.jobs.client.set(key, pack_answer(answer.model_copy(update={"results": answer.results[::-1]})))
    return was


def test_a_close_look_finds_answers_whose_results_change_places_though_each_leaf_keeps_what_it_had(
    kept: KeptAnswers,
) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?", "Where does the cooling water come from?")
    was = rewritten(kept, pump)
    kept.put(cats="# Cats\n\nCats sleep all day.\n")
    assert kept.marks(pump) == ()
    kept.look_closely()
    (mark,) = kept.marks(pump)
    assert (mark.by, mark.leaves, mark.rank) == (StaleBy.MOVED, ("0.0", "0.1"), 1)
    kept.jobs.client.set(JobKeys(pump).answer, was)
    kept.put(cats="# Cats\n\nCats sleep all night.\n")
    assert kept.marks(pump) == (mark,), "that no new passage is near says nothing of what has moved"
    assert kept.look_closely().fresh == 1
    assert kept.marks(pump) == ()


def test_a_close_look_passes_over_answers_that_were_made_with_other_settings(kept: KeptAnswers) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?", "Where does the cooling water come from?")
    rewritten(kept, pump)
    fewer = kept.settings.multi_query.model_copy(update={"top_n_per_leaf": 1})
    kept.jobs.settings = kept.settings.model_copy(update={"multi_query": fewer})
    kept.put(cats="# Cats\n\nCats sleep all day.\n")
    kept.look_closely()
    assert kept.marks(pump) == ()


def test_a_look_during_which_a_model_does_not_answer_marks_nothing_and_is_made_again(
    kept: KeptAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    pump = kept.ask("How much does the pump P-100 deliver?")

    def without_model(*_: Any) -> Search:
        def search(query: LeafQuery) -> SearchResult:
            fell_back("embedding", TransientError("away"))
            return SearchResult(mode=query.strategy)

        return search

    with monkeypatch.context() as patched:
        patched.setattr(entering, "leaf_search", without_model)
        kept.put(cats="# Cats\n\nCats sleep all day.\n")
        assert kept.check.run_rechecks("default").unchecked == (pump,)
    assert (kept.marks(pump), list(kept.stale.rechecks("default"))) == ((), [pump])
    kept.look_closely()
    assert kept.stale.rechecks("default") == {}


def test_an_answer_that_is_noted_again_during_a_look_is_looked_at_again(kept: KeptAnswers) -> None:
    kept.stale.note_rechecks("default", ["a", "b"])
    noted = kept.stale.rechecks("default")
    kept.stale.note_rechecks("default", ["a"])
    kept.stale.forget_rechecks("default", noted)
    assert list(kept.stale.rechecks("default")) == ["a"]
