"""What one language's syntax trees mean: which nodes define, wrap or hold definitions. Walks no tree."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import resources
from pathlib import PurePosixPath

from tree_sitter import Node

from shared.models.base import Model
from workers.index.code.names import NameParts, crate, folder, without_last

#: Node -> (kind, its name parts) for a definition, None for anything else.
Naming = Callable[[Node], "tuple[str, NameParts] | None"]

#: Names that an owner defines without a chunk of its own: constants, signatures of an interface, variants.
MEMBER = "member"
#: Kinds whose inside holds definitions of their own.
OPEN = frozenset({"class", "interface", "trait", "impl", "mod", "namespace", "enum", "struct", "record", "object"})
#: Kinds that only hold: their few own lines go to their neighbours, and they define nothing.
CONTAINERS = frozenset({"impl", "mod", "namespace"})
#: Kinds that are types, so that a method called on one of their values has a name.
TYPES = OPEN - {"mod", "namespace"} | {"type", "union"}
_FUNCTIONS = frozenset({
    "arrow_function", "function_expression", "function", "generator_function", "class", "class_expression",
})  # fmt: skip
_NAME_FIELDS = {"pair": "key", "field_definition": "property"}
_EXPORTS = re.compile(r"^(module\.)?exports\.|^this\.|(?<=\.)prototype\.")
_DOTTED = re.compile(r"[\w$]+(\.[\w$]+){0,3}")
_TYPE_NAME = re.compile(r"[A-Za-z_]\w*")


class Unresolved(StrEnum):
    """Whose a name is that a file neither defines nor imports: the package's, its class's, or a local one."""

    LOCAL = "local"
    PACKAGE = "package"
    CLASS = "class"


class CodeLanguage(Model):
    """One language, from languages.toml.

    `kinds` maps node types to what they define; `custom` decides about the others. `wrapper_nodes` belong to the
    definition inside them (decorators, `export`), `transparent_nodes` are looked through and keep their own lines
    (`if`, `try`), `leading_nodes` belong to the definition below them. `unresolved` says whose a name is that the file
    does not know, `reexports` that packages give out names of their modules as their own, `packaged` that what a file
    defines belongs to its package and not to a module of its own.
    """

    name: str
    grammar: tuple[str, str]
    queries: tuple[str, ...]
    module: Callable[[str], NameParts]
    custom: Naming
    kinds: Mapping[str, str]
    wrapper_nodes: frozenset[str] = frozenset()
    transparent_nodes: frozenset[str] = frozenset({"ERROR"})
    leading_nodes: frozenset[str] = frozenset({"comment"})
    self_names: frozenset[str] = frozenset({"this"})
    unresolved: Unresolved = Unresolved.LOCAL
    reexports: bool = True
    packaged: bool = False


def text_of(node: Node | None) -> str:
    """The source of a node, empty for none."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def named(node: Node) -> NameParts:
    """A node's name as name parts: none when it has none."""
    name = text_of(node.child_by_field_name("name")).lstrip("#")
    return (name,) if name else ()


def _python(node: Node) -> tuple[str, NameParts] | None:
    left = node.child_by_field_name("left") if node.type == "assignment" else None
    return (MEMBER, (text_of(left),)) if left is not None and left.type == "identifier" else None


def _script(node: Node) -> tuple[str, NameParts] | None:
    """JavaScript and TypeScript: functions that are values, of a variable, a field, an object or of `exports`."""
    if node.type in {"variable_declarator", "public_field_definition", "field_definition", "pair"}:
        name = text_of(node.child_by_field_name(_NAME_FIELDS.get(node.type, "name")))
        if not _DOTTED.fullmatch(name):
            return None
        kind = _value_kind(node.child_by_field_name("value"))
        if kind == "function" and node.type != "variable_declarator":
            kind = "method"
        return (kind or MEMBER, (name,)) if kind or node.type == "variable_declarator" else None
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        kind = _value_kind(node.child_by_field_name("right"))
        if kind and left is not None and left.end_byte - left.start_byte < 200:
            name = text_of(left)
            name = "default" if name == "module.exports" else _EXPORTS.sub("", name)
            return (kind, tuple(name.split("."))) if _DOTTED.fullmatch(name) else None
    if node.type == "export_statement" and any(child.type == "default" for child in node.children):
        kind = _value_kind(node.child_by_field_name("value"))
        return (kind, ("default",)) if kind else None
    return None


def _value_kind(value: Node | None) -> str:
    """function, class or object for a value that defines one, also behind one call (`memo(() => ...)`)."""
    if value is None:
        return ""
    if value.type == "call_expression":
        arguments = value.child_by_field_name("arguments")
        inner = arguments.named_children[:3] if arguments is not None else []
        return "function" if any(child.type in _FUNCTIONS for child in inner) else ""
    if value.type == "object":
        return "object" if any(map(_is_method, value.named_children[:50])) else ""
    if value.type in _FUNCTIONS:
        return "class" if value.type.startswith("class") else "function"
    return ""


def _is_method(member: Node) -> bool:
    value = member.child_by_field_name("value") if member.type == "pair" else None
    function = value is not None and value.type in _FUNCTIONS and not value.type.startswith("class")
    return member.type == "method_definition" or function


def _go(node: Node) -> tuple[str, NameParts] | None:
    if node.type in {"type_spec", "type_alias"}:
        body = node.child_by_field_name("type")
        kind = {"struct_type": "struct", "interface_type": "interface"}.get(body.type if body else "", "type")
        return kind, named(node)
    if node.type == "method_declaration":
        receiver = text_of(node.child_by_field_name("receiver")).partition("[")[0]
        owner = _TYPE_NAME.findall(receiver)[-1:]
        return "method", (*owner, *named(node))
    return None


def _rust(node: Node) -> tuple[str, NameParts] | None:
    if node.type == "impl_item":
        kept = text_of(node.child_by_field_name("type")).partition("<")[0]
        return "impl", tuple(_TYPE_NAME.findall(kept)[-1:])
    if node.type == "mod_item":
        return ("mod", named(node)) if node.child_by_field_name("body") is not None else None
    return None


def _java(node: Node) -> tuple[str, NameParts] | None:
    if node.type == "method_declaration":
        bodiless = node.child_by_field_name("body") is None
        return MEMBER if bodiless else "method", named(node)
    return None


#: Language -> how a file's path gives its module's name, and `custom` of its CodeLanguage.
_READING: Mapping[str, tuple[Callable[[str], NameParts], Naming]] = {
    "python": (without_last("__init__"), _python),
    "javascript": (without_last("index"), _script),
    "typescript": (without_last("index"), _script),
    "go": (folder, _go),
    "rust": (crate, _rust),
    "java": (folder, _java),
}


def _languages() -> dict[str, CodeLanguage]:
    tables = tomllib.loads((resources.files("workers.index.code") / "languages.toml").read_text(encoding="utf-8"))
    found: dict[str, CodeLanguage] = {}
    for title, own in tables.items():
        tables[title] = table = {**tables.get(own.pop("extends", ""), {}), **own}
        suffixes = table.pop("suffixes")
        module, custom = _READING[table["name"]]
        found |= dict.fromkeys(suffixes, CodeLanguage(module=module, custom=custom, **table))
    return found


#: Suffix, lower case with its dot -> language.
LANGUAGES: Mapping[str, CodeLanguage] = _languages()


def language_of(path: str) -> CodeLanguage:
    """The language of a file by its suffix. Raises: KeyError when none of LANGUAGES has it."""
    return LANGUAGES[PurePosixPath(path).suffix.lower()]
