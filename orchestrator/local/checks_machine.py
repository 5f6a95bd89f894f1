"""Doctor's look at the machine: versions, settings file, Redis binary, data folder, disk."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from orchestrator.local import redis_server
from orchestrator.local.checks import Check, size
from shared.errors import RamifyError
from shared.settings import Settings, config_file
from shared.settings.strategies import examined

_PACKAGES = ("celery", "redis", "qdrant-client", "qdrant-edge-py", "flower")
_LOW_DISK = 1_000_000_000


def examine(settings: Settings) -> Sequence[Check]:
    """What needs no other process."""
    return (_versions(), _settings_file(), _plugins(), _redis_binary(settings), _data_dir(settings), _disk(settings))


def _versions() -> Check:
    found = [f"Python {platform.python_version()}", f"ramify {_own_version()}"]
    missing = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {installed(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(name="versions", ok=False, detail=f"not installed: {', '.join(missing)}", fix="make setup")
    return Check(name="versions", ok=True, detail=", ".join(found))


def _own_version() -> str:
    try:
        return installed("ramify")
    except PackageNotFoundError:
        return "from its source folder"


def _settings_file() -> Check:
    file = config_file()
    return Check(name="settings", ok=True, detail=str(file.absolute()) if file else "no ramify.toml: defaults are used")


def _plugins() -> Check:
    """What other packages add: all of it is loaded here, so that every fault shows."""
    known = examined()
    listed: dict[str, list[str]] = {}
    for found, _ in (one for group in known.loaded.values() for one in group.values()):
        listed.setdefault(found.package, []).append(str(found))
    detail = "; ".join(f"{package}: {', '.join(names)}" for package, names in sorted(listed.items()))
    if not known.faults:
        return Check(name="plugins", ok=True if listed else None, detail=detail or "none installed")
    faults = ". ".join(str(fault) for fault in known.faults)
    return Check(
        name="plugins", ok=False, detail=f"{detail}. {faults}" if detail else faults, fix="see docs/plugins.md"
    )


def _redis_binary(settings: Settings) -> Check:
    if settings.redis.url.get_secret_value():
        return Check(name="redis binary", ok=None, detail="not needed: redis.url names a server")
    try:
        binary = redis_server.find_binary()
        number = ".".join(map(str, redis_server.version(binary)))
    except RamifyError as error:
        return Check(name="redis binary", ok=False, detail=str(error), fix=redis_server.INSTALL)
    return Check(name="redis binary", ok=True, detail=f"{binary} {number}")


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _data_dir(settings: Settings) -> Check:
    folder = settings.data_dir.absolute()
    there = _existing(folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        fix = "make it writable, or set data_dir to another folder"
        return Check(name="data folder", ok=False, detail=f"{there} cannot be written", fix=fix)
    return Check(name="data folder", ok=True, detail=f"{folder}{'' if there == folder else ' (not created yet)'}")


def _disk(settings: Settings) -> Check:
    free = shutil.disk_usage(_existing(settings.data_dir.absolute())).free
    fix = "" if free >= _LOW_DISK else "make room: Redis and the store stop when the disk is full"
    return Check(name="disk", ok=free >= _LOW_DISK, detail=f"{size(free)} free", fix=fix)
