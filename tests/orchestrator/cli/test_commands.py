"""The commands: what goes to which stream, and the exit codes. The client is a fake; the settings are real."""

import json
import threading

import pytest
import typer
from kombu.exceptions import OperationalError
from redis.exceptions import OutOfMemoryError, ResponseError
from typer.testing import CliRunner

from orchestrator.cli import follow
from orchestrator.cli.main import app
from orchestrator.local.checks import Check
from shared.errors import NotRunningError
from tests.fakes.ramify_client import FakeRamify
from tests.support.waiting import until

GROUPS = [
    "up",
    "down",
    "doctor",
    "config",
    "ingest",
    "find",
    "search",
    "ask",
    "route",
    "batch",
    "status",
    "result",
    "jobs",
    "why",
    "cancel",
    "retry",
    "eval",
]


@pytest.fixture
def client(monkeypatch):
    fake = FakeRamify()
    monkeypatch.setattr("orchestrator.client.Ramify", fake.opened)
    return fake


def ramify(*arguments, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


@pytest.mark.parametrize("command", GROUPS)
def test_given_help_when_asked_then_every_command_has_it(command):
    done = ramify(command, "--help")
    assert done.exit_code == 0
    assert "--json" in done.stdout


def test_given_a_question_when_asked_then_the_answer_is_on_stdout_and_progress_on_stderr(client):
    done = ramify("ask", "Why is Redis slow?")
    assert done.exit_code == 0
    assert "Streams keep order. [1]" in done.stdout
    assert "leaf 0.0 done, 5 hits" in done.stderr
    assert "leaf 0.0 done" not in done.stdout


def test_given_json_when_asked_then_stdout_is_one_document(client):
    done = ramify("ask", "如何优化数据库查询性能？", "--json")
    assert json.loads(done.stdout)["question"] == "如何优化数据库查询性能？"
    assert "如何优化" in done.stdout


def test_given_options_when_asked_then_they_reach_the_request(client):
    ramify(
        "ask", "q", "--mode", "bm25_only", "-n", "7", "--after", "2025-01-01", "--tag", "a", "--tag", "b", "--kind",
        "memory", "--path", "notes/", "--summary", "--no-decompose", "--deadline", "9", "--tenant", "t",
        "--namespace", "n", "--idempotency-key", "k",
    )  # fmt: skip
    request = client.requests["job00000"]
    assert (request.mode, request.top_n, request.summary, request.decompose) == ("bm25_only", 7, True, False)
    assert (request.deadline_s, request.tenant, request.idempotency_key) == (9, "t", "k")
    assert request.filters.model_dump(mode="json") == {
        "after": "2025-01-01", "before": None, "tags": ["a", "b"], "kinds": ["memory"], "paths": ["notes/"],
        "namespace": "n",
    }  # fmt: skip


def test_given_no_options_when_asked_then_the_settings_decide(client):
    ramify("ask", "q")
    assert client.requests["job00000"].model_dump(exclude_defaults=True) == {"question": "q"}


def test_given_a_dash_when_asked_then_the_question_comes_from_stdin(client):
    assert ramify("ask", "-", "--detach", input="  穿透是什么？\n").stdout == "job00000\n"
    assert client.requests["job00000"].question == "穿透是什么？"
    assert ramify("ask", "-", input=b"\xff\xfe").exit_code == 2


@pytest.mark.parametrize(
    ("end", "code"), [("done", 0), ("partial", 3), ("failed", 1), ("expired", 1), ("searching", 1)]
)
def test_given_how_a_job_ends_when_asked_then_the_exit_code_says_so(client, end, code):
    client.ends = lambda _: end
    done = ramify("ask", "q")
    assert done.exit_code == code
    assert (code == 1) == ("error: job job00000" in done.stderr)


def test_given_a_failed_job_when_asked_for_json_then_its_status_is_the_document(client):
    client.ends = lambda _: "failed"
    assert json.loads(ramify("ask", "q", "--json").stdout)["error"] == "none of the 2 leaves answered"


@pytest.mark.parametrize("unserved", [(), ("plan", "search")])
def test_given_queues_without_a_worker_when_a_job_is_waited_for_then_it_is_told_long_before_the_deadline(
    client, monkeypatch, unserved
):
    told, looked, stream = [], threading.Event(), client.stream
    monkeypatch.setattr(follow, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(follow.streams, "warn", told.append)
    monkeypatch.setattr(client, "unserved_queues", lambda: (looked.set(), unserved)[1])
    monkeypatch.setattr(client, "stream", lambda *args, **more: looked.wait(10) and stream(*args, **more))
    assert ramify("ask", "q").exit_code == 0
    until(lambda: len(told) == bool(unserved), 5, "told")
    assert all("no worker serves plan, search" in one and "ramify doctor" in one for one in told)


def test_given_an_interrupt_when_following_then_the_id_and_the_ways_back_are_printed(client):
    client.interrupted = True
    done = ramify("ask", "q")
    assert done.exit_code == 130
    assert "ramify status job00000 --watch" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ask", " "), "question"),
        (("ask", "a" * 5000), "question"),
        (("ask", "red \x1b[31m"), "question"),
        (("ask", "q", "--mode", "deepest"), "mode"),
        (("ask", "q", "--after", "tomorrow"), "filters.after"),
        (("ask", "q", "--after", ""), "filters.after"),
        (("status", "nope\x1b[31m"), "ID"),
        (("result", "nope"), "ID"),
        (("cancel", "nope"), "ID"),
        (("--config", "missing.toml", "config"), "--config"),
        (("--set", "nonsense", "config"), "--set"),
        (("--set", "search.strategy=deepest", "config"), "search.strategy"),
        (("--set", "serch.mode=x", "config"), "serch"),
    ],
)
def test_given_bad_input_when_run_then_one_sentence_names_it_and_the_code_is_2(client, arguments, named):
    done = ramify(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {named}: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_given_nothing_running_when_asked_then_it_says_how_to_start():
    done = ramify("ask", "q")
    assert done.exit_code == 1
    assert "ramify up -d" in done.stderr


def test_given_bad_usage_when_run_then_the_code_is_2():
    assert ramify("nosuch").exit_code == 2
    assert ramify("ask").exit_code == 2
    assert ramify("jobs", "-n", "0").exit_code == 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OutOfMemoryError("command not allowed"), "error: Redis is out of memory: raise its maxmemory"),
        (ResponseError("WRONGTYPE\n\x1b[2J of a key"), "error: Redis refused a command (ResponseError:"),
        (OperationalError("[Errno 104] Connection reset by peer"), "error: Redis refused a command (OperationalError:"),
    ],
)
def test_given_an_error_of_redis_that_nobody_expected_then_it_is_one_line(client, monkeypatch, error, said):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(client, "jobs", fails)
    done = ramify("jobs")
    assert done.exit_code == 1
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_given_debug_when_it_fails_then_the_traceback_is_shown(client):
    assert "Traceback" not in ramify("ask", " ").stderr
    assert "Traceback" in ramify("--debug", "ask", " ").stderr


