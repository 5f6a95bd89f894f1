"""What stands in the data folder is believed (which Redis to ask, say), so nobody else may own, read or write it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from orchestrator.evaluation.eval_folder import eval_dir
from orchestrator.local.doctor import examine
from orchestrator.local.state import StackState, make_folders, read_state, write_state
from shared.connections.process import identity
from shared.errors import InputError
from shared.settings import Settings, load_settings
from tests.support.other_user import as_root, attack, open_folder

OTHER_UID = 12_345


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
        assert str(settings.data_dir)[:60] in str(caught.value)
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


@as_root
def test_a_link_that_another_user_has_planted_is_not_followed_where_it_leads_nowhere_yet() -> None:
    with open_folder() as folder:
        folder.chmod(0o1777)
        theirs = folder / "theirs"
        attack("os.symlink(*sys.argv[1:])", str(theirs), str(folder / "data"))
        for name in ("data", "data/inner"):
            settings = load_settings(data_dir=folder / name)
            for _ in range(2):
                refused(settings, "link of another user")
            theirs.mkdir(0o700, exist_ok=True)  # what the attacker would not even need


@as_root
def test_a_way_through_a_folder_of_another_user_is_refused(planted: Settings, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    planted.data_dir.rename(theirs / "data")
    planted.data_dir.symlink_to(theirs / "data")
    Ramify(planted).close()
    for mode, uid in ((0o755, OTHER_UID), (0o777, 0), (0o775, 0)):
        os.chown(theirs, uid, OTHER_UID)
        theirs.chmod(mode)
        refused(planted, "theirs")
    theirs.chmod(0o1777)
    os.chown(theirs, 0, 0)
    Ramify(planted).close()


@as_root
@pytest.mark.parametrize("name", ["run/stack.json", "run/lock", "logs/plan.log", "redis/appendonly.aof", "store"])
def test_a_file_that_another_user_left_while_the_folder_was_open_is_refused(planted: Settings, name: str) -> None:
    made_by_us = planted.data_dir / name
    made_by_us.touch(0o600)
    Ramify(planted).close()
    os.chown(made_by_us, OTHER_UID, -1)
    refused(planted, f"{name} belongs to {OTHER_UID}")


def test_a_log_with_a_second_name_is_refused(planted: Settings, tmp_path: Path) -> None:
    (tmp_path / "profile").touch()
    os.link(tmp_path / "profile", planted.data_dir / "logs" / "plan.log")
    refused(planted, "hard link")


def test_a_state_that_others_can_read_is_none_and_neither_is_a_link_to_one(planted: Settings) -> None:
    state = planted.data_dir / "run" / "stack.json"
    state.chmod(0o644)
    assert read_state(planted) is None
    state.chmod(0o600)
    assert read_state(planted)
    state.rename(planted.data_dir / "moved.json")
    state.symlink_to(planted.data_dir / "moved.json")
    assert read_state(planted) is None
