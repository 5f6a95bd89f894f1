"""Parses a file in bounded time and reads what its code uses, binds and defines. Never recurses."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from importlib import import_module, resources

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor, Tree

from workers.index.code.imports import READERS, Imports
from workers.index.code.languages import CodeLanguage

#: Seconds for one file: a megabyte parses in well under one. Past it, the file is cut as plain text.
DEADLINE_S = 5.0
#: States of a query kept at once; more only come from nesting that nobody wrote by hand.
_MATCH_LIMIT = 1000
#: Deeper nodes start no match.
_MAX_DEPTH = 200
#: Tokens side by side in an error node, squared and summed: a second's work.
_MAX_ERROR_WORK = 10**9
_SLICE = 4096
#: Smaller files are parsed at once: no input of that size takes long, and a tree of whole bytes is quicker to read.
_SMALL = 65_536
#: A longer expression is a chain whose head says nothing more; its end is kept.
_MAX_EXPRESSION = 240

#: Calls that are captured whole -> the field of the name at the end of what is called.
_CALL_NAMES = {
    "method_invocation": "name", "call": "method", "member_call_expression": "name", "scoped_call_expression": "name",
    "nullsafe_member_call_expression": "name",
}  # fmt: skip

Captures = dict[str, list[Node]]


class UseKind(IntEnum):
    """How a name is used. Only calls may name something that the file does not know."""

    CALL = 0
    VALUE = 1
    TYPE = 2
    BASE = 3


@dataclass(frozen=True, slots=True)
class NameUse:
    row: int
    text: str
    kind: UseKind


@dataclass(frozen=True, slots=True)
class NameBinding:
    """`name` holds a value of the written `type`, or of what the expression `value` gives. `field`: of its class."""

    row: int
    name: str
    type: str
    value: str
    field: bool


@dataclass(slots=True)
class Occurrences:
    """All of a file. `returns` are (row, written type), `default` the name that it exports as its default.

    `definitions` and `decorators` are nodes. `read` is False for a tree that is too broken to be gone through.
    """

    uses: list[NameUse] = field(default_factory=list)
    bindings: list[NameBinding] = field(default_factory=list)
    returns: list[tuple[int, str]] = field(default_factory=list)
    imports: Imports = field(default_factory=Imports)
    default: str = ""
    definitions: list[Node] = field(default_factory=list)
    decorators: list[Node] = field(default_factory=list)
    read: bool = True


_USES = {"call": UseKind.CALL, "value": UseKind.VALUE, "type": UseKind.TYPE, "base": UseKind.BASE}


@lru_cache(maxsize=16)
def _grammar(package: str, function: str) -> Grammar:
    return Grammar(getattr(import_module(package), function)())


@lru_cache(maxsize=16)
def _query(package: str, function: str, names: tuple[str, ...]) -> Query:
    folder = resources.files("workers.index.code") / "queries"
    text = "\n".join((folder / f"{name}.scm").read_text(encoding="utf-8") for name in names)
    return Query(_grammar(package, function), text)


def parse(source: bytes, grammar: tuple[str, str]) -> Tree | None:
    """The tree of `source`; None when it takes longer than DEADLINE_S."""
    deadline = time.monotonic() + DEADLINE_S
    parser = Parser(_grammar(*grammar))
    if len(source) < _SMALL:
        return parser.parse(source)
    try:
        return parser.parse(
            lambda offset, _: source[offset : offset + _SLICE],
            progress_callback=lambda _offset, _failed: time.monotonic() > deadline,
        )
    except ValueError:
        return None


def _captures(root: Node, grammar: tuple[str, str], queries: tuple[str, ...]) -> list[Captures]:
    """What the query files find in a tree, a match each.

    No progress callback here: with one, tree-sitter 0.26.1 for Python crashes the process. So the work is bounded by
    depth and by `_mostly_errors` before it, the two shapes on which a query's time is not linear.
    """
    cursor = QueryCursor(_query(*grammar, queries), match_limit=_MATCH_LIMIT)
    cursor.set_max_start_depth(_MAX_DEPTH)
    return [match for _, match in cursor.matches(root)]


def _mostly_errors(root: Node) -> bool:
    """Whether error nodes hold so many tokens side by side that a query, quadratic in them, would not end in time."""
    work, stack = 0, [root]
    while stack:
        node = stack.pop()
        if node.is_error:
            work += node.child_count**2
            if work > _MAX_ERROR_WORK:
                return True
        stack += [child for child in node.children if child.has_error]
    return False


def occurrences(  # noqa: C901 - a branch for each kind of capture
    root: Node, source: bytes, language: CodeLanguage, path: str
) -> Occurrences:
    """What the language's queries find below `root`, in the order of the source; nothing if it is broken all over."""
    if _mostly_errors(root):
        return Occurrences(read=False)
    found = Occurrences()
    read_import = READERS[language.name]
    for match in _captures(root, language.grammar, language.queries):
        for name, nodes in match.items():
            if (kind := _USES.get(name)) is not None:
                found.uses += [NameUse(node.start_point[0], _expression(node, source), kind) for node in nodes]
            elif name in {"definition", "decorator"}:
                (found.definitions if name == "definition" else found.decorators).extend(nodes)
            elif name == "import":
                for node in nodes:
                    read_import(node, path, found.imports)
            elif name == "returns":
                found.returns += [(node.start_point[0], _cut(node, source)) for node in nodes]
            elif name == "default":
                found.default = _cut(nodes[0], source)
            elif name in {"as", "from"}:
                found.bindings += _bindings(match, source, name)
    found.bindings.sort(key=lambda binding: binding.row)
    found.uses.sort(key=lambda use: use.row)
    return found


def _bindings(match: Captures, source: bytes, capture: str) -> list[NameBinding]:
    """`capture`: "as" for a written type, "from" for a value."""
    text = _cut(match[capture][0], source)
    written, value = (text, "") if capture == "as" else ("", text)
    return [
        NameBinding(node.start_point[0], _cut(node, source), written, value, field=name == "field")
        for name in ("name", "field")
        for node in match.get(name, ())
    ]


def _expression(node: Node, source: bytes) -> str:
    """A called expression without its arguments; of a long chain the end, marked as one."""
    start, end = node.start_byte, node.end_byte
    if (named := _CALL_NAMES.get(node.type)) and (name := node.child_by_field_name(named)) is not None:
        end = name.end_byte
    if end - start > _MAX_EXPRESSION:
        return "()" + source[end - _MAX_EXPRESSION : end].decode("utf-8", "ignore")
    return source[start:end].decode("utf-8", "replace")


def _cut(node: Node, source: bytes) -> str:
    return source[node.start_byte : min(node.end_byte, node.start_byte + _MAX_EXPRESSION)].decode("utf-8", "ignore")
