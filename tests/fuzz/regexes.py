"""Attacks every compiled regular expression of the project with texts made from its own parse tree.

A repeat whose rounds can be cut in several ways, or that a search tries from each of its places, is quadratic or worse
when the end does not fit. Random texts seldom find that; texts pumped from the pattern do. What counts is the ratio of
the times for a text and for a quarter of it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import math
import pkgutil
import re
import signal
import string
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from re import _parser  # type: ignore[attr-defined] # the only parser of exactly what `re` takes
from typing import Any

from tests.fuzz.guard import EndlessError, ended_when_endless
from tests.support.growth import past_linear

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("shared", "orchestrator", "workers")
#: Ends that fit nothing, or just not.
_ENDS = ("\x00!", "", "\n", "!", " ")
#: Repeated as they are, behind nothing and behind what fits: blanks, marks of Markdown and of both languages.
_UNITS = (" ", "\n", "\u3000", "a", "中", "a ", "中，", "(", "[", "`", "*", "|", '"', ".", "<", "1", "-", "? ")
_MOST_NODES = 40
#: Patterns that one line builds of texts; those of tables are all tried.
_MOST_BUILT, _TABLES = 12, "shared/language/"
#: The longest text that the patterns of a room are given, where its code says so.
_BOUNDS = {
    "shared/language/en/planning": 300, "shared/language/en/clauses": 300, "shared/language/zh/planning": 300,
    "shared/language/zh/clauses": 300, "shared/language/tables.py:PlanningTable": 300,
    "shared/language/tables.py:RoutingTable": 1000,
    "shared/language/routing.py": 1000, "orchestrator/planning/lists/": 1000, "shared/language/en/dates": 1000,
    "shared/language/zh/dates": 1000,
}  # fmt: skip
#: Who compiles patterns that are only used from the start of a text, where that cannot be read off one assignment.
_USED = {
    "_ways_to_ask": frozenset({"fullmatch"}), "orchestrator/planning/lists/dates.py:_compiled": frozenset({"match"}),
}  # fmt: skip
#: Characters of the longest question.
_QUESTION = 4000
#: Seconds for a text as long as a question that nobody notices; what takes less is not measured again.
_NOTICED_S = 0.01
_ENDED_S = 0.5
_CALLS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_ALL = frozenset(_CALLS)
_LETTERS = string.ascii_lowercase + string.digits
_CATEGORIES = {
    "CATEGORY_DIGIT": "01٣", "CATEGORY_SPACE": " \t\u3000", "CATEGORY_WORD": "ab_9中", "CATEGORY_NOT_DIGIT": "a ",
    "CATEGORY_NOT_SPACE": "a.", "CATEGORY_NOT_WORD": " .-",
}  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """A pattern, the file that compiled it, and the methods that it is used by."""

    pattern: re.Pattern[str]
    where: str
    methods: frozenset[str]

    def length(self, asked: int) -> int:
        """Characters of the longest text that its callers give it, at most `asked`."""
        return min([asked, *(most for start, most in _BOUNDS.items() if self.where.startswith(start))])


def recorded() -> list[Recorded]:
    """Every pattern that the project compiles. To be called before any module of the project is loaded."""
    assert "shared.models" not in sys.modules, "too late: patterns have been compiled already"
    found: dict[str, Recorded] = {}
    built: Counter[tuple[str, int]] = Counter()
    compiling: Callable[..., Any] = re._compile  # type: ignore[attr-defined]

    def record(pattern: Any, flags: int) -> Any:
        done = compiling(pattern, flags)
        frame: Any = sys._getframe(1)
        method = "compile"
        while frame is not None and frame.f_code.co_filename == re.__file__:
            method, frame = frame.f_code.co_name, frame.f_back
        where = Path(frame.f_code.co_filename) if frame is not None else Path()
        if where.is_relative_to(_ROOT / "tests") or not where.is_relative_to(_ROOT) or isinstance(done.pattern, bytes):
            return done
        name, line = where.relative_to(_ROOT).as_posix(), frame.f_lineno
        place = f"{name}:{getattr(frame.f_code, 'co_qualname', '')}"
        callers = {place, *_callers(frame)}
        known = found.get(done.pattern)
        built[name, line] += known is None
        if name.startswith(_PACKAGES) and (known or name.startswith(_TABLES) or built[name, line] <= _MOST_BUILT):
            methods = next((_USED[one] for one in callers if one in _USED), None)
            methods = methods or (_methods(name, line) if method == "compile" else frozenset({method}))
            found[done.pattern] = Recorded(done, place, methods | (known.methods if known else frozenset()))
        return done

    re._compile = record  # type: ignore[attr-defined]
    try:
        _load()
    finally:
        re._compile = compiling  # type: ignore[attr-defined]
    return list(found.values())


def _callers(frame: Any) -> Iterator[str]:
    """The names of the nearest functions below `frame`."""
    for _ in range(4):
        frame = frame.f_back if frame else None
        if frame is not None:
            yield frame.f_code.co_name


@cache
def _named(where: str) -> tuple[str, list[ast.Assign | ast.FunctionDef]]:
    """The text of a file, and what it assigns and defines."""
    source = (_ROOT / where).read_text()
    return source, [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign | ast.FunctionDef)]


@cache
def _methods(where: str, line: int) -> frozenset[str]:
    """The methods that are called on what is compiled there; all of them where that cannot be read off its file."""
    source, names = _named(where)
    around = [node for node in names if node.lineno <= line <= (node.end_lineno or 0)]
    node = max(around, key=lambda one: one.lineno, default=None)
    target = node.targets[0] if isinstance(node, ast.Assign) else node
    name = target.id if isinstance(target, ast.Name) else target.name if isinstance(target, ast.FunctionDef) else ""
    if not name.startswith("_"):
        return _ALL
    called = re.findall(rf"\b{name}(?:\([^()]*\))?\.({'|'.join(_CALLS)})\(", source)
    others = len(re.findall(rf"\b{name}\b", source)) - len(called) - 1
    return _ALL if others or not called else frozenset(called)


def _load() -> None:
    """Every module, and the patterns that are compiled at first use."""
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                with suppress(Exception):  # modules of tasks want a Redis to be named; they hold no patterns
                    importlib.import_module(module.name)
    from tests.fuzz.targets import TARGETS

    for name in (
        "route",
        "rules",
        "list",
        "intent",
        "reply_decomposition",
        "keys",
        "document_md",
        "document_rst",
        "prose",
    ):
        target = TARGETS[name]
        with target.opened() as run:
            for number in range(60):
                with suppress(*target.allowed):
                    run(target.made("warm", number))


def _pumped(start: str, unit: str, end: str, length: int) -> str:
    return start + unit * max(1, (length - len(start)) // len(unit)) + end


class Pumps:
    """Texts that a pattern's repeats like."""

    def __init__(self, pattern: re.Pattern[str], seed: str) -> None:
        self._rng = Random(seed)
        flags = pattern.flags & ~re.DEBUG
        self._tree = _parser.parse(pattern.pattern, flags)

    def attacks(self) -> Iterator[Callable[[int], str]]:
        """Texts of any length: a prefix, a piece pumped to the length, and an end that does not fit."""
        shapes: dict[tuple[str, str, str], None] = {}
        for before, inner in list(self._repeats(self._tree, ""))[:_MOST_NODES]:
            unit = "".join(self._of(inner) for _ in range(self._rng.choice((1, 1, 2))))[:40]
            end, start = self._rng.choice(_ENDS), before[:60]
            if unit:
                shapes |= dict.fromkeys([(before[:200], unit, end), ("", start + unit, end), ("", f"{start} ", end)])
        shapes |= dict.fromkeys((start, unit, _ENDS[0]) for unit in _UNITS for start in ("", self._of(self._tree)[:40]))
        for start, unit, end in shapes:
            yield partial(_pumped, start, unit, end)

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


