"""`ramify batch`: what is taken and refused, which files are written, what is waited for."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.batch_answers import EndedLines
from orchestrator.cli.follow import follow_batch
from orchestrator.cli.main import app
from shared.errors import NotRunningError
from shared.models import Lane
from shared.models.batch import LineRecord
from tests.fakes.ramify_client import FakeRamify


@pytest.fixture
def client(monkeypatch):
    fake = FakeRamify()
    monkeypatch.setattr("orchestrator.client.Ramify", fake.opened)
    monkeypatch.setattr("orchestrator.cli.follow._POLL_S", 0.0)
    return fake


def ramify(*arguments, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


def write(*lines, name="q.jsonl"):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def read(name):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def test_given_questions_when_batched_then_the_id_and_the_counts_are_printed(client):
    done = ramify("batch", write('{"question": "one"}', '"two"', "", "三是什么？"))
    assert done.exit_code == 0
    assert done.stdout.startswith("batch batch001: 3 enqueued, 1 blank of 4 lines, in ")
    assert done.stderr.startswith(
        "batch batch001: if this command is cut off, `ramify batch --resume batch001` goes on\n"
    )
    assert [request.question for request in client.requests.values()] == ["one", "two", "三是什么？"]
    assert {request.lane for request in client.requests.values()} == {Lane.BATCH}
    assert not Path("q.jsonl.rejects.jsonl").exists()


def test_given_a_pace_that_will_not_do_when_batched_then_one_warning_says_so(client):
    client.warnings["batch001"] = "about 2 of its 3 open jobs will expire"
    done = ramify("batch", write("one", "two", "three"), "--queue-limit", "60", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["enqueued"] == 3
    assert done.stderr.count("about 2 of its 3 open jobs will expire") == 1
    assert {request.queue_limit_s for request in client.requests.values()} == {60}


def test_given_defaults_when_batched_then_a_line_may_say_otherwise(client):
    ramify("batch", write('{"question": "one", "top_n": 3}', "two"), "-n", "7", "--tag", "a", "--tenant", "t")
    first, second = client.requests.values()
    assert (first.top_n, second.top_n) == (3, 7)
    assert (first.tenant, second.filters.tags) == ("t", ("a",))


def test_given_bad_lines_when_batched_then_they_are_kept_and_the_code_is_3(client):
    done = ramify("batch", write("good", '{"a"', '{"question": "x", "topn": 1}'), "--json")
    assert done.exit_code == 3
    counts = {"lines": 3, "enqueued": 1, "known": 0, "duplicate": 0, "rejected": 2, "blank": 0}
    expected = {"batch_id": "batch001", "rejects_file": "q.jsonl.rejects.jsonl", **counts}
    assert expected.items() <= json.loads(done.stdout).items()
    assert [(row["line"], row["text"]) for row in read("q.jsonl.rejects.jsonl")] == [
        (2, '{"a"'), (3, '{"question": "x", "topn": 1}')
    ]  # fmt: skip
    assert client.rejected == 2


def test_given_a_rejects_file_when_batched_then_they_go_there(client):
    assert ramify("batch", "-", "--rejects", "r.jsonl", input='good\n{"a"\n').exit_code == 3
    assert read("r.jsonl")[0]["line"] == 2


@pytest.mark.parametrize("content", ["", "\n \n", '{"a"\n[1]\n'])
def test_given_no_usable_line_when_batched_then_it_says_so_and_there_is_no_batch(client, content):
    done = ramify("batch", "-", input=content)
    assert done.exit_code == 2
    assert "FILE: '-'" in done.stderr
    assert not client.batches


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("missing.jsonl",), "FILE"),
        ((".",), "FILE"),
        ((), "FILE"),
        (("q.jsonl", "--out", "nowhere/out.jsonl"), "--out"),
        (("q.jsonl", "--out", "."), "--out"),
        (("q.jsonl", "--out", "out.txt"), "--out"),
        (("q.jsonl", "--out", "q.jsonl"), "--out"),
        (("q.jsonl", "--rejects", "nowhere/r.jsonl"), "--rejects"),
        (("q.jsonl", "--out", "x.jsonl", "--rejects", "./x.jsonl"), "--out"),
        (("q.jsonl", "--out", "q.jsonl.rejects.jsonl"), "--out"),
        (("q.jsonl", "--mode", "deepest"), "mode"),
    ],
)
def test_given_bad_input_when_batched_then_nothing_is_enqueued(client, arguments, named):
    write("one")
    done = ramify("batch", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {named}: ")
    assert not client.batches
    assert read_text("q.jsonl") == "one\n"


def read_text(name):
    return Path(name).read_text(encoding="utf-8")


def test_given_wait_and_out_when_batched_then_every_line_stands_there_with_its_answer(client):
    client.ends = lambda question: {"two": "failed", "three": "partial"}.get(question, "done")
    source = write("one", '{"question": "two", "id": 7, "meta": {"topic": "流"}}', '{"a"', "", "three")
    done = ramify("batch", source, "--out", "out.jsonl")
    assert done.exit_code == 3
    assert "3 = 1 done + 1 partial + 1 failed" in done.stdout
    rows = {row["line"]: row for row in read("out.jsonl")}
    assert list(rows) == [3, 1, 2, 5]
    assert rows[1]["answer"]["summary"]["text"] == "Streams keep order. [1]"
    assert (rows[1]["outcome"], rows[5]["outcome"]) == ("done", "partial")
    failed = {"line": 2, "job_id": "job00001", "id": 7, "meta": {"topic": "流"}, "question": "two", "state": "failed"}
    assert failed.items() <= rows[2].items()
    assert (rows[2]["error"], rows[2]["answer"]) == ("none of the 2 leaves answered", None)
    assert (rows[3]["kind"], rows[3]["job_id"]) == ("rejected", None)
    assert "write valid JSON" in rows[3]["error"]


def test_given_a_known_ending_when_batched_then_answers_have_that_format(client):
    ramify("batch", write("one", "two"), "--out", "out.csv")
    assert [line.split(",")[0] for line in read_text("out.csv").splitlines()] == ['"line"', '"1"', '"2"']
    ramify("batch", write("one", "two"), "--out", "out.md")
    assert "## 2. two" in read_text("out.md")


def test_given_wait_and_json_when_batched_then_each_job_is_a_line_and_the_batch_the_last(client):
    done = ramify("batch", write("one", "two"), "--wait", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0
    assert [(line["line"], line["job_id"], line["state"]) for line in lines[:-1]] == [
        (1, "job00000", "done"), (2, "job00001", "done")
    ]  # fmt: skip
    assert (lines[-1]["batch_id"], lines[-1]["finished"]) == ("batch001", 2)


def test_given_jobs_that_never_end_when_waiting_then_it_stops_after_their_deadline(client, monkeypatch):
    client.ends = lambda _: "searching"
    monkeypatch.setattr("orchestrator.cli.follow.PAST_TIME_S", -1e6)
    done = ramify("batch", write("one"), "--wait")
    assert done.exit_code == 1
    assert "error: 1 job still open" in done.stderr


def test_given_more_lines_than_a_page_when_their_jobs_end_then_each_is_told_of_once(client):
    ends = {"q3": "searching"}
    client.ends = lambda question: ends.get(question, "done")
    batch_id, told = client.open_batch(), []
    ended = EndedLines(client, batch_id, None, lambda found: told.append(found.line))
    for record in client.add_to_batch(batch_id, [f"q{number}" for number in range(1, 451)]):
        ended.expect(record)
    ended.poll(client.batch_status(batch_id))
    assert sorted(told) == [1, 2, *range(4, 451)]
    ended.poll(client.batch_status(batch_id))
    ends.clear()
    ended.poll(client.batch_status(batch_id))
    ended.finish()
    assert (len(told), told[-1]) == (450, 3)


def test_given_redis_away_in_the_middle_of_a_page_when_polled_again_then_no_line_is_told_of_twice(client, monkeypatch):
    batch_id, told, answers = client.open_batch(), [], client.result
    ended = EndedLines(client, batch_id, None, lambda found: told.append(found.line))
    for record in client.add_to_batch(batch_id, ["a", "b", "c"]):
        ended.expect(record)

    def gone(job_id):
        if job_id == "job00001":
            raise NotRunningError("Redis does not answer")
        return answers(job_id)

    monkeypatch.setattr(client, "result", gone)
    with pytest.raises(NotRunningError):
        ended.poll(client.batch_status(batch_id))
    monkeypatch.setattr(client, "result", answers)
    ended.finish()
    assert told == [1, 2, 3]


def test_given_many_answers_to_write_when_lines_are_entered_then_they_wait_for_a_moment_only(client, monkeypatch):
    batch_id, told, answers = client.open_batch(), [], client.result
    ended = EndedLines(client, batch_id, None, lambda found: told.append(found.line))
    for record in client.add_to_batch(batch_id, [f"q{number}" for number in range(100)]):
        ended.expect(record)
    for number in range(101, 1_000):
        client.lines.append(LineRecord(line=number, kind="duplicate", job_id=f"job{number % 100:05}"))
        ended.expect(client.lines[-1])

    def slow(job_id):
        time.sleep(0.01)
        return answers(job_id)

    monkeypatch.setattr(client, "result", slow)
    monkeypatch.setattr(time, "monotonic", lambda real=time.monotonic: real() + 2.0)
    began = time.perf_counter()
    ended.poll_now_and_then()
    assert time.perf_counter() - began < 3.0, "a page of jobs may be the answer to any number of lines"
    assert 0 < len(told) < 500
    ended.finish()
    assert sorted(told) == list(range(1, 1_000))


def test_given_lines_of_one_job_when_told_then_its_answer_is_read_once_a_page(client, monkeypatch):
    batch_id, told, read, answers = client.open_batch(), [], [], client.result
    ended = EndedLines(client, batch_id, None, lambda found: told.append(found.answer))
    client.lines += client.add_to_batch(batch_id, ["one"])
    client.lines = [LineRecord(line=number, kind="duplicate", job_id="job00000") for number in range(1, 101)]
    for record in client.lines:
        ended.expect(record)
    monkeypatch.setattr(client, "result", lambda job_id: read.append(job_id) or answers(job_id))
    ended.finish()
    assert len(told) == 100
    assert all(told)
    assert len(read) == 5


def test_given_an_open_batch_when_followed_then_changes_are_given_until_time_is_up(client, monkeypatch):
    client.ends = lambda _: "searching"
    list(client.add_to_batch(client.open_batch(), client_requests("a", "b")))
    changes = []
    calls = iter(["searching"] * 3 + ["done"] * 20)
    client.ends = lambda _: next(calls)
    found = follow_batch(client, "batch001", on_change=changes.append)
    assert found.terminal
    assert [change.finished for change in changes] == [1]
    client.ends = lambda _: "searching"
    monkeypatch.setattr("orchestrator.cli.follow.PAST_TIME_S", -1e6)
    assert not follow_batch(client, "batch001").terminal


ALL = ["line", "id", "key", "job", "state", "leaves", "waited", "ran", "calls", "tokens", "estimated", "spent", "error"]


@pytest.mark.parametrize(
    ("room", "fit"),
    [
        ("40", ["line", "job", "state"]),
        ("80", ["line", "id", "job", "state", "leaves", "ran"]),
        ("100", ["line", "id", "job", "state", "error"]),
        ("120", ["line", "id", "job", "state", "leaves", "ran", "calls", "error"]),
        ("500", ALL),
        (None, ALL),
    ],
)
def test_given_a_narrow_place_when_reported_then_lines_and_jobs_are_whole_and_what_is_left_out_is_said(
    client, monkeypatch, room, fit
):
    if room:
        monkeypatch.setenv("COLUMNS", room)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    client.ends = lambda _: "failed"
    client.open_batch()
    job_ids = [f"{number:021}" for number in range(2)]
    monkeypatch.setattr(
        client, "submit", lambda request: client.requests.setdefault(job_ids[-1], request) and job_ids.pop()
    )
    list(client.add_to_batch("batch001", [{"question": "q", "id": "long-" * 20}, {"question": "q", "id": 7}]))
    client.lines[1] = client.lines[1].model_copy(update={"line": 1_234_567})
    done = ramify("batch", "report", "batch001")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert fit in rows
    assert [row[0] for row in rows if f"{0:021}" in row or f"{1:021}" in row] == ["1", "1234567"]
    assert max(map(len, done.stdout.splitlines())) <= max(int(room or 500), 49)
    missing = [name for name in ALL if name not in fit]
    assert done.stderr == (
        f"no room for {', '.join(missing)}: a wider terminal, --csv and --json show all\n" if missing else ""
    )


def test_given_two_forms_when_reported_then_one_must_be_chosen(client):
    ramify("batch", write("one"))
    done = ramify("batch", "report", "batch001", "--json", "--csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --csv: ")


def client_requests(*questions):
    from orchestrator.intake import as_request

    return [as_request(question) for question in questions]


def test_given_a_batch_when_looked_after_then_status_result_and_cancel_know_it(client):
    ramify("batch", write("one", "two"))
    assert "2 of 2" in ramify("status", "batch001").stdout
    rows = [json.loads(line) for line in ramify("result", "batch001", "--json").stdout.splitlines()]
    assert [row["question"] for row in rows] == ["one", "two"]
    assert "Streams keep order" in ramify("result", "batch001").stdout
    client.ends = lambda question: "searching" if question == "two" else "done"
    for arguments in (("status",), ("result",), ("result", "--json"), ("batch", "report")):
        assert ramify(*arguments, "batch001").exit_code == 0, "nothing is wrong so far"
    client.ends = lambda question: "searching" if question == "two" else "failed"
    done = ramify("result", "batch001", "--json")
    assert done.exit_code == 3
    assert [json.loads(line)["state"] for line in done.stdout.splitlines()] == ["failed", "searching"]
    assert ramify("status", "batch001").exit_code == 3
    assert ramify("cancel", "batch001").stdout == "1 of 2 jobs cancelled\n"
    lines = ramify("status", "batch001", "--json").stdout
    assert {name: json.loads(lines)[name] for name in ("done", "failed", "open")} == {"done": 0, "failed": 1, "open": 1}


def test_given_redis_away_for_a_moment_when_waiting_then_the_batch_is_followed_to_its_end(client, monkeypatch):
    looks, looked = iter(range(10)), client.batch_status

    def away_at_times(batch_id, **options):
        if next(looks) in {1, 2}:
            raise NotRunningError("Redis does not answer")
        return looked(batch_id, **options)

    monkeypatch.setattr(client, "batch_status", away_at_times)
    done = ramify("batch", write("one", "two"), "--wait", "--json")
    assert done.exit_code == 0
    assert done.stderr.count("Redis does not answer; waiting for it up to 60 s") == 1
    assert [json.loads(line).get("state") for line in done.stdout.splitlines()] == ["done", "done", None]


def test_given_redis_away_for_good_when_waiting_then_it_is_said_in_the_end(client, monkeypatch):
    looks, looked = iter(range(10)), client.batch_status

    def gone(batch_id, **options):
        if next(looks) > 0:
            raise NotRunningError("Redis does not answer")
        return looked(batch_id, **options)

    monkeypatch.setattr(client, "batch_status", gone)
    monkeypatch.setattr("orchestrator.outage.OUTAGE_S", 0.0)
    done = ramify("batch", write("one"), "--wait")
    assert done.exit_code == 1
    assert "error: Redis does not answer" in done.stderr
