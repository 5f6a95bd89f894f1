"""The work of a job that is not done, piece by piece, each with a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.explaining.facts import Facts
from orchestrator.explaining.wording import duration, nth, worker_name
from orchestrator.reaper import rules
from orchestrator.reaper.view import Redrive
from shared.contract import OF_SHARD, Queue, TaskName
from shared.job_store import TERMINAL, State
from shared.job_store.states import SETTLED_LEAVES
from shared.models.why import Piece


def pieces(facts: Facts) -> tuple[Piece, ...]:
    """What is open, the longest at work first, then what waits in queues, then what waits for other leaves."""
    if facts.view.state in TERMINAL or facts.view.in_line:
        return ()
    order = {"lost": 0, "working": 1, "queued": 2, "waits": 3}
    return tuple(sorted(_pieces(facts), key=lambda piece: (order[piece.stands], -(piece.since_s or 0.0))))


def _pieces(facts: Facts) -> Iterator[Piece]:
    view = facts.view
    if view.state is State.SEARCHING:
        open_nodes = [node for node, state in view.leaves.items() if state == "waiting" or rules.task_of(view, node)]
        yield from (_node(facts, node) for node in open_nodes)
        if open_nodes:
            return
    step = rules.task_of_job(view)
    yield _sent(facts, step.value, step)


def _node(facts: Facts, node_id: str) -> Piece:
    node = facts.nodes.get(node_id)
    what = node.query if node else ""
    if task := rules.task_of(facts.view, node_id):
        is_shard = node is not None and node.shard is not None
        return _sent(facts, node_id, OF_SHARD[task] if is_shard else task, what)
    needs = (
        tuple(other for other in node.depends_on if facts.view.leaves.get(other) not in SETTLED_LEAVES) if node else ()
    )
    for_what = f"the answer of {' and '.join(needs)}" if needs else "what it depends on to be written in"
    return Piece(
        item=node_id, task=TaskName.SEARCH_LEAF.value, queue=Queue.SEARCH.value, what=what, stands="waits",
        said=f"leaf {node_id} waits for {for_what}", needs=needs,
    )  # fmt: skip


def _sent(facts: Facts, item: str, task: TaskName, what: str = "") -> Piece:
    """A piece that is at a worker, in a queue, or nowhere."""
    marks, world = facts.view.item(item), facts.world
    again = sum(item in redriven.items for redriven in facts.redrives)
    tries, waiting = 1 + max(marks.deaths, again), world.waiting.get(task.queue, 0)
    serving = sum(task.queue.value in sign.queues for sign in facts.signs)
    piece = Piece(
        item=item, task=task.value, queue=task.queue.value, what=what, stands="queued", said="", in_queue=waiting,
        serving=serving, tries=tries,
    )  # fmt: skip
    name, nth_try = _name(item, task), f", {nth(tries)} try" if tries > 1 else ""
    if busy := marks.busy:
        lives = busy.worker in world.living
        since = max(0.0, world.now - busy.begun_at)
        at = f"{name} is with {worker_name(busy.worker)} since {duration(since)}{nth_try}"
        dead = f"{name} was with {worker_name(busy.worker)}, which has died{nth_try}"
        found = {"worker": busy.worker, "lives": lives, "since_s": round(since, 3)}
        return piece.model_copy(
            update={**found, "stands": "working" if lives else "lost", "said": at if lives else dead}
        )
    if why := _lost(facts, item):
        return piece.model_copy(update={"stands": "lost", "said": f"{name} got lost: {why}{nth_try}"})
    return piece.model_copy(update={"said": f"{name} {_queued(piece)}{nth_try}"})


def _queued(piece: Piece) -> str:
    behind = f" behind at most {piece.in_queue - 1:,} others" if piece.in_queue > 1 else ""
    if not piece.serving:
        return f"waits in queue {piece.queue}{behind}, and no worker serves that queue"
    if not piece.in_queue:
        return f"is on its way to a worker of queue {piece.queue}"
    workers = "1 worker serves" if piece.serving == 1 else f"{piece.serving} workers serve"
    return f"waits in queue {piece.queue}{behind}; {workers} it"


def _lost(facts: Facts, item: str) -> str:
    """Why the reaper would send it again now; empty when it would not."""
    decision = rules.decide(facts.view, facts.world)
    if not facts.known or not isinstance(decision, Redrive):
        return ""
    names = {missing.item: missing.why for missing in decision.missing}
    body = item in {TaskName.RERANK_ROOT.value, TaskName.MERGE_TREE.value}
    return names.get(TaskName.MERGE_TREE.value if body else item, "")


def _name(item: str, task: TaskName) -> str:
    match task:
        case TaskName.SEARCH_LEAF | TaskName.RERANK_LEAF | TaskName.SEARCH_SHARD | TaskName.RERANK_COLUMNS:
            return f"leaf {item}"
        case TaskName.PLAN_REFINE:
            return f"branch {item}"
        case TaskName.PLAN_JOB:
            return "its planning"
        case TaskName.MERGE_SUMMARISE:
            return "its summary"
        case TaskName.RERANK_ROOT:
            return "the rerank of its results"
        case _:
            return "the merge of its leaves"
