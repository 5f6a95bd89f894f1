"""Which release this process runs, for workers, servers and commands to tell."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def release() -> str:
    """The version of the installed package; empty where it runs from its source folder."""
    try:
        return version("ramify")
    except PackageNotFoundError:
        return ""
