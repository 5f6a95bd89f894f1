"""Reading batches: what can be taken is taken, the rest is named by line and reason."""

from __future__ import annotations

import io
import json
import time

import pytest

from orchestrator.intake import MAX_LINE_BYTES, BatchLine, as_request, bounded_lines, read_questions
from shared.errors import InputError
from shared.models import JobRequest, Lane


def read(*lines: str | bytes) -> list[BatchLine]:
    return list(read_questions([line if isinstance(line, bytes) else line.encode() for line in lines]))


def test_objects_strings_and_plain_lines_in_both_languages_are_questions() -> None:
    taken = read('{"question": "why?", "mode": "bm25_only"}', '"quoted?"', "如何优化数据库查询性能？", "", "plain one")
    assert [line.line for line in taken] == [1, 2, 3, 4, 5]
    assert [line.line for line in taken if not line.request] == [4], "the blank one"
    requests = [line.request for line in taken if line.request]
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
        ("[1, 2]", "is no question: write a sentence"),
        ("null", "is no question"),
        ("true", "is no question"),
        ("NaN", "is no question"),
        (" -Infinity ", "is no question"),
        ('{"id": NaN}', "write valid JSON (NaN is no number in JSON)"),
        ("{}", "question: it is missing: give it"),
        ('{"id": 7, "mode": "deep"}', "question: it is missing: give it"),
        ('{"question": true}', "question: true cannot be used"),
        ('{"question": null}', "question: null cannot be used"),
        ('{"question": ["a", null]}', 'question: ["a", null] cannot be used'),
        ('{"question": "a", "filters": {"tags": {"a": false}}}', 'filters.tags: {"a": false} cannot be used'),
        (" 12.5e3 ", "is no question"),
        ('{"question": "a", "id": [1]}', "write a text or a number"),
        ('{"question": "a", "id": true}', "write a text or a number"),
        ('{"question": "a", "id": "' + "x" * 500 + '"}', "it may have 400 bytes"),
        ('{"question": "a", "meta": 7}', "write an object"),
        ('{"question": "a", "meta": {"a": "' + "x" * 9000 + '"}}', "it may have 8000 bytes"),
        ('{"question": "a", "meta": {"a": "\\ud800"}}', "cannot be written as JSON"),
        ('{"question": "a", "meta": {"a": 1e999}}', "cannot be written as JSON"),
        ("[" * 50_000, "nested too deeply"),
        (b"\xff\xfe broken", "not UTF-8"),
        ('{"question": "' + "x" * 5000 + '"}', "4000"),
        (b'{"question": "' + b"x" * MAX_LINE_BYTES + b'"}', "a line may have"),
    ],
)
def test_a_line_that_cannot_be_taken_is_rejected_with_its_number_and_reason(line: str | bytes, reason: str) -> None:
    before, found, after = read("one?", line, "three?")
    rejected = found.rejected
    assert before.request
    assert after.request
    assert rejected
    assert found.line == rejected.line == 2
    assert reason in rejected.reason
    assert len(rejected.reason) < 400
    assert "\n" not in rejected.reason
    json.loads(rejected.model_dump_json())


def test_a_line_of_any_length_costs_bounded_memory_and_the_next_one_is_read() -> None:
    handle = io.BytesIO(b"x" * 3_000_000 + b"\nnext?\n" + b"last?")
    lines = list(bounded_lines(handle))
    assert max(map(len, lines)) <= MAX_LINE_BYTES + 1
    assert lines[1:] == [b"next?\n", b"last?"]


def test_no_caller_names_the_job_whose_leaves_it_takes_over() -> None:
    given = {"question": "why?", "replay": {"of": "another's job", "start": "merge"}}
    with pytest.raises(InputError, match="an answer is replayed by `ramify replay`"):
        as_request(given)
    (line,) = read(json.dumps(given))
    assert line.rejected is not None


