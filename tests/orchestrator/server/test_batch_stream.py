"""A posted batch: every line is entered once or told why not, and one that was cut off goes on by its key."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from orchestrator.client import Ramify
from orchestrator.operations import batch_post
from orchestrator.operations.batch_post import (
    MOST_REJECTS,
    BatchPost,
    FullBatchError,
    PostedBatch,
    PostedOptions,
    json_lines,
)
from shared.errors import InputError
from shared.settings import Settings, load_settings


class CutError(Exception):
    """The client went away."""


def questions(first: int, last: int) -> list[bytes]:
    return [f'{{"question": "why, {number}?", "id": {number}}}\n'.encode() for number in range(first, last)]


def post(ramify: Ramify, lines: list[bytes], key: str | None = None, **given: object) -> PostedBatch:
    return BatchPost(ramify, PostedOptions(**given), key).read(io.BytesIO(b"".join(lines)))


def cut_off(lines: list[bytes]) -> Iterator[bytes]:
    yield from lines
    raise CutError


def test_what_becomes_of_each_line_is_told(ramify: Ramify) -> None:
    taken = post(ramify, [*questions(0, 3), b"\n", b'{"question": ""}\n', b"\xff\xfe\n", b"plain?\n"])
    found = (taken.lines, taken.enqueued, taken.blank, taken.rejected, taken.entered_before)
    assert found == (7, 4, 1, 2, 0)
    assert [rejected.line for rejected in taken.rejects] == [5, 6]
    assert "UTF-8" in taken.rejects[1].reason
    assert ramify.batch_status(taken.batch_id).closed_at


def test_a_line_without_an_end_is_one_rejected_line(ramify: Ramify) -> None:
    taken = post(ramify, [b"why?\n", b"x" * 5_000_000])
    assert (taken.enqueued, taken.rejected) == (1, 1)
    assert "64000 bytes" in taken.rejects[0].reason


def test_many_rejected_lines_are_listed_up_to_a_bound(ramify: Ramify) -> None:
    taken = post(ramify, [b"why?\n", *[b'{"question": ""}\n'] * (MOST_REJECTS + 30)])
    assert (len(taken.rejects), taken.rejects_left_out, taken.rejected) == (MOST_REJECTS, 30, MOST_REJECTS + 30)
    assert sum(1 for line in ramify.batch_report(taken.batch_id) if line.kind == "rejected") == MOST_REJECTS + 30


def test_a_batch_that_was_cut_off_goes_on_by_its_key(ramify: Ramify) -> None:
    with pytest.raises(CutError):
        BatchPost(ramify, PostedOptions(), "k").take(cut_off(questions(0, 450)))
    (left,) = ramify.batches()
    assert (left.lines, left.closed_at) == (400, None), "whole pages were entered"
    taken = post(ramify, questions(0, 500), "k")
    assert (taken.batch_id, taken.entered_before, taken.lines, taken.enqueued) == (left.batch_id, 400, 500, 500)
    assert [line.line for line in ramify.batch_lines(taken.batch_id)] == list(range(1, 501))


def test_the_same_post_again_is_as_once(ramify: Ramify) -> None:
    first = post(ramify, questions(0, 10), "k")
    again = post(ramify, questions(0, 10), "k")
    assert again.model_copy(update={"entered_before": 0}) == first
    assert ramify.batch_status(first.batch_id).enqueued == 10
    assert post(ramify, questions(0, 10), "other").batch_id != first.batch_id


def test_a_key_stands_for_one_batch_alone(ramify: Ramify) -> None:
    first = post(ramify, questions(0, 10), "k")
    with pytest.raises(InputError, match="not those that batch"):
        post(ramify, questions(5, 15), "k")
    with pytest.raises(InputError, match="ends with line 10"):
        post(ramify, questions(0, 12), "k")
    with pytest.raises(InputError, match="other options"):
        post(ramify, questions(0, 10), "k", options={"top_n": 3})
    assert ramify.batch_status(first.batch_id).lines == 10


def test_a_key_is_its_tenants_own(ramify: Ramify) -> None:
    acme, other = (post(ramify.for_tenant(name), questions(0, 3), "k") for name in ("acme", "other"))
    assert acme.batch_id != other.batch_id
    assert ramify.resume_batch(acme.batch_id).tenant == "acme"


def test_a_full_lane_says_what_was_taken_and_a_later_post_goes_on(ramify: Ramify, settings: Settings) -> None:
    small = load_settings(redis=settings.redis, data_dir=settings.data_dir, lanes={"max_waiting_batch": 300})
    with Ramify(small) as bounded, pytest.raises(FullBatchError, match="same Idempotency-Key") as full:
        post(bounded, questions(0, 1000), "k")
    taken = full.value.taken
    assert (taken.lines, taken.enqueued >= 300, len(taken.rejects)) == (400, True, taken.rejected)
    assert full.value.lines == tuple(range(taken.enqueued + 1, 401))
    rest = post(ramify, questions(0, 1000), "k")
    found = (rest.batch_id, rest.entered_before, rest.enqueued, rest.rejected)
    assert found == (taken.batch_id, 400, taken.enqueued + 600, taken.rejected)


@pytest.mark.parametrize("lines", [[], [b"\n", b"  \n"], [b'{"question": ""}\n'], [b"[1]\n"]])
def test_without_a_question_there_is_no_batch(ramify: Ramify, lines: list[bytes]) -> None:
    with pytest.raises(InputError):
        post(ramify, lines)
    assert ramify.batches() == []


@pytest.mark.parametrize("options", [{"top_n": 0}, {"question": "why?"}, {"idempotency_key": "k"}, {"no_such": 1}])
def test_options_that_no_line_could_take_make_no_batch(ramify: Ramify, options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        post(ramify, questions(0, 1), options=options)
    assert ramify.batches() == []


def test_lines_that_are_no_question_have_a_bound(ramify: Ramify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_post, "_MOST_USELESS", 300)
    assert post(ramify, [b"why?\n", *[b"\n"] * 300]).blank == 300
    with pytest.raises(InputError, match="line 302"):
        post(ramify, [b"why?\n", *[b"\n", b"[\n"] * 200], "k")
    assert ramify.batches()[0].closed_at is None


def test_an_array_is_as_its_lines(ramify: Ramify) -> None:
    lines, beside = json_lines(json.dumps({"questions": ["why?", {"question": "how?"}, 5], "name": "n"}).encode())
    taken = BatchPost(ramify, PostedOptions.model_validate(beside)).take(lines)
    assert (taken.enqueued, taken.rejected) == (2, 1)
    assert ramify.batch_status(taken.batch_id).source == "n"
    for body in (b"{", b'{"questions": 5}', b"null", b'{"a": ' + b"[" * 100_000):
        with pytest.raises(InputError):
            json_lines(body)


def test_a_line_whose_key_is_another_questions_is_rejected(ramify: Ramify) -> None:
    lines = [b'{"question": "why?", "idempotency_key": "a"}\n', b'{"question": "who?", "idempotency_key": "a"}\n']
    again = [b'{"question": "why?", "idempotency_key": "a"}\n']
    taken = BatchPost(ramify, PostedOptions()).take([*lines, *again])
    assert (taken.enqueued, taken.duplicate, taken.rejected) == (1, 1, 1)
    assert (taken.rejects[0].line, "another question" in taken.rejects[0].reason) == (2, True)
    with pytest.raises(InputError, match="was used before with another question"):
        ramify.submit("who?", idempotency_key="a")
    assert ramify.submit("why?", idempotency_key="a") == next(iter(ramify.batch_lines(taken.batch_id))).job_id