def test_given_jobs_when_listed_then_the_newest_comes_first(client):
    assert "no jobs yet" in ramify("jobs").stderr
    client.submit("one")
    client.submit("two")
    found = json.loads(ramify("jobs", "--json", "-n", "1").stdout)["jobs"]
    assert [job["question"] for job in found] == ["two"]
    assert "job00001" in ramify("jobs").stdout


def test_given_a_job_when_watched_as_json_then_events_are_lines_and_the_last_is_its_status(client):
    client.submit("q")
    lines = [json.loads(line) for line in ramify("status", "job00000", "--watch", "--json").stdout.splitlines()]
    assert lines[0] == {"id": "1795000000000-0", "type": "state", "data": {"state": "searching"}}
    assert lines[-1]["job_id"] == "job00000"


def test_given_a_job_when_shown_then_status_result_and_cancel_know_it(client):
    client.submit("q")
    assert "2 of 2 answered" in ramify("status", "job00000").stdout
    assert "Streams keep order" in ramify("result", "job00000").stdout
    assert json.loads(ramify("cancel", "job00000", "--json").stdout)["cancelled"] is False
    client.ends = lambda _: "searching"
    assert ramify("status", "job00000").exit_code == 0
    assert ramify("result", "job00000").exit_code == 1
    assert ramify("cancel", "job00000").stdout == "cancelled\n"


