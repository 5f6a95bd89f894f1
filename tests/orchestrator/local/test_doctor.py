"""Doctor's findings, with nothing running and with servers that answer badly."""

import os
import re
import socket
import time
from datetime import UTC, datetime
from threading import Thread

import pytest

from orchestrator.local import checks, checks_stack, doctor
from orchestrator.local.checks import size
from orchestrator.local.state import ChildState, StackState, make_folders, write_state
from shared.connections.process import identity
from shared.contract import Queue, queue_keys
from shared.settings import load_settings
from tests.fakes.openai_server import Fault, Malformed, Reply

NAMES = {
    "versions", "settings", "redis binary", "plugins", "data folder", "disk", "stack", "redis", "queues", "pools",
    "store folder", "store", "reaper", "lanes", "dead letters", "damaged jobs", "llm", "embedding", "rerank", "http",
    "flower",
}  # fmt: skip


def findings(**overrides):
    return {check.name: check for check in doctor.examine(load_settings(**overrides))}


def test_given_nothing_when_examined_then_every_line_is_there_and_says_how_to_start(tmp_path):
    found = findings(data_dir=tmp_path / "data")
    assert set(found) - {"redis fixes"} == NAMES
    for name in ("stack", "redis", "pools", "store", "http", "flower"):
        assert found[name].ok is None
        assert found[name].fix == "ramify up -d"
    assert found["data folder"].ok
    assert not (tmp_path / "data").exists()  # it only looks


def test_given_a_redis_that_is_not_there_when_examined_then_that_is_the_one_fault(tmp_path):
    found = findings(data_dir=tmp_path, redis={"url": "redis://:s3cret@127.0.0.1:9/0"})
    assert found["redis"].ok is False
    assert found["redis"].detail.startswith("127.0.0.1:9 does not answer")
    assert "a Redis with pools of its own" in found["stack"].detail
    assert not any("apt" in check.fix or check.fix == "ramify up -d" for check in found.values())
    assert "ramify up" not in found["redis"].detail + found["redis"].fix
    assert found["pools"].detail == found["store"].detail == "cannot be asked: Redis does not answer"
    assert not any("s3cret" in str(check) for check in found.values())


def test_a_folder_that_others_may_write_is_no_fault_where_nothing_of_the_stack_is_in_it(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)  # a pod's emptyDir
    elsewhere = {"redis": {"url": "redis://127.0.0.1:9/0"}, "store": {"kind": "server", "url": "http://127.0.0.1:9"}}
    folder = tmp_path / "open" / "data"
    for given, ok in ((elsewhere, None), ({}, False)):
        found = findings(data_dir=folder, **given)
        assert {found[name].ok for name in ("data folder", "stack")} == {ok}
    folder.mkdir(mode=0o700)
    assert findings(data_dir=folder, **elsewhere)["data folder"].ok is False


@pytest.mark.parametrize(("status", "ok"), [("200 OK", True), ("503 Service Unavailable", None)])
def test_http_and_flower_of_no_stack_are_asked_where_the_settings_have_them(tmp_path, status, ok):
    def answer(listener: socket.socket) -> None:
        with listener.accept()[0] as connection:
            connection.recv(4_096)
            connection.sendall(f"HTTP/1.0 {status}\r\nContent-Length: 2\r\n\r\nOK".encode())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        at = {"port": listener.getsockname()[1]}
        settings = load_settings(data_dir=tmp_path, redis={"url": "redis://127.0.0.1:9/0"}, server=at, flower=at)
        for check in (checks.server, checks.flower):
            Thread(target=answer, args=(listener,), daemon=True).start()
            found = check(settings, None)
            assert (found.ok, "runs elsewhere is not known" in found.detail) == (ok, ok is None)
            assert f"http://127.0.0.1:{at['port']}" in found.detail


@pytest.mark.parametrize(
    ("answer", "ok", "part"),
    [
        (Reply(body={"data": [{"id": "small"}, {"id": "m"}]}), True, "model 'm'"),
        (Reply(body={"data": [{"id": "small"}]}), None, "does not list 'm', but 'small'"),
        (Malformed(b'["odd"]'), True, "lists no models"),
        (Fault(404), True, "lists no models"),
        (Fault(400), False, "answers 400"),
        (Fault(401), False, "refuses the key (401)"),
        (Fault(503), False, "answers 503"),
    ],
)
def test_given_a_chat_server_when_asked_for_its_models_then_the_finding_says_what_is_wrong(server, answer, ok, part):
    server.script("models", answer)
    found = findings(llm_model="m", llm_base_url=server.url, llm_api_key="sk-secret")
    assert found["llm"].ok is ok
    assert part in found["llm"].detail
    assert [request.headers["authorization"] for request in server.requests("models")] == ["Bearer sk-secret"]
    assert not any("sk-secret" in str(check) for check in found.values())


