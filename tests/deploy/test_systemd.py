"""The systemd unit of the roles: what it runs is what the contract and Compose have, and systemd takes it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from shared.contract import POOL_APPS, POOL_QUEUES
from tests.deploy.test_compose import ROOT, SERVICES, interpolated

UNITS = ROOT / "deploy" / "systemd"
ROLES = {
    path.stem: shlex.split(path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("COMMAND=").strip('"'))
    for path in UNITS.glob("*.env")
}
POOLS = {role: command for role, command in ROLES.items() if "worker" in command}


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_the_roles_serve_every_queue_with_the_right_app() -> None:
    apps = {queue.value: POOL_APPS[pool] for pool, queues in POOL_QUEUES.items() for queue in queues}
    served = {queue: option(command, "-A") for command in POOLS.values() for queue in option(command, "-Q").split(",")}
    assert served == apps
    assert set(ROLES) - set(POOLS) == {"http", "flower"}


@pytest.mark.parametrize("role", sorted(POOLS))
def test_a_pool_is_started_as_in_compose(role: str) -> None:
    command, other = POOLS[role], [interpolated(part) for part in SERVICES[role]["command"]]
    assert command[:4] == ["python", "-P", "-m", "shared.tasks.celery_command"], "no code of the working folder runs"
    theirs = [option(command, "-Q") if part == role else part for part in other]
    assert command[4:] == theirs[1:]


def test_the_docs_name_every_role() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    table = page[page.index("## Pools on your own machines") :].partition("\n\n")[2].partition("\n\n")[2]
    assert all(f"`{role}`" in table.partition("\n\n")[0] for role in ROLES)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    unit = tmp_path / "ramify@plan.service"
    shutil.copy(UNITS / "ramify@.service", unit)
    done = subprocess.run(
        ("systemd-analyze", "verify", str(unit)), capture_output=True, text=True, timeout=60, check=False
    )
    said = done.stdout + done.stderr
    assert (done.returncode, [line for line in said.splitlines() if unit.name in line]) == (0, [])
