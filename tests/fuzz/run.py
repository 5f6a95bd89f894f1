"""Runs targets: `python -m tests.fuzz.run` (or `make fuzz`). RAMIFY_FUZZ_INPUTS and RAMIFY_FUZZ_SEED set it up.

Each target runs in a process of its own under a hard limit of memory, two at a time. What is found is printed with what
makes it again: the target, the seed and the input's number.
"""

from __future__ import annotations

import argparse
import os
import resource
import secrets
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.guard import Finding, ended_when_endless, watched
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

#: Taken out of the environment at once: Ramify refuses names that begin with its own and are no settings.
INPUTS = os.environ.pop("RAMIFY_FUZZ_INPUTS", "")
SEED = os.environ.pop("RAMIFY_FUZZ_SEED", "")
ROOT = Path(__file__).parents[2]
_MEMORY = 4 << 30
_LONGEST_S = 7200
_SHOWN = 3


@dataclass
class Report:
    """What became of one target's inputs; `refused` were answered by a documented error."""

    target: str
    seed: str
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[tuple[int, Finding, str]] = field(default_factory=list)

    def __str__(self) -> str:
        """Findings in full, the first few of each kind."""
        head = (
            f"{self.target}: {self.inputs:,} inputs, {self.refused:,} refused, {self.seconds:.1f} s, seed {self.seed}"
        )
        lines = [f"{head}, {len(self.findings)} found"]
        seen: Counter[str] = Counter()
        for number, finding, given in self.findings:
            place = finding.detail.rsplit("File", 1)[-1][:120] if finding.kind == "crash" else finding.kind
            seen[place] += 1
            if seen[place] <= _SHOWN:
                lines.append(f"  input {number}: {finding.kind}: {finding.detail}\n    {given}")
        return "\n".join(lines)


def run_target(target: Target, seed: str, numbers: range) -> Report:
    """Run the inputs of these numbers; nothing is raised for what they do."""
    report, began = Report(target.name, seed), time.monotonic()
    with target.opened() as run, ended_when_endless():
        for number in numbers:
            given = target.made(seed, number)
            refused: list[bool] = []

            def counted(given: object, refused: list[bool] = refused) -> None:
                try:
                    run(given)
                except target.allowed:
                    refused.append(True)
                    raise

            finding = watched(counted, given, target.allowed, target.most_cpu_s)
            report.inputs += 1
            report.refused += bool(refused)
            if finding is not None:
                report.findings.append((number, finding, repr(given)[:400]))
    report.seconds = time.monotonic() - began
    return report


def main() -> int:
    """Run what is asked for. 1 when something was found."""
    options = _options()
    names = options.target or list(TARGETS)
    if options.only is not None:
        (name,) = names
        print(repr(TARGETS[name].made(options.seed, options.only)))
        report = run_target(TARGETS[name], options.seed, range(options.only, options.only + 1))
        print(report)
        return bool(report.findings)
    if options.child:
        (name,) = names
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        report = run_target(TARGETS[name], options.seed, range(options.inputs))
        print(report)
        return bool(report.findings)
    print(
        f"seed {options.seed}: make an input again with --target NAME --seed {options.seed} --only NUMBER", flush=True
    )
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(lambda name: _apart(name, options), names))
    return max(codes)


def _apart(name: str, options: argparse.Namespace) -> int:
    inputs = min(options.inputs or TARGETS[name].full, TARGETS[name].full) if not options.all else options.inputs
    command = [sys.executable, "-m", "tests.fuzz.run", "--child", "--target", name, "--seed", options.seed]
    try:
        done = subprocess.run(
            [*command, "--inputs", str(inputs)], capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: not done after {_LONGEST_S} s", flush=True)
        return 1
    died = "" if done.returncode in (0, 1) and done.stdout else f"{name}: ended with {done.returncode}\n"
    print(f"{done.stdout.strip()}\n{died}{done.stderr[-3000:] if died else ''}".strip(), flush=True)
    return 1 if done.returncode else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="repeatable; default: all")
    parser.add_argument(
        "--inputs", type=int, default=int(INPUTS or 0), help="for each target (default: its own number)"
    )
    parser.add_argument("--all", action="store_true", help="--inputs also where the target's own number is smaller")
    parser.add_argument("--seed", default=SEED or secrets.token_hex(4))
    parser.add_argument("--only", type=int, help="the number of one input of one target")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
