"""Why one job is not done, or how it ended: a sentence, and the command to go on with. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from celery import Celery

from orchestrator.diagnosis.facts import FactReader, Facts
from orchestrator.diagnosis.wording import (
    degraded_parts,
    duration,
    jobs,
    nth,
    remedy,
    serving,
    silence,
    unserved,
    waiting_for,
    worker_name,
)
from orchestrator.reaper import rules
from orchestrator.reaper.views import Redrive
from shared.connections.heartbeat import WorkerBeat
from shared.contract import OF_SHARD, Queue, TaskName
from shared.errors import DamagedError
from shared.jobs import TERMINAL, JobReader, JobStore, State
from shared.jobs.damaged import SetAside
from shared.jobs.reader import unreadable_status
from shared.jobs.states import ENDED_LEAVES
from shared.models.status import Death, PendingWork, Turn, Why

#: Seconds after which a job should have been admitted where there is room: the reaper runs every two seconds.
_SOON_S = 15.0
_MOST_NAMED = 2
#: Tasks of the whole job, for people.
_NAMES = {
    TaskName.PLAN_JOB: "its planning",
    TaskName.MERGE_TREE: "the merge of its leaves",
    TaskName.RERANK_ROOT: "the rerank of its results",
    TaskName.MERGE_SUMMARISE: "its summary",
    TaskName.INDEX_FINISH: "its end (prune, links, weights)",
}


def why_job(app: Celery, store: JobStore, job_id: str) -> Why:
    """Raises: NotFoundError, redis.exceptions.RedisError when Redis does not answer."""
    if aside := _damage(store, job_id):
        return _why_damaged(store, job_id, aside)
    facts = FactReader(app, store, job_id).facts()
    status, view = facts.status, facts.view
    open_work, turn = _open_work(facts), _turn(facts)
    message, command = _answer(facts, open_work, turn)
    deaths = [
        Death(item=item, worker=attempt.worker, task=attempt.task, at=attempt.begun_at)
        for item, work in view.items.items()
        for attempt in work.proof
    ]
    return Why(
        job_id=status.job_id, question=status.question, state=status.state, partial=status.partial,
        degraded=status.degraded, degraded_at=status.degraded_at, lane=status.lane,
        tenant=status.tenant, said=message, next=command, turn=turn, work=open_work, failed=facts.failed,
        redriven=facts.redriven, redrives=facts.redrives, deaths=tuple(sorted(deaths, key=lambda death: death.at)),
        dead_letters=facts.dead_letters, providers=facts.providers, last_error=_last_error(facts),
        faults=tuple(dict.fromkeys(facts.faults)),
        deadline_left_s=None if status.terminal or view.waits else round(view.ends_at - facts.world.now, 1),
        wait_left_s=round(view.ends_at - facts.world.now, 1) if view.waits else None,
        ended_at=status.finished_at, budget=status.budget, retry_of=status.retry_of, retried_as=status.retried_as,
    )  # fmt: skip


def _damage(store: JobStore, job_id: str) -> SetAside | None:
    """Why the job cannot be read: as it was found when it was set aside, else as its hash is found now.

    Of its other keys that cannot be read yet, each costs its own fact.
    """
    if (known := store.damaged.get(job_id)) is not None:
        return known
    try:
        if store.job(job_id) is None:
            return None
        store.place_of(job_id)
    except DamagedError as error:
        return SetAside(str(error), error.newer, store.clock.now())
    return None


def _why_damaged(store: JobStore, job_id: str, aside: SetAside) -> Why:
    """What can be read of the job, why the rest cannot, and what becomes of it."""
    (status,) = JobReader(store.client).statuses([job_id]) or [unreadable_status(job_id, aside.reason)]
    since = duration(max(0.0, store.clock.now() - aside.since))
    message = f"It cannot be read: {aside.reason}. It is set aside since {since}, and looked at again every minute"
    if status.terminal:
        message = f"It ended {status.state}, and something of it cannot be read: {aside.reason}"
    elif aside.newer:
        message += "; a newer release may have written it so, and it is left as it is"
    else:
        message += "; if it stays so, it fails"
    command = f"ramify {'result' if status.terminal else 'cancel'} {job_id}"
    return Why(
        job_id=job_id, question=status.question, state=status.state, partial=status.partial, lane=status.lane,
        tenant=status.tenant, said=f"{message}.", next=command, last_error=status.error, faults=(aside.reason,),
        ended_at=status.finished_at, budget=status.budget, retry_of=status.retry_of, retried_as=status.retried_as,
    )  # fmt: skip


def _turn(facts: Facts) -> Turn | None:
    place = facts.place
    if place is None or not place.waiting or facts.status.terminal:
        return None
    eta = None if place.turn_s is None else round(place.turn_s, 1)
    return Turn(
        lane=place.lane.value, ahead=place.ahead, tenants=place.tenants, waiting=place.lane_waiting,
        under_way=place.lane_under_way, own=facts.own, window=facts.window, eta_s=eta,
    )  # fmt: skip


def _answer(facts: Facts, work: tuple[PendingWork, ...], turn: Turn | None) -> tuple[str, str]:
    status = facts.status
    if status.terminal:
        return _ended(facts)
    watch = f"ramify status {status.job_id} --watch"
    late = facts.world.now - facts.view.ends_at
    over = f" Its deadline passed {duration(late)} ago: it ends with what it has." if late > 0 else ""
    if facts.view.waits and late > 0:
        message = f"It has waited for longer than queue_limit_s allows, by {duration(late)}: the reaper ends it."
        return _if_reaper_runs(facts, message, watch)
    if turn:
        message, command = _waiting(facts, turn)
    elif status.state == State.QUEUED and not facts.view.admitted:
        message = "It is queued but stands in no admission queue: the reaper puts it back within seconds"
        message, command = _if_reaper_runs(facts, f"{message}.", watch)
    else:
        message, command = _under_way(facts, work, watch)
    if facts.broker:
        return f"{facts.broker}. Until then nothing goes on. {message}{over}", "ramify doctor"
    return f"{message}{over}", command


def _waiting(facts: Facts, turn: Turn) -> tuple[str, str]:
    """A job that waits for admission."""
    watch = f"ramify status {facts.status.job_id} --watch"
    before = f"{jobs(turn.ahead)} of its tenant {'is' if turn.ahead == 1 else 'are'} before it" if turn.ahead else ""
    before = before or "it is the next one of its tenant"
    sharing = f", {turn.tenants} tenants share the {turn.lane} lane" if turn.tenants > 1 else ""
    room = f"{turn.under_way} of at most {turn.window} jobs of the {turn.lane} lane are under way"
    message = f"It waits for its turn: {before}{sharing}, and {room}."
    if turn.eta_s is not None:
        message += f" It may be let in in about {duration(turn.eta_s)}."
        left = facts.view.ends_at - facts.world.now
        if turn.eta_s > left:
            message += (
                f" That is too late: in {duration(left)} it has waited for all that queue_limit_s allows, and expires."
            )
    waited = facts.world.now - facts.status.created_at
    allowed = max(1, turn.window - turn.under_way)
    if turn.own >= allowed and turn.tenants <= 1 and turn.under_way < turn.window:
        message += f" Its tenant has {turn.own} of those: one tenant alone gets half of them, so that others find room."
    if not _serving(facts, Queue.PLAN):
        stands, command = unserved(facts.silent, Queue.PLAN)
        return f"{message} No worker serves queue plan, so that nothing begins{stands}.", command
    if turn.own < allowed and not turn.ahead and waited > _SOON_S:
        return _if_reaper_runs(facts, f"{message} There is room for it: it is let in at the reaper's next look.", watch)
    return message, watch


def _under_way(facts: Facts, work: tuple[PendingWork, ...], watch: str) -> tuple[str, str]:
    status = facts.status
    done = status.leaves_done + status.leaves_failed
    head = f"It is {status.state}"
    if status.state == State.SEARCHING:
        failed = f", {status.leaves_failed} failed" if status.leaves_failed else ""
        head += f": {done} of {status.leaves_total} leaves have ended{failed}"
    if status.ingest is not None:
        head += f": {status.ingest.said}"
    if not work:
        return f"{head}.", watch
    alone = next((piece for piece in work if piece.stands == "queued" and not piece.serving), None)
    named = (alone, *(piece for piece in work if piece is not alone)) if alone else work
    message = "; ".join(piece.said for piece in named[:_MOST_NAMED])
    more = len(work) - _MOST_NAMED
    message = f"{head}. {message[:1].upper()}{message[1:]}{f'; {more} more are open' if more > 0 else ''}."
    if facts.providers:
        message += f" {facts.providers[0][:1].upper()}{facts.providers[0][1:]}."
    if alone:
        stands, command = unserved(facts.silent, Queue(alone.queue))
        return f"{message[:-1]}{stands}.", command
    held = {piece.worker for piece in work if piece.stands == "working"}
    if silent := [worker for worker in facts.silent if worker.worker in held]:
        return f"{message} {'; '.join(map(silence, silent))}.", remedy(silent)
    if any(piece.stands == "lost" for piece in work):
        return _if_reaper_runs(facts, f"{message} The reaper sends again what is lost, within seconds.", watch)
    return message, watch


def _if_reaper_runs(facts: Facts, message: str, command: str) -> tuple[str, str]:
    """Adds that no reaper runs, where none does."""
    if _serving(facts, Queue.OPS):
        return message, command
    stands, command = unserved(facts.silent, Queue.OPS)
    return f"{message} But no worker serves queue ops, where the reaper runs{stands}.", command


def _serving(facts: Facts, queue: Queue) -> int:
    return serving(facts.heartbeats, facts.silent, queue)


def _ended(facts: Facts) -> tuple[str, str]:
    """How it ended, and which leaves are missing."""
    status = facts.status
    took = duration(max(0.0, (status.finished_at or status.updated_at) - status.created_at))
    leaves = f"{status.leaves_done} of {status.leaves_total} leaves answered"
    if status.ingest is not None:
        leaves = status.ingest.said
    degraded = degraded_parts(status.degraded, status.degraded_at)
    without = f" Degraded: {degraded}." if degraded else ""
    if status.state == State.DONE and not status.partial and not degraded:
        return f"It is done: {leaves} within {took}.", f"ramify result {status.job_id}"
    if status.state == State.DONE and not status.partial:
        message = f"It is done: {leaves} within {took}, but degraded: {degraded}."
    elif status.state == State.DONE:
        message = f"It is done after {took}, but partial: {leaves}{_failures(facts)}.{without}"
    else:
        reason = f": {status.error.rstrip('.')}" if status.error else ""
        nothing = " Nothing had been searched." if status.ingest is None else " Nothing had been read."
        had = f" {leaves}{_failures(facts)}." if status.leaves_total else nothing
        message = f"It ended {status.state} after {took}{reason}.{had}"
    if status.ingest is not None and status.state == State.DONE and not status.retried_as:
        return message, f"ramify result {status.job_id}"
    if status.retried_as:
        return f"{message} It is tried again as {status.retried_as}.", f"ramify why {status.retried_as}"
    if facts.dead_letters:
        return f"{message} Work of it killed its workers and was retired.", f"ramify dead show {facts.dead_letters[0]}"
    if status.state == State.DONE and status.degraded:
        repair = f"ramify retry --degraded {status.job_id}"
        return f"{message} `{repair}` makes again what is {'missing or ' if status.partial else ''}degraded.", repair
    return message, f"ramify retry {status.job_id}"


def _failures(facts: Facts) -> str:
    """The first failure, and how many more."""
    if not facts.failed:
        return ""
    first, more = facts.failed[0], len(facts.failed) - 1
    return f"; leaf {first.item} failed: {first.error.rstrip('.')}{f' ({more} more failed)' if more else ''}"


def _last_error(facts: Facts) -> str | None:
    status = facts.status
    if status.error:
        return status.error
    if facts.failed:
        return facts.failed[-1].error
    return status.warnings[-1] if status.warnings and not status.terminal else None


def _open_work(facts: Facts) -> tuple[PendingWork, ...]:
    """The open items, each with a sentence: lost, waiting for a server, longest at work, in queues, behind others."""
    if facts.view.state in TERMINAL or facts.view.awaiting_admission:
        return ()
    order = {"lost": 0, "postponed": 1, "working": 2, "queued": 3, "waits": 4}
    return tuple(sorted(_pieces(facts), key=lambda piece: (order[piece.stands], -(piece.since_s or 0.0))))


def _pieces(facts: Facts) -> Iterator[PendingWork]:
    view = facts.view
    if view.state in {State.SEARCHING, State.INDEXING}:
        open_nodes = [
            node
            for node, state in view.leaves.items()
            if state == "waiting" or rules.task_of(view, node) or (state == "open" and view.state is State.INDEXING)
        ]
        yield from (_node(facts, node) for node in open_nodes)
        if open_nodes:
            return
    task = rules.task_of_job(view)
    yield _sent(facts, task.value, task)


def _node(facts: Facts, node_id: str) -> PendingWork:
    node = facts.nodes.get(node_id)
    what = node.query if node else ""
    if facts.view.state is State.INDEXING and not rules.task_of(facts.view, node_id):
        return _waiting_item(facts, node_id)
    if task := rules.task_of(facts.view, node_id):
        is_shard = node is not None and node.shard is not None
        return _sent(facts, node_id, OF_SHARD[task] if is_shard else task, what)
    depends_on = node.depends_on if node else ()
    needs = tuple(other for other in depends_on if facts.view.leaves.get(other) not in ENDED_LEAVES)
    ends = (facts.view.item(other).postponed for other in depends_on if not needs)
    if wait := next((found for found in ends if found is not None), None):
        return PendingWork(
            item=node_id, task=TaskName.RERANK_LEAF.value, queue=Queue.RERANK.value, what=what, stands="postponed",
            postponed=wait, said=f"leaf {node_id} waits to be bound: {waiting_for(wait, facts.world.now)}",
        )  # fmt: skip
    for_what = f"the answer of {' and '.join(needs)}" if needs else "what it depends on to be written in"
    return PendingWork(
        item=node_id, task=TaskName.SEARCH_LEAF.value, queue=Queue.SEARCH.value, what=what, stands="waits",
        said=f"leaf {node_id} waits for {for_what}", needs=needs,
    )  # fmt: skip


def _waiting_item(facts: Facts, item: str) -> PendingWork:
    """An item of an ingest that waits for its turn, or the hand-over by a client."""
    said = f"item {item} waits for those before it"
    if facts.view.leaves[item] == "open":
        heard = max(0.0, facts.world.now - (facts.view.item(item).sent_at or facts.world.now))
        said = f"its client has not handed over all documents yet; it was last heard of {duration(heard)} ago"
    task = TaskName.INDEX_DOCUMENTS
    return PendingWork(item=item, task=task.value, queue=task.queue.value, stands="waits", said=said)


def _sent(facts: Facts, item: str, task: TaskName, what: str = "") -> PendingWork:
    """An item that is at a worker, in a queue, or nowhere."""
    work, world = facts.view.item(item), facts.world
    again = sum(item in redriven.items for redriven in facts.redrives)
    waits = work.postponed.waits if work.postponed else 0
    tries, waiting = 1 + max(work.deaths, again, waits), world.in_queue(task.queue, facts.view.rank)
    serve = _serving(facts, task.queue)
    piece = PendingWork(
        item=item, task=task.value, queue=task.queue.value, what=what, stands="queued", said="", in_queue=waiting,
        serving=serve, tries=tries,
    )  # fmt: skip
    kind = {TaskName.PLAN_REFINE: "branch", TaskName.INDEX_DOCUMENTS: "item"}.get(task, "leaf")
    name = _NAMES.get(task, f"{kind} {item}")
    nth_try = f", {nth(tries)} try" if tries > 1 else ""
    found: dict[str, object]
    if busy := work.busy:
        since, worker = max(0.0, world.now - busy.begun_at), worker_name(busy.worker)
        found = {"worker": busy.worker, "lives": busy.worker in world.living, "since_s": round(since, 3)}
        if found["lives"]:
            found |= {"stands": "working", "said": f"{name} is with {worker} since {duration(since)}{nth_try}"}
        else:
            found |= {"stands": "lost", "said": f"{name} was with {worker}, which has died{nth_try}"}
    elif wait := work.postponed:
        found = {
            "stands": "postponed",
            "postponed": wait,
            "said": f"{name} waits: {waiting_for(wait, world.now)}{nth_try}",
        }
    elif why := _lost(facts, item):
        found = {"stands": "lost", "said": f"{name} got lost: {why}{nth_try}"}
    else:
        found = {"said": f"{name} {_queued(piece, facts.heartbeats)}{nth_try}"}
    return piece.model_copy(update=found)


def _queued(piece: PendingWork, beats: Sequence[WorkerBeat]) -> str:
    behind = f" behind at most {piece.in_queue - 1:,} others" if piece.in_queue > 1 else ""
    if not piece.serving:
        return f"waits in queue {piece.queue}{behind}, and no worker serves that queue"
    if not piece.in_queue:
        return f"is on its way to a worker of queue {piece.queue}"
    workers = "1 worker serves" if piece.serving == 1 else f"{piece.serving} workers serve"
    return f"waits in queue {piece.queue}{behind}; {workers} it{_all_taken(piece, beats)}"


def _all_taken(piece: PendingWork, beats: Sequence[WorkerBeat]) -> str:
    """Since when no worker of the queue has had a free thread; empty where one has."""
    serving = [beat for beat in beats if piece.queue in beat.queues]
    if not serving or not all(beat.full for beat in serving):
        return ""
    threads, longest_s = sum(beat.threads for beat in serving), max(beat.longest_s for beat in serving)
    return f", and all {threads} threads are taken, one of them since {duration(longest_s)}"


def _lost(facts: Facts, item: str) -> str:
    """Why the reaper would send it again now; empty when it would not."""
    decision = rules.decide(facts.view, facts.world)
    if not facts.known or not isinstance(decision, Redrive):
        return ""
    names = {missing.item: missing.why for missing in decision.missing}
    return names.get(TaskName.MERGE_TREE.value if item == TaskName.RERANK_ROOT.value else item, "")
