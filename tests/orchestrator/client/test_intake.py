"""Reading batches: what can be taken is taken, the rest is named by line and reason."""

from __future__ import annotations

import io
import json

import pytest

from orchestrator.intake import MAX_LINE_BYTES, Rejected, as_request, bounded_lines, read_questions
from shared.errors import InputError
from shared.models import JobRequest, Lane


def read(*lines: str | bytes) -> list[tuple[int, JobRequest | Rejected]]:
    return list(read_questions([line if isinstance(line, bytes) else line.encode() for line in lines]))


def test_objects_strings_and_plain_lines_in_both_languages_are_questions() -> None:
    taken = read('{"question": "why?", "mode": "bm25_only"}', '"quoted?"', "如何优化数据库查询性能？", "", "plain one")
    assert [number for number, _ in taken] == [1, 2, 3, 5]
    requests = [item for _, item in taken if isinstance(item, JobRequest)]
    assert [r.question for r in requests] == ["why?", "quoted?", "如何优化数据库查询性能？", "plain one"]
    assert {r.lane for r in requests} == {Lane.BATCH}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"question": ', "write valid JSON"),
        ('{"question": ""}', "question"),
        ('{"question": "  "}', "is empty"),
        ('{"question": "a", "mod": "hybrid"}', "mod"),
        ('{"question": "a", "mode": "fuzzy"}', "'fuzzy'"),
        ('{"question": "a\\u0000b"}', "U+0000"),
        ('{"question": "a", "filters": {"after": "2026-02-01", "before": "2026-01-01"}}', "lies behind"),
        ("[1, 2]", "write an object"),
        ("[" * 50_000, "nested too deeply"),
        (b"\xff\xfe broken", "not UTF-8"),
        ('{"question": "' + "x" * 5000 + '"}', "4000"),
        (b'{"question": "' + b"x" * MAX_LINE_BYTES + b'"}', "a line may have"),
    ],
)
def test_a_line_that_cannot_be_taken_is_rejected_with_its_number_and_reason(line: str | bytes, reason: str) -> None:
    (_, before), (number, rejected), (_, after) = read("one?", line, "three?")
    assert isinstance(before, JobRequest)
    assert isinstance(after, JobRequest)
    assert isinstance(rejected, Rejected)
    assert number == rejected.line == 2
    assert reason in rejected.reason
    assert len(rejected.reason) < 400
    assert "\n" not in rejected.reason
    json.loads(rejected.model_dump_json())


def test_a_line_of_any_length_costs_bounded_memory_and_the_next_one_is_read() -> None:
    handle = io.BytesIO(b"x" * 3_000_000 + b"\nnext?\n" + b"last?")
    lines = list(bounded_lines(handle))
    assert max(map(len, lines)) <= MAX_LINE_BYTES + 1
    assert lines[1:] == [b"next?\n", b"last?"]


def test_a_single_question_names_the_field_at_fault() -> None:
    with pytest.raises(InputError, match="deadline_s") as caught:
        as_request("why?", {"deadline_s": -1})
    assert caught.value.exit_code == 2