def test_given_a_query_when_found_then_hits_are_on_stdout_and_warnings_on_stderr(client):
    done = ramify("find", "streams", "-n", "2", "--before", "2026-01-01")
    assert "notes/1.md" in done.stdout
    assert "warning: Keyword search only." in done.stderr
    assert client.options == {"top_n": 2, "filters": {"before": "2026-01-01"}}
    assert len(json.loads(ramify("find", "streams", "--json").stdout)["hits"]) == 2


def test_given_documents_when_ingested_then_a_bad_one_is_reported_and_the_code_is_3(client):
    done = ramify("ingest", "good")
    assert (done.exit_code, done.stdout.strip()) == (0, "1 added; 3 chunks written")
    assert "passed over: a/link.md" in done.stderr
    done = ramify("ingest", "bad", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 3
    assert "a/2.md: is no UTF-8" in done.stderr
    assert [line.get("status") for line in lines] == ["added", "failed", None]
    assert (lines[-1]["added"], lines[-1]["failed"], lines[-1]["chunks"]) == (1, 1, 3)


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (None, 0), (False, 1)])
def test_given_checks_when_examined_then_a_fault_fails(monkeypatch, ok, code):
    check = Check(name="redis", ok=ok, detail="does \x1b[31mnot answer", fix="start it")
    monkeypatch.setattr("orchestrator.local.doctor.examine", lambda _: [check])
    done = ramify("doctor")
    assert done.exit_code == code
    assert "→ start it" in done.stdout
    assert "\x1b" not in done.stdout
    assert json.loads(ramify("doctor", "--json").stdout)["checks"][0]["ok"] is ok


def test_given_nothing_running_when_down_then_it_is_harmless():
    done = ramify("down")
    assert (done.exit_code, done.stdout) == (0, "no stack was running here\n")


def test_given_the_stack_when_started_detached_then_its_urls_are_shown(monkeypatch):
    from datetime import UTC, datetime

    from orchestrator.local.state import StackState

    state = StackState(
        pid=1, mark="m", started_at=datetime.now(UTC), ready=True, redis_url="redis://r", flower_url="http://f"
    )
    monkeypatch.setattr("orchestrator.local.background.start", lambda _: state)
    assert "http://f" in ramify("up", "-d").stdout
    assert json.loads(ramify("up", "-d", "--json").stdout)["redis_url"] == "redis://r"

    def busy(_):
        raise NotRunningError("a port is taken")

    monkeypatch.setattr("orchestrator.local.background.start", busy)
    assert ramify("up", "-d").stderr == "error: a port is taken\n"


def _taking_an_id(group, *path):
    """The path of every command with an argument that is an id."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _taking_an_id(command, *path, name)
        elif any(each.param_type_name == "argument" and "ID" in (each.metavar or "") for each in command.params):
            yield (*path, name)


def test_given_a_command_that_takes_an_id_when_a_tenant_is_named_then_its_client_is_bound_to_it(client):
    taking = set(_taking_an_id(typer.main.get_command(app)))
    assert {("status",), ("result",), ("why",), ("cancel",), ("retry",), ("dead", "show"), ("session", "add")} <= taking
    more = {("session", "add"): ["text"], ("judge",): ["good"]}
    of_all_tenants = {("keys", "revoke")}
    for path in (*taking - of_all_tenants, ("jobs",), ("dead", "list")):
        client.tenant = None
        listed = path in {("jobs",), ("dead", "list")}
        ramify(*path, *([] if listed else ["id1"]), *more.get(path, ()), "--tenant", "acme")
        assert client.tenant == "acme", path


def test_given_a_job_without_an_answer_when_read_early_then_what_is_there_is_shown_and_the_exit_code_is_partial(client):
    client.ends = lambda _: "cancelled"
    ramify("ask", "--detach", "why?")
    done = ramify("result", "job00000", "--partial")
    assert (done.exit_code, "cancelled (partial)" in done.stdout) == (3, True)
    assert "1 of 2 leaves answered" in done.stdout
    found = json.loads(ramify("result", "job00000", "--partial", "--json").stdout)
    assert (found["state"], found["partial"]) == ("cancelled", True)
    beside = ramify("result", "job00000", "--partial", "--rows")
    assert (beside.exit_code, "give one of them" in beside.stderr) == (2, True)
    client.batches["batch001"] = ["job00000"]
    of_batch = ramify("result", "batch001", "--partial")
    assert (of_batch.exit_code, "takes the id of one of its jobs" in of_batch.stderr) == (2, True)
