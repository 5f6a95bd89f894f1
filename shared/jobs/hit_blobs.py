"""Blobs that hold hits: each chunk stands once beside the blob, and a hit names it and says what was found of it.

A chunk's name is the digest of its content, so what a process has packed or read once it need not do again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import from_json

from shared.byte_cache import ByteCache
from shared.jobs import codec
from shared.models import Answer, Chunk, Hit, LeafResult, MergedHit
from shared.models.base import Model
from shared.models.hits import Effect, Source, Via

M = TypeVar("M", bound=BaseModel)
#: The stored chunks of some names, None for those that are gone.
ReadChunks = Callable[[list[str]], Sequence[object]]

#: Bytes of chunks, before compression, that a process keeps to pack and to read them without work.
_MEMORY_BYTES = 16 * 1024 * 1024
#: What a leaf takes in memory, in sizes of its blob, which is not compressed; its texts are those of `_read`.
_TIMES_IN_MEMORY = 10
_REF = "ref"
#: How a snippet ends that is cut, and its first characters, by which its place is looked for.
_ELLIPSIS, _FIRST = "…", 16
_CONTENT = (*Chunk.model_fields, "vector")
_WITH_VECTOR, _WITHOUT_VECTOR = set(_CONTENT), set(Chunk.model_fields)
_content = itemgetter(*_CONTENT)
_DEFAULTS = {name: field.get_default(call_default_factory=True) for name, field in Hit.model_fields.items()}


class StoredChunk(Hit):
    """A chunk beside a blob: a hit without what was found of it."""

    score: float = 0.0


class KeptHit(Model):
    """What a blob says of a hit beside its chunk. `excerpt` stands for a snippet that is read off the chunk's text.

    Of the text from this offset on, on one line, it is so many characters, and ends in an ellipsis or not.
    """

    ref: str
    score: float
    snippet: str = ""
    excerpt: tuple[int, int, bool] | None = None
    via: Via | None = None
    parts: dict[str, float] = Field(default_factory=dict)
    explain: tuple[Effect, ...] = ()
    sources: tuple[Source, ...] = ()


_FOUND = TypeAdapter(list[KeptHit])
_NO_FIELDS = {kind: KeptHit.model_fields.keys() - kind.model_fields.keys() for kind in (Hit, MergedHit)}


class _Packed(NamedTuple):
    ref: str
    text: str
    blob: bytes


_packed: ByteCache[Any, _Packed] = ByteCache(_MEMORY_BYTES)
_read: ByteCache[str, dict[str, Any]] = ByteCache(_MEMORY_BYTES)
#: Leaves by their blobs, with the names of their chunks: the merge and the summary of a job read the same ones.
_leaves: ByteCache[bytes, tuple[LeafResult, set[str]]] = ByteCache(_MEMORY_BYTES // 2)


class LostChunkError(ValueError):
    """A blob names a chunk that does not stand beside it (any more)."""


def pack(value: BaseModel, level: int = codec.FAST) -> tuple[bytes, dict[str, bytes]]:
    """The blob of a model with `hits`, at one of the levels of `codec`, and their chunks by name.

    Raises: ValueError for what has no JSON form.
    """
    hits: Sequence[Hit] = value.hits  # type: ignore[attr-defined] # SearchResult, LeafResult, MergedPool
    chunks = [_chunk(hit) for hit in hits]
    found = [_found(hit, chunk.ref) for hit, chunk in zip(hits, chunks, strict=True)]
    blobs = {chunk.ref: chunk.blob for chunk in chunks}
    return codec.compressed({**_rest(value, "hits"), "hits": found}, level), blobs


def unpack(blob: object, kind: type[M], read: ReadChunks, known: set[str] | None = None) -> M:
    """Read it back. Adds the names of all of its chunks to `known`.

    Blobs of earlier releases hold whole hits. Raises: ValueError, TypeError as `codec.unpack`; LostChunkError.
    """
    seen = set[str]() if known is None else known
    if kind is LeafResult and isinstance(blob, bytes):
        return cast(M, _leaf(blob, read, seen))
    return _unpacked(blob, kind, read, seen)


def _leaf(blob: bytes, read: ReadChunks, seen: set[str]) -> LeafResult:
    before = _leaves.get(blob)
    if before is None or not _all_read(before[1]):
        refs = set[str]()
        before = _unpacked(blob, LeafResult, read, refs), refs
        if _all_read(refs):
            _leaves.keep(blob, before, _TIMES_IN_MEMORY * len(blob))
    leaf, refs = before
    seen.update(refs)
    return leaf


def _all_read(refs: Collection[str]) -> bool:
    """Whether all chunks are remembered; one that was changed beside its blob never is."""
    return len(_read.find(refs)) == len(refs)


def _unpacked(blob: object, kind: type[M], read: ReadChunks, seen: set[str]) -> M:
    return _joined(_as_object(codec.decompressed(blob, kind), kind), kind, lambda refs: _chunks(refs, read, seen))


def pack_answer(answer: Answer) -> bytes:
    """An answer with each chunk once, under `chunks`: the results and the leaves have mostly the same.

    Nor do snippets repeat its text.
    """
    numbers: dict[str, str] = {}
    chunks: list[str] = []

    def found(hits: Sequence[Hit]) -> list[dict[str, Any]]:
        known = [_chunk(hit) for hit in hits]
        for chunk in known:
            if chunk.ref not in numbers:
                numbers[chunk.ref] = number = str(len(numbers) + 1)
                chunks.append(f'"{number}":{chunk.text}')
        return [_excerpted(_found(hit, numbers[chunk.ref]), hit) for hit, chunk in zip(hits, known, strict=True)]

    results = found(answer.results)
    leaves = [{**_rest(leaf, "hits"), "hits": found(leaf.hits)} for leaf in answer.leaves]
    rest = _rest(answer.model_copy(update={"leaves": ()}), "results")
    found_of_each = codec.json_bytes({**rest, "results": results, "leaves": leaves})
    texts = ",".join(chunks).encode()  # JSON already, of `_chunk`
    return codec.compressed_bytes(b'%b,"chunks":{%b}}' % (found_of_each[:-1], texts), codec.KEPT)


def unpack_answer(blob: object) -> Answer:
    """Raises: as `unpack`."""
    data = _as_object(codec.decompressed(blob, Answer), Answer)
    if (texts := data.pop("chunks", None)) is None:  # of an earlier release
        return codec.unpack(blob, Answer)
    if not isinstance(texts, Mapping):
        raise ValueError("the stored Answer has no chunks")  # noqa: TRY004 - as for any other damage
    known = {ref: _fields(StoredChunk.model_validate(text, extra="ignore")) for ref, text in texts.items()}
    leaves = [_joined(leaf, LeafResult, lambda _: known) for leaf in _list(data.pop("leaves", []))]
    results = _hits(_list(data.pop("results", [])), MergedHit, lambda _: known)
    answer = Answer.model_validate(data, extra="ignore")
    return answer.model_copy(update={"leaves": tuple(leaves), "results": results})


def _rest(value: BaseModel, hits: str) -> dict[str, Any]:
    return value.model_copy(update={hits: ()}).model_dump(mode="json", exclude_defaults=True)


def _found(hit: Hit, ref: str) -> dict[str, Any]:
    found: dict[str, Any] = {_REF: ref, "score": hit.score}
    if hit.snippet:
        found["snippet"] = hit.snippet
    if hit.via is not None:
        found["via"] = hit.via.model_dump(mode="json", exclude_defaults=True)
    if hit.parts:
        found["parts"] = hit.parts
    if hit.explain:
        found["explain"] = [effect.model_dump(mode="json") for effect in hit.explain]
    if isinstance(hit, MergedHit):
        found["sources"] = [source.model_dump(mode="json") for source in hit.sources]
    return found


def _excerpted(found: dict[str, Any], hit: Hit) -> dict[str, Any]:
    """`found` with an excerpt for its snippet, where that is one of the hit's text."""
    snippet = hit.snippet
    body = snippet.removesuffix(_ELLIPSIS)
    excerpt = max(0, hit.text.find(body[:_FIRST])), len(body), body != snippet
    if body and _read_off(hit.text, excerpt) == snippet:
        del found["snippet"]
        found["excerpt"] = excerpt
    return found


