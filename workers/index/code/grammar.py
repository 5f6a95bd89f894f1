"""Source to syntax tree and captures, in bounded time. Never walks by recursion."""

from __future__ import annotations

import time
from functools import lru_cache
from importlib import import_module, resources

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor, Tree

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

Captures = dict[str, list[Node]]


@lru_cache(maxsize=16)
def _grammar(package: str, function: str) -> Grammar:
    return Grammar(getattr(import_module(package), function)())


@lru_cache(maxsize=16)
def _query(package: str, function: str, names: tuple[str, ...]) -> Query:
    folder = resources.files("workers.index.code") / "queries"
    text = "\n".join((folder / f"{name}.scm").read_text(encoding="utf-8") for name in names)
    return Query(_grammar(package, function), text)


def parse(source: bytes, grammar: tuple[str, str], deadline: float) -> Tree | None:
    """The tree of `source`; None when it is not done by `deadline` (`time.monotonic`)."""
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


def captures(root: Node, grammar: tuple[str, str], queries: tuple[str, ...]) -> list[Captures]:
    """What the query files find in a tree, a match each; nothing in a tree that is broken all over.

    No progress callback here: with one, tree-sitter 0.26.1 for Python crashes the process. So the work is bounded by
    depth and by `_is_rubble`, the two shapes on which a query's time is not linear.
    """
    if _is_rubble(root):
        return []
    cursor = QueryCursor(_query(*grammar, queries), match_limit=_MATCH_LIMIT)
    cursor.set_max_start_depth(_MAX_DEPTH)
    return [match for _, match in cursor.matches(root)]


def _is_rubble(root: Node) -> bool:
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
