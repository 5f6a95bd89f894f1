"""Why one job is not done, or how it ended: the sentence, then the command to go on with."""

from __future__ import annotations

from celery import Celery

from orchestrator.explaining.facts import Facts, Look
from orchestrator.explaining.pieces import pieces
from orchestrator.explaining.wording import duration, jobs
from shared.contract import Queue
from shared.job_store import JobStore, State
from shared.models.why import Death, Piece, Turn, Why

#: Seconds after which a job that there is room for should have been let in: the reaper looks every two seconds.
_SOON_S = 15.0
_MOST_NAMED = 2


def why_job(app: Celery, store: JobStore, job_id: str) -> Why:
    """Raises: NotFoundError, redis.exceptions.RedisError when Redis does not answer."""
    return explained(Look(app, store, job_id).facts())


def explained(facts: Facts) -> Why:
    """The facts in words. Pure."""
    status, view = facts.status, facts.view
    open_work, turn = pieces(facts), _turn(facts)
    said, then = _answer(facts, open_work, turn)
    deaths = [
        Death(item=item, worker=mark.worker, task=mark.task, at=mark.begun_at)
        for item, marks in view.items.items()
        for mark in marks.proof
    ]
    return Why(
        job_id=status.job_id,
        question=status.question,
        state=status.state,
        partial=status.partial,
        lane=status.lane,
        tenant=status.tenant,
        said=said,
        next=then,
        turn=turn,
        work=open_work,
        failed=facts.failed,
        redriven=facts.redriven,
        redrives=facts.redrives,
        deaths=tuple(sorted(deaths, key=lambda death: death.at)),
        dead_letters=facts.dead_letters,
        providers=facts.providers,
        last_error=_last_error(facts),
        faults=tuple(dict.fromkeys(facts.faults)),
        deadline_left_s=None if status.terminal else round(status.deadline_at - facts.world.now, 1),
        ended_at=status.finished_at,
        budget=status.budget,
        retry_of=status.retry_of,
        retried_as=status.retried_as,
    )


def _turn(facts: Facts) -> Turn | None:
    place = facts.place
    if place is None or not place.waiting or facts.status.terminal:
        return None
    eta = None
    if place.pace:
        eta = round((place.ahead + 1) * max(1, place.tenants) / place.pace, 1)
    return Turn(
        lane=place.lane.value, ahead=place.ahead, tenants=place.tenants, waiting=place.lane_waiting,
        under_way=place.lane_under_way, own=facts.own, window=facts.window, eta_s=eta,
    )  # fmt: skip


def _answer(facts: Facts, work: tuple[Piece, ...], turn: Turn | None) -> tuple[str, str]:
    status = facts.status
    if status.terminal:
        return _ended(facts)
    watch = f"ramify status {status.job_id} --watch"
    late = facts.world.now - status.deadline_at
    over = f" Its deadline passed {duration(late)} ago: it ends with what it has." if late > 0 else ""
    if turn:
        said, then = _waiting(facts, turn)
    elif status.state == State.QUEUED and not facts.view.counted:
        said = "It is queued but stands in no line: the reaper puts it back where it belongs within seconds"
        said, then = _reaper(facts, f"{said}.", watch)
    else:
        said, then = _under_way(facts, work, watch)
    return f"{said}{over}", then


def _waiting(facts: Facts, turn: Turn) -> tuple[str, str]:
    """Its turn has not come."""
    watch = f"ramify status {facts.status.job_id} --watch"
    before = f"{jobs(turn.ahead)} of its tenant {'is' if turn.ahead == 1 else 'are'} before it" if turn.ahead else ""
    before = before or "it is the next one of its tenant"
    sharing = f", {turn.tenants} tenants share the {turn.lane} lane" if turn.tenants > 1 else ""
    room = f"{turn.under_way} of at most {turn.window} jobs of the {turn.lane} lane are under way"
    said = f"It waits for its turn: {before}{sharing}, and {room}."
    if turn.eta_s is not None:
        said += f" It may be let in in about {duration(turn.eta_s)}."
    waited = facts.world.now - facts.status.created_at
    allowed = max(1, turn.window - turn.under_way)
    if turn.own >= allowed and turn.tenants <= 1 and turn.under_way < turn.window:
        said += f" Its tenant has {turn.own} of those: one tenant alone gets half of them, so that others find room."
    if not _serving(facts, Queue.PLAN):
        return f"{said} No worker serves queue plan, so that nothing begins.", "ramify doctor"
    if turn.own < allowed and not turn.ahead and waited > _SOON_S:
        return _reaper(facts, f"{said} There is room for it: it is let in at the reaper's next look.", watch)
    return said, watch


def _under_way(facts: Facts, work: tuple[Piece, ...], watch: str) -> tuple[str, str]:
    status = facts.status
    done = status.leaves_done + status.leaves_failed
    head = f"It is {status.state}"
    if status.state == State.SEARCHING:
        failed = f", {status.leaves_failed} failed" if status.leaves_failed else ""
        head += f": {done} of {status.leaves_total} leaves have ended{failed}"
    if not work:
        return f"{head}.", watch
    unserved = next((piece for piece in work if piece.stands == "queued" and not piece.serving), None)
    named = (unserved, *(piece for piece in work if piece is not unserved)) if unserved else work
    said = "; ".join(piece.said for piece in named[:_MOST_NAMED])
    more = len(work) - _MOST_NAMED
    said = f"{head}. {said[:1].upper()}{said[1:]}{f'; {more} more are open' if more > 0 else ''}."
    if facts.providers:
        said += f" {facts.providers[0][:1].upper()}{facts.providers[0][1:]}."
    if unserved:
        return said, "ramify doctor"
    if any(piece.stands == "lost" for piece in work):
        return _reaper(facts, f"{said} The reaper sends again what is lost, within seconds.", watch)
    return said, watch


def _reaper(facts: Facts, said: str, then: str) -> tuple[str, str]:
    """What the reaper does needs one that runs."""
    if _serving(facts, Queue.OPS):
        return said, then
    return f"{said} But no worker serves queue ops, where the reaper runs.", "ramify doctor"


def _serving(facts: Facts, queue: Queue) -> bool:
    return any(queue.value in sign.queues for sign in facts.signs)


def _ended(facts: Facts) -> tuple[str, str]:
    """How it ended, and which leaves are missing."""
    status = facts.status
    took = duration(max(0.0, (status.finished_at or status.updated_at) - status.created_at))
    leaves = f"{status.leaves_done} of {status.leaves_total} leaves answered"
    if status.state == State.DONE and not status.partial:
        return f"It is done: {leaves} within {took}.", f"ramify result {status.job_id}"
    if status.state == State.DONE:
        said = f"It is done after {took}, but partial: {leaves}{_failures(facts)}."
    else:
        reason = f": {status.error.rstrip('.')}" if status.error else ""
        had = f" {leaves}{_failures(facts)}." if status.leaves_total else " Nothing had been searched."
        said = f"It ended {status.state} after {took}{reason}.{had}"
    if status.retried_as:
        return f"{said} It is tried again as {status.retried_as}.", f"ramify why {status.retried_as}"
    if facts.dead_letters:
        return f"{said} Work of it killed its workers and was retired.", f"ramify dead show {facts.dead_letters[0]}"
    return said, f"ramify retry {status.job_id}"


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
    return status.warnings[-1] if status.warnings else None
