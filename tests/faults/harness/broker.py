"""Mischief with what lies in Redis: messages lost, doubled, shuffled; kombu's and Celery's own keys deleted; results
written by hand. Everything here happens while jobs run."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from contextlib import suppress

import redis

from shared.contract import PRIORITY_STEPS, Queue
from shared.models import LeafResult, LeafStatus
from tests.faults.harness.rounds import Harm

#: The queues of jobs; those of an ingest are not in this game.
_QUEUES = [
    queue.value if step == 0 else f"{queue.value}\x06\x16{step}"
    for queue in (Queue.PLAN, Queue.SEARCH, Queue.RERANK, Queue.MERGE)
    for step in PRIORITY_STEPS
]
_EVERY_S = 0.05
#: Recorded results that are written over with rubbish: so many jobs may end failed, with the reason.
DAMAGED = 3
Trick = Callable[[Harm], object]


def _again_and_again(of: Harm, trick: Trick) -> None:
    """Until the load's time is over. Fails when nothing was there to be tampered with: then nothing is shown."""
    touched = 0
    left = int(of.seconds / _EVERY_S)
    while left and not of.stop.wait(_EVERY_S):
        left -= 1
        touched += bool(trick(of))
    assert touched, "there was nothing to tamper with"


def _lose(of: Harm) -> object:
    return of.rig.redis.lpop(of.dice.choice(_QUEUES))


def _double(of: Harm) -> object:
    queue = of.dice.choice(_QUEUES)
    messages = of.rig.redis.lrange(queue, 0, 9)
    return messages and of.rig.redis.lpush(queue, *messages)


def _shuffle(of: Harm) -> object:
    """A queue in another order, in one step; a message that is taken meanwhile makes it try another time."""
    queue = of.dice.choice(_QUEUES)
    with of.rig.redis.pipeline() as pipe:
        pipe.watch(queue)
        messages = pipe.lrange(queue, 0, -1)
        if len(messages) < 2:
            return False
        pipe.multi()
        pipe.delete(queue)
        pipe.rpush(queue, *of.dice.sample(messages, len(messages)))
        try:
            pipe.execute()
        except redis.WatchError:
            return False
    return True


def lost(of: Harm) -> None:
    """Messages that were never taken vanish from the queues."""
    _again_and_again(of, _lose)


def doubled(of: Harm) -> None:
    """Messages come twice, those of jobs that have ended too."""
    kept: dict[str, bytes] = {}

    def keep_and_double(of: Harm) -> object:
        for queue in _QUEUES:
            if messages := of.rig.redis.lrange(queue, 0, 0):
                kept[queue] = messages[0]
        return _double(of)

    _again_and_again(of, keep_and_double)
    for queue, message in kept.items():
        of.rig.redis.lpush(queue, message)


def shuffled(of: Harm) -> None:
    """Queues change their order."""
    _again_and_again(of, _shuffle)


def mixed(of: Harm) -> None:
    """All of it by turns, and workers killed."""
    tricks = (_lose, _double, _shuffle)

    def one(of: Harm) -> object:
        if of.dice.random() < 0.05:
            of.kills.kill(of.dice.choice(("search", "rerank", "merge")))
        return of.dice.choice(tricks)(of)

    _again_and_again(of, one)


def forged(of: Harm) -> None:
    """Results of leaves that are still open are written by hand: rubbish, and ones that look right."""
    _again_and_again(of, lambda of: _write_result(of, {b"pending", b"searched"}))


def damaged(of: Harm) -> None:
    """Results that are recorded are written over with rubbish, a few: what was known is lost."""
    done = 0

    def damage(of: Harm) -> bool:
        nonlocal done
        damaged = done < DAMAGED and _write_result(of, {b"done"}, rubbish=True)
        done += damaged
        return damaged

    _again_and_again(of, damage)


def _write_result(of: Harm, states: set[bytes], *, rubbish: bool = False) -> bool:
    """Write a result over that of a leaf in one of these states, unless it leaves that state in the same moment."""
    for job_id in of.rig.redis.hkeys("ramify:{line}:under_way"):
        leaves, results = (f"ramify:{{{job_id.decode()}}}:{name}" for name in ("leaves", "results"))
        with of.rig.redis.pipeline() as pipe:
            pipe.watch(leaves)
            nodes = [node.decode() for node, state in pipe.hgetall(leaves).items() if state in states]
            if not nodes:
                continue
            node = of.dice.choice(nodes)
            pipe.multi()
            pipe.hset(results, node, _forgery(node, of.dice, rubbish=rubbish))
            with suppress(redis.WatchError):
                pipe.execute()
                return True
    return False


def _forgery(node: str, dice: random.Random, *, rubbish: bool) -> bytes:
    if rubbish or dice.random() < 0.5:
        return dice.randbytes(40)
    return zlib.compress(LeafResult(node_id=node, status=LeafStatus.DONE).model_dump_json().encode())
