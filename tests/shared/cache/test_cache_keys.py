"""Cache keys: equal parts, equal key; everything else apart."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.cache_entries import cache_key, canonical_json, schema_version
from shared.errors import InputError
from shared.models import Filters
from shared.models.base import Model


class Vector(Model):
    values: tuple[float, ...] = ()


class Mode(StrEnum):
    FAST = "fast"


PARTS = {"tenant": "a", "text": "why?"}

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def same(one: object, other: object) -> bool:
    """Equal as JSON: True is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else one == other


@given(plain, plain)
def test_two_values_have_one_form_only_when_they_are_equal(one: object, other: object) -> None:
    assert (canonical_json(one) == canonical_json(other)) == same(one, other)


@given(plain)
def test_the_order_of_names_does_not_matter(value: object) -> None:
    assert canonical_json({"a": value, "b": 1}) == canonical_json({"b": 1, "a": value})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (1, "1"),
        (None, "null"),
        ("é", "e\u0301"),  # composed and decomposed: other tokens for a model
        ("Ａ", "A"),
        ("数据库", "數據庫"),
        ("\ud83d\ude00", "😀"),  # two halves of a surrogate pair are not the character
        ("\ud800", "?"),
        (["ab"], ["a", "b"]),
        ([["a"], "b"], [["a", "b"]]),
        ({"a": {"b": 1}}, {"a.b": 1}),
        (0.1, 0.1 + 2**-56),
    ],
)
def test_neighbours_are_other_keys(one: object, other: object) -> None:
    keys = {cache_key("embedding", {**PARTS, "part": part}, Vector).entry for part in (one, other)}
    assert len(keys) == 2


def test_lists_tuples_models_enums_and_read_only_mappings_are_taken() -> None:
    filters = Filters(namespace="docs", tags=("x",))
    one = cache_key("leaf", {**PARTS, "f": filters, "m": Mode.FAST, "t": (1, 2)}, Vector)
    other = cache_key("leaf", {**PARTS, "f": filters.model_dump(mode="json"), "m": "fast", "t": [1, 2]}, Vector)
    assert one == other
    assert cache_key("leaf", MappingProxyType(PARTS), Vector) == cache_key("leaf", PARTS, Vector)


@pytest.mark.parametrize("part", [float("nan"), float("inf"), b"x", {1: "a"}, {"a", "b"}, object(), 1 + 2j])
def test_a_part_without_one_json_form_is_named(part: object) -> None:
    with pytest.raises(InputError, match=r"cache key\.parts\.odd"):
        cache_key("embedding", {**PARTS, "odd": part}, Vector)


@pytest.mark.parametrize("parts", [{}, {"tenant": ""}, {"tenant": None}, {"tenant": 7}])
def test_parts_without_a_tenant_are_refused(parts: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"parts\.tenant"):
        cache_key("embedding", parts, Vector)


@pytest.mark.parametrize("kind", ["", "Leaf", "a:b", "a}", "嵌入", "x" * 33, "leaf\n"])
def test_a_kind_that_would_break_the_key_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="cache kind"):
        cache_key(kind, PARTS, Vector)


def test_tenant_kind_and_model_are_part_of_the_key() -> None:
    class Other(Model):
        values: tuple[float, ...] = ()

    keys = {
        cache_key("embedding", PARTS, Vector).digest,
        cache_key("embedding", {**PARTS, "tenant": "b"}, Vector).digest,
        cache_key("rerank", PARTS, Vector).digest,
        cache_key("embedding", PARTS, Other).digest,
    }
    assert len(keys) == 4


def test_another_release_of_a_model_is_another_schema() -> None:
    def release(default: int) -> type[Model]:
        return type("Thing", (Model,), {"__annotations__": {"n": int}, "n": default, "__module__": "x"})

    assert schema_version(release(1)) == schema_version(release(1))
    assert schema_version(release(1)) != schema_version(release(2))


@given(st.text(), st.text())
def test_entry_and_lock_share_the_hash_tag(one: str, other: str) -> None:
    assume(one != other)
    key = cache_key("embedding", {**PARTS, "text": one}, Vector)
    assert f"{{{key.digest}}}" in key.entry
    assert key.lock == f"{key.entry}:interactive:lock"
    assert key.entry != cache_key("embedding", {**PARTS, "text": other}, Vector).entry
