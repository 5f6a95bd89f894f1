"""Which hits are near-duplicates, by vector and by shingles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.models import Hit
from shared.text import shingles
from workers.merge.dedup import near_duplicates

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
