"""What is done next for a standing question: pure."""

from __future__ import annotations

import pytest

from orchestrator.standing.rules import StandingStep, StandingView, lot, next_step, wait_after
from shared.cited_facts import changed, facts_of
from shared.models import Answer, Citation, JobRequest, Summary
from shared.models.stale import StaleBy, StaleMark
from shared.models.standing import CitedFact, RunKind, StandingQuestion, StandingState
from shared.settings.standing import StandingSettings

QUESTION = StandingQuestion(id="sq_1", request=JobRequest(question="why?"), created_at=0.0)
HOURLY = QUESTION.model_copy(update={"every_s": 3600.0})
NEVER, ALWAYS = StandingSettings(sample=0.0), StandingSettings(sample=1.0)
ANSWERED = StandingState(answer="j1", checks=3, number=1)


def mark(rank: int) -> StaleMark:
    return StaleMark(doc_id="d", path="a.md", by=StaleBy.NEW, since=1.0, leaves=("0.0",), rank=rank)


def step(
    state: StandingState, question: StandingQuestion = QUESTION, sample: float = 0.0, **view: object
) -> StandingStep:
    seen = StandingView(**{"now": 100.0, "newest": state.answer, "checks": 3, **view})  # type: ignore[arg-type]
    return next_step(question, state, seen, StandingSettings(sample=sample))


def test_the_first_answer_is_made_at_once_and_a_job_under_way_is_waited_for() -> None:
    assert step(StandingState(), newest=None).start is RunKind.FIRST
    running = StandingState(running="j1")
    assert step(running).take is None
    assert "under way" in step(running).waits
    assert step(running, ended=True).take == "j1"


def test_a_change_starts_a_refresh_only_where_it_is_among_the_first_passages() -> None:
    assert step(ANSWERED, marks=(mark(5),)).start is RunKind.REFRESH
    assert step(ANSWERED, marks=(mark(6),)).start is None
    assert step(ANSWERED).start is None


def test_where_it_was_looked_ahead_that_decides_and_no_rank() -> None:
    assert step(ANSWERED, marks=(mark(1),), differs=False).start is None
    assert step(ANSWERED, marks=(mark(1),), checks=5, differs=False, sample=1.0).start is RunKind.SAMPLE
    assert step(ANSWERED, marks=(mark(9),), differs=True).start is RunKind.REFRESH


def test_a_change_that_touches_nothing_is_counted_and_sampled() -> None:
    assert step(ANSWERED, checks=5).changes == 2
    under_way = ANSWERED.model_copy(update={"running": "job"})
    assert [step(under_way, checks=5, ended=ended).changes for ended in (False, True)] == [2, 2]
    assert step(ANSWERED, checks=5).start is None
    assert step(ANSWERED, checks=5, sample=1.0).start is RunKind.SAMPLE
    assert step(ANSWERED, sample=1.0).start is None, "nothing has changed"


def test_the_lot_is_the_same_each_time_and_about_as_often_as_asked_for() -> None:
    drawn = [lot("sq_1", check) for check in range(2000)]
    assert drawn == [lot("sq_1", check) for check in range(2000)]
    assert 0.03 < sum(one < 0.05 for one in drawn) / 2000 < 0.07


def test_by_the_clock_it_is_asked_anew_whatever_has_changed() -> None:
    assert step(ANSWERED.model_copy(update={"next_at": 99.0}), HOURLY).start is RunKind.FULL
    assert step(ANSWERED.model_copy(update={"next_at": 101.0}), HOURLY, marks=(mark(1),)).start is None


def test_an_answer_that_has_expired_is_made_anew_and_one_that_another_refreshed_is_taken() -> None:
    assert step(ANSWERED, gone=True).start is RunKind.FULL
    assert step(ANSWERED, newest="j2").take == "j2"
    assert step(ANSWERED, newest_open=True, marks=(mark(1),)).start is None


def test_after_a_failure_it_waits_longer_each_time() -> None:
    failed = ANSWERED.model_copy(update={"failures": 1, "next_at": 101.0, "error": "no store"})
    assert "no store" in step(failed, marks=(mark(1),)).waits
    assert step(failed.model_copy(update={"next_at": 99.0}), marks=(mark(1),)).start is RunKind.REFRESH
    assert [wait_after(n) for n in (1, 2, 3, 50)] == [60, 120, 240, 3600]


def answer(*quotes: str) -> Answer:
    cited = tuple(
        Citation(number=n, chunk_id=f"c{n}", path=f"{n}.md", title="T", quote=quote)
        for n, quote in enumerate(quotes, 1)
    )
    return Answer(job_id="j", question="why?", state="done", coverage="1", summary=Summary(text="t", citations=cited))


def test_facts_are_what_is_quoted_whoever_says_it() -> None:
    before, now = facts_of(answer("It is 5 bar.", "It is  blue.")), facts_of(answer("it is blue.", "It is 7 bar."))
    new, gone = changed(before, now)
    assert ([one.text for one in new], [one.text for one in gone]) == (["It is 7 bar."], ["It is 5 bar."])
    assert changed(before, before) == ([], [])
    assert facts_of(answer("same", "same")) == (CitedFact(path="1.md", text="same"),)


@pytest.mark.parametrize("words", [(), ("tell",), ("./tell",)])
def test_a_command_is_a_whole_path_with_its_arguments(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="whole path"):
        StandingSettings(commands={"told": words})
