"""The compose file keeps the contract: every queue has one service, nothing is published beyond loopback."""

from __future__ import annotations

from pathlib import Path

import yaml

from shared.contract import POOL_APPS, POOL_QUEUES, Queue
from shared.settings import Settings

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]


def workers() -> dict[str, tuple[str, str]]:
    """Service -> (Celery app, queue)."""
    found = {}
    for name, service in SERVICES.items():
        command = service.get("command", [])
        if "worker" in command:
            found[name] = (command[command.index("-A") + 1], command[command.index("-Q") + 1])
    return found


def test_every_queue_of_the_contract_is_served_by_one_service_with_the_right_app() -> None:
    apps = {queue.value: POOL_APPS[pool] for pool, queues in POOL_QUEUES.items() for queue in queues}
    assert sorted(queue for _, queue in workers().values()) == sorted(queue.value for queue in Queue)
    assert {name: app for name, (app, _) in workers().items()} == {
        name: apps[queue] for name, (_, queue) in workers().items()
    }


def test_nothing_listens_beyond_loopback() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_variables_are_settings() -> None:
    names = [name for service in SERVICES.values() for name in service.get("environment", {})]
    known = {f"RAMIFY_{name.upper()}" for name in Settings.model_fields}
    assert {name.split("__")[0] for name in names if name.startswith("RAMIFY_")} <= known


def test_flower_runs_and_wants_a_login() -> None:
    assert "flower" in SERVICES["flower"]["command"]
    assert ":?" in SERVICES["flower"]["environment"]["FLOWER_BASIC_AUTH"]
