"""What comes back from Redis: messages, blobs, cache entries. Other releases and damage are to be refused by name."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from typing import Any

from shared.cache_entries import CacheEntryError, cache_key, decode_entry, encode_entry
from shared.contract import TaskMessage, read_message
from shared.errors import MessageVersionError
from shared.jobs import codec, hit_blobs
from shared.models import Answer, Hit, JobRequest, LeafResult, LeafStatus, MergedHit
from shared.models.hits import StageTrace
from tests.fuzz import samples
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Target, always

_MESSAGES = (
    TaskMessage(job_id="0123456789abc-s", node_id="0.1", force=True).wire(),
    TaskMessage(job_id="00061a2b3c4d5e6f").wire(),
)
_HIT = Hit(chunk_id="c", doc_id="d", path="notes/a.md", title="A", heading="B", text="缓存 text", score=0.5)
_STAGE = StageTrace(stage="fusion", ms=1.5, hits=2)
_LEAF = LeafResult(node_id="0.1", status=LeafStatus.DONE, hits=(_HIT, _HIT), stages=(_STAGE,))
_ANSWER = Answer(
    job_id="j", question="q", state="done", coverage="all", leaves=(_LEAF,), results=(MergedHit(**dict(_HIT)),)
)
#: Before compression: what an input may take is measured by its own bytes.
_MOST_CHARS = 100_000
_KEY = cache_key("leaf", {"tenant": "a", "query": "b"}, LeafResult)
_OTHER = cache_key("leaf", {"tenant": "c", "query": "b"}, LeafResult)


def _damaged(mutator: Mutator, blob: bytes) -> bytes:
    """Some bytes of a blob changed, or another text under the same compression."""
    rng = mutator.rng
    if rng.random() < 0.5:
        text = zlib.decompress(blob).decode()
        changed = mutator.text([text]) if rng.random() < 0.5 else mutator.json([json.loads(text.rpartition("\n")[2])])
        return zlib.compress(changed[:_MOST_CHARS].encode("utf-8", "surrogatepass"), 1)
    content = bytearray(blob)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randint(0, len(content))
        content[place : place + rng.choice((0, 1, 1, 9))] = rng.randbytes(rng.choice((0, 1, 1, 4)))
    return bytes(content[: rng.choice((len(content), len(content), rng.randint(0, len(content))))])


def _message(given: Any) -> None:
    if isinstance(given, dict):  # Celery's own arguments: anything else is no message of a task
        assert read_message(given).wire()


def _blob(blob: bytes) -> None:
    codec.unpack(blob, LeafResult)


def _hits(blob: bytes) -> None:
    """A leaf whose chunks stand beside it, the chunks themselves, and an answer that holds them."""
    leaf, chunks = hit_blobs.pack(_LEAF)
    hit_blobs._read.clear()
    for read in (
        lambda: hit_blobs.unpack(blob, LeafResult, lambda names: [chunks.get(name) for name in names]),
        lambda: hit_blobs.unpack(leaf, LeafResult, lambda names: [blob for _ in names]),
        lambda: hit_blobs.unpack_answer(blob),
    ):
        with suppress(ValueError):
            read()


def _of_hits(mutator: Mutator) -> bytes:
    blob, chunks = hit_blobs.pack(_LEAF)
    return _damaged(mutator, mutator.rng.choice((blob, *chunks.values(), hit_blobs.pack_answer(_ANSWER))))


def _entry(blob: bytes) -> None:
    """Whatever verifies is what was put in."""
    assert decode_entry(blob, _KEY, LeafResult) == _LEAF


TARGETS = (
    Target(
        name="message",
        make=lambda mutator: mutator.value(_MESSAGES),
        opened=always(_message),
        allowed=(MessageVersionError,),
        tokens=("v", "job_id", "node_id", "force", "1", "0.1"),
    ),
    Target(
        name="stored_blob",
        make=lambda mutator: _damaged(mutator, codec.pack(mutator.rng.choice((_LEAF, JobRequest(question="q"))))),
        opened=always(_blob),
        allowed=(ValueError,),
        tokens=samples.tokens("json"),
    ),
    Target(
        name="stored_hits",
        make=_of_hits,
        opened=always(_hits),
        allowed=(ValueError,),
        tokens=samples.tokens("json"),
    ),
    Target(
        name="cache_entry",
        make=lambda mutator: _damaged(mutator, encode_entry(_LEAF, mutator.rng.choice((_KEY, _OTHER)), LeafResult)),
        opened=always(_entry),
        allowed=(CacheEntryError,),
        tokens=samples.tokens("json"),
    ),
)
