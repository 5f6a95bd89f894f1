"""What stands in the data folder is believed (which Redis to ask, say), so nobody else may own, read or write it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from orchestrator.evaluation.eval_folder import eval_dir
from orchestrator.local.doctor import examine
from orchestrator.local.state import StackState, make_folders, write_state
from shared.connections.process import identity
from shared.errors import InputError
from shared.settings import Settings, load_settings

OTHER_UID = 12_345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A folder whose state names a Redis of the attacker, at a process that lives."""
    monkeypatch.chdir(tmp_path)
    settings = load_settings(data_dir=tmp_path / "data")
    make_folders(settings)
    state = StackState(
        pid=os.getpid(),
        mark=identity(os.getpid()) or "",
        started_at=datetime.now(UTC),
        ready=True,
        redis_url="redis://evil.example:6379/0",
    )
    write_state(settings, state)
    return settings


def refused(settings: Settings, match: str) -> None:
    for use in (Ramify, make_folders):
        with pytest.raises(InputError, match=match) as caught:
            use(settings)
        assert caught.value.field == "data_dir"
        assert str(settings.data_dir) in str(caught.value)
    found = {check.name: check for check in examine(settings)}
    assert found["data folder"].ok is False
    assert "evil.example" not in "".join(check.detail for check in found.values())


def test_an_evaluation_makes_it_closed_and_refuses_an_open_one(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "new")
    eval_dir(settings)
    make_folders(settings)
    (settings.data_dir / "eval").chmod(0o750)
    with pytest.raises(InputError, match="chmod 700"):
        eval_dir(settings)


def test_its_state_is_believed_where_it_is_the_users_own(planted: Settings) -> None:
    with Ramify(planted) as client:
        assert client.settings.redis.url.get_secret_value() == "redis://evil.example:6379/0"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
@pytest.mark.parametrize("folder", [".", "run"])
def test_a_folder_that_others_can_read_or_write_is_refused(planted: Settings, folder: str, mode: int) -> None:
    (planted.data_dir / folder).chmod(mode)
    refused(planted, "chmod 700")


@as_root
@pytest.mark.parametrize("folder", [".", "run"])
def test_a_folder_of_another_user_is_refused(planted: Settings, folder: str) -> None:
    os.chown(planted.data_dir / folder, OTHER_UID, -1)
    refused(planted, str(OTHER_UID))


@as_root
def test_a_link_of_another_user_is_refused(planted: Settings) -> None:
    moved = planted.data_dir.rename(planted.data_dir.with_name("moved"))
    planted.data_dir.symlink_to(moved)
    Ramify(planted).close()
    os.chown(planted.data_dir, OTHER_UID, -1, follow_symlinks=False)
    refused(planted, str(OTHER_UID))
