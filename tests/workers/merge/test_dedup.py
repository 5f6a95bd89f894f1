"""Which hits are near-duplicates, by vector and by shingles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.text import shingles
from shared.models import Hit
from workers.merge.dedup import _prefix, near_duplicates

LONG = " ".join(f"word{i}" for i in range(300))


def hit(chunk_id: str, text: str = "", vector: tuple[float, ...] = (), title: str = "") -> Hit:
    return Hit(chunk_id=chunk_id, doc_id="d", path="p", title=title, text=text or chunk_id, score=1.0, vector=vector)


def test_given_vectors_then_cosine_decides_whatever_the_text() -> None:
    hits = [hit("a", vector=(1.0, 0.0)), hit("b", vector=(10.0, 0.1)), hit("c", "a", vector=(1.0, 1.0))]
    assert near_duplicates(hits, 0.98) == {"b": "a"}
    assert near_duplicates(hits, 0.7) == {"b": "a", "c": "a"}
    assert near_duplicates([hit("a", vector=(0.6, 0.8)), hit("b", vector=(0.6, 0.8))], 1.0) == {"b": "a"}


def test_given_no_vectors_then_shingle_overlap_decides() -> None:
    changed = LONG.replace("word150", "other")
    assert near_duplicates([hit("a", LONG), hit("b", changed)], 0.98) == {"b": "a"}
    assert near_duplicates([hit("a", LONG), hit("b", changed)], 0.99) == {}
    assert near_duplicates([hit("a", "缓存雪崩要加随机过期"), hit("b", "缓存雪崩要加随机过期")], 1.0) == {"b": "a"}


def test_given_the_same_words_under_other_titles_then_both_stay() -> None:
    assert near_duplicates([hit("a", "8080", title="Port of A"), hit("b", "8080", title="Port of B")], 0.98) == {}


def test_given_vectors_of_other_sizes_or_without_direction_then_text_decides() -> None:
    for one, other in [((1.0, 0.0), (1.0,)), ((1.0,), ()), ((0.0,), (1.0,)), ((float("nan"),), (1.0,))]:
        assert near_duplicates([hit("a", LONG, one), hit("b", LONG, other)], 0.98) == {"b": "a"}


def test_given_vectors_that_differ_then_equal_text_does_not_fold_them() -> None:
    hits = [hit("a", LONG, (1.0, 0.0)), hit("b", LONG, (0.0, 1.0)), hit("c", "no vector")]
    assert near_duplicates(hits, 0.98) == {}


def test_given_a_chain_then_only_what_is_like_the_kept_one_is_folded() -> None:
    hits = [hit("a", vector=(1.0, 0.0)), hit("b", vector=(0.8, 0.6)), hit("c", vector=(0.28, 0.96))]
    assert near_duplicates(hits, 0.8) == {"b": "a"}


def test_given_a_hit_like_two_kept_ones_then_the_better_stands_for_it() -> None:
    hits = [hit("a", vector=(1.0, 0.0)), hit("b", vector=(0.5, 0.866)), hit("c", vector=(0.866, 0.5))]
    assert near_duplicates(hits, 0.8) == {"c": "a"}


def test_given_equal_vectors_whose_cosine_is_rounded_below_one_then_they_are_folded() -> None:
    assert near_duplicates([hit("a", vector=(0.3, 0.4, 0.5)), hit("b", vector=(0.3, 0.4, 0.5))], 1.0) == {"b": "a"}


def test_given_many_vectors_then_each_of_them_is_compared_with() -> None:
    kept = [hit(f"k{n}", vector=tuple(float(n == axis) for axis in range(50))) for n in range(50)]
    again = [hit(f"z{n}", vector=one.vector) for n, one in enumerate(kept)]
    assert near_duplicates([*kept, *again], 0.9) == {f"z{n}": f"k{n}" for n in range(50)}


@pytest.mark.parametrize(
    ("threshold", "shingles_of_one", "looked_up"),
    [(0.98, 300, 7), (0.98, 10, 1), (0.8, 10, 3), (0.75, 10, 3), (0.5, 1, 1), (0.56, 25, 12), (1.0, 20, 1)],
)
def test_two_texts_that_overlap_enough_share_one_of_the_first_shingles_and_no_more_are_looked_up(
    threshold: float, shingles_of_one: int, looked_up: int
) -> None:
    """n - ceil(t n) + 1 of n shingles; 0.56 * 25 is 14.000000000000002 in floating point, and counts as 14."""
    own = frozenset(f"{number:03}" for number in range(shingles_of_one))
    assert _prefix(own, threshold) == sorted(own)[:looked_up]


@given(st.lists(st.text(alphabet="ab ", max_size=14), max_size=8), st.sampled_from([0.2, 0.5, 0.9, 0.98, 1.0]))
def test_prefix_filter_finds_what_comparing_all_pairs_finds(texts: list[str], threshold: float) -> None:
    hits = [hit(str(i), text or " ") for i, text in enumerate(texts)]
    expected: dict[str, str] = {}
    for i, one in enumerate(hits):
        own = shingles(one.text, 3)
        for other in hits[:i]:
            kept = shingles(other.text, 3)
            if other.chunk_id not in expected and own and len(own & kept) >= threshold * len(own | kept):
                expected[one.chunk_id] = other.chunk_id
                break
    assert near_duplicates(hits, threshold) == expected
