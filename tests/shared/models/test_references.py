"""`#1` in a subquestion: what counts as a reference, and what is written in."""

from __future__ import annotations

import time

import pytest
from pydantic import ValidationError

from orchestrator.intake import as_request
from shared.errors import InputError
from shared.models import Facet, JobRequest
from shared.models.plan import references, renumbered, with_answers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("who leads #1?", (1,)),
        ("#2的导演与#1是谁", (1, 2)),
        ("#1's wife and #1", (1,)),
        ("C#1 &#39; ##3 #0 #123 #1st issue", ()),
        ("nothing here", ()),
    ],
)
def test_given_a_text_when_read_then_only_whole_numbers_that_open_a_word_are_references(text, numbers):
    assert references(text) == numbers


def test_given_values_when_filled_then_they_are_written_in_one_pass():
    assert with_answers("#1 and #2 of #3", {1: "see #2", 2: "B"}) == "see #2 and B of #3"


def test_given_an_empty_value_when_filled_then_no_space_is_left_over():
    assert with_answers("Where was #1 , the child of #2 born?", {1: "", 2: ""}) == "Where was, the child of born?"


def test_given_numbers_when_renumbered_then_unknown_ones_stay():
    assert renumbered("#1 or #2", {2: 7}.get) == "#1 or #7"


def test_given_a_long_text_of_marks_when_filled_then_it_takes_no_time():
    begun = time.thread_time()
    with_answers("#1 " * 20_000 + "#" * 20_000, {1: ""})
    assert time.thread_time() - begun < 1


def test_given_a_plan_when_read_then_texts_are_entries_and_references_say_what_waits():
    plan = JobRequest(
        question="q", subqueries=["who won?", {"query": "where does #1 live?", "dimension": "case"}, "issue #42?"]
    ).subqueries
    assert [(entry.query, entry.depends_on, entry.dimension) for entry in plan] == [
        ("who won?", (), Facet.CORE),
        ("where does #1 live?", (1,), Facet.CASE),
        ("issue #42?", (), Facet.CORE),
    ]
    assert (
        JobRequest.model_validate_json(JobRequest(question="q", subqueries=plan).model_dump_json()).subqueries == plan
    )


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (["a", {"query": "b", "depends_on": [2]}], "entry 2 waits for itself"),
        (["about #2", "b"], "entry 1 waits for entry 2, which stands behind it"),
        ([{"query": "a", "depends_on": [2]}, {"query": "b", "depends_on": [1]}], "entry 1 waits for entry 2"),
        ([{"query": "a", "depends_on": [4]}], "entry 1 waits for entry 4, but the entries are 1 to 1"),
        ([{"query": "a", "depends_on": [0]}], "entry 1 waits for entry 0"),
        ([{"query": "a", "depend_on": [1]}], "subqueries.0.depend_on"),
        ([{"query": " "}], "is empty"),
        ([{"query": "a", "dimension": "original"}], "use core, why, how, case or note"),
        ([7], "subqueries.0"),
        (["a"] * 64, "at most 63"),
    ],
)
def test_given_a_plan_that_cannot_run_when_submitted_then_the_entry_is_named(plan, said):
    with pytest.raises(InputError, match=said):
        as_request({"question": "q", "subqueries": plan})


def test_given_a_text_for_a_plan_when_submitted_then_it_is_no_list_of_letters():
    with pytest.raises(ValidationError):
        JobRequest(question="q", subqueries="abc")
