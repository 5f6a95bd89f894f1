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
UNIT = (UNITS / "ramify@.service").read_text(encoding="utf-8")
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


def test_a_process_stays_with_the_release_that_it_began_in(tmp_path: Path) -> None:
    for release in ("1", "2"):
        (tmp_path / f"ramify-{release}" / "bin").mkdir(parents=True)
        program = tmp_path / f"ramify-{release}" / "bin" / "python"
        program.write_text('#!/bin/sh\necho "$0 $*"\n')
        program.chmod(0o755)
    (line,) = (line for line in UNIT.splitlines() if line.startswith("ExecStart="))
    command = [part.replace("$$", "$").replace("/opt/", f"{tmp_path}/") for part in shlex.split(line.partition("=")[2])]
    link = tmp_path / "ramify"
    for release in ("1", "2"):
        link.unlink(missing_ok=True)
        link.symlink_to(f"ramify-{release}")
        env = {"PATH": "/usr/bin:/bin", "COMMAND": "python -P -m workers -n plan@%h"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=10, check=True)
        assert done.stdout == f"{tmp_path}/ramify-{release}/bin/python -P -m workers -n plan@%h\n"


def test_an_upgrade_leaves_secrets_alone() -> None:
    assert "EnvironmentFile=-/etc/ramify/%i.secrets.env" in UNIT.splitlines()
    for role in ROLES:
        lines = (UNITS / f"{role}.env").read_text(encoding="utf-8").splitlines()
        assert [line.partition("=")[0] for line in lines if not line.startswith("#")] == ["COMMAND"]


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
