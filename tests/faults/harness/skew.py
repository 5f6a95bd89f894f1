"""A wall clock that is wrong, in one pool's process: a `sitecustomize` on its path, told by a file what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_VARIABLE = "RAMIFY_TEST_SKEW"
#: Runs first in every Python process of the stack; does nothing but in a pool that the file names. A pool is a copy of
#: a process that has run this before, so each looks for itself, once its command line says who it is.
_SITE = """
import json, os, time
right, right_ns, known = time.time, time.time_ns, {}
def skew():
    pid = os.getpid()
    if pid not in known:
        try:
            words = open("/proc/self/cmdline", "rb").read().decode().split("\\0")
            if "orchestrator.local.template" in words:
                return 0
            pool = words[words.index("-n") + 1].partition("@")[0]
            known[pid] = json.load(open(os.environ["RAMIFY_TEST_SKEW"])).get(pool, 0)
        except (OSError, ValueError, IndexError, KeyError):
            known[pid] = 0
    return known[pid]
time.time = lambda: right() + skew()
time.time_ns = lambda: right_ns() + int(skew() * 1e9)
"""


@contextmanager
def skewable(folder: Path) -> Iterator[Path]:
    """Processes that are started inside the block can be given a wrong clock, by the file: pool -> seconds."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    file = folder / "skew.json"
    file.write_text("{}", encoding="utf-8")
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", _VARIABLE)}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), before["PYTHONPATH"])))
    os.environ[_VARIABLE] = str(file)
    try:
        yield file
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