def _read_off(text: str, excerpt: tuple[int, int, bool]) -> str:
    start, length, cut = excerpt
    line = " ".join(text[start:].split())[:length]
    return f"{line}{_ELLIPSIS}" if cut else line


def _chunk(hit: Hit) -> _Packed:
    key = _content(vars(hit))
    if (known := _packed.get(key)) is None:
        text = hit.model_dump_json(include=_WITH_VECTOR if hit.vector else _WITHOUT_VECTOR, exclude_defaults=True)
        data = text.encode()
        known = _Packed(hashlib.sha256(data).hexdigest()[:32], text, codec.compressed_bytes(data))
        _packed.keep(key, known, 2 * len(data))
    return known


def _chunks(refs: Iterable[str], read: ReadChunks, seen: set[str]) -> dict[str, dict[str, Any]]:
    wanted = list(refs)
    known = _read.find(wanted)
    missing = [ref for ref in wanted if ref not in known]
    for ref, blob in zip(missing, read(missing) if missing else (), strict=True):
        if blob is None:
            raise LostChunkError(f"the chunk {ref} is lost")
        data = codec.decompressed(blob, StoredChunk)
        known[ref] = fields = _fields(StoredChunk.model_validate_json(data, extra="ignore"))
        if hashlib.sha256(data).hexdigest()[:32] == ref:
            _read.keep(ref, fields, len(data))
    seen.update(wanted)
    return known


