"""What a file's code uses and binds, as text and rows: the last step that touches syntax trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from tree_sitter import Node

from workers.index.code.grammar import Captures
from workers.index.code.imports import READERS, Imports
from workers.index.code.language import CodeLanguage

#: A longer expression is a chain whose head says nothing more; its end is kept.
_MAX_EXPRESSION = 240


class How(IntEnum):
    """How a name is used. Only calls may name something that the file does not know."""

    CALL = 0
    VALUE = 1
    TYPE = 2
    BASE = 3


@dataclass(frozen=True, slots=True)
class Use:
    row: int
    text: str
    how: How


@dataclass(frozen=True, slots=True)
class Binding:
    """`name` holds a value of the written `type`, or of what the expression `value` gives. `field`: of its class."""

    row: int
    name: str
    type: str
    value: str
    field: bool


@dataclass(slots=True)
class Occurrences:
    """All of a file. `returns` are (row, written type), `default` the name that it exports as its default."""

    uses: list[Use] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    returns: list[tuple[int, str]] = field(default_factory=list)
    imports: Imports = field(default_factory=Imports)
    default: str = ""


_USES = {"call": How.CALL, "value": How.VALUE, "type": How.TYPE, "base": How.BASE}


def occurrences(matches: Sequence[Captures], source: bytes, language: CodeLanguage, path: str) -> Occurrences:
    """`matches` as plain data, in the order of the source."""
    found = Occurrences()
    read_import = READERS[language.name]
    for match in matches:
        for name, nodes in match.items():
            if (how := _USES.get(name)) is not None:
                found.uses += [Use(node.start_point[0], _expression(node, source), how) for node in nodes]
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


def _bindings(match: Captures, source: bytes, said: str) -> list[Binding]:
    text = _cut(match[said][0], source)
    return [
        Binding(
            row=node.start_point[0],
            name=_cut(node, source),
            type=text if said == "as" else "",
            value=text if said == "from" else "",
            field=kind == "field",
        )
        for kind in ("name", "field")
        for node in match.get(kind, ())
    ]


def _expression(node: Node, source: bytes) -> str:
    """A called expression without its arguments; of a long chain the end, marked as one."""
    start, end = node.start_byte, node.end_byte
    if node.type == "method_invocation":
        name = node.child_by_field_name("name")
        end = name.end_byte if name is not None else end
    if end - start > _MAX_EXPRESSION:
        return "()" + source[end - _MAX_EXPRESSION : end].decode("utf-8", "ignore")
    return source[start:end].decode("utf-8", "replace")


def _cut(node: Node, source: bytes) -> str:
    return source[node.start_byte : min(node.end_byte, node.start_byte + _MAX_EXPRESSION)].decode("utf-8", "ignore")
