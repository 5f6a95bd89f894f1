"""What a retry takes over of an ended job, and what that had cost: a retry pays only for the rest. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from orchestrator.retries.resume import resumed, without_stale
from shared.jobs import JobStore
from shared.jobs.codec import text
from shared.jobs.endings import Again
from shared.jobs.fields import damaged
from shared.jobs.keys import JobKeys
from shared.jobs.reader import degraded_at
from shared.jobs.stale import marks_in
from shared.models import Cost, Node
from shared.models.base import Model
from shared.models.route import Route


class TakenOver(Model):
    """`leaves` of `leaves_total` hold; `saved` are the calls and tokens of what holds, as the old jobs counted them.

    Not of what was made without something: nobody knows which of its calls had delivered nothing.
    """

    leaves: int = Field(default=0, ge=0)
    leaves_total: int = Field(default=0, ge=0)
    saved: Cost = Cost()

    def __add__(self, other: TakenOver) -> TakenOver:
        return TakenOver(
            leaves=self.leaves + other.leaves,
            leaves_total=self.leaves_total + other.leaves_total,
            saved=self.saved + other.saved,
        )


def taken_over(jobs: JobStore, job_ids: Iterable[str], again: Again) -> dict[str, TakenOver]:
    """By old job, read in one round trip. `again`: what of them the new ones run."""
    wanted = list(job_ids)
    with jobs.client.pipeline(transaction=False) as pipe:
        for job_id in wanted:
            keys = JobKeys(job_id)
            pipe.hgetall(keys.job)
            pipe.hvals(keys.nodes)
            pipe.hgetall(keys.leaves)
        rows = pipe.execute(raise_on_error=False) if wanted else []
    found = dict[str, TakenOver]()
    for job_id, *stored in zip(wanted, rows[::3], rows[1::3], rows[2::3], strict=True):
        fields, nodes, leaves = stored
        readable = damaged(*stored) is None
        found[job_id] = _of_job(fields, nodes, leaves, again) if readable else TakenOver()
    return found


def _of_job(job: Mapping[bytes, bytes], raw: Iterable[bytes], leaves: Mapping[bytes, bytes], again: Again) -> TakenOver:
    """Nothing, where the tree cannot be read: the retry plans anew then. Nor of an ingest, which has no leaves."""
    if b"ingest:files" in job:
        return TakenOver()
    total = sum(state not in {b"open", b"grown"} for state in leaves.values())
    try:
        fields, states = _texts(job), _texts(leaves)
        route = Route.of_record(fields["route"])
        nodes = {node.id: node for node in map(Node.of_record, raw)}
    except (KeyError, ValueError):
        return TakenOver(leaves_total=total)
    degraded = degraded_at(fields)
    if again is Again.STALE:
        nodes, states = without_stale(nodes, states, {leaf for mark in marks_in(fields) for leaf in mark.leaves})
    tree = resumed(route, nodes, states, degraded, repairs=again is Again.DEGRADED)
    if tree is None:
        return TakenOver(leaves_total=total)
    saved = dict.fromkeys(Cost.model_fields, 0)
    for field, value in fields.items():
        kind, _, rest = field.partition(":")
        item, _, name = rest.rpartition(":")
        holds = tree.holds(item) and item not in degraded
        if kind == "paid" and name in saved and holds and value.isdecimal():
            saved[name] += int(value)
    return TakenOver(leaves=len(tree.kept), leaves_total=total, saved=Cost(**saved))


def _texts(raw: Mapping[bytes, bytes]) -> dict[str, str]:
    return {text(name): text(value) for name, value in raw.items()}