def _fields(chunk: StoredChunk) -> dict[str, Any]:
    """Those of a hit, of which nothing was found yet, in their order."""
    return {**_DEFAULTS, **{name: vars(chunk)[name] for name in _CONTENT}}


Chunks = Callable[[Iterable[str]], Mapping[str, dict[str, Any]]]


def _joined(data: object, kind: type[M], chunks: Chunks) -> M:
    if not isinstance(data, dict):
        raise ValueError(f"the stored {kind.__name__} is no object")  # noqa: TRY004 - as for any other damage
    found = _list(data.pop("hits", []))
    value = kind.model_validate(data, extra="ignore")
    if not found:
        return value
    return value.model_copy(update={"hits": _hits(found, _hit_kind(kind), chunks)})


def _hit_kind(kind: type[BaseModel]) -> type[Hit]:
    return MergedHit if kind.__name__ == "MergedPool" else Hit


def _hits(found: list[Any], kind: type[Hit], chunks: Chunks) -> tuple[Hit, ...]:
    if not all(isinstance(one, Mapping) and _REF in one for one in found):
        return tuple(kind.model_validate(one, extra="ignore") for one in found)
    read = _FOUND.validate_python(found, extra="ignore")
    known = chunks(dict.fromkeys([one.ref for one in read]))
    return tuple([_made(kind, known, one) for one in read])


def _made(kind: type[Hit], known: Mapping[str, dict[str, Any]], found: KeptHit) -> Hit:
    if found.ref not in known:
        raise LostChunkError(f"the chunk {found.ref} is lost")
    fields = {**known[found.ref], **vars(found)}
    if found.excerpt:
        fields["snippet"] = _read_off(fields["text"], found.excerpt)
    for name in _NO_FIELDS[kind]:
        del fields[name]
    return kind.of_valid(fields)


def _as_object(data: bytes, kind: type[BaseModel]) -> dict[str, Any]:
    try:
        found = from_json(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"the stored {kind.__name__} is no object")  # noqa: TRY004 - as for any other damage
    return found


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("the stored hits are no list")  # noqa: TRY004 - as for any other damage
    return value