def test_a_question_that_only_looks_like_a_value_is_taken() -> None:
    taken = read("NaN of what?", "null and void?", "12 monkeys?", "Infinity and beyond?", "nan")
    assert all(line.request for line in taken)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_any_system_ends_them(end: bytes) -> None:
    content = end.join([b'{"question": "one?"}', b"", b"three?", b"four?"])
    for tail in (b"", end):
        lines = read(*bounded_lines(io.BytesIO(content + tail)))
        assert [line.request and line.request.question for line in lines] == ["one?", None, "three?", "four?"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_an_end_of_a_line_that_comes_in_two_pieces_is_one(size: int) -> None:
    class Slow(io.BytesIO):
        def read1(self, _: int | None = -1, /) -> bytes:
            return super().read1(size)

    assert list(bounded_lines(Slow(b"a\r\nb\rc\n\rd\r"))) == [b"a\r\n", b"b\r", b"c\n", b"\r", b"d\r"]


def test_what_the_caller_wrote_beside_a_question_belongs_to_its_line() -> None:
    line, bad, none = read(
        '{"question": "a?", "id": "q-1", "meta": {"n": [1, {}]}}', '{"id": 7}', '{"question": "a?", "id": null}'
    )
    assert line.request
    assert (line.id, line.meta) == ("q-1", {"n": [1, {}]})
    assert bad.rejected
    assert (bad.id, bad.meta) == (7, None), "also with a line that is rejected"
    assert none.request == line.request


def test_an_id_may_have_400_bytes_however_json_writes_it() -> None:
    fit = read(*(json.dumps({"question": "a?", "id": own_id}) for own_id in ("x" * 400, "是" * 133, '"' * 400)))
    assert all(line.request for line in fit)
    for own_id in ("x" * 401, "是" * 134):
        (line,) = read(json.dumps({"question": "a?", "id": own_id}))
        assert line.rejected
        assert "it may have 400 bytes" in line.rejected.reason


def test_white_space_of_any_script_is_a_blank_line() -> None:
    for line in read("\u3000\n", "\u00a0\u2003 \t", "\ufeff", "\u2028"):
        assert not line.request
        assert not line.rejected


def test_the_digest_of_a_line_tells_all_lines_up_to_it() -> None:
    one, other = read("a?", "b?", "c?"), read("a?", "x?", "c?")
    assert [a.digest == b.digest for a, b in zip(one, other, strict=True)] == [True, False, False]


def test_a_single_question_names_the_field_at_fault() -> None:
    with pytest.raises(InputError, match="deadline_s") as caught:
        as_request("why?", {"deadline_s": -1})
    assert caught.value.exit_code == 2


def test_one_endless_line_in_small_reads_takes_time_by_its_length_and_keeps_its_beginning() -> None:
    class Endless(io.BytesIO):
        def read1(self, _: int = -1) -> bytes:
            return super().read1(1 << 12)

    def took_s(size: int) -> float:
        began = time.process_time()
        (line,) = bounded_lines(Endless(b"a" * size), 1 << 26)
        assert len(line) == size
        return time.process_time() - began

    assert took_s(1 << 24) < 10 * max(took_s(1 << 22), 0.01), "four times the bytes, not sixteen times the time"
    kept = list(bounded_lines(Endless(b"a" * 100_000 + b"\r\nb\r" + b"c" * 9_000), 9_000))
    assert [len(line) for line in kept] == [9_001, 2, 9_000]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"lane": Lane.BATCH, "tenant": "acme", "top_n": 5, "explain": True, "decompose": False, "summary": False},
        {
            "lane": "interactive",
            "tenant": "default",
            "deadline_s": 60,
            "max_cost": 1e-5,
            "webhook": "https://a.example/b",
        },
        {"filters": {"tags": ["a"]}, "subqueries": ["why?"], "mode": "deep"},
        {"filters": {}, "subqueries": [], "idempotency_key": 'a"b\u00e9\u4e2d'},
    ],
)
def test_a_request_is_written_as_its_model_would(given: dict[str, object]) -> None:
    request = JobRequest.model_validate({"question": 'Was sagt "Löß" \\ 中文\n?', **given})
    for one in (request, request.model_copy(update={"tenant": "other", "lane": Lane.BATCH, "deadline_s": None})):
        assert one.written() == one.model_dump_json(exclude_defaults=True)
