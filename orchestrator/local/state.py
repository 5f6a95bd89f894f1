"""What runs in a data folder: `run/stack.json`, and the lock that keeps a second stack out. Starts nothing."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from pydantic import SecretStr, ValidationError

from shared.connections.broker import broker_label
from shared.connections.process import alive
from shared.errors import InputError, NotRunningError, RamifyError
from shared.models.base import Model
from shared.settings import Settings, data_folder
from shared.settings.path_key import key_file, new_key, path_key
from shared.trusted_paths import own_bytes

#: Older files that are kept of each log, and the size from which one that is written to is rotated.
_OLDER_LOGS, _LOG_BYTES = 5, 10_000_000
_FOLDERS = ("run", "logs", "redis")


#: A password as `secrets.token_urlsafe(32)` makes it, alone or behind the name of a login.
_SECRET, _SECRET_BYTES = re.compile(r"([a-z]+:)?[\w-]{43}", re.ASCII), 200
_STATE_BYTES = 1_000_000


class ChildState(Model):
    """One process of the stack. `mark` tells it from a later process with its pid.

    `restarts` since `up`, the latest at `restarted_at` (Unix seconds).
    """

    name: str
    pid: int
    mark: str
    log: str
    restarts: int = 0
    restarted_at: tuple[float, ...] = ()


class StackState(Model):
    """The supervisor and its children; no secret, but the files that hold them.

    `redis_url` is empty while Redis starts, and when settings name another. `redis_password_file` is empty for a Redis
    without a password, which older releases started; `flower_login_file` for a login of the settings. `server_url` is
    empty where HTTP is not installed or switched off. `broker`: where RabbitMQ is, if that carries the messages.
    """

    pid: int
    mark: str
    started_at: datetime
    ready: bool = False
    redis_url: str = ""
    redis_password_file: str = ""
    broker: str = ""
    flower_url: str = ""
    flower_login_file: str = ""
    server_url: str = ""
    children: tuple[ChildState, ...] = ()


def run_dir(settings: Settings) -> Path:
    """Absolute folder of the state file and the lock."""
    return settings.data_dir.absolute() / "run"


def log_dir(settings: Settings) -> Path:
    """Absolute folder of the logs, one file a child."""
    return settings.data_dir.absolute() / "logs"


def make_folders(settings: Settings) -> None:
    """Create the stack's folders, closed to other users. Raises: InputError when they cannot be written."""
    data_folder.made(settings, *_FOLDERS)
    try:
        for folder in (run_dir(settings), log_dir(settings)):
            tempfile.TemporaryFile(dir=folder).close()  # an existing folder may be on a read-only disk
    except OSError as error:
        fix = f"name a folder that can be written ({error.strerror})"
        raise InputError("data_dir", str(settings.data_dir), fix) from None


def read_state(settings: Settings) -> StackState | None:
    """What the file says, also of a stack that is gone; None without a readable file.

    Raises: InputError for a folder that another user could have written it in.
    """
    data_folder.checked(settings, *_FOLDERS)
    try:
        return StackState.of_record(own_bytes(run_dir(settings) / "stack.json", _STATE_BYTES) or b"")
    except ValidationError:
        return None


def write_state(settings: Settings, state: StackState) -> None:
    """Replace the file in one step; only its owner may read it."""
    write_private(run_dir(settings) / "stack.json", state.model_dump_json(indent=1))


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step by one that only its owner may read (mkstemp opens it 0600); follows no link."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)


def read_private(path: Path) -> str:
    """The line in a file that this user owns and no other may read; empty where there is none such."""
    line = (own_bytes(path, _SECRET_BYTES) or b"").decode("ascii", errors="replace").strip()
    return line if _SECRET.fullmatch(line) else ""


def login_file(settings: Settings) -> Path:
    """Where the generated login of Flower stands; it stays, so that a browser may remember it."""
    return run_dir(settings) / "flower-login"


def own_login(settings: Settings) -> str:
    """Flower's generated login, made at first use."""
    file = login_file(settings)
    login = read_private(file) or f"ramify:{secrets.token_urlsafe(32)}"
    write_private(file, f"{login}\n")
    return login


