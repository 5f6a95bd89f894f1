"""The settings file, and which secrets may follow it: one that only lies in the working folder may be anybody's.

Raises SettingsError alone; no message holds a secret.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, HttpUrl, SecretStr, ValidationError

from shared.errors import SettingsError
from shared.trusted_paths import UntrustedPathError, opened, trusted, user_name

CONFIG_ENV = "RAMIFY_CONFIG"
DEFAULT_FILE = "ramify.toml"
_MAX_FILE_BYTES = 1_000_000
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True)
class SettingsFile:
    """A file as it was read. `named`: by RAMIFY_CONFIG or --config, so that it is the user's own choice."""

    path: Path
    named: bool
    values: Mapping[str, Any]


class _Secret(NamedTuple):
    """A secret, the setting that says which server gets it, and the one that names the only host that may."""

    name: str
    target: str
    permitted: str = ""


#: What is sent to an HTTP server.
_API_KEYS = (
    _Secret("llm_api_key", "llm_base_url", "llm_api_key_for"),
    _Secret("embedding.api_key", "embedding.base_url", "embedding.api_key_for"),
    _Secret("rerank.api_key", "rerank.base_url", "rerank.api_key_for"),
    _Secret("store.api_key", "store.url", "store.api_key_for"),
)
#: Sentinels get their own password, and name the server that gets the one of the URL.
_SECRETS = (
    *_API_KEYS, _Secret("redis.url", "redis.sentinels"), _Secret("redis.sentinel_password", "redis.sentinels"),
)  # fmt: skip


def settings_file() -> SettingsFile | None:
    """The file named by RAMIFY_CONFIG, else ./ramify.toml if there is one. It is read once.

    Raises: SettingsError when RAMIFY_CONFIG names no file, or the file is no TOML, or another user's to change.
    """
    given = os.environ.get(CONFIG_ENV)
    path = Path(given or DEFAULT_FILE)
    if not os.path.isfile(path):  # noqa: PTH113 - False, no OSError, for a name of 5,000 characters
        if given:
            raise SettingsError(CONFIG_ENV, given, "there is no such file")
        return None
    try:
        values = tomllib.loads(_content(path).decode())
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise SettingsError(str(path), str(error), "write valid TOML in UTF-8") from None
    # Settings take names in any case; who may name a server is decided by the names as they stand here.
    if odd := next((name for name in values if name != name.lower()), None):
        raise SettingsError(str(path), odd, f"write it in small letters: {odd.lower()}")
    return SettingsFile(path, bool(given), values)


def _content(path: Path) -> bytes:
    """Raises: SettingsError when it cannot be read, is another's to change, or is larger than any settings."""
    try:
        with os.fdopen(opened(path, os.O_RDONLY | os.O_NONBLOCK, closed=True), "rb") as handle:
            _check_owner(path, os.fstat(handle.fileno()))
            content = handle.read(_MAX_FILE_BYTES + 1)
    except UntrustedPathError as error:
        raise SettingsError(str(path), "its folders", str(error.strerror)) from None
    except OSError as error:
        raise SettingsError(str(path), error.strerror, "it cannot be read: check its permissions") from None
    if len(content) > _MAX_FILE_BYTES:
        raise SettingsError(str(path), f"more than {_MAX_FILE_BYTES} bytes", "that is no settings file")
    return content


def _check_owner(path: Path, file: os.stat_result) -> None:
    """Who can change the file decides where keys and questions go."""
    where = path.absolute()
    if stat.S_IMODE(file.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        facts = f"mode {stat.S_IMODE(file.st_mode):04o}, owner {user_name(file.st_uid)}"
        raise SettingsError(str(where), facts, f"other users can write it: chmod go-w {where}")
    if not trusted(file.st_uid):
        fix = "another user can change it: make it your own, or take a copy"
        raise SettingsError(str(where), f"owner {user_name(file.st_uid)}", fix)


def check_secrets(own: Sequence[Mapping[str, Any]], file: SettingsFile | None) -> None:
    """Refuse a secret that would follow a server's name out of a file that nobody named.

    `own`: the values of command line and environment, the first wins. Raises: SettingsError naming the setting.
    """
    own = own if file is None or not file.named else (*own, file.values)
    theirs = file.values if file and not file.named else {}
    for secret in _SECRETS:
        key, of_file = _first(own, secret.name), _first([theirs], secret.name)
        target = _first(own, secret.target)
        if not _is_secret(key or of_file):
            continue
        permitted = secret.permitted and _first(own if key else (*own, theirs), secret.permitted)
        if permitted:
            _check_permitted(secret, target or _first([theirs], secret.target), str(permitted))
        elif key and not target and (named := _first([theirs], secret.target)):
            raise _refused(secret, named, file)


def _refused(secret: _Secret, target: Any, file: SettingsFile | None) -> SettingsError:
    where = file.path.absolute() if file else DEFAULT_FILE
    fix = f"it stands in {where} and {secret.name} does not: set both in one place, or name the file with --config"
    origin = _origin(target)
    if secret.permitted and origin:
        fix += f", or set {_variable(secret.permitted)}={origin}"
    return SettingsError(secret.target, origin or "the value given", fix)


def _check_permitted(secret: _Secret, target: Any, permitted: str) -> None:
    """Raises: SettingsError unless the URL is at the host that the secret is for."""
    schemes = () if "://" in permitted else ("https://", "http://") if _PORT.search(permitted) else ("https://",)
    wanted = [origin for scheme in schemes or ("",) if (origin := _origin(f"{scheme}{permitted}"))]
    if not wanted:
        fix = "write a host (for https), host:port, or https://host:port"
        raise SettingsError(secret.permitted, "the value given", fix)
    if target and (origin := _origin(target)) not in wanted:
        fix = f"{secret.permitted} lets {secret.name} go to {wanted[0]} alone: correct one of them"
        raise SettingsError(secret.target, origin or "the value given", fix)


def destinations(settings: BaseModel, only: str = "") -> tuple[str, ...]:
    """A clause for each API key that is set, or for that one: to which server it goes. Without logins and paths."""
    found = []
    for secret in _API_KEYS:
        key, url = (_first([settings.model_dump()], name) for name in (secret.name, secret.target))
        if _is_secret(key) and url and only in {"", secret.name}:
            found.append(f"{secret.name} goes to {_origin(url)}")
    return tuple(found)


def _first(sources: Sequence[Mapping[str, Any]], name: str) -> Any:
    """The value of `section.name` in the first source that has it; None where none has, or it is empty."""
    for source in sources:
        value: Any = source
        for part in name.split("."):
            fields = value.model_dump() if isinstance(value, BaseModel) else value
            value = fields.get(part) if isinstance(fields, Mapping) else None
        if value not in (None, ""):
            return value
    return None


def _is_secret(value: Any) -> bool:
    """True for a key or password, and for a URL with one."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value or "")
    return "@" in text or "password" in text if text.startswith(("redis://", "rediss://")) else bool(text.strip())


def _origin(url: Any) -> str:
    """`https://host:port` as the HTTP client reads the URL; empty for what is none."""
    try:
        found = HttpUrl(str(url))
    except ValidationError:
        return ""
    standard = {"https": 443, "http": 80}.get(found.scheme) == found.port
    return f"{found.scheme}://{found.host}" + ("" if standard else f":{found.port}")


def _variable(name: str) -> str:
    return f"RAMIFY_{name.upper().replace('.', '__')}"
