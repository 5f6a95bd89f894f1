"""The definitions of a file, with their rows. Walks the tree by a stack of its own: nesting has no depth limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from tree_sitter import Node

from workers.index.code.languages import CONTAINERS, MEMBER, OPEN, TYPES, CodeLanguage, named, text_of
from workers.index.code.names import NameParts

#: Definitions of one file beyond which it is data; the rest of its lines belong to the last ones' owners.
_MAX_DEFINITIONS = 20_000
#: Definitions within each other; deeper ones are text of theirs. Each is named with all those around it, so that 8,000
#: namespaces in one another took a GB.
_MAX_NESTED = 64
_MAX_LABEL = 120
#: Bodies of Kotlin, whose grammar gives them no field of their own.
_BODIES = frozenset({"class_body", "enum_class_body"})


@dataclass(slots=True)
class Definition:
    """A definition. `first` to `last` are its rows with decorators and comments, `head` the row where it itself begins.

    `names` is its name within the module (`("Store", "open")`), empty for the module itself, the definition 0.
    `members` are names that it defines without a chunk of their own, by row.
    """

    kind: str
    names: NameParts
    first: int
    head: int
    last: int
    parent: int
    node: Node | None  # None for a file that was not parsed
    label: str = ""
    members: list[tuple[int, NameParts]] = field(default_factory=list)

    @property
    def is_type(self) -> bool:
        return self.kind in TYPES


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A parsed file: its language, its module's name, its definitions, and the definition of each row.

    `default` is the name that it exports as its default, empty for none.
    """

    path: str
    language: CodeLanguage
    module: NameParts
    definitions: Sequence[Definition]
    owner: Sequence[int]
    default: str = ""


@dataclass(slots=True)
class _Frame:
    """The walk over the children of a node. `lead`: the row from which the first definition in it begins."""

    children: list[Node]
    parent: int
    lead: int | None = None
    wrapper: Node | None = None
    place: int = 0
    ended: int = -1


def outline(root: Node, language: CodeLanguage, rows: int) -> list[Definition]:
    """All definitions in document order, the module first. Functions within functions belong to the outer one."""
    found = [Definition("file", (), 0, 0, max(rows - 1, 0), 0, root)]
    stack = [_Frame(root.children, 0)]
    while stack and len(found) < _MAX_DEFINITIONS:
        frame = stack[-1]
        if frame.place == len(frame.children):
            stack.pop()
            continue
        node = frame.children[frame.place]
        frame.place += 1
        if deeper := _visit(frame, node, language, found):
            stack.append(deeper)
    return found


def _visit(frame: _Frame, node: Node, language: CodeLanguage, found: list[Definition]) -> _Frame | None:
    """Take one node: a lead, a definition, or something to look into."""
    start, end = node.start_point[0], _last_row(node)
    if node.type in language.leading_nodes:
        if start > frame.ended:  # a comment at the end of a line belongs to that line
            frame.lead = start if frame.lead is None or start > frame.ended + 1 else frame.lead
            frame.ended = end
        return None
    lead = frame.lead if frame.lead is not None and (start <= frame.ended + 1 or frame.wrapper) else start
    deeper = None
    if node.is_named:
        deeper = _define(frame, node, language, found, min(lead, start))
        if deeper is None and node.type in language.wrapper_nodes:
            deeper = _Frame(node.children, frame.parent, min(lead, start), frame.wrapper or node, ended=start)
        elif deeper is None and node.type in language.transparent_nodes:
            deeper = _Frame(node.children, frame.parent, ended=start)
        # A wrapper begins its definition: the first one inside takes decorators and all.
        frame.lead, frame.ended = frame.lead if frame.wrapper and deeper is None else None, end
    return deeper


def _define(frame: _Frame, node: Node, language: CodeLanguage, found: list[Definition], first: int) -> _Frame | None:
    """Note what `node` defines; the frame of its inside, empty when nothing in it is looked at."""
    kind = language.kinds.get(node.type)
    naming = (kind, named(node)) if kind else language.custom(node)
    if naming is None:
        return None
    kind, own = naming
    parent = found[frame.parent]
    if (not own and kind not in CONTAINERS) or len(parent.names) >= _MAX_NESTED:
        return None
    if kind == MEMBER:
        if node.type != "assignment" or not parent.is_type:  # a field of Python: its name alone says nothing
            row = node.start_point[0]
            several = [text_of(child) for child in node.children_by_field_name("name")]  # Go: `a, b = 1, 2`
            parent.members += [(row, (*parent.names, name)) for name in (several if len(several) > 1 else own)]
        return _Frame([], frame.parent)
    kind = "method" if kind == "function" and parent.is_type else kind
    whole = frame.wrapper if frame.wrapper is not None and _only_of_its_kind(node, frame.children) else node
    label = f"{kind} {'.'.join(own)}" if kind != "impl" else text_of(node)[:_MAX_LABEL].partition("{")[0]
    found.append(
        Definition(
            kind=kind,
            names=(*parent.names, *own),
            first=first,
            head=whole.start_point[0],
            last=_last_row(whole),
            parent=frame.parent,
            node=node,
            label=" ".join(label.split()),
        )
    )
    body = _body(node) if kind in OPEN else None
    return _Frame(body.children, len(found) - 1, ended=body.start_point[0]) if body else _Frame([], frame.parent)


def _only_of_its_kind(node: Node, siblings: list[Node]) -> bool:
    """True when no other of `siblings` is of its kind. Ends at the second: 18,000 functions would be 18,000 squared."""
    return next(islice((child for child in siblings if child.type == node.type), 1, None), None) is None


def _body(node: Node) -> Node | None:
    """The node with the members of a class, of a Go type or of an object."""
    for name in ("body", "type", "value", "right"):
        body = node.child_by_field_name(name)
        if body is not None:
            return body.child_by_field_name("body") if body.type in {"class", "class_expression"} else body
    return next((child for child in node.children if child.type in _BODIES), None)


def _last_row(node: Node) -> int:
    """The last row with text of a node: a line comment may end at the start of the next line."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row
