"""Doctor's reading of the workers: who answers, who has a heartbeat, who takes messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.local.checks import Check
from shared.contract import Queue
from shared.heartbeat import BEAT_S, WorkerBeat

_START = "ramify up -d"
#: A heartbeat may be late; from the third that is missing on, something holds it.
_LATE_S = 3 * BEAT_S


def read(
    answers: Mapping[str, Sequence[str]], beats: Sequence[WorkerBeat], last: Mapping[str, float]
) -> Sequence[Check]:
    """What is wrong with which worker, in one line each; one line when all is well.

    `answers`: node name to its queues, of those that answer remote control. `last`: node name to seconds since its last
    heartbeat, of those that had one today.
    """
    faults = [*_unserved(answers, beats), *_silent(answers, last)]
    if faults:
        return faults
    names = ", ".join(sorted(answers))
    return (Check(name="pools", ok=True, detail=f"{len(answers)} workers serve all queues: {names}"),)


def node(worker: str) -> str:
    """The node name in a worker's id."""
    return worker.split(":", maxsplit=1)[0]


def _unserved(answers: Mapping[str, Sequence[str]], beats: Sequence[WorkerBeat]) -> Sequence[Check]:
    served = {queue for names in answers.values() for queue in names}
    missing = [queue.value for queue in Queue if queue.value not in served]
    if not missing:
        return ()
    mute = sorted({node(beat.worker) for beat in beats if set(beat.queues) & set(missing)} - set(answers))
    detail, fix = f"no worker serves {', '.join(missing)}", _START
    if mute:
        detail += f"; {', '.join(mute)} would, and lives, but does not answer"
        fix = "ask again in half a minute; if it stays so, see its log and start it anew"
    elif answers:
        fix = "see the pools' logs; `ramify up -d` starts them"
    return (Check(name="pools", ok=False, detail=detail, fix=fix),)


def _silent(answers: Mapping[str, Sequence[str]], last: Mapping[str, float]) -> Sequence[Check]:
    """Its work would be taken for that of a dead worker, and be given to others."""
    found = []
    for name in sorted(answers):
        age = last.get(name)
        if age is None or age > _LATE_S:
            said = "had no heartbeat today" if age is None else f"its last heartbeat was {age:.0f} s ago"
            fix = "see its log; its work is given to others meanwhile, so start it anew"
            found.append(Check(name="pools", ok=False, detail=f"{name} answers, but {said}", fix=fix))
    return found
