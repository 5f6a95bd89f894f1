"""Attacks every compiled regular expression of the project with texts made from its own parse tree.

A repeat whose rounds can be cut in several ways backtracks over all of them when the end does not fit. Random texts
seldom find that; texts pumped from the pattern do.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import signal
import string
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from re import _parser  # type: ignore[attr-defined] # the only parser of exactly what `re` takes
from typing import Any

from tests.fuzz.guard import EndlessError, ended_when_endless

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("shared", "orchestrator", "workers")
#: Ends that fit nothing, or just not.
_ENDS = ("\x00!", "", "\n", "!", " ")
_MOST_NODES = 40
_LETTERS = string.ascii_lowercase + string.digits
_CATEGORIES = {
    "CATEGORY_DIGIT": "01٣", "CATEGORY_SPACE": " \t\u3000", "CATEGORY_WORD": "ab_9中", "CATEGORY_NOT_DIGIT": "a ",
    "CATEGORY_NOT_SPACE": "a.", "CATEGORY_NOT_WORD": " .-",
}  # fmt: skip


def recorded() -> dict[str, tuple[re.Pattern[str], str]]:
    """Pattern by source, with the file that compiled it. To be called before any module of the project is loaded."""
    assert "shared.models" not in sys.modules, "too late: patterns have been compiled already"
    found: dict[str, tuple[re.Pattern[str], str]] = {}
    compiling: Callable[..., Any] = re._compile  # type: ignore[attr-defined]

    def record(pattern: Any, flags: int) -> Any:
        done = compiling(pattern, flags)
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == re.__file__:
            frame = frame.f_back
        where = Path(frame.f_code.co_filename) if frame is not None else Path()
        if where.is_relative_to(_ROOT) and isinstance(done.pattern, str):
            found.setdefault(done.pattern, (done, where.relative_to(_ROOT).as_posix()))
        return done

    re._compile = record  # type: ignore[attr-defined]
    try:
        _load()
    finally:
        re._compile = compiling  # type: ignore[attr-defined]
    return {source: item for source, item in found.items() if item[1].startswith(_PACKAGES)}


def _load() -> None:
    """Every module, and the patterns that are compiled at first use."""
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                with suppress(Exception):  # modules of tasks want a Redis to be named; they hold no patterns
                    importlib.import_module(module.name)
    from tests.fuzz.targets import TARGETS

    for name in ("route", "rules", "list", "intent", "reply_decomposition", "keys"):
        target = TARGETS[name]
        with target.opened() as run:
            for number in range(300):
                with suppress(*target.allowed):
                    run(target.made("warm", number))


class Pumps:
    """Texts that a pattern's repeats like."""

    def __init__(self, pattern: re.Pattern[str], seed: str) -> None:
        self._rng = Random(seed)
        flags = pattern.flags & ~re.DEBUG
        self._tree = _parser.parse(pattern.pattern, flags)

    def attacks(self, length: int) -> Iterator[str]:
        """Prefix, a piece pumped to `length`, and an end that does not fit."""
        for before, inner in list(self._repeats(self._tree, ""))[:_MOST_NODES]:
            for _ in range(2):
                unit = "".join(self._of(inner) for _ in range(self._rng.choice((1, 1, 2))))[:40]
                if unit:
                    yield before[:200] + unit * (length // len(unit)) + self._rng.choice(_ENDS)

    def _repeats(self, tree: Any, before: str) -> Iterator[tuple[str, Any]]:
        """Each repeat without a small bound, with a text that leads to it."""
        for op, value in tree:
            name = str(op)
            if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
                _, most, inner = value
                if most > 20:
                    yield before, inner
                yield from self._repeats(inner, before)
            elif name == "SUBPATTERN":
                yield from self._repeats(value[3], before)
            elif name == "ATOMIC_GROUP":
                yield from self._repeats(value, before)
            elif name == "BRANCH":
                for branch in value[1]:
                    yield from self._repeats(branch, before)
            elif name in {"ASSERT", "ASSERT_NOT"}:
                yield from self._repeats(value[1], before)
            before += self._of([(op, value)])

    def _of(self, tree: Any) -> str:
        return "".join(self._one(str(op), value) for op, value in tree)

    def _one(self, name: str, value: Any) -> str:  # noqa: PLR0911 - one for each kind of node
        match name:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL":
                return "a" if value != ord("a") else "b"
            case "ANY":
                return self._rng.choice("a .")
            case "IN":
                return self._in(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = value
                return "".join(self._of(inner) for _ in range(min(most, max(least, self._rng.choice((0, 1, 2))))))
            case "SUBPATTERN":
                return self._of(value[3])
            case "ATOMIC_GROUP":
                return self._of(value)
            case "BRANCH":
                return self._of(self._rng.choice(value[1]))
        return ""  # places, look-arounds, references: they take no text of their own

    def _in(self, choices: Any) -> str:
        op, value = self._rng.choice(choices)
        if str(choices[0][0]) == "NEGATE":
            fits = [c for c in _LETTERS + " \n.,-_中<>\"'`" if not any(_holds(choice, c) for choice in choices[1:])]
            return self._rng.choice(fits or ["\u2603"])
        if str(op) == "LITERAL":
            return chr(value)
        if str(op) == "RANGE":
            return chr(self._rng.choice((value[0], value[1], self._rng.randint(*value))))
        return self._rng.choice(_CATEGORIES.get(str(value).removeprefix("UNI_"), "a"))


def _holds(choice: Any, char: str) -> bool:
    op, value = choice
    if str(op) == "LITERAL":
        return ord(char) == value
    if str(op) == "RANGE":
        return bool(value[0] <= ord(char) <= value[1])
    if str(op) == "CATEGORY":
        kinds = {"SPACE": str.isspace, "DIGIT": str.isdigit, "WORD": lambda c: c.isalnum() or c == "_"}
        name = str(value).removeprefix("CATEGORY_").removeprefix("UNI_")
        said = kinds[name.removeprefix("NOT_")](char)
        return not said if name.startswith("NOT_") else said
    return False


def seconds_of(pattern: re.Pattern[str], text: str, most: float) -> float:
    """CPU seconds of one search, `most` where it was ended."""
    signal.setitimer(signal.ITIMER_PROF, most)
    began = time.process_time()
    try:
        pattern.search(text)
    except EndlessError:
        return most
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.process_time() - began


def attacked(length: int, most: float, seed: str) -> tuple[int, list[str]]:
    """How many patterns there are, and a line for each that takes `most` CPU seconds of some text of `length`."""
    patterns = recorded()
    slow = []
    with ended_when_endless():
        for source, (pattern, where) in patterns.items():
            for text in Pumps(pattern, seed).attacks(length):
                if seconds_of(pattern, text, most) >= most:
                    slow.append(f"{where}: {source[:200]!r} on {text[:60]!r}...")
                    break
    return len(patterns), slow


def main() -> int:
    """Print what was found. 1 for any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=4000, help="characters of a text: as many as a question may have")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    count, slow = attacked(options.length, options.seconds, options.seed)
    print(
        f"regexes: {count} patterns, texts of {options.length}, seed {options.seed}, {len(slow)} found",
        *slow,
        sep="\n  ",
    )
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
