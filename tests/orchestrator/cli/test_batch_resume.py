"""`ramify batch` killed in the middle, and gone on with: every line is submitted once and answered once in the file."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.submitting import Submitter
from shared.jobs import JobStore, State
from shared.jobs.keys import RECENT, BatchKeys
from shared.jobs.lines import Page
from shared.models.batch import LineRecord
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob
from tests.support.waiting import until

LINES = 300


@pytest.fixture(autouse=True)
def this_redis(monkeypatch: pytest.MonkeyPatch, redis_url: str, client: redis.Redis) -> None:
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)


def questions(lines: int) -> list[str]:
    """Lines of every kind: with and without an id, keys that repeat, blank ones, Chinese, and such as are refused."""
    made = []
    for number in range(1, lines + 1):
        match number % 10:
            case 0:
                made.append("")
            case 1:
                made.append('{"question": "half')
            case 2 | 3:
                made.append(json.dumps({"question": f"q{number // 20}?", "idempotency_key": f"k{number // 20}"}))
            case 4:
                fields = {"question": f"第{number}个问题？", "id": f"id-{number}", "meta": {"n": number, "topic": "流"}}
                made.append(json.dumps(fields, ensure_ascii=False))
            case _:
                made.append(f"question {number}?")
    return made


@contextmanager
def answering(settings: Settings, client: redis.Redis) -> Iterator[None]:
    """End jobs in another thread as they come: most are done, some fail."""
    store, stop, ended = JobStore(client, settings), threading.Event(), set[str]()

    def work() -> None:
        while not stop.is_set():
            for job_id in {raw.decode() for raw in client.zrange(RECENT, 0, -1)} - ended:
                if random.random() < 0.5 or (job := store.job(job_id)) is None:
                    continue
                ended.add(job_id)
                if job_id.endswith(("0", "5")):
                    store.stop(job, State.FAILED, "no leaf answered")
                else:
                    WalkedJob(store, job_id).finish("admitted")
            time.sleep(0.01)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def cut_off(arguments: list[str], seconds: float) -> str | None:
    """Kill `ramify batch ...` so many seconds after it has named its batch; the id of that. None: it had ended."""
    command = [sys.executable, "-m", "orchestrator.cli.main", "batch", *arguments]
    root = str(Path(__file__).parents[3])
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": root})
    assert run.stderr is not None
    named = run.stderr.readline()
    time.sleep(seconds)
    run.kill()
    rest = run.communicate()[1]
    found = re.search(r"--resume (\w+)", named + rest)
    return found[1] if found else None


def batch(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["batch", *arguments])
    return done.exit_code, done.stdout, done.stderr


def rows_of(path: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def check(client: redis.Redis, batch_id: str, lines: list[str], path: str) -> None:
    """Redis and the file of answers, compared line by line with what was asked."""
    counts = {name.decode(): value.decode() for name, value in client.hgetall(BatchKeys(batch_id).batch).items()}
    records = {int(n): json.loads(raw) for n, raw in client.hgetall(BatchKeys(batch_id).lines).items()}
    rows = {int(row["line"]): row for row in rows_of(path)}
    asked = [number for number, line in enumerate(lines, 1) if line]
    assert sorted(records) == sorted(rows) == asked
    assert len(rows_of(path)) == len(asked)
    assert {n: row["job_id"] or "-" for n, row in rows.items()} == {n: r.get("job_id", "-") for n, r in records.items()}
    jobs = [record["job_id"] for record in records.values() if record["kind"] == "enqueued"]
    assert len(jobs) == len(set(jobs)) == client.zcard(RECENT) == int(counts["enqueued"])
    assert int(counts["lines"]) == len(lines)
    assert int(counts["blank"]) == lines.count("")
    assert int(counts["done"]) + int(counts["failed"]) == len(jobs)


def test_given_a_batch_killed_again_and_again_when_gone_on_with_then_every_line_is_asked_and_written_once(
    client: redis.Redis, settings: Settings
) -> None:
    lines, out = questions(LINES), "out.jsonl"
    Path("q.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with answering(settings, client):
        batch_id = cut_off(["q.jsonl", "--out", out], 0.4)
        assert batch_id
        for seconds in (0.2, 0.7):
            cut_off(["--resume", batch_id], seconds)
        until(lambda: batch("--resume", batch_id)[0] == 3)
    check(client, batch_id, lines, out)
    refused = [json.loads(line)["line"] for line in Path("q.jsonl.rejects.jsonl").read_text().splitlines()]
    assert refused == [number for number, line in enumerate(lines, 1) if line.endswith("half")]


@pytest.fixture
def ramify(settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings) as ramify:
        yield ramify


def test_given_ids_and_meta_when_answered_then_each_row_gives_back_what_its_line_said(
    client: redis.Redis, settings: Settings
) -> None:
    lines = questions(40)
    with answering(settings, client):
        code, _, _ = batch(write(lines), "--out", "out.jsonl")
    assert code == 3
    rows = {row["line"]: row for row in rows_of("out.jsonl")}
    assert (rows[4]["id"], rows[4]["meta"], rows[4]["question"]) == ("id-4", {"n": 4, "topic": "流"}, "第4个问题？")
    assert (rows[2]["kind"], rows[3]["kind"], rows[3]["key"]) == ("enqueued", "duplicate", "k0")
    assert rows[3]["job_id"] == rows[2]["job_id"]
    assert rows[3]["answer"] == rows[2]["answer"]
    assert (rows[1]["kind"], rows[1]["state"], rows[1]["question"]) == ("rejected", None, '{"question": "half')


def write(lines: list[str]) -> str:
    Path("q.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return "q.jsonl"


def test_given_the_same_lines_again_when_batched_then_it_says_what_is_new_and_what_was_known(
    client: redis.Redis, settings: Settings
) -> None:
    keyed = [json.dumps({"question": f"q{n}?", "idempotency_key": f"key{n}"}) for n in range(12)]
    with answering(settings, client):
        assert batch(write(keyed[:10]), "--wait")[1]
        code, said, _ = batch(write(keyed))
        assert ": 2 enqueued, 10 known of 12 lines, in " in said
        code, _, _ = batch(write(keyed), "--out", "known.jsonl")
    rows = rows_of("known.jsonl")
    assert sorted(row["line"] for row in rows) == list(range(1, 13))
    assert {row["kind"] for row in rows} == {"known"}
    failed = any(row["state"] == "failed" for row in rows)
    assert code == (3 if failed else 0)


def test_given_another_file_when_gone_on_with_then_it_is_refused_and_nothing_changes(
    client: redis.Redis, ramify: Ramify
) -> None:
    write(["one?", "two?"])
    batch_id = interrupted()
    before = client.hgetall(BatchKeys(batch_id).batch)
    write(["another?", "two?"])
    code, _, said = batch("--resume", batch_id)
    assert code == 2
    assert "go on with the same lines" in said
    assert client.hgetall(BatchKeys(batch_id).batch) == before


def test_given_a_batch_that_was_cut_off_when_all_its_jobs_have_ended_then_its_status_does_not_pass_for_whole(
    client: redis.Redis, settings: Settings, ramify: Ramify
) -> None:
    write(["one?", "two?"])
    batch_id = interrupted()
    for job_id in ramify.batch_jobs(batch_id):
        WalkedJob(JobStore(client, settings), job_id).finish("admitted")
    done = CliRunner().invoke(app, ["status", batch_id])
    assert done.exit_code == 3
    assert "not to its end" in done.stdout
    assert "(not read to" in CliRunner().invoke(app, ["batches"]).stdout
    assert batch("--resume", batch_id)[0] == 0
    assert CliRunner().invoke(app, ["status", batch_id]).exit_code == 0


def interrupted(*arguments: str) -> str:
    """A batch whose command was cut off behind the first page, by Ctrl-C."""
    close = Ramify.close_batch

    def stopped(ramify: Ramify, batch_id: str) -> None:
        raise KeyboardInterrupt

    Ramify.close_batch = stopped  # type: ignore[method-assign]
    try:
        code, _, said = batch("q.jsonl", *arguments)
    finally:
        Ramify.close_batch = close  # type: ignore[method-assign]
    assert code == 130
    found = re.search(r"holds the lines read so far: `ramify batch --resume (\w+)`", said)
    assert found, said
    return found[1]


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--wait",), ("--out", "out.jsonl")])
def test_given_a_cancel_while_lines_are_submitted_when_the_next_are_then_both_commands_say_that_it_is_over(
    client: redis.Redis, ramify: Ramify, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    write([f"question {number}?" for number in range(LINES)])
    send, cancelled = Submitter.send, list[str]()

    def sent(submitter: Submitter, batch_id: str, page: Page) -> Callable[[], list[LineRecord]]:
        found = send(submitter, batch_id, page)()
        if not cancelled:
            cancelled.append(CliRunner().invoke(app, ["cancel", batch_id]).stdout)
        return lambda: found

    monkeypatch.setattr(Submitter, "send", sent)
    code, shown, said = batch("q.jsonl", *arguments)
    assert cancelled == ["200 of 200 jobs cancelled; it was still being read: it takes no more than these 200 lines\n"]
    (status,) = ramify.batches()
    sentence = f"error: batch {status.batch_id} was cancelled after line 200: it takes no more lines"
    assert (code, sentence in said, "goes on" in said.split("\n", 1)[1]) == (3, True, False)
    assert (status.lines, status.cancelled, status.open) == (200, 200, 0)
    assert "Traceback" not in shown + said
    code, _, said = batch("--resume", status.batch_id, *[one for one in arguments if one == "--wait"])
    assert code == 3
    assert "takes no more lines" in said
    if "--out" in arguments:
        assert len(rows_of("out.jsonl")) == 200
    assert ramify.batch_status(status.batch_id) == status
    assert "not to its end: it was cancelled" in CliRunner().invoke(app, ["status", status.batch_id]).stdout


def test_given_options_of_lines_when_gone_on_with_then_they_are_refused(client: redis.Redis) -> None:
    write(["one?", "two?"])
    batch_id = interrupted()
    code, _, said = batch("--resume", batch_id, "--top", "3")
    assert code == 2
    assert "--top-n" in said or "--top" in said
    assert "goes on as it began" in said


def test_given_a_batch_from_stdin_when_gone_on_with_then_its_lines_must_be_given_again(client: redis.Redis) -> None:
    close = Ramify.close_batch
    lines = "one?\ntwo?\n"
    Ramify.close_batch = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    try:
        said = CliRunner().invoke(app, ["batch", "-"], input=lines).stderr
    finally:
        Ramify.close_batch = close  # type: ignore[method-assign]
    found = re.search(r"--resume (\w+)", said)
    assert found
    code, _, said = batch("--resume", found[1])
    assert code == 2
    assert "stdin" in said
    done = CliRunner().invoke(app, ["batch", "--resume", found[1], "-"], input=lines + "three?\n")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"batch {found[1]}: 3 enqueued of 3 lines, in ")
    again = CliRunner().invoke(app, ["batch", "--resume", found[1]])
    assert again.exit_code == 0, again.exception  # all is read: stdin is not asked for again


def test_given_a_file_of_the_batch_as_out_when_gone_on_with_then_it_is_refused_and_stays(client: redis.Redis) -> None:
    source = write(["one?", '{"half'])
    batch_id = json.loads(batch(source, "--json")[1])["batch_id"]
    Path("link.jsonl").symlink_to("q.jsonl.rejects.jsonl")
    for out in ("q.jsonl", "q.jsonl.rejects.jsonl", "link.jsonl"):
        before = Path(out).read_bytes()
        code, _, said = batch("--resume", batch_id, "--out", out)
        assert (code, Path(out).read_bytes()) == (2, before)
        assert "name another" in said


def test_given_an_unknown_batch_when_gone_on_with_then_it_is_said(client: redis.Redis) -> None:
    code, _, said = batch("--resume", "nobody")
    assert (code, said.count("\n")) == (2, 1)
    assert "there is no such batch" in said


@pytest.mark.parametrize(
    ("content", "lines"), [(b"one?\rtwo?\rthree?", 3), (b"one?\r\ntwo?\r\n", 2), (b"one?\n\rtwo?", 3)]
)
def test_given_any_line_ends_when_batched_then_each_line_is_a_question(
    client: redis.Redis, content: bytes, lines: int
) -> None:
    Path("q.jsonl").write_bytes(content)
    code, said, _ = batch("q.jsonl")
    assert code == 0
    assert f" of {lines} lines, in " in said


@pytest.mark.parametrize("content", ["null", "true", "17", "[1]"])
def test_given_json_that_is_no_question_when_batched_then_it_is_refused(client: redis.Redis, content: str) -> None:
    write(["good?", content])
    code, said, _ = batch("q.jsonl")
    assert code == 3
    assert "1 enqueued, 1 rejected of 2 lines" in said


def test_given_a_batch_when_reported_then_each_line_and_the_accounts_are_there(
    client: redis.Redis, settings: Settings
) -> None:
    lines = questions(40)
    with answering(settings, client):
        _, said, _ = batch(write(lines), "--wait", "--json")
    batch_id = json.loads(said.splitlines()[-1])["batch_id"]
    code, said, _ = batch("report", batch_id, "--json")
    found = json.loads(said)
    assert code == 3
    assert [row["line"] for row in found["lines"]] == [number for number, line in enumerate(lines, 1) if line]
    assert (found["batch"]["lines"], found["batch"]["rejected"]) == (40, 4)
    _, said, noted = batch("report", batch_id, "--csv")
    rows = list(csv.DictReader(said.splitlines()))
    assert [int(row["line"]) for row in rows] == [row["line"] for row in found["lines"]]
    assert (rows[3]["id"], json.loads(rows[3]["meta"])) == ("id-4", {"n": 4, "topic": "流"})
    assert noted.startswith("lines 40 = ")
    _, said, _ = batch("report", batch_id)
    assert "lines     40 = " in said
    assert re.search(r"(?m)^ +4 +id-4 +\w{21} ", said)
    for state in ("failed", "rejected", "duplicate"):
        shown = json.loads(batch("report", batch_id, "--json", "--state", state)[1])["lines"]
        assert {row["line"] for row in shown} == {
            row["line"] for row in found["lines"] if state in {row["kind"], row["state"]}
        }
    code, said, noted = batch("report", batch_id, "--state", "dne")
    assert (code, said, noted.count("\n")) == (2, "", 1)
    assert "choose from" in noted


def test_given_a_file_called_report_when_batched_then_its_path_names_it(client: redis.Redis) -> None:
    Path("report").write_text("one?\n", encoding="utf-8")
    assert "1 enqueued of 1 line" in batch("./report")[1]
    assert "1 enqueued of 1 line" in batch("--rejects", "r.jsonl", "report")[1]


def test_given_batches_and_jobs_when_listed_then_filters_combine(client: redis.Redis, settings: Settings) -> None:
    batch(write([json.dumps({"question": "q?", "tenant": "acme"}), "two?"]))
    with answering(settings, client):
        batch(write(["three?", "four?"]), "--wait")
    listed = run("batches", "--json")
    newest, first = listed["batches"]
    assert (newest["source"], newest["enqueued"], first["enqueued"]) == ("q.jsonl", 2, 2)
    assert "2 = 2 enqueued" in CliRunner().invoke(app, ["batches"]).stdout
    questions_of = [
        job["question"] for job in run("jobs", "--batch", first["batch_id"], "--tenant", "acme", "--json")["jobs"]
    ]
    assert questions_of == ["q?"]
    ended = {job["state"] for job in run("jobs", "--batch", newest["batch_id"], "--json")["jobs"]}
    assert ended <= {"done", "failed"}
    assert run("jobs", "--batch", newest["batch_id"], "--state", "open", "--json") == {"jobs": []}
    some = run("jobs", "--batch", newest["batch_id"], "--state", "done", "--state", "failed", "--json")["jobs"]
    assert len(some) == 2
    assert run("jobs", "--degraded", "--json") == {"jobs": []}
    for arguments in (("--state", "dne"), ("--batch", "nobody")):
        done = CliRunner().invoke(app, ["jobs", *arguments])
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def run(*arguments: str) -> dict[str, list[dict[str, object]]]:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.stderr
    found: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
    return found
