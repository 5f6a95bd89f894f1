"""How far two ranked lists agree, against sums worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evaluation.agreement import overlap, rank_biased_overlap

RANKED = st.lists(st.sampled_from("abcdefghijklmno"), unique=True, max_size=10)


def test_given_two_lists_when_overlapped_then_shared_documents_count_once_whatever_their_order():
    assert overlap("abcd", "dcxy") == 0.5
    assert overlap("ab", "abcd") == 0.5
    assert overlap("abc", "xyz") == 0
    assert overlap([*"abcdefghij", "k"], [*"klmnopqrst", "a"]) == 0, "beyond the tenth rank nothing counts"
    assert overlap("", "") is None
    assert overlap("", "a") == 0


def test_given_a_swap_when_rbo_is_taken_then_it_is_the_sum_by_hand():
    # depth 1: 0 of 1, depth 2: 2 of 2; (1-p)/p * (p^2 * 1) + p^2 * 1, at p = 0.9
    assert rank_biased_overlap("ab", "ba") == pytest.approx(0.1 / 0.9 * 0.81 + 0.81)


def test_given_lists_of_different_lengths_when_rbo_is_taken_then_the_short_one_is_taken_to_go_on_as_it_was():
    # depths 1 to 3 share 1, 1, 2 of a|c and a,b,c ... with s = 2, l = 3 and X = 1, 1, 2 (equation 32)
    seen = 1 * 0.9 + 1 / 2 * 0.81 + 2 / 3 * 0.729 + 1 * (3 - 2) / (2 * 3) * 0.729
    expected = 0.1 / 0.9 * seen + ((2 - 1) / 3 + 1 / 2) * 0.729
    assert rank_biased_overlap("ac", "abc") == pytest.approx(expected)


def test_given_agreement_at_the_top_when_rbo_is_taken_then_it_counts_more_than_further_down():
    top = rank_biased_overlap([*"abcdefghij"], [*"abcdeklmno"])
    tail = rank_biased_overlap([*"abcdefghij"], [*"klmnofghij"])
    assert top > tail
    assert overlap([*"abcdefghij"], [*"abcdeklmno"]) == overlap([*"abcdefghij"], [*"klmnofghij"])


@given(RANKED, RANKED)
def test_given_any_lists_when_rbo_is_taken_then_it_is_a_share_and_the_same_both_ways(a, b):
    found = rank_biased_overlap(a, b)
    if not a and not b:
        assert found is None
        return
    assert -1e-9 <= found <= 1 + 1e-9
    assert found == pytest.approx(rank_biased_overlap(b, a))
    if not set(a) & set(b):
        assert found == 0
    assert rank_biased_overlap(a or b, a or b) == pytest.approx(1)