def test_given_endpoints_of_encoder_and_reranker_when_nobody_listens_then_each_names_its_setting():
    gone = {"provider": "endpoint", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    found = findings(embedding=gone, rerank=gone)
    for name in ("embedding", "rerank"):
        assert found[name].ok is False
        assert found[name].fix == f"start it, or correct {name}.base_url"


def test_given_a_killed_supervisor_when_examined_then_the_finding_says_how_to_clear_up(tmp_path):
    settings = load_settings(data_dir=tmp_path)
    make_folders(settings)
    write_state(settings, StackState(pid=4_000_000, mark="gone", started_at=datetime.now(UTC)))
    stack = findings(data_dir=tmp_path)["stack"]
    assert stack.ok is False
    assert "ramify down" in stack.fix


def restarted(tmp_path, *minutes_ago: float):
    mark, now = identity(os.getpid()) or "", time.time()
    times = tuple(now - 60 * ago for ago in minutes_ago)
    child = ChildState(name="merge", pid=1, mark="", log="", restarts=len(times), restarted_at=times)
    state = StackState(pid=os.getpid(), mark=mark, started_at=datetime.now(UTC), ready=True, children=(child,))
    return checks_stack.supervisor(load_settings(data_dir=tmp_path), state)


def test_given_a_pool_that_was_restarted_lately_when_examined_then_it_is_a_fault_with_its_time(tmp_path):
    check = restarted(tmp_path, 600, 10, 1)
    assert check.ok is False
    assert re.search(r"restarts of the last 15 min: merge 2 \(last \d{4}-\d\d-\d\d \d\d:\d\d UTC\)", check.detail)


def test_given_restarts_that_are_over_when_examined_then_they_are_told_and_no_fault(tmp_path):
    check = restarted(tmp_path, 600, 16)
    assert check.ok
    assert "restarts that are over: merge 2 (last " in check.detail
    assert restarted(tmp_path).detail.endswith("UTC"), "without restarts nothing is said of them"


def test_given_a_look_that_raises_when_examined_then_the_other_lines_are_still_there(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(doctor.checks, "machine", broken)
    found = findings()
    assert found["machine"].ok is False
    assert "oops" in found["machine"].detail
    assert "flower" in found


def test_given_two_lanes_when_the_keys_are_named_then_they_are_kombus():
    keys = queue_keys(Queue.PLAN)
    assert keys == ["plan", *(f"plan\x06\x16{step}" for step in (1, 2, 3, 5, 6, 7, 8))]


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1234, "1.2 kB"), (5e12, "5.0 TB")])
def test_given_bytes_when_shown_then_they_are_short(count, text):
    assert size(count) == text


BUILT = {"sparse": "bm25:x:v1", "avg_len": 80.0, "dense": None, "dim": 0}


@pytest.mark.parametrize(
    ("answer", "ok", "detail"),
    [
        (
            {"ok": True, "collection": {"points": 3, "index_version": 1, "built_with": BUILT}},
            True,
            "3 chunks, bm25:x:v1, dense none",
        ),
        (
            {"ok": True, "collection": {"points": 3, "built_with": BUILT, "tenants": {"default": {}, "乙": {}}}},
            True,
            "3 chunks, bm25:x:v1, dense none, 2 tenants",
        ),
        (
            {"ok": True, "collection": {"points": 3, "built_with": BUILT, "tenants": {}}, "without_tenant": 2},
            False,
            "3 chunks, bm25:x:v1, dense none; nobody sees 2 of them, which an older release wrote without a tenant",
        ),
        ({"ok": True, "collection": None}, None, "empty: nothing is ingested"),
        ({"ok": False, "error": "the store folder is broken"}, False, "the store folder is broken"),
        ({}, False, "its answer cannot be read"),
    ],
)
def test_given_the_search_workers_answer_when_read_then_the_finding_says_what_the_store_holds(answer, ok, detail):
    check = checks_stack.read_store_info(answer)
    assert (check.ok, check.detail) == (ok, detail)
