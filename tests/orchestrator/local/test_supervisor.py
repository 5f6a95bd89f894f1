"""The embedded stack on real processes: a real Redis, and stand-in Celery apps in place of the pools' own."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from celery import Celery
from redis import Redis

from orchestrator.local import background, doctor
from orchestrator.local.background import down
from orchestrator.local.redis_binary import find_binary
from orchestrator.local.state import StackState, connection, read_state, running
from shared.contract import POOL_QUEUES
from shared.errors import RamifyError
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from tests.support.waiting import until

try:
    find_binary()
except RamifyError as missing:
    pytest.skip(str(missing), allow_module_level=True)

ROOT = Path(__file__).parents[3]
LOGIN = "ann:s3cret"
APP = """
import os, time
from shared.tasks.app import make_app
from shared.settings import load_settings
app = make_app(load_settings())

@app.task(name="plan.job", ignore_result=False)
def nap(message):
    time.sleep(message["seconds"])
    return os.getpid()

@app.task(name="search.info", ignore_result=False)
def info():
    built = {"sparse": "bm25", "avg_len": 9.0, "dense": None, "dim": 0}
    return {"ok": True, "collection": {"points": 7, "index_version": 1, "built_with": built}}
"""
DRIVER = """
import json, sys
from orchestrator.local import stack
from orchestrator.local.commands import Pool
from shared.errors import RamifyError
from shared.settings import load_settings

stack._STOP_S = 1.5
app = sys.argv[1]
pools = {
    "plan": Pool(app=app, queues=("plan", "rerank", "merge", "ops"), threads=2),
    "search": Pool(app="standin", queues=("search", "index"), threads=2),
}
try:
    stack.Stack(load_settings(), pools, lambda event: print(event.model_dump_json(), flush=True), "standin").run()
except RamifyError as error:
    print(json.dumps({"error": str(error)}), flush=True)
    sys.exit(error.exit_code)
"""


def clean_environment() -> dict[str, str]:
    """Without a developer's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RAMIFY_")}


class Running:
    """A supervisor in a process of its own, on a data folder of its own."""

    def __init__(self, folder: Path, app="standin", **env):
        folder.mkdir(exist_ok=True)
        (folder / "standin.py").write_text(APP)
        (folder / "broken.py").write_text("raise SystemExit('this app is broken')\n")
        (folder / "driver.py").write_text(DRIVER)
        self.settings = load_settings(data_dir=folder / "data")
        self.events = folder / "events.jsonl"
        path = os.pathsep.join((str(ROOT), str(folder)))
        with self.events.open("ab") as out:
            self.process = subprocess.Popen(
                (sys.executable, str(folder / "driver.py"), app),
                env={
                    **clean_environment(),
                    "PYTHONPATH": path,
                    "RAMIFY_DATA_DIR": str(folder / "data"),
                    "RAMIFY_SERVER__ENABLED": "false",
                    **env,
                },
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )

    def lines(self) -> list[str]:
        return self.events.read_text().splitlines()

    def seen(self, kind: str, name: str) -> list[str]:
        return [line for line in self.lines() if f'"kind":"{kind}","name":"{name}"' in line]

    def ready(self) -> StackState:
        def look():
            assert self.process.poll() is None, self.lines()
            state = running(self.settings)
            return state if state and state.ready else None

        return until(look, 60, "the stack is ready")

    def state(self) -> StackState:
        state = read_state(self.settings)
        assert state
        return state

    def child(self, name: str):
        return next(child for child in self.state().children if child.name == name)

    def app(self) -> Celery:
        return make_app(connection(self.settings))

    def kill(self):
        state = read_state(self.settings)
        self.process.kill()
        self.process.wait()
        own = state is not None and state.pid == self.process.pid  # one that was refused has none
        for child in state.children if own else ():
            if psutil.pid_exists(child.pid):
                os.kill(child.pid, signal.SIGKILL)


def living(state: StackState) -> list[str]:
    """Names of the children that still live."""
    found = []
    for child in state.children:
        try:
            if psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
                found.append(child.name)
        except psutil.NoSuchProcess:
            pass
    return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """Shared by the tests that leave it running. Its Flower wants a login."""
    stack = Running(tmp_path_factory.mktemp("shared"), RAMIFY_FLOWER__BASIC_AUTH=LOGIN)
    try:
        stack.ready()
        yield stack
    finally:
        stack.kill()


