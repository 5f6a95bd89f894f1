"""Doctor's reading of the workers: who answers, who gives signs of life, who takes messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.local.checks import Check
from shared.contract import Queue
from shared.vitals import BEAT_S, Sign

_START = "ramify up -d"
#: A beat may be late; from the third that is missing on, something holds it.
_LATE_S = 3 * BEAT_S
#: A worker that is merely quick to be asked has taken its next message by then.
_DEAF_S = 10.0


def read(
    answers: Mapping[str, Sequence[str]], signs: Sequence[Sign], last: Mapping[str, float], deaf_after_s: float
) -> Sequence[Check]:
    """What is wrong with which worker, in one line each; one line when all is well.

    `answers`: node name to its queues, of those that answer remote control. `last`: node name to seconds since its last
    sign of life, of those that gave one today.
    """
    faults = [*_unserved(answers, signs), *_silent(answers, last), *_deaf(signs, deaf_after_s)]
    if faults:
        return faults
    names = ", ".join(sorted(answers))
    return (Check(name="pools", ok=True, detail=f"{len(answers)} workers serve all queues: {names}"),)


def node(worker: str) -> str:
    """The node name in a worker's id."""
    return worker.split(":", maxsplit=1)[0]


def _unserved(answers: Mapping[str, Sequence[str]], signs: Sequence[Sign]) -> Sequence[Check]:
    served = {queue for names in answers.values() for queue in names}
    missing = [queue.value for queue in Queue if queue.value not in served]
    if not missing:
        return ()
    mute = sorted({node(sign.worker) for sign in signs if set(sign.queues) & set(missing)} - set(answers))
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
            said = "gave no sign of life today" if age is None else f"gave its last sign of life {age:.0f} s ago"
            fix = "see its log; its work is given to others meanwhile, so start it anew"
            found.append(Check(name="pools", ok=False, detail=f"{name} answers, but {said}", fix=fix))
    return found


def _deaf(signs: Sequence[Sign], deaf_after_s: float) -> Sequence[Check]:
    ends = f"it ends itself after {deaf_after_s:.0f} s, to be started anew" if deaf_after_s else "start it anew"
    return [
        Check(
            name="pools",
            ok=False,
            detail=f"{node(sign.worker)} takes no messages since {sign.deaf_s:.0f} s, though some wait and it is free",
            fix=f"{ends}; its log says more",
        )
        for sign in signs
        if sign.deaf_s >= _DEAF_S
    ]
