"""RabbitMQ as the broker, a real one: whole stacks, and the harm that a broker alone can do.

RAMIFY_TEST_BROKER_URL=amqp://.../acceptance{} has all of tests/acceptance run over a RabbitMQ that is there, with the
virtual hosts acceptance1, acceptance2...: stacks in one would take each other's messages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from orchestrator.local import doctor
from orchestrator.local.stack import Stack
from shared.errors import NotRunningError
from shared.settings import Settings, load_settings
from shared.tasks import health
from tests.faults.harness.answers import undisturbed
from tests.faults.harness.load import asks
from tests.faults.harness.report import show, verdict
from tests.faults.harness.rig import Rig, rigged
from tests.faults.harness.rounds import Ground, Harm, Plan, run_round
from tests.support.rabbitmq_server import PASSWORD, USER, RabbitServer
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(420)
_JOBS, _SECONDS = 30, 8.0
ROOT = Path(__file__).parents[2]
#: What passes messages of every kind.
_STACKS = 4
_ACCEPTANCE = ("test_ingest.py", "test_retry.py", "test_priority.py", "test_search.py")


@dataclass
class Over:
    """A RabbitMQ, and a stack whose messages it carries."""

    rabbit: RabbitServer
    ground: Ground

    @property
    def rig(self) -> Rig:
        return self.ground.rig

    def undelivered(self) -> dict[str, int]:
        """Messages by queue, those under way too; without empty queues."""
        return {name: int(count) for name, count in self.rabbit.queues("messages").items() if count != "0"}


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    with RabbitServer(tmp_path_factory.mktemp("rabbit")) as server:
        yield server


@pytest.fixture(scope="module")
def over(rabbit: RabbitServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Over]:
    broker = {"url": rabbit.url(), "timeout_s": 3, "heartbeat_s": 4}
    with rigged(tmp_path_factory.mktemp("over"), broker=broker) as rig:
        asked = asks(_JOBS)
        yield Over(rabbit, Ground(rig, asked, undisturbed(rig.client, asked, 150.0)))


def kills_of_workers(of: Harm, _: RabbitServer) -> None:
    of.pause(1.0)
    of.kills.storm(of.seconds - 1.0, of.stop)


def kill_of_the_broker(of: Harm, rabbit: RabbitServer) -> None:
    of.pause(of.dice.uniform(1.0, 3.0))
    rabbit.kill()
    of.pause(2.0)
    rabbit.start()


def cut_and_frozen_connections(of: Harm, rabbit: RabbitServer) -> None:
    """Closed by the broker, then it stands still for longer than two heartbeats: workers give the connection up."""
    for _ in range(2):
        of.pause(of.dice.uniform(0.5, 1.0))
        rabbit.ctl("close_all_connections", "cut by a test")
    rabbit.signal(signal.SIGSTOP)
    of.pause(11.0)
    rabbit.signal(signal.SIGCONT)


@pytest.mark.parametrize("harm", [kills_of_workers, kill_of_the_broker, cut_and_frozen_connections])
def test_given_harm_when_jobs_run_over_rabbitmq_then_nothing_is_lost_and_nothing_is_done_twice(
    over: Over, harm: object
) -> None:
    name = harm.__name__.replace("_", " ")
    plan = Plan(name, 1, _SECONDS, _JOBS, 3.0)

    one = run_round(over.ground, plan, lambda of: harm(of, over.rabbit))

    show(one)
    verdict(over.rig, one)
    assert len(one.jobs) == _JOBS
    assert one.states["done"] + one.states["cancelled"] == _JOBS
    until(lambda: not over.undelivered(), 60, "every message was acknowledged", every_s=1.0)


def test_queues_are_quorum_queues_of_each_lane_and_the_doctor_knows_them(over: Over) -> None:
    types = over.rabbit.queues("type")
    for queue in ("plan", "search", "rerank", "merge", "index", "ops"):
        assert types[queue] == types[f"{queue}.batch"] == "quorum"
    assert not [name for name in types if "delayed" in name], "no queues for countdowns"
    found = {check.name: check for check in doctor.examine(over.rig.client.settings)}
    assert found["broker"].ok, found["broker"]
    assert "quorum queues" in found["broker"].detail
    assert found["pools"].ok, found["pools"]
    assert found["store"].ok, found["store"]
    assert found["queues"].detail == "nothing waits"


def test_health_checks_tell_a_worker_and_a_broker_that_are_well(over: Over, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = over.rig.client.settings
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())
    monkeypatch.setenv("RAMIFY_BROKER__URL", settings.broker.url.get_secret_value())
    assert health.main("merge") == 0
    monkeypatch.setenv("RAMIFY_BROKER__URL", over.rabbit.url(port=1))
    assert (health.main("merge"), health.main("merge", live=True)) == (1, 0), "one that is away is waited for"
    monkeypatch.setenv("RAMIFY_BROKER__URL", over.rabbit.url(password="wrong"))
    assert health.main("merge", live=True) == 1, "nothing changes until somebody does"
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    _, *probe = compose["services"]["rabbitmq"]["healthcheck"]["test"]
    for port, well in ((over.rabbit.port, True), (1, False)):
        command = [part.replace("/5672", f"/{port}") for part in probe]
        done = subprocess.run(command, timeout=10, capture_output=True, check=False)
        assert (done.returncode == 0) is well


def test_a_job_that_is_sent_while_the_broker_is_away_waits_for_it(over: Over) -> None:
    client = over.rig.client
    over.rabbit.kill()
    try:
        job_id = client.submit("How is a queue restored while its broker is away?", deadline_s=900)
        why = client.why(job_id)
        told = {check.name: check for check in doctor.examine(client.settings)}
        hurried = client.submit("What ends while the broker is away?", deadline_s=2)
        until(lambda: client.status(hurried).state == "expired", 60, "its deadline was kept", every_s=0.5)
    finally:
        over.rabbit.start()
    assert "does not answer" in why.said
    assert not told["broker"].ok
    assert "RabbitMQ at 127.0.0.1" in told["broker"].detail
    assert PASSWORD not in str((why, told))
    assert client.wait(job_id, 200).state == "done"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"password": "wrong"}, "refuses the login"),
        ({"vhost": "nowhere"}, "has no such virtual host"),
        ({"port": 1}, "does not answer"),
    ],
)
def test_a_stack_does_not_start_with_a_broker_that_refuses_it(
    over: Over, tmp_path: Path, change: dict[str, str], says: str
) -> None:
    url = over.rig.client.settings.redis.url.get_secret_value()
    settings = load_settings(redis={"url": url}, broker={"url": over.rabbit.url(**change)}, data_dir=tmp_path)
    with pytest.raises(NotRunningError, match=says):
        Stack(settings).run()
    if "port" in change:  # workers wait for one that is away
        return
    ended = _worker(settings, tmp_path)
    assert ended.returncode == 1, ended.stderr[-500:]
    assert says in ended.stderr
    assert PASSWORD not in ended.stderr


def _worker(settings: Settings, folder: Path) -> subprocess.CompletedProcess[str]:
    """A worker as an operator starts it, until it ends."""
    env = {
        **os.environ, "RAMIFY_REDIS__URL": settings.redis.url.get_secret_value(), "RAMIFY_DATA_DIR": str(folder),
        "RAMIFY_BROKER__URL": settings.broker.url.get_secret_value(), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "orchestrator.app",
        "worker",
        "-Q",
        "ops",
        "-P",
        "threads",
        "-c",
        "1",
    ]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def test_the_acceptance_suite_passes_over_rabbitmq(rabbit: RabbitServer) -> None:
    for number in range(1, _STACKS + 1):
        rabbit.ctl("add_vhost", f"acceptance{number}")
        rabbit.ctl("set_permissions", "-p", f"acceptance{number}", USER, ".*", ".*", ".*")
    files = [str(ROOT / "tests" / "acceptance" / name) for name in _ACCEPTANCE]
    env = {**os.environ, "RAMIFY_TEST_BROKER_URL": rabbit.url("acceptance{}")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    found = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    print(found.stdout[-300:])
    assert found.returncode == 0, found.stdout[-8000:]
