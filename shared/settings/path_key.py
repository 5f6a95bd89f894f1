"""Lets the index pool read files of its machine for those alone who may read the stack's data folder.

Whoever can write to Redis could otherwise make a worker read, and then find, any file of the user. So what names files
carries an HMAC-SHA-256 under a key that `ramify up` makes in the data folder, for its owner's eyes only.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import socket
from functools import lru_cache
from pathlib import Path

from pydantic import SecretStr

from shared.settings import Settings
from shared.trusted_paths import own_bytes

_KEY, _MOST_BYTES = re.compile(r"[\w-]{43}", re.ASCII), 100
_SEPARATOR = b"\0"


def key_file(settings: Settings) -> Path:
    """Where the key stands."""
    return settings.data_dir.absolute() / "run" / "path-key"


def new_key() -> str:
    """A key as `path_key` reads it."""
    return secrets.token_urlsafe(32)


def path_key(settings: Settings) -> SecretStr | None:
    """The key of the data folder; None where there is none that is the user's alone."""
    line = (own_bytes(key_file(settings), _MOST_BYTES) or b"").decode("ascii", errors="replace").strip()
    return SecretStr(line) if _KEY.fullmatch(line) else None


def seal(key: SecretStr, *parts: bytes) -> str:
    """The HMAC of the parts, in their order; hex."""
    made = hmac.new(key.get_secret_value().encode(), digestmod=hashlib.sha256)
    for part in parts:
        made.update(f"{len(part)}:".encode() + part + _SEPARATOR)
    return made.hexdigest()


def is_sealed(key: SecretStr | None, given: str, *parts: bytes) -> bool:
    """True when `given` is the seal of these parts under the key."""
    return key is not None and hmac.compare_digest(given.encode(), seal(key, *parts).encode())


def reading_place(settings: Settings) -> str:
    """Tells which processes read the same files for the same user; empty without a key.

    It is one text for all who have the key, on one host, in one mount namespace, as one user: a client names files to
    such workers alone, and sends bytes to others.
    """
    key = path_key(settings)
    return "" if key is None else seal(key, b"place", _machine())[:32]


@lru_cache(maxsize=1)
def _machine() -> bytes:
    try:
        mounts = str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        mounts = ""
    return f"{socket.gethostname()} {mounts} {os.geteuid()}".encode()
