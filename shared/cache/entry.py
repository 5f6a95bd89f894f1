"""The stored form of one value, which proves itself when read. Values are JSON through pydantic, never pickle.

An entry is zlib over two lines of JSON: a header and the value. It guards against damage, mix-ups and other releases;
against somebody who may write to this Redis nothing here can.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import TypeVar

from pydantic import BaseModel

from shared.cache.keys import Key

M = TypeVar("M", bound=BaseModel)

#: Longest entry before compression. The largest leaf (500 hits with vectors) stays far below.
MAX_BYTES = 32 * 1024 * 1024
_LEVEL = 1  # entries are small: speed over size


class EntryError(ValueError):
    """An entry cannot be stored or does not verify. The message ends a sentence that begins with the entry."""


def pack(value: M, key: Key, model: type[M]) -> bytes:
    """Compress a value of `key`.

    Raises: EntryError when it is too large, or would not come back as it went in: NaN, half a surrogate pair, or a
    subclass, whose own fields JSON drops.
    """
    try:
        payload = value.model_dump_json(warnings=False).encode()
        same = model.model_validate_json(payload) == value
    except ValueError as error:
        raise EntryError(f"has no JSON form ({type(error).__name__})") from error
    if not same:
        raise EntryError("reads back as another value")
    data = _header(key, payload) + b"\n" + payload
    blob = zlib.compress(data, _LEVEL)
    if max(len(data), len(blob)) > MAX_BYTES:
        raise EntryError(f"is larger than {MAX_BYTES} bytes")
    return blob


def unpack(blob: bytes, key: Key, model: type[M]) -> M:
    """Read the value of `key` back.

    Raises: EntryError when the entry is cut off, garbled, too large, of another key, kind, schema or type.
    """
    if len(blob) > MAX_BYTES:
        raise EntryError(f"is larger than {MAX_BYTES} bytes")
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(blob, MAX_BYTES + 1)
    except zlib.error as error:
        raise EntryError("is garbled") from error
    if not reader.eof or reader.unused_data:
        raise EntryError("is cut off, too long or too large")
    header, _, payload = data.partition(b"\n")
    if header != _header(key, payload):
        raise EntryError("is of another key or schema, or was changed")
    try:
        return model.model_validate_json(payload)
    except ValueError as error:
        raise EntryError(f"is no {model.__name__}") from error


def _header(key: Key, payload: bytes) -> bytes:
    header = {
        "kind": key.kind,
        "digest": key.digest,
        "schema": key.schema,
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(header).encode()
