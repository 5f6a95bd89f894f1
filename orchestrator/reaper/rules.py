"""When is work lost? Pure: a View and the World in, a Decision out.

An item is sent (not begun), at a worker (begun, not ended), postponed (it waits for a server), or done. It is lost when
its worker is dead, or when its message is in no queue any more: the queue is empty, or later messages of it have been
taken already. A postponed one is sent again when its wait is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.reaper.views import Decision, Expire, Finalise, Force, Missing, Readmit, Redrive, View, Wait, World
from shared.contract import PRIORITY_STEPS, TaskName, lane_of, priority
from shared.jobs import TERMINAL, State
from shared.jobs.admission import waited_too_long
from shared.jobs.ingests import FIRST
from shared.jobs.states import ENDED_LEAVES
from shared.jobs.work import LONGEST_WAIT_S, Attempt, too_many_deaths
from shared.models.status import Postponement

#: Seconds past the deadline before a partial answer is forced, and before the job is given up.
FORCE_AFTER_S = 5.0
GIVE_UP_S = 60.0
#: Seconds that a message may be in transit between two processes, in no queue.
ON_ITS_WAY_S = 4.0
#: A message that was sent so many seconds before one that has been taken was lost; producers may differ by as much.
SLACK_S = 4.0
#: Seconds after which a message is sent again whatever its queue holds: queues are short, none waits so long.
TOO_LONG_S = 600.0
#: Seconds; time stamps further in the future come from a clock that was wrong.
SKEW_S = 5.0
#: Deaths after which items are tried one at a time: some may only have been at the same worker as a poison message.
SUSPECT = 2
#: Why an item is sent again that was not lost: it has waited for a server.
WAITED = "its wait for a server is over"
#: Why an ingest ends though its documents were not all handed over.
CLIENT_GONE = "the client that handed documents over has gone"
#: Tasks that send a message for each of several nodes.
SENDERS = frozenset({TaskName.PLAN_JOB.value, TaskName.PLAN_REFINE.value, TaskName.MERGE_TREE.value})

#: The task that a job in this state waits for (every open state has a row), and a node in this one.
JOB_TASKS = {
    State.QUEUED: TaskName.PLAN_JOB,
    State.PLANNING: TaskName.PLAN_JOB,
    State.SEARCHING: TaskName.MERGE_TREE,
    State.MERGING: TaskName.MERGE_TREE,
    State.SUMMARISING: TaskName.MERGE_SUMMARISE,
    State.INDEXING: TaskName.INDEX_FINISH,
    State.FINISHING: TaskName.INDEX_FINISH,
}
NODE_TASKS = {"pending": TaskName.SEARCH_LEAF, "searched": TaskName.RERANK_LEAF, "open": TaskName.PLAN_REFINE}
#: The same of an item of an ingest. Those that wait in its line are sent by whoever records one; a hand-over is open.
ITEM_TASKS = {"pending": TaskName.INDEX_DOCUMENTS}
#: States in which there is nothing to answer with when the deadline has passed.
_WITHOUT_ANSWER = frozenset({State.QUEUED, State.PLANNING, State.INDEXING, State.FINISHING})
#: Seconds without a word from a client after which its hand-over is taken to be cut off.
CLIENT_SILENT_S = 60.0


def task_of(view: View, node: str) -> TaskName | None:
    """The next task of a node; None for one that waits, or has ended.

    A shard of a list counts as a leaf here: its tasks (`OF_SHARD` in the contract) stand in the same queues.
    """
    tasks = ITEM_TASKS if view.state is State.INDEXING else NODE_TASKS
    return tasks.get(view.leaves.get(node, ""))


def task_of_job(view: View) -> TaskName:
    """The next task of the whole job, when no node of it is open. Raises: KeyError for a state without a row."""
    task = JOB_TASKS[view.state]
    return TaskName.RERANK_ROOT if task is TaskName.MERGE_TREE and view.has_pool else task


def decide(view: View, world: World) -> Decision:
    """What the reaper is to do about a job now."""
    if view.state in TERMINAL:
        return Finalise()
    if expired := _expired(view, world):
        return expired
    if view.awaiting_admission:
        return Wait()
    if not view.admitted:
        return Readmit(runs=view.state is not State.QUEUED)
    return Wait() if world.broker_away else _to_send(view, world)


def _to_send(view: View, world: World) -> Decision:
    if world.now - view.ends_at > FORCE_AFTER_S and (view.state is State.SEARCHING or view.has_pool):
        return _forced(view, world)
    missing = tuple(_missing(view, world))
    return Redrive(missing) if missing else Wait()


def _expired(view: View, world: World) -> Expire | None:
    late = world.now - view.ends_at
    if view.waits:
        return Expire(waited_too_long(view.waits_until - view.created_at)) if late > 0 else None
    if late > FORCE_AFTER_S and (view.state in _WITHOUT_ANSWER or late > GIVE_UP_S):
        return Expire(f"the deadline passed while the job was {view.state.value}")
    return None


def dead_attempts(view: View, world: World) -> Iterator[tuple[str, Attempt]]:
    """The items whose worker is dead, with the attempt."""
    if view.state not in TERMINAL:
        for name, item in view.items.items():
            if item.busy is not None and item.busy.worker not in world.living:
                yield name, item.busy


def _forced(view: View, world: World) -> Decision:
    merge = _merge(view, world, "the deadline has passed")
    sent = view.item(merge.item).sent_at
    return Wait() if sent is not None and 0 <= world.now - sent < FORCE_AFTER_S else Force(merge)


def _missing(view: View, world: World) -> Iterator[Missing]:
    if view.state is State.SEARCHING:
        yield from _missing_nodes(view, world)
        return
    if view.state is State.INDEXING:
        yield from _missing_items(view, world)
        return
    task = task_of_job(view)
    why = _lost(view, world, task.value, task)
    if task is TaskName.RERANK_ROOT and why not in {"", WAITED} and view.item(TaskName.MERGE_TREE.value).again:
        why = _lost(view, world, TaskName.MERGE_TREE.value, TaskName.MERGE_TREE)  # it was sent as part of that
    if why and task in {TaskName.MERGE_TREE, TaskName.RERANK_ROOT}:
        yield _merge(view, world, why, task.value)
    elif why:
        yield _again(view, world, task.value, task, why)


def _missing_nodes(view: View, world: World) -> Iterator[Missing]:
    any_open = False
    for node, state in view.leaves.items():
        task = task_of(view, node)
        any_open = any_open or task is not None or state == "waiting"
        if task and (why := _lost(view, world, node, task)):
            yield _again(view, world, node, task, why)
    yield from _unbound(view, world)
    if not any_open and (why := _lost(view, world, TaskName.MERGE_TREE.value, TaskName.MERGE_TREE)):
        # Where the count says otherwise, a leaf was lost: the merge names it as missing.
        yield replace(_merge(view, world, why), force=view.counted_open > 0)


def _missing_items(view: View, world: World) -> Iterator[Missing]:
    """Of an ingest: items that were sent, and its end, also where a client has gone before it closed its hand-over."""
    open_items = [item for item, state in view.leaves.items() if state not in {*ENDED_LEAVES, "grown"}]
    for item in open_items:
        task = task_of(view, item)
        if task and (why := _lost(view, world, item, task)):
            yield _again(view, world, item, task, why)
    finish = TaskName.INDEX_FINISH
    if not open_items and (why := _lost(view, world, finish.value, finish)):
        yield replace(_again(view, world, finish.value, finish, why), force=view.counted_open > 0)
    if open_items == [FIRST] and view.leaves[FIRST] == "open":
        heard = max(view.item(FIRST).sent_at or 0.0, view.updated_at)
        if world.now - heard > CLIENT_SILENT_S and (why := _lost(view, world, finish.value, finish)):
            yield replace(_again(view, world, finish.value, finish, why), why=CLIENT_GONE, force=True)


def _unbound(view: View, world: World) -> Iterator[Missing]:
    """Leaves whose dependencies have ended but that were not bound: the end of one dependency is sent again."""
    again = set[str]()
    for node, state in view.leaves.items():
        others = view.needs.get(node, ())
        if state != "waiting" or not others or any(view.leaves.get(other) not in ENDED_LEAVES for other in others):
            continue
        at_it = any(view.item(other).busy for other in others)
        ended = next((other for other in others if view.item(other).postponed), others[-1])
        if not at_it and ended not in again and (why := _lost(view, world, ended, TaskName.RERANK_LEAF)):
            again.add(ended)
            why = why if why == WAITED else f"{node} is not bound: {why}"
            yield replace(_again(view, world, ended, TaskName.RERANK_LEAF, why), suspect=False)


def _again(view: View, world: World, name: str, task: TaskName, why: str) -> Missing:
    """An item that is to be sent again under its own name."""
    return Missing(
        name, task, view.leaves.get(name, ""), view.item(name).sent_raw, why, _suspect(view, world, name),
        _waited_for(view, world, name),
    )  # fmt: skip


def _waited_for(view: View, world: World, name: str) -> str:
    """The kind of server that an item has waited for and may use now; empty where it goes on without."""
    wait = view.item(name).postponed
    return wait.provider if wait is not None and world.now < wait.goes_on_at else ""


def _lost(view: View, world: World, name: str, task: TaskName) -> str:
    """Why an item that is not done is lost; empty when it is on its way, or at a worker that lives."""
    item = view.item(name)
    if item.busy is not None:
        return "" if item.busy.worker in world.living else "its worker died"
    if item.postponed is not None:
        return WAITED if _wait_is_over(item.postponed, world) else ""
    if item.proof and (item.sent_at or 0.0) <= item.proof[-1].begun_at <= world.now + SKEW_S:
        return "its worker died"
    by_sender = view.sender_died is not None and (item.sent_at or 0.0) >= view.sender_died
    if by_sender and task in {TaskName.SEARCH_LEAF, TaskName.PLAN_REFINE}:
        return "whoever was to send it died"
    sent = max(item.sent_at or 0.0, 0.0 if name in view.leaves else view.updated_at)
    age = world.now - sent
    if age < ON_ITS_WAY_S:
        return "its time of sending lies in the future" if age < -SKEW_S else ""
    # What the reaper sends has the first priority of its lane.
    rank = priority(view.lane) if item.again else view.rank
    return _passed(world, task, rank, sent, age)


def _wait_is_over(wait: Postponement, world: World) -> bool:
    """Also of one that ends later than any may: the clock was set back."""
    if world.now >= wait.goes_on_at or wait.until > world.now + LONGEST_WAIT_S + SKEW_S:
        return True
    return world.now >= wait.until and wait.provider not in world.shut


def _passed(world: World, task: TaskName, rank: int, sent: float, age: float) -> str:
    if not world.in_queue(task.queue, rank):
        return "its message is in no queue"
    # What is less urgent is taken only when nothing more urgent waits; in a lane apart, each in its turn.
    lane, apart = lane_of(rank), world.lanes_apart
    behind = [step for step in PRIORITY_STEPS if (lane_of(step) is lane if apart else step >= rank)]
    taken = (world.latest_taken.get(f"{task.queue.value}:{step}", 0.0) for step in behind)
    if max(taken, default=0.0) > sent + SLACK_S:
        return "later messages have been taken"
    return "it has waited too long" if age > TOO_LONG_S else ""


def _merge(view: View, world: World, why: str, by: str = "") -> Missing:
    """Merge, root rerank and summary are sent as a whole, under the first task's name. `by`: which of them is due."""
    name = TaskName.MERGE_TREE.value
    suspect, waited_for = _suspect(view, world, by or name), _waited_for(view, world, by or name)
    return Missing(name, TaskName.MERGE_TREE, "", view.item(name).sent_raw, why, suspect, waited_for)


def _suspect(view: View, world: World, name: str) -> bool:
    item = view.item(name)
    return item.deaths >= SUSPECT and not too_many_deaths(item.deaths, item.sole_deaths, world.max_deaths)
