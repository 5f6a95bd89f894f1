"""What must hold of every job after a round. Each fault is one sentence with the job's id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from orchestrator.client import Ramify
from shared.errors import RamifyError
from shared.jobs.states import TRANSITIONS, State
from shared.models import Answer
from tests.faults.harness.answers import Essence
from tests.faults.harness.jobs import TERMINAL, Seen
from tests.faults.harness.traffic import Acknowledged

#: What an answer says of a leaf whose record somebody has written over.
_DAMAGED = "recorded result cannot be read"


def job_faults(job: Seen, ack: Acknowledged | None, client: Ramify, calm: dict[int, Essence]) -> Iterator[str]:
    """Everything that is wrong with one job. `ack`: how it was submitted, None when its submit was refused."""
    faults = [*_ending(job, ack), *_way(job), *_leaves(job)]
    if job.state == "done":
        try:
            answer = client.result(job.job_id)
        except (RamifyError, ValueError) as error:
            faults.append(f"is done, and its answer cannot be read: {error}")
        else:
            faults += _answer(job, answer)
            if ack is not None:
                faults += Essence(answer).differences(calm[ack.order.ask.number])
    elif job.has_answer:
        faults.append(f"is {job.state} and has an answer all the same")
    return (f"job {job.job_id} {fault}" for fault in faults)


def _ending(job: Seen, ack: Acknowledged | None) -> Iterator[str]:
    """It ended, as its caller may expect, and says why where it has no answer."""
    if not job.state:
        yield "is lost: there is no such job"
    elif job.state not in TERMINAL:
        yield f"never ended: it is {job.state}"
    elif job.state == "cancelled" and (ack is not None and ack.order.cancel_after is None):
        yield "was cancelled by nobody"
    elif job.state != "done" and not job.fields.get("error"):
        yield f"is {job.state} without a reason"


def _way(job: Seen) -> Iterator[str]:
    """Its states follow each other as they may, and it ends once."""
    went = [event["state"] for _, event in job.of_type("state")]
    if went[:1] != ["queued"]:
        yield f"began with {went[:1]}"
    for before, after in pairwise(went):
        if State(after) not in TRANSITIONS[State(before)]:
            yield f"went from {before} to {after}: {went}"
    ends = [state for state in went if state in TERMINAL]
    if len(ends) != 1 or ends[-1:] != [job.state]:
        yield f"is {job.state} and its events end {len(ends)} times: {ends}"
    types = [event.get("state", event["type"]) for _, event in job.events if event["type"] in {"state", "leaf", "node"}]
    late = types[types.index(ends[0]) + 1 :] if ends else []
    if late:
        yield f"went on after its end: {late}"


def _leaves(job: Seen) -> Iterator[str]:
    """Every leaf is recorded once, and the counts are those of the leaves."""
    records = Counter(event["id"] for _, event in job.of_type("leaf") if event["status"] in {"done", "failed"})
    if again := [node for node, times in records.items() if times > 1]:
        yield f"recorded leaves more than once: {again}"
    counts = {name: int(job.fields.get(f"leaves_{name}", 0)) for name in ("total", "done", "failed")}
    held = Counter(job.leaves.values())
    if (held["done"], held["failed"]) != (counts["done"], counts["failed"]):
        yield f"counts {counts}, its leaves are {dict(held)}"
    if held["done"] + held["failed"] != len(records):
        yield f"has {held['done'] + held['failed']} recorded leaves, and events of {len(records)}"
    nodes = [json.loads(event["node"])["id"] for _, event in job.of_type("node")]
    if len(set(nodes)) != len(nodes):
        yield f"told of a node twice: {nodes}"
    if sum(held.values()) - held["grown"] - held["open"] != counts["total"]:
        yield f"has {dict(held)}, and leaves_total {counts['total']}"


def _answer(job: Seen, answer: Answer) -> Iterator[str]:
    """The answer is about these leaves, says how many there are, and names a reason for each that is missing."""
    total, done = (int(job.fields[f"leaves_{name}"]) for name in ("total", "done"))
    nodes = [node for node, state in job.leaves.items() if state != "grown"]
    told = [leaf.node_id for leaf in answer.leaves]
    if sorted(told) != sorted(nodes):
        yield f"answers of leaves {told}, and has {sorted(nodes)}"
    missing = [leaf for leaf in answer.leaves if leaf.status.value != "done"]
    done -= sum(_DAMAGED in (leaf.error or "") for leaf in missing)
    if answer.coverage != f"{done} of {total} leaves answered" or answer.partial != (done < total):
        yield f"says {answer.coverage!r}, partial {answer.partial}; {done} of {total} are done"
    if (job.fields.get("partial") == "1") != answer.partial:
        yield "is partial in one place only"
    warned = " ".join(answer.warnings)
    for leaf in missing:
        if not leaf.error or leaf.node_id not in warned:
            yield f"misses leaf {leaf.node_id} without a named reason: {leaf.error!r}"
    if not answer.partial and int(job.fields["leaves_done"]) + int(job.fields["leaves_failed"]) != total:
        yield f"is complete with {done} of {total} leaves"
