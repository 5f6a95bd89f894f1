"""Gives every line of a file to one definition and cuts what is too wide at statement bounds. Never loses a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from shared.settings.sections import Chunking
from workers.index.code.language import HOLDERS
from workers.index.code.outline import Definition
from workers.index.widths import width

#: A holder with no more lines of its own (its head and its brace) gets no chunk.
_HOLDER_LINES = 4
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of one definition; `first` is True for its first piece, `rows` are those that no piece before has."""

    definition: int
    text: str
    rows: tuple[int, ...]
    first: bool


def owners(definitions: Sequence[Definition], rows: int) -> list[int]:
    """For each row the innermost definition that it belongs to.

    A definition that begins on a row of its neighbour or on its parent's first row has no rows of its own there: they
    stay with that one (`function a() {} function b() {}`).
    """
    owner = [0] * rows
    home = list(range(len(definitions)))
    for index, item in enumerate(definitions[1:], start=1):
        parent = home[item.parent]
        target = index
        if owner[item.first] != parent or (parent and item.first <= definitions[parent].head):
            target = owner[item.first]
        home[index] = target
        for row in range(item.first, min(item.last + 1, rows)):
            if owner[row] in (parent, target):
                owner[row] = target
    return owner


def pieces(
    definitions: Sequence[Definition], owner: Sequence[int], lines: Sequence[str], sizes: Chunking
) -> list[Piece]:
    """All lines with text, in the order of the file; a definition's pieces stand together."""
    homes = _folded(definitions, owner, lines)
    rows: dict[int, list[int]] = {}
    for row, index in enumerate(homes):
        rows.setdefault(index, []).append(row)
    found = []
    for index, own in sorted(rows.items(), key=lambda item: item[1][0]):
        groups = [own]
        if sum(width(lines[row]) + 1 for row in own) > sizes.max_chars:
            groups = _grouped(own, _cuts(definitions[index], own, sizes), lines, sizes)
        first = True
        for group in groups:
            for count, text in enumerate(_texts(group, lines, sizes.max_chars)):
                found.append(Piece(index, text, () if count else tuple(group), first))
                first = False
    return found


def _folded(definitions: Sequence[Definition], owner: Sequence[int], lines: Sequence[str]) -> list[int]:
    """`owner` with lone brackets and the heads of holders given to the definition beside them."""
    homes = list(owner)
    runs = _runs(range(len(homes)), homes)
    own_lines: dict[int, int] = {}
    for row, index in enumerate(homes):
        own_lines[index] = own_lines.get(index, 0) + bool(lines[row].strip())
    for place, run in enumerate(runs):
        index = homes[run[0]]
        holder = definitions[index].kind in HOLDERS and own_lines[index] <= _HOLDER_LINES
        if not holder and any(_WORD.search(lines[row]) for row in run):
            continue
        before = homes[runs[place - 1][0]] if place else None
        after = owner[runs[place + 1][0]] if place + 1 < len(runs) else None
        opens = run[0] <= definitions[index].head and after is not None and definitions[after].parent == index
        target = after if opens or before is None else before
        if target is not None and any(lines[row].strip() for row in run):
            homes[run[0] : run[-1] + 1] = [target] * len(run)
    return homes


def _runs(rows: Iterable[int], key: Sequence[int] | None = None) -> list[list[int]]:
    """Rows that follow each other (and have the same key) in lists."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1 and (key is None or key[row] == key[row - 1]):
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _cuts(item: Definition, own: Sequence[int], sizes: Chunking) -> set[int]:
    """Rows before which a statement begins: the outermost, and those within a statement that is too wide itself."""
    mine, found = set(own), set()
    stack: list[Node] = [item.node]
    while stack:
        commented = -2
        for node in stack.pop().children:
            start, end = node.start_point[0], node.end_point[0]
            if node.is_named and start in mine and start != commented + 1:
                found.add(start)
            if "comment" in node.type:
                commented = end - (node.end_point[1] == 0)
            elif node.end_byte - node.start_byte > sizes.target_chars and end > start:
                stack.append(node)
    return found


def _grouped(own: Sequence[int], cuts: set[int], lines: Sequence[str], sizes: Chunking) -> list[list[int]]:
    """Rows in groups of about `target_chars`, parted at `cuts`; between cuts more than `max_chars` apart, anywhere."""
    statements: list[list[int]] = []
    for row in own:
        if statements and row not in cuts and row == statements[-1][-1] + 1:
            statements[-1].append(row)
        else:
            statements.append([row])
    groups: list[list[int]] = []
    total = 0
    for rows in statements:
        wide = sum(width(lines[row]) + 1 for row in rows)
        for part, size in [(rows, wide)] if wide <= sizes.max_chars else [([r], width(lines[r]) + 1) for r in rows]:
            if groups and total + size <= (sizes.target_chars if part is rows else sizes.max_chars):
                groups[-1] += part
                total += size
            else:
                groups.append(list(part))
                total = size
    return groups


def _texts(rows: Sequence[int], lines: Sequence[str], limit: int) -> list[str]:
    """The rows as text, an empty line where others stood between; a single line wider than `limit` in several."""
    runs = ["\n".join(lines[row] for row in run).strip("\n") for run in _runs(rows)]
    text = "\n\n".join(run.rstrip() for run in runs if run.strip())
    if width(text) <= limit or len(rows) > 1:
        return [text] if text else []
    step = limit if text.isascii() else limit // 2
    return [part for start in range(0, len(text), step) if (part := text[start : start + step]).strip()]
