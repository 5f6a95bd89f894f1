"""Writes what this release leaves in Redis and in its queues, stage by stage, as test data for the next one.

`python -m tests.record_release` starts the pools one after the other: what waits for the next one is kept as
`tests/data/releases/RELEASE/STAGE.json`, and the form of all messages and records as `shapes.json` beside it.
"""

from __future__ import annotations

import json
import socket
import tempfile
from functools import partial
from pathlib import Path

import redis

from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from shared.contract import Queue
from shared.release import release
from shared.settings import Settings, load_settings
from tests.faults.redis_stage import pools
from tests.support.kept_keys import kept_keys
from tests.support.redis_server import RedisServer
from tests.support.shapes import shapes
from tests.support.waiting import until

RELEASES = Path(__file__).parent / "data" / "releases"
NOTES = Path(__file__).parents[1] / "examples" / "notes" / "en" / "queues"
#: Two leaves that the rules make, besides the question's own.
QUESTION = "What are Redis Streams, and what is a transactional outbox?"
#: Each stage with the pool that takes the job there, the queue in which its work waits then, and its leaves' state.
STAGES = (
    ("planned", "plan", Queue.SEARCH, "pending"),
    ("searched", "search", Queue.RERANK, "searched"),
    ("reranked", "rerank", Queue.MERGE, "done"),
)


def main() -> None:
    folder = RELEASES / release()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, RedisServer(Path(scratch) / "redis") as server:
        settings = load_settings(redis={"url": server.url}, data_dir=Path(scratch) / "data", cache={"enabled": False})
        settings.data_dir.mkdir(mode=0o700)
        with Ramify(settings) as client:
            with pools(settings):
                for _ in client.ingest([NOTES]):
                    pass
                _ended(client)
            _write(folder, "ended", client.redis)
            client.redis.flushall()
            _stages(folder, client, settings)
    text = json.dumps(shapes(), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / "shapes.json").write_text(f"{text}\n", "utf-8")


def _ended(client: Ramify) -> None:
    """Jobs that have ended, and what is kept beside jobs."""
    asked = [QUESTION, "list all notes tagged queues", QUESTION]
    batch = client.submit_many([{"question": question, "top_n": 3, "summary": True} for question in asked])
    client.session("talk").append("user", "What is a dead letter?")
    KeyStore(client.redis, client.settings).create("default", name="recorded")
    watched = client.watch(QUESTION, top_n=3).id
    until(lambda: client.standing.get(watched).state.answer, 60, "the standing question is answered")
    until(lambda: not client.batch_status(batch.batch_id).open, 60, "the batch has ended")


def _stages(folder: Path, client: Ramify, settings: Settings) -> None:
    """One job that is taken from pool to pool, while no other pool runs."""
    client.submit(QUESTION, top_n=3, deadline_s=600)
    _write(folder, "queued", client.redis)
    for stage, pool, queue, state in STAGES:
        done = partial(_waits, client.redis, queue, state)
        with pools(settings, (pool,)):
            until(done, 60, f"{pool} is done")
        _write(folder, stage, client.redis)
    with pools(settings, ("merge",)):
        until(lambda: client.redis.llen(Queue.RERANK.value), 60, "the pool is to be reranked")
    _write(folder, "merged", client.redis)


def _waits(client: redis.Redis, queue: Queue, state: str) -> bool:
    """Whether all leaves are in this state, and messages in this queue."""
    leaves = {value.decode() for key in client.keys("ramify:{*}:leaves") for value in client.hvals(key)}
    return client.llen(queue.value) > 0 and leaves == {state}


def _write(folder: Path, stage: str, client: redis.Redis) -> None:
    text = json.dumps(kept_keys(client), indent=1, sort_keys=True, ensure_ascii=False)
    for own in (str(NOTES), str(NOTES).replace("/", r"\\/")):  # Redis' Lua writes \/ in JSON
        text = text.replace(own, "notes")
    text = text.replace(socket.gethostname(), "host")
    (folder / f"{stage}.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
