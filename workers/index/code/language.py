"""What one language's syntax trees mean: which nodes define, which only carry or hold definitions. No walking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tree_sitter import Node

from workers.index.code.names import Name

#: Node -> (kind, its name parts) for a definition, None for anything else.
Naming = Callable[[Node], "tuple[str, Name] | None"]

#: Names that an owner defines without a chunk of its own: constants, signatures of an interface, variants.
MEMBER = "member"
#: Kinds whose inside holds definitions of their own.
OPEN = frozenset({"class", "interface", "trait", "impl", "mod", "namespace", "enum", "struct", "record", "object"})
#: Kinds that only hold: their few own lines go to their neighbours, and they define nothing.
HOLDERS = frozenset({"impl", "mod", "namespace"})
#: Kinds that are types, so that a method called on one of their values has a name.
TYPES = OPEN - {"mod", "namespace"} | {"type", "union"}


class Plain(StrEnum):
    """Whose a plain name is that a file neither defines nor imports: the package's, its class's, or a local one."""

    LOCAL = "local"
    PACKAGE = "package"
    CLASS = "class"


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """Tables of one language.

    `kinds` maps node types to what they define; `naming` sees the others that may. `carriers` belong to the definition
    inside them (decorators, `export`), `through` are looked through and keep their own lines (`if`, `try`), `leads`
    belong to the definition below them. `handed_on` and `plain` say how names travel, `selves` name the own object.
    """

    name: str
    grammar: tuple[str, str]
    queries: tuple[str, ...]
    module: Callable[[str], Name]
    kinds: Mapping[str, str]
    naming: Naming = field(default=lambda _node: None)
    carriers: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset({"ERROR"})
    leads: frozenset[str] = frozenset({"comment"})
    selves: frozenset[str] = frozenset({"this"})
    plain: Plain = Plain.LOCAL
    handed_on: bool = True
    #: A file of it is no module of its own: what it defines belongs to its package.
    packaged: bool = False


def text_of(node: Node | None) -> str:
    """The source of a node, empty for none."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def named(node: Node, name_field: str = "name") -> Name:
    """A node's name as name parts: none when it has none."""
    name = text_of(node.child_by_field_name(name_field)).lstrip("#")
    return (name,) if name else ()
