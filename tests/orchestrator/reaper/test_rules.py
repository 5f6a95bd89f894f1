"""When work is lost, by the rules alone: a job and the world as plain values in, a decision out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.reaper.rules import (
    FORCE_AFTER_S,
    GIVE_UP_S,
    JOB_TASKS,
    ON_ITS_WAY_S,
    SLACK_S,
    TOO_LONG_S,
    WAITED,
    dead_attempts,
    decide,
)
from orchestrator.reaper.views import Expire, Finalise, Force, Readmit, Redrive, View, Wait, World
from shared.contract import Queue, TaskName, priority
from shared.jobs import TERMINAL, State
from shared.jobs.work import Attempt, WorkItem
from shared.models import Lane
from shared.models.status import Postponement

NOW = 1_800_000_000.0
LIVES, DEAD = "search@a:1:x:1", "search@a:2:x:1"
WORLD = World(now=NOW, living=frozenset({LIVES}))
LONG_AGO, JUST_NOW = NOW - 60.0, NOW - ON_ITS_WAY_S + 1


def sent(at: float, **marks: object) -> WorkItem:
    return WorkItem(sent_at=at, sent_raw=f"{at:.6f}", **marks)


def at_work(worker: str, task: str = "search.leaf", since: float = LONG_AGO) -> WorkItem:
    mark = Attempt(since, worker, task)
    return sent(since - 1, busy=mark, busy_raw=str(mark))


def job(state: State = State.SEARCHING, **fields: object) -> View:
    given = {"rank": 0, "updated_at": LONG_AGO, "deadline_at": NOW + 600, "waits_until": NOW + 60, **fields}
    return View(job_id="1" * 21, state=state, **given)


def test_every_open_state_of_a_job_names_the_task_that_it_waits_for() -> None:
    assert JOB_TASKS.keys() == set(State) - TERMINAL


def missing(view: View, world: World = WORLD) -> list[tuple[str, TaskName]]:
    decision = decide(view, world)
    return [(one.item, one.task) for one in decision.missing] if isinstance(decision, Redrive) else []


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_has_ended_is_settled_whatever_else_holds(state: State) -> None:
    assert decide(job(state, awaiting_admission=True, admitted=False, deadline_at=0.0), WORLD) == Finalise()


@pytest.mark.parametrize(
    ("state", "late", "decision"),
    [
        (State.QUEUED, FORCE_AFTER_S, Redrive),
        (State.QUEUED, FORCE_AFTER_S + 1, Expire),
        (State.PLANNING, FORCE_AFTER_S + 1, Expire),
        (State.PLANNING, FORCE_AFTER_S - 1, Redrive),
        (State.SEARCHING, FORCE_AFTER_S + 1, Force),
        (State.SEARCHING, GIVE_UP_S, Force),
        (State.SEARCHING, GIVE_UP_S + 1, Expire),
        (State.MERGING, FORCE_AFTER_S + 1, Redrive),
        (State.SUMMARISING, GIVE_UP_S - 1, Redrive),
        (State.SUMMARISING, GIVE_UP_S + 1, Expire),
        (State.INDEXING, FORCE_AFTER_S - 1, Redrive),
        (State.INDEXING, FORCE_AFTER_S + 1, Expire),
        (State.FINISHING, FORCE_AFTER_S + 1, Expire),
    ],
)
def test_past_the_deadline_a_partial_answer_is_forced_and_without_leaves_the_job_expires(
    state: State, late: float, decision: type
) -> None:
    assert isinstance(decide(job(state, deadline_at=NOW - late), WORLD), decision)


def test_while_the_broker_is_away_nothing_is_sent_and_what_is_long_over_ends() -> None:
    away = replace(WORLD, broker_away=True)
    lost, over = job(), job(deadline_at=NOW - GIVE_UP_S - 1)
    assert isinstance(decide(lost, WORLD), Redrive)
    assert decide(lost, away) == Wait()
    assert decide(job(deadline_at=NOW - FORCE_AFTER_S - 1), away) == Wait()
    assert isinstance(decide(over, away), Expire)


def test_a_pool_that_nobody_reranks_is_answered_past_the_deadline_though_a_worker_is_at_it() -> None:
    at_it = {"rerank.root": at_work(LIVES, "rerank.root")}
    late = job(State.MERGING, has_pool=True, items=at_it, deadline_at=NOW - FORCE_AFTER_S - 1)
    assert isinstance(decide(late, WORLD), Force)
    assert decide(replace(late, deadline_at=NOW), WORLD) == Wait()


def test_the_body_is_forced_once_in_a_grace_not_at_every_look() -> None:
    late = job(deadline_at=NOW - FORCE_AFTER_S - 1, items={"merge.tree": sent(NOW - 2)})
    assert decide(late, WORLD) == Wait()
    assert isinstance(decide(replace(late, items={"merge.tree": sent(NOW - FORCE_AFTER_S)}), WORLD), Force)
    assert isinstance(decide(replace(late, items={"merge.tree": sent(NOW + 99)}), WORLD), Force), "a clock was wrong"


def test_a_job_in_its_line_waits_and_one_in_no_list_is_put_back() -> None:
    assert decide(job(State.QUEUED, awaiting_admission=True, admitted=False), WORLD) == Wait()
    assert decide(job(State.QUEUED, admitted=False), WORLD) == Readmit(runs=False)
    assert decide(job(State.MERGING, admitted=False), WORLD) == Readmit(runs=True)


@pytest.mark.parametrize("in_line", [True, False])
def test_a_job_that_has_waited_for_too_long_expires_at_once_wherever_it_stands(in_line: bool) -> None:
    """Its deadline has not begun: there is no grace, and nothing to force."""
    waits = job(State.QUEUED, awaiting_admission=in_line, admitted=False, deadline_at=None, created_at=NOW - 60)
    assert not isinstance(decide(replace(waits, waits_until=NOW + 0.1), WORLD), Expire)
    decision = decide(replace(waits, waits_until=NOW - 0.1), WORLD)
    assert isinstance(decision, Expire)
    assert "waited for 59.9 s" in decision.reason
    assert "queue_limit_s" in decision.reason


def test_a_job_whose_turn_has_come_is_judged_by_its_deadline_alone() -> None:
    assert not isinstance(decide(job(State.QUEUED, waits_until=NOW - 1000), WORLD), Expire)
    lost = job(State.SEARCHING, waits_until=NOW - GIVE_UP_S - 1, deadline_at=None)
    assert isinstance(decide(lost, WORLD), Expire), "a deadline that was lost does not let it run for ever"


@pytest.mark.parametrize(
    ("state", "task"),
    [
        (State.QUEUED, TaskName.PLAN_JOB),
        (State.PLANNING, TaskName.PLAN_JOB),
        (State.MERGING, TaskName.MERGE_TREE),
        (State.SUMMARISING, TaskName.MERGE_SUMMARISE),
    ],
)
def test_a_step_of_the_whole_job_is_lost_when_its_queue_is_empty(state: State, task: TaskName) -> None:
    assert missing(job(state)) == [(task.value, task)]
    assert missing(job(state, updated_at=JUST_NOW)) == [], "it may be on its way"
    assert missing(job(state, updated_at=NOW - ON_ITS_WAY_S)) == [(task.value, task)], "but not for longer"
    assert missing(job(state, items={task.value: sent(JUST_NOW)})) == [], "the reaper has just sent it"
    assert missing(job(state), replace(WORLD, waiting={task.queue: 1})) == [], "it waits"
    assert missing(job(state, items={task.value: at_work(LIVES, task.value)})) == [], "a worker is at it"


def test_a_merged_pool_that_nobody_reranks_is_merged_again_unless_a_worker_is_at_it() -> None:
    merging = job(State.MERGING, has_pool=True)
    assert missing(merging) == [("merge.tree", TaskName.MERGE_TREE)]
    assert missing(replace(merging, items={"rerank.root": at_work(LIVES, "rerank.root")})) == []
    assert missing(replace(merging, items={"rerank.root": at_work(DEAD, "rerank.root")})) != []


def test_exactly_the_nodes_that_are_lost_are_sent_again() -> None:
    items = {name: sent(LONG_AGO) for name in ("0.0", "0.1", "0.2", "0.3")}
    items |= {"0.4": sent(JUST_NOW), "0.5": at_work(LIVES), "0.6": at_work(DEAD)}
    states = ("done", "pending", "searched", "open", "pending", "pending", "pending")
    view = job(leaves={f"0.{number}": state for number, state in enumerate(states)}, items=items)
    assert missing(view) == [
        ("0.1", TaskName.SEARCH_LEAF),
        ("0.2", TaskName.RERANK_LEAF),
        ("0.3", TaskName.PLAN_REFINE),
        ("0.6", TaskName.SEARCH_LEAF),
    ]


def one(item: WorkItem, **world: object) -> list[tuple[str, TaskName]]:
    view = job(leaves={"0.1": "pending"}, items={"0.1": item})
    return missing(view, replace(WORLD, **world))


def test_a_message_is_lost_when_later_ones_of_its_queue_and_rank_have_been_taken() -> None:
    queue = {Queue.SEARCH: 100}
    assert one(sent(LONG_AGO), waiting=queue) == []
    assert one(sent(LONG_AGO), waiting=queue, latest_taken={"search:0": LONG_AGO + SLACK_S}) == [], (
        "producers out of step"
    )
    assert one(sent(LONG_AGO), waiting=queue, latest_taken={"rerank:0": NOW}) == [], "another queue"
    assert one(sent(LONG_AGO), waiting=queue, latest_taken={"search:5": NOW}) != [], (
        "what comes after it has been taken"
    )
    assert one(sent(LONG_AGO), waiting=queue, latest_taken={"search:0": LONG_AGO + SLACK_S + 1}) != []


def test_nothing_waits_for_ever_and_no_clock_that_was_wrong_keeps_work_back() -> None:
    queue = {Queue.SEARCH: 100}
    assert one(sent(NOW - TOO_LONG_S + 1), waiting=queue) == []
    assert one(sent(NOW - TOO_LONG_S - 1), waiting=queue) != []
    assert one(sent(NOW + 3), waiting=queue) == [], "clocks of two hosts differ a little"
    assert one(sent(NOW + 3600), waiting=queue) != []


def test_work_whose_worker_died_is_sent_at_once_but_only_once() -> None:
    proof = (Attempt(NOW - 10, DEAD, "search.leaf"),)
    assert one(sent(NOW - 11, deaths=1, proof=proof), waiting={Queue.SEARCH: 9}) != []
    assert one(sent(NOW - 1, deaths=1, proof=proof), waiting={Queue.SEARCH: 9}) == [], "it has been sent since"


def test_a_death_by_a_clock_that_was_ahead_does_not_send_the_work_at_every_look() -> None:
    """The clock stepped back after the death: until it has caught up, nothing can be sent after it."""
    ahead = (Attempt(NOW + 3600, DEAD, "search.leaf"),)
    assert one(sent(NOW - 1, deaths=1, proof=ahead)) == []
    assert one(sent(LONG_AGO, deaths=1, proof=ahead)) != [], "but the other rules hold"


def test_the_body_is_lost_when_all_nodes_are_settled_and_nobody_merges() -> None:
    done = job(leaves={"0.0": "done", "0.1": "failed", "0.2": "grown"})
    assert missing(done) == [("merge.tree", TaskName.MERGE_TREE)]
    assert missing(replace(done, leaves={**done.leaves, "0.3": "waiting"})) == []
    assert missing(replace(done, leaves={"0.3": "waiting", **done.leaves})) == [], "whichever comes first"
    assert missing(replace(done, items={"merge.tree": at_work(LIVES, "merge.tree")})) == []


def test_a_leaf_that_nobody_bound_is_told_of_by_the_last_that_it_waited_for() -> None:
    needs = {"0.3": ("0.1", "0.2"), "0.4": ("0.2",)}
    view = job(leaves={"0.1": "done", "0.2": "failed", "0.3": "waiting", "0.4": "waiting"}, needs=needs)
    assert missing(view) == [("0.2", TaskName.RERANK_LEAF)], "once for both"
    assert missing(replace(view, leaves={**view.leaves, "0.2": "searched"}, items={"0.2": sent(JUST_NOW)})) == []
    assert missing(replace(view, items={"0.2": at_work(LIVES, "rerank.leaf")})) == [], "it is about to bind them"


def test_only_marks_of_dead_workers_are_deaths_and_none_of_a_job_that_has_ended() -> None:
    items = {"0.1": at_work(LIVES), "0.2": at_work(DEAD), "0.3": sent(LONG_AGO)}
    view = job(items=items)
    assert [name for name, _ in dead_attempts(view, WORLD)] == ["0.2"]
    assert list(dead_attempts(replace(view, state=State.CANCELLED), WORLD)) == []


@pytest.mark.parametrize(
    ("deaths", "alone", "suspect"),
    [(0, 0, False), (1, 1, False), (2, 2, True), (3, 1, True), (3, 2, False), (8, 1, True), (9, 0, False)],
)
def test_what_killed_two_workers_is_tried_alone_and_what_killed_two_of_three_alone_is_sent_to_be_retired(
    deaths: int, alone: int, suspect: bool
) -> None:
    items = {"0.1": sent(LONG_AGO, deaths=deaths, sole_deaths=alone)}
    decision = decide(job(leaves={"0.1": "pending"}, items=items), WORLD)
    assert isinstance(decision, Redrive)
    assert [one.suspect for one in decision.missing] == [suspect]


def test_what_the_reaper_has_sent_again_is_passed_only_by_what_is_as_urgent() -> None:
    again = sent(LONG_AGO, again=True)
    view = job(rank=3, leaves={"0.1": "pending"}, items={"0.1": again})
    busy = replace(WORLD, waiting={Queue.SEARCH: 100})
    assert missing(view, replace(busy, latest_taken={"search:0": NOW})) == [("0.1", TaskName.SEARCH_LEAF)]
    once = replace(view, items={"0.1": sent(LONG_AGO)})
    assert missing(once, replace(busy, latest_taken={"search:0": NOW})) == [], "that queue comes before its own"


def test_nodes_are_sent_again_at_once_when_whoever_was_to_send_them_has_died() -> None:
    items = {"0.0": sent(JUST_NOW), "0.1": at_work(LIVES), "0.2": sent(JUST_NOW), "0.3": sent(JUST_NOW - 9)}
    view = job(leaves=dict(zip(items, ("pending", "pending", "searched", "pending"), strict=True)), items=items)
    busy = replace(WORLD, waiting={Queue.SEARCH: 100, Queue.RERANK: 100})
    assert missing(view, busy) == []
    assert missing(replace(view, sender_died=JUST_NOW - 1), busy) == [("0.0", TaskName.SEARCH_LEAF)]
    open_ = replace(view, leaves={**view.leaves, "0.0": "open"}, sender_died=JUST_NOW - 1)
    assert missing(open_, replace(busy, waiting=dict.fromkeys(Queue, 100))) == [("0.0", TaskName.PLAN_REFINE)]


def waits(until: float, goes_on_at: float = NOW + 500, **fields: object) -> WorkItem:
    postponed = Postponement(until=until, goes_on_at=goes_on_at, provider="llm", why="it answered 500")
    return sent(LONG_AGO, postponed=postponed, **fields)


SHUT = replace(WORLD, shut=frozenset({"llm"}))


@pytest.mark.parametrize(
    ("item", "world", "again"),
    [
        (waits(NOW + 9), WORLD, False),
        (waits(NOW - 1), WORLD, True),
        (waits(NOW - 1), SHUT, False),
        (waits(NOW - 1, NOW - 1), SHUT, True),
        (waits(NOW - 1), replace(WORLD, shut=frozenset({"rerank"})), True),
        (waits(NOW + 3600, NOW + 7200), WORLD, True),  # a clock was set back
        (waits(NOW - 1, busy=Attempt(NOW, LIVES, "plan.job")), WORLD, False),
    ],
)
def test_what_waits_for_a_server_is_not_lost_and_is_sent_when_its_time_has_come_and_the_gate_lets_calls_go(
    item: WorkItem, world: World, again: bool
) -> None:
    planning = job(State.PLANNING, items={"plan.job": item})
    searching = job(leaves={"0.0": "done", "0.1": "pending"}, items={"0.1": item})
    assert missing(planning, world) == ([("plan.job", TaskName.PLAN_JOB)] if again else [])
    assert missing(searching, world) == ([("0.1", TaskName.SEARCH_LEAF)] if again else [])


def test_what_goes_on_without_its_server_is_bounded_by_no_gate_and_what_uses_it_again_is() -> None:
    def waited_for(item: WorkItem) -> list[tuple[str, str]]:
        decision = decide(job(State.SUMMARISING, items={"merge.summarise": item}), WORLD)
        assert isinstance(decision, Redrive)
        return [(one.waited_for, one.why) for one in decision.missing]

    assert waited_for(waits(NOW - 1)) == [("llm", WAITED)]
    assert waited_for(waits(NOW - 1, NOW - 1)) == [("", WAITED)]


def test_a_root_rerank_that_has_waited_is_sent_with_its_merge_once_and_no_other_merge_while_that_is_on_its_way() -> (
    None
):
    merging = job(State.MERGING, has_pool=True, items={"rerank.root": waits(NOW - 1)})
    assert missing(merging) == [("merge.tree", TaskName.MERGE_TREE)]
    assert missing(replace(merging, items={"rerank.root": waits(NOW + 9)})) == []
    on_its_way = {"merge.tree": sent(JUST_NOW, again=True), "rerank.root": sent(LONG_AGO)}
    assert missing(replace(merging, items=on_its_way)) == []
    assert missing(replace(merging, items={"merge.tree": sent(LONG_AGO, again=True)})) == [
        ("merge.tree", TaskName.MERGE_TREE)
    ]


def test_of_the_ends_that_a_leaf_waits_for_the_one_that_is_postponed_binds_it() -> None:
    ends = {"0.1": "done", "0.2": "done", "0.3": "waiting"}
    needs = {"0.3": ("0.1", "0.2")}
    view = job(leaves=ends, needs=needs, items={"0.1": waits(NOW + 9), "0.2": sent(LONG_AGO)})
    assert missing(view) == []
    assert missing(replace(view, items={**view.items, "0.1": waits(NOW - 1)})) == [("0.1", TaskName.RERANK_LEAF)]


def test_a_job_whose_leaves_wait_for_a_server_is_merged_at_its_deadline_all_the_same() -> None:
    late = job(leaves={"0.1": "pending"}, items={"0.1": waits(NOW + 9)}, deadline_at=NOW - FORCE_AFTER_S - 1)
    assert isinstance(decide(late, WORLD), Force)


def test_of_lanes_apart_each_is_passed_by_its_own_messages_alone() -> None:
    apart = replace(WORLD, lanes_apart=True)

    def lost(lane: Lane, world: World) -> bool:
        view = replace(job(State.PLANNING), lane=lane, rank=priority(lane), updated_at=LONG_AGO)
        return bool(missing(view, world))

    waits = {"plan": 1, "plan.batch": 0}
    assert not lost(Lane.INTERACTIVE, replace(apart, waiting=waits))
    assert lost(Lane.BATCH, replace(apart, waiting=waits)), "its queue is empty"
    assert not lost(Lane.BATCH, replace(WORLD, waiting=waits)), "both wait in one"
    passed = {"plan": 1, "plan.batch": 1}
    taken = {"plan:7": NOW}
    assert not lost(Lane.INTERACTIVE, replace(apart, waiting=passed, latest_taken=taken)), "batch goes first there, too"
    assert lost(Lane.BATCH, replace(apart, waiting=passed, latest_taken=taken))
    assert lost(Lane.INTERACTIVE, replace(WORLD, waiting=passed, latest_taken=taken)), "it was more urgent"
