"""The short form of the fuzz suite: some hundred inputs of each target, the same every time; `make fuzz` runs more.

Only documented errors come out; no input takes a second of CPU time, or memory beyond its own size many times over.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.fuzz import regexes
from tests.fuzz.guard import ended_when_endless, watched
from tests.fuzz.run import INPUTS, ROOT, SEED, run_target
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_given_bad_inputs_when_read_then_they_are_taken_or_refused_by_name(name: str) -> None:
    target = TARGETS[name]
    report = run_target(target, SEED or "ci", range(int(INPUTS or target.short)))
    print(report)
    assert not report.findings, str(report)


def test_given_texts_pumped_from_each_pattern_when_searched_then_the_time_of_none_grows_faster_than_its_text() -> None:
    command = [sys.executable, "-m", "tests.fuzz.regexes", "--length", "1000", "--every", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize(("pattern", "grows"), [(r"\s+$", True), (r"(?:a|a)+$", True), (r"(?<!\s)\s++$", False)])
def test_given_texts_four_times_as_long_when_searched_then_what_grows_faster_is_found(
    pattern: str, *, grows: bool
) -> None:
    unit = " " if "s" in pattern else "a"
    with ended_when_endless():
        found = regexes.grows(re.compile(pattern).search, lambda size: unit * size + "!", 1000, 0.0005)
    assert (found > 0) is grows


def _hang(_: str) -> None:
    while True:
        pass


def _swell(_: str) -> None:
    bytearray(b"x" * 150_000_000)


def _raise(_: str) -> None:
    raise KeyError("x")


@pytest.mark.parametrize(("run", "kind"), [(_hang, "slow"), (_swell, "memory"), (_raise, "crash")])
def test_given_what_hangs_swells_or_crashes_when_watched_then_it_is_found(
    run: object, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "memory" and not os.path.exists("/proc/self/clear_refs"):  # noqa: PTH110
        pytest.skip("only Linux tells the peak")
    monkeypatch.setattr("tests.fuzz.guard.ENDED_AFTER_S", 0.2 if kind == "slow" else 8.0)
    with ended_when_endless():
        finding = watched(run, "x", (ValueError,))
    assert finding is not None
    assert finding.kind == kind