@pytest.fixture
def alone(tmp_path):
    """Starts stacks that a test may break."""
    started = []

    def start(app="standin", folder=tmp_path, **env):
        started.append(Running(folder, app, RAMIFY_FLOWER__ENABLED="false", **env))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def fetch(url: str, login: str = "") -> tuple[int, str]:
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as reply:  # noqa: S310
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""
    except OSError:
        return 0, ""


def test_given_a_stack_when_tasks_are_sent_then_both_pools_answer(stack):
    with stack.app() as app:
        assert app.send_task("plan.job", ({"seconds": 0},)).get(timeout=20) == stack.child("plan").pid
        assert app.send_task("search.info").get(timeout=20)["collection"]["points"] == 7


def test_given_a_stack_when_a_second_one_is_started_then_one_sentence_names_the_first(stack, alone):
    second = alone(folder=stack.settings.data_dir.parent)
    assert second.process.wait(timeout=20) == 1
    assert any("already runs in" in line and "ramify down" in line for line in second.lines())
    assert stack.ready().ready


def test_given_a_stack_when_doctor_looks_then_all_is_well(stack):
    state = stack.ready()
    until(lambda: fetch(f"{state.flower_url}/healthcheck")[0] == 200, what="Flower answers")
    found = {check.name: check for check in doctor.examine(stack.settings)}
    names = ("redis", "redis persistence", "redis memory policy", "queues", "pools", "flower", "redis binary")
    assert [check for name in names if not (check := found[name]).ok] == []
    assert found["store"].detail == "7 chunks, bm25, dense none"


def test_given_a_login_when_flower_is_asked_then_only_those_who_have_it_see_the_pools(stack):
    url = stack.ready().flower_url
    until(lambda: fetch(f"{url}/healthcheck")[0] == 200, what="Flower answers")
    assert fetch(f"{url}/workers")[0] == 401

    def pools():
        workers = json.loads(fetch(f"{url}/workers?json=1", LOGIN)[1] or "{}").get("data", [])
        return {worker["hostname"].split("@")[0] for worker in workers if worker["status"]} == {"plan", "search"}

    until(pools, what="Flower shows both pools online")
    secret = LOGIN.split(":")[1]
    assert not any(secret in word for child in stack.state().children for word in psutil.Process(child.pid).cmdline())


def test_given_a_stack_when_a_pool_is_killed_then_it_is_started_again_and_counted(stack):
    before = stack.child("plan")
    os.kill(before.pid, signal.SIGKILL)
    until(lambda: stack.child("plan").restarts == before.restarts + 1, what="plan is restarted")
    assert "SIGKILL" in stack.seen("died", "plan")[-1]
    assert len(stack.child("plan").restarted_at) == before.restarts + 1
    assert time.time() - stack.child("plan").restarted_at[-1] < 60
    with stack.app() as app:
        assert app.send_task("plan.job", ({"seconds": 0},)).get(timeout=30) == stack.child("plan").pid != before.pid


def test_given_a_pool_that_is_stopped_when_doctor_looks_then_it_says_which_process_and_how_it_goes_on(stack):
    pid = stack.child("search").pid
    os.kill(pid, signal.SIGSTOP)
    try:
        found = {check.name: check for check in doctor.examine(stack.settings)}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert found["pools"].ok is False
    assert f"pid {pid} is there, but it is stopped" in found["pools"].detail
    assert found["pools"].detail.startswith("no worker serves search, index: search@")
    assert f"kill -CONT {pid}" in found["pools"].fix
    assert found["store"].fix == f"`kill -CONT {pid}`"
    with stack.app() as app:
        assert app.send_task("search.info").get(timeout=30)["ok"]


def test_given_a_stack_when_redis_is_killed_then_it_comes_back_with_its_data_and_the_pools_work_on(stack):
    before, url = stack.child("redis"), connection(stack.settings).redis.url.get_secret_value()
    with Redis.from_url(url, socket_timeout=5) as client:
        client.set("kept", "1")
    os.kill(before.pid, signal.SIGKILL)
    until(lambda: stack.child("redis").restarts == before.restarts + 1, what="Redis is restarted")
    assert connection(stack.settings).redis.url.get_secret_value() == url
    with Redis.from_url(url, socket_timeout=5) as client:
        assert client.get("kept") == b"1"
    with stack.app() as app:
        for _ in range(3):
            assert app.send_task("plan.job", ({"seconds": 0},)).get(timeout=60)
            assert app.send_task("search.info").get(timeout=60)["ok"]


