"""Blobs in the job store: zlib over UTF-8 JSON, so that any language can read them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

M = TypeVar("M", bound=BaseModel)
#: zlib's levels: for most blobs, which are small; for what is read once and deleted with its job, not compressed; for
#: answers, which take most of what a job keeps.
FAST, STORED, KEPT = 1, 0, 5
_SMALL_LEVEL = 9
#: What a blob may unpack to: always so much, so many times its size, and never more (bytes).
_ALWAYS_BYTES, _MOST_TIMES, _MAX_BYTES = 16_000_000, 200, 256_000_000


def text(value: object) -> str:
    """A reply of Redis as text: redis-py's types leave open whether replies come decoded.

    Bytes that are no UTF-8 become U+FFFD; `fields` tells where that is a fault.
    """
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def texts(values: Iterable[object]) -> tuple[str, ...]:
    """Replies of Redis as text, "" for a field that is not there."""
    return tuple(text(value) if value is not None else "" for value in values)


def pack(model: BaseModel) -> bytes:
    """Compress a model."""
    return compressed_bytes(model.model_dump_json(exclude_defaults=True).encode())


def pack_small(model: BaseModel | None) -> bytes:
    """As `pack`, for what is kept for long: size over speed. Empty for None."""
    return b"" if model is None else zlib.compress(model.model_dump_json(exclude_defaults=True).encode(), _SMALL_LEVEL)


def compressed(value: object, level: int = FAST) -> bytes:
    """The blob of what JSON has a form for. Raises: as `json_bytes`."""
    return compressed_bytes(json_bytes(value), level)


def json_bytes(value: object) -> bytes:
    """UTF-8 JSON. Raises: ValueError for what has no form in it, such as NaN."""
    data = to_json(value)
    if b"NaN" in data or b"Infinity" in data:
        json.dumps(value, allow_nan=False)  # raises for a number; a text may hold the word
    return data


def compressed_bytes(data: bytes, level: int = FAST) -> bytes:
    """The blob of UTF-8 JSON."""
    return zlib.compress(data, level)


def unpack(blob: object, kind: type[M]) -> M:
    """Read a blob back. Raises: ValueError when it is cut off, too large or of another model; TypeError if no bytes."""
    # Fields of other releases are passed over.
    return kind.model_validate_json(decompressed(blob, kind), extra="ignore")


def decompressed(blob: object, kind: type[BaseModel]) -> bytes:
    """The JSON of a blob. Raises: as `unpack`."""
    if not isinstance(blob, bytes):
        raise TypeError(f"the stored {kind.__name__} is no blob")
    reader = zlib.decompressobj()
    try:
        most = min(_MAX_BYTES, max(_ALWAYS_BYTES, _MOST_TIMES * len(blob)))
        data = reader.decompress(blob, most)
    except zlib.error as error:  # not a ValueError
        raise ValueError(f"the stored {kind.__name__} is damaged: {error}") from None
    if not reader.eof:
        raise ValueError(f"the stored {kind.__name__} is cut off or larger than {most:,} bytes")
    return data


def unpack_or_none(blob: object, kind: type[M]) -> M | None:
    """As `unpack`; None for a key that is not there."""
    return None if blob is None else unpack(blob, kind)
