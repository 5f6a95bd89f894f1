"""Questions with identifiers: one that no document has silences nothing, and nothing is said of others in its place."""

from __future__ import annotations

import pytest

from tests.workers.merge.test_extract import hit, pool, tree
from workers.merge.extract import extract
from workers.merge.identifiers import identifiers, unnamed, unnamed_subject

UUID = "550e8400-e29b-41d4-a716-446655440000"
OTHERS = [
    hit(1, "INC-00017 was caused by an expired certificate. Its owner was Ada.", title="INC-00017"),
    hit(2, "INC-00018 was a full disk on the queue host. Its owner was Grace.", title="INC-00018"),
]
QUEUE = [hit(1, "A job stays in state queued while no worker serves its queue. Start a worker to let it go on.")]


def test_identifiers_are_read_between_words_of_any_language() -> None:
    asked = f"Did 9fceb02 close INC-99999 of {UUID}? UTF-8 in 2026-05-12 deadbeef 1234567"
    assert identifiers(asked) == ["9fceb02", "INC-99999", UUID]
    assert identifiers("INC-99999发生了什么？") == ["INC-99999"]


@pytest.mark.parametrize(
    "question",
    ["What happened in INC-99999?", "Who was the owner of the incident INC-99999 about the certificate?",
     "INC-99999发生了什么？", f"What is {UUID}?", "show me 9fceb02"],
)  # fmt: skip
def test_given_an_identifier_that_is_the_subject_when_no_hit_names_it_then_it_is_lost(question: str) -> None:
    assert unnamed_subject(question, OTHERS) == identifiers(question)


@pytest.mark.parametrize(
    ("question", "hits"),
    [
        ("What happened in INC-00017?", OTHERS),
        ("What happened in inc 00017 and INC-00018?", OTHERS),
        ("Compare INC-00017 and INC-99999", OTHERS),
        ("Which hash is SHA-256?", [hit(1, "SHA256 is the digest of blocks.")]),
        ("show me 9fceb02", [hit(1, "Commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke the login.")]),
        (f"Why does job {UUID} stay in state queued for hours?", QUEUE),
    ],
)
def test_given_an_identifier_that_is_named_or_beside_the_question_when_asked_then_it_is_answered(
    question: str, hits: list
) -> None:
    assert unnamed_subject(question, hits) == []


def test_given_an_identifier_that_no_hit_names_when_the_rest_is_answered_then_it_silences_nothing() -> None:
    for question, wanted in (
        (f"Why does job {UUID} stay in state queued?", "A job stays in state queued while no worker serves its queue."),
        ("job 550e8400-e29b-41d4-a716-446655440000 in state queued", "A job stays in state queued"),
    ):
        summary = extract(question, pool(*QUEUE), tree(question))
        assert wanted in summary.text
        assert unnamed(question, QUEUE) == [UUID]
    other = f"Why is the cafeteria closed on {UUID}?"
    assert "Nothing" in extract(other, pool(*QUEUE), tree(other)).text