def _ended(search: Callable[[str], object], text: str) -> bool:
    """True for a search that took so long that it was ended."""
    signal.setitimer(signal.ITIMER_PROF, _ENDED_S)
    try:
        search(text)
    except EndlessError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return False


def _searches(one: Recorded) -> Iterator[Callable[[str], object]]:
    for method in sorted(one.methods & {"match", "fullmatch"}):
        yield getattr(one.pattern, method)
    if one.methods - {"match", "fullmatch"}:
        yield lambda text: deque(one.pattern.finditer(text), 0)


def grows(search: Callable[[str], object], text_of: Callable[[int], str], length: int, least: float) -> float:
    """How much longer it takes for four times the text, where it takes `least` seconds at all and is past linear."""
    began = time.process_time()
    if _ended(search, text_of(length)):
        return math.inf
    return past_linear(search, text_of, length, least) if time.process_time() - began >= least else 0.0


def attacked(length: int, seed: str, every: int = 1) -> tuple[int, list[str]]:
    """How many patterns there are, and a line for each whose time grows faster than its text."""
    patterns = recorded()
    slow = []
    with ended_when_endless():
        for one in patterns:
            bounded = one.length(_QUESTION)
            size = bounded if bounded < _QUESTION else length
            # A pattern whose texts are bounded may be quadratic while that takes no time that anybody notices.
            least = _NOTICED_S if bounded < _QUESTION else _NOTICED_S * (length / _QUESTION) ** 2
            found = (
                (grows(search, text_of, size, least), text_of)
                for text_of in islice(Pumps(one.pattern, seed).attacks(), 0, None, every)
                for search in _searches(one)
            )
            if worst := next((one for one in found if one[0]), None):
                slow.append(f"{one.where}: x{worst[0]:.0f} {one.pattern.pattern[:300]!r} on {worst[1](60)!r}")
    return len(patterns), slow


def main() -> int:
    """Print what was found. 1 for any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=_QUESTION, help="characters of a text")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--every", type=int, default=1, help="try only every so many of the texts")
    options = parser.parse_args()
    count, slow = attacked(options.length, options.seed, options.every)
    print(
        f"regexes: {count} patterns, texts of {options.length}, seed {options.seed}, {len(slow)} found",
        *slow,
        sep="\n  ",
    )
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