def test_given_a_busy_pool_when_it_is_told_to_stop_then_it_is_killed_after_the_wait(alone):
    stack = alone()
    state = stack.ready()
    with stack.app() as app:
        app.send_task("plan.job", ({"seconds": 60},))
    time.sleep(1)  # it is picked up
    assert down(stack.settings).was_running
    assert stack.process.wait(timeout=20) == 0
    assert living(state) == []
    assert stack.seen("killed", "plan")


@pytest.mark.skipif(sys.platform != "linux", reason="children are bound to the supervisor by the Linux kernel")
def test_given_a_supervisor_that_is_killed_when_a_pool_is_busy_then_no_orphan_stays_and_the_next_stops_as_told(alone):
    stack = alone()
    state = stack.ready()
    with stack.app() as app:
        app.send_task("plan.job", ({"seconds": 60},))
    time.sleep(1)
    stack.process.kill()
    stack.process.wait()
    until(lambda: not living(state), 5, "every child ends")
    assert running(stack.settings) is None
    again = alone(folder=stack.settings.data_dir.parent)  # the stale state file is no obstacle
    state = again.ready()
    assert state.pid == again.process.pid
    assert not down(load_settings(data_dir=stack.settings.data_dir.parent / "other")).was_running
    again.process.send_signal(signal.SIGINT)
    assert again.process.wait(timeout=20) == 0
    assert living(state) == []
    assert read_state(again.settings) is None
    assert not again.seen("killed", "plan")


def test_given_a_pool_that_cannot_start_when_started_then_its_log_is_shown_and_nothing_is_left(alone):
    stack = alone(app="broken")
    assert stack.process.wait(timeout=60) == 1
    told = json.loads(stack.lines()[-1])["error"]
    assert told.startswith("plan does not start")
    assert "this app is broken" in told
    assert len(stack.seen("died", "plan")) == 3
    assert read_state(stack.settings) is None
    assert not [
        one for one in psutil.process_iter(["cwd"]) if one.info["cwd"] == str(stack.settings.data_dir / "redis")
    ]


def test_given_a_taken_port_when_started_in_the_background_then_the_setting_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(RamifyError, match=rf"^redis.port: {port} cannot be used: it is taken") as caught:
            background.start(load_settings(data_dir=tmp_path / "data", redis={"port": port}))
    assert caught.value.exit_code == 2
    assert running(load_settings(data_dir=tmp_path / "data")) is None


def test_given_a_redis_of_their_own_when_it_does_not_answer_then_the_stack_does_not_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings: Settings = load_settings(data_dir=tmp_path / "data", redis={"url": "redis://127.0.0.1:9/0"})
    with pytest.raises(RamifyError, match=r"Redis at 127\.0\.0\.1:9 does not answer"):
        background.start(settings)


BOUND = """
import os, sys
from orchestrator.local import background
from shared.settings import load_settings
print(background.start(load_settings(), bound=True).model_dump_json(), flush=True)
sys.stdin.read()
os._exit(1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor is bound to who started it by the Linux kernel")
def test_given_the_real_pools_in_the_background_when_who_started_them_dies_then_they_stop(tmp_path):
    settings = load_settings(data_dir=tmp_path / "data")
    env = {**clean_environment(), "PYTHONPATH": str(ROOT), "RAMIFY_DATA_DIR": str(settings.data_dir)}
    with subprocess.Popen(
        (sys.executable, "-c", BOUND), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as starter:
        assert starter.stdin
        assert starter.stdout
        state = StackState.model_validate_json(starter.stdout.readline())
        assert state.ready
        assert {child.name for child in state.children} == {"redis", *POOL_QUEUES, "server", "flower", "template"}
        with urllib.request.urlopen(f"{state.server_url}/readyz", timeout=30) as answer:  # noqa: S310 - ours
            assert answer.status == 200
        assert running(settings) == state
        starter.stdin.close()
        assert starter.wait(timeout=20) == 1
    until(lambda: running(settings) is None, 30, "the supervisor ends")
    assert living(state) == []
    assert read_state(settings) is None
