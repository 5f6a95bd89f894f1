"""Stored entries prove themselves: whatever happened to the bytes, a wrong value is never read."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from shared import cache_entries as form
from shared.cache_entries import CacheEntryError, cache_key, decode_entry, encode_entry
from shared.models import Hit
from shared.models.base import Model


class Thing(Model):
    text: str = ""
    values: tuple[float, ...] = ()
    parts: dict[str, float] = Field(default_factory=dict)


class Larger(Thing):
    more: int = 1


class Box(Model):
    thing: Thing


KEY = cache_key("embedding", {"tenant": "a", "text": "why?"}, Thing)
VALUE = Thing(text="如何优化\n数据库?", values=(0.1, -2.5e-9, 3.0), parts={"bm25": 1.5})
BLOB = encode_entry(VALUE, KEY, Thing)

finite = st.floats(allow_nan=False, allow_infinity=False)


def rejected_or_right(blob: bytes) -> bool:
    """True when the blob was refused; when it was read, it is the value that was stored."""
    try:
        assert decode_entry(blob, KEY, Thing) == VALUE
    except CacheEntryError:
        return True
    return False


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(finite), st.dictionaries(st.text("ab数"), finite))
def test_any_value_comes_back_as_it_went_in(text: str, values: list[float], parts: dict[str, float]) -> None:
    value = Thing(text=text, values=tuple(values), parts=parts)
    assert decode_entry(encode_entry(value, KEY, Thing), KEY, Thing) == value


def test_an_entry_is_zlib_over_two_lines_of_json() -> None:
    header, value = (json.loads(line) for line in zlib.decompress(BLOB).split(b"\n"))
    assert (header["kind"], header["digest"], header["schema"]) == (KEY.kind, KEY.digest, KEY.schema)
    assert value["text"] == VALUE.text


@given(st.integers(0, len(BLOB) - 1), st.integers(1, 255))
def test_a_changed_byte_never_gives_a_wrong_value(place: int, change: int) -> None:
    rejected_or_right(BLOB[:place] + bytes([BLOB[place] ^ change]) + BLOB[place + 1 :])


@given(st.integers(0, len(BLOB)), st.integers(0, len(BLOB)), st.binary(max_size=40))
def test_a_spliced_entry_never_gives_a_wrong_value(start: int, end: int, piece: bytes) -> None:
    rejected_or_right(BLOB[:start] + piece + BLOB[end:])


@given(st.integers(0, len(zlib.decompress(BLOB)) - 1), st.integers(1, 255))
def test_a_change_inside_the_compression_is_seen_too(place: int, change: int) -> None:
    data = bytearray(zlib.decompress(BLOB))
    data[place] ^= change
    assert rejected_or_right(zlib.compress(bytes(data)))


def test_a_part_of_an_entry_is_rejected() -> None:
    assert all(rejected_or_right(BLOB[:length]) for length in range(len(BLOB)))


@pytest.mark.parametrize("blob", [b"", b"null", BLOB + b"x", BLOB + BLOB, zlib.compress(b""), zlib.compress(b"\n{}")])
def test_what_is_no_entry_is_rejected(blob: bytes) -> None:
    assert rejected_or_right(blob)


def test_a_true_header_over_a_value_of_another_type_is_rejected() -> None:
    payload = b'{"text": 3}'
    blob = zlib.compress(form._header(KEY, payload) + b"\n" + payload)
    with pytest.raises(CacheEntryError, match="is no Thing"):
        decode_entry(blob, KEY, Thing)


def test_an_entry_under_the_name_of_another_is_rejected() -> None:
    for parts, kind, model in [
        ({"tenant": "b", "text": "why?"}, "embedding", Thing),
        ({"tenant": "a", "text": "why?"}, "rerank", Thing),
        ({"tenant": "a", "text": "why?"}, "embedding", Hit),
    ]:
        with pytest.raises(CacheEntryError, match="another key or schema"):
            decode_entry(BLOB, cache_key(kind, parts, model), model)


def test_a_decompression_bomb_is_rejected_unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "MAX_BYTES", 10_000)
    bomb = zlib.compress(bytes(5_000_000), 9)
    assert len(bomb) < form.MAX_BYTES
    with pytest.raises(CacheEntryError, match="too large"):
        decode_entry(bomb, KEY, Thing)
    with pytest.raises(CacheEntryError, match="larger than"):
        decode_entry(bytes(10_001), KEY, Thing)


def test_the_longest_entry_is_read_and_a_longer_one_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    length = len(zlib.decompress(BLOB))
    monkeypatch.setattr(form, "MAX_BYTES", length)
    assert decode_entry(BLOB, KEY, Thing) == VALUE
    monkeypatch.setattr(form, "MAX_BYTES", length - 1)
    with pytest.raises(CacheEntryError, match="larger than"):
        encode_entry(VALUE, KEY, Thing)


@pytest.mark.parametrize(
    "value", [Thing(values=(float("nan"),)), Thing(values=(float("inf"),)), Thing(text="half \ud800"), Larger(more=2)]
)
def test_a_value_that_would_come_back_changed_is_not_stored(value: Thing) -> None:
    with pytest.raises(CacheEntryError):
        encode_entry(value, KEY, Thing)


def test_a_subclass_inside_a_value_loses_nothing_unseen() -> None:
    with pytest.raises(CacheEntryError, match="reads back as another value"):
        encode_entry(Box(thing=Larger(more=2)), KEY, Box)
