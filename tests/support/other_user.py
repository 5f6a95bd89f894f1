"""Programs of another local user, for tests that root runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")


#: The interpreter may lie in a folder of root's: what a program imports is loaded before it becomes another user.
_BECOME = """
import encodings.ascii, encodings.idna, http.client, os, pathlib, socket, sys
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534); os.chdir("/")
"""


def attack(program: str, *words: str) -> str:
    """What a Python program of another user's writes; it may use http.client, os, pathlib, socket and sys."""
    command = (sys.executable, "-I", "-c", _BECOME + program, *words)
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env={})
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike those of pytest, so that only our own modes protect what is in it."""
    with tempfile.TemporaryDirectory(prefix="ramify-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