def make_path_key(settings: Settings) -> None:
    """The key with which a client names files to the index pool; made once, so that open ingests outlive a restart."""
    if path_key(settings) is None:
        write_private(key_file(settings), f"{new_key()}\n")


def remove_state(settings: Settings) -> None:
    """Delete the state file."""
    (run_dir(settings) / "stack.json").unlink(missing_ok=True)


@contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Hold the data folder's lock, which the kernel frees when the supervisor dies; children do not inherit it.

    Raises: RamifyError when another supervisor has it.
    """
    with (run_dir(settings) / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            state = read_state(settings)
            who = f" (process {state.pid})" if state else ""
            raise RamifyError(
                f"Ramify already runs in {settings.data_dir.absolute()}{who}: use it, or stop it with `ramify down`"
            ) from None
        yield


def running(settings: Settings) -> StackState | None:
    """The stack of this data folder if its supervisor lives, ready or not."""
    state = read_state(settings)
    return state if state and alive(state.pid, state.mark) else None


def connection(settings: Settings) -> Settings:
    """Settings with `redis.url` filled in: the one that is set, else that of the running stack.

    Raises: NotRunningError when none is set and nothing runs here, or what runs has another broker.
    """
    if settings.redis.url.get_secret_value():
        return settings
    state = running(settings)
    folder = settings.data_dir.absolute()
    if state is None:
        raise NotRunningError(f"Ramify is not running here: start it with `ramify up -d` (looked in {folder})")
    if not state.redis_url:
        raise NotRunningError(f"Ramify is still starting here: try again in a few seconds (looked in {folder})")
    if state.broker != broker_label(settings.broker):
        carries = state.broker or "its own Redis"
        raise NotRunningError(f"the stack that runs here has its messages with {carries}: set broker.url as it has it")
    return with_redis_url(settings, _own_url(settings, state))


def _own_url(settings: Settings, state: StackState) -> str:
    """The URL of the embedded Redis. Raises: NotRunningError when its password is not ours to read."""
    if not state.redis_password_file:
        return state.redis_url
    file = Path(state.redis_password_file)
    if not file.resolve().is_relative_to(settings.data_dir.resolve()):
        raise NotRunningError(f"the state of the stack names a password outside of {settings.data_dir}: {file}")
    if password := read_private(file):
        return with_password(state.redis_url, password)
    raise NotRunningError(
        f"the password of the Redis that runs here cannot be read from {state.redis_password_file}: run this as the "
        "user who started it, or start it anew with `ramify down` and `ramify up -d`"
    )


def with_password(url: str, password: str) -> str:
    """A Redis URL without a login, with a password of URL-safe characters."""
    return url.replace("redis://", f"redis://:{password}@", 1)


def with_redis_url(settings: Settings, url: str) -> Settings:
    """The settings with `redis.url` filled in."""
    return settings.model_copy(update={"redis": settings.redis.model_copy(update={"url": SecretStr(url)})})


def rotate(log: Path) -> Path:
    """Keep what is there as `<name>.log.1`, the files before it as `.2` to `.5`; returns `log`, which is free now."""
    if log.exists():
        _make_room(log)
        log.replace(_older(log, 1))
    return log


def rotate_large(log: Path) -> None:
    """Rotate a log of more than 10 MB that a process appends to: its end is copied, then the file is emptied.

    Lines that are written between the two are lost.
    """
    with suppress(FileNotFoundError):
        if (size := log.stat().st_size) <= _LOG_BYTES:
            return
        _make_room(log)
        with log.open("rb") as file, _older(log, 1).open("wb") as older:
            file.seek(size - _LOG_BYTES)
            older.write(file.read(_LOG_BYTES))
        os.truncate(log, 0)


def _make_room(log: Path) -> None:
    """Number the older files of a log one up; the oldest goes."""
    for number in range(_OLDER_LOGS - 1, 0, -1):
        with suppress(FileNotFoundError):
            _older(log, number).replace(_older(log, number + 1))


def _older(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message; at most 8 kB are read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
