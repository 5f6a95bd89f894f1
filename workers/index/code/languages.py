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
OPEN = frozenset({
    "class", "interface", "trait", "impl", "mod", "module", "namespace", "enum", "struct", "record", "object",
})  # fmt: skip
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
_GENERIC = re.compile(r"<[^<>]*+>")
_C_NAME = re.compile(r"~?\w++|operator.{1,20}")
#: A longer name is no name.
_MAX_TEXT = 500
_C_TYPES = {
    "struct_specifier": "struct",
    "union_specifier": "union",
    "class_specifier": "class",
    "enum_specifier": "enum",
}
_C_AROUND = frozenset({"pointer_declarator", "reference_declarator", "attributed_declarator"})
_SQL_KINDS = frozenset({"table", "view", "function", "procedure", "trigger", "index", "type", "sequence"})


class Unresolved(StrEnum):
    """Whose a name is that a file neither defines nor imports: the package's, its class's, the program's, a local."""

    LOCAL = "local"
    PACKAGE = "package"
    CLASS = "class"
    PROGRAM = "program"


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


def _c(node: Node) -> tuple[str, NameParts] | None:
    """C and C++: the name stands inside of declarators; a declaration of a function is a name without a chunk."""
    if kind := _C_TYPES.get(node.type):
        return (kind, _qualified(node.child_by_field_name("name"))) if node.child_by_field_name("body") else None
    if node.type == "type_definition":
        inner = node.child_by_field_name("type")
        kind = _C_TYPES.get(inner.type, "type") if inner is not None and inner.child_by_field_name("body") else "type"
        return kind, _qualified(node.child_by_field_name("declarator"))
    if node.type in {"function_definition", "declaration", "field_declaration"}:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type in _C_AROUND:
            declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
        if declarator is None or declarator.type != "function_declarator":
            return None
        name = _qualified(declarator.child_by_field_name("declarator"))
        return (MEMBER if node.type != "function_definition" else "method" if len(name) > 1 else "function"), name
    return None


def _qualified(node: Node | None) -> NameParts:
    """`ns::Type<T>::name` as its parts; empty for what is no name, as a pointer to a function."""
    text = _GENERIC.sub("", text_of(node) if node is not None and node.end_byte - node.start_byte < _MAX_TEXT else "")
    parts = tuple(part.strip() for part in text.split("::") if part.strip())
    return parts if all(_C_NAME.fullmatch(part) for part in parts) else ()


def _sharp(node: Node) -> tuple[str, NameParts] | None:
    if node.type in {"field_declaration", "event_field_declaration"}:
        held = (child for each in node.named_children for child in each.named_children)
        return MEMBER, named(next((child for child in held if child.type == "variable_declarator"), node))
    return _java(node)


def _kotlin(node: Node) -> tuple[str, NameParts] | None:
    types = {child.type for child in node.children}
    if node.type == "class_declaration":
        return "interface" if "interface" in types else "enum" if "enum_class_body" in types else "class", named(node)
    if node.type in {"property_declaration", "enum_entry"}:
        inner = next((child for child in node.named_children if child.type == "variable_declaration"), node)
        name = next((text_of(child) for child in inner.named_children if child.type == "identifier"), "")
        return MEMBER, (name,) if name else ()
    if node.type == "type_alias":
        name = next((text_of(child) for child in node.named_children if child.type == "identifier"), "")
        return "type", (name,) if name else ()
    return None


def _ruby(node: Node) -> tuple[str, NameParts] | None:
    if node.type in {"class", "module"} and node.is_named:
        return node.type, _qualified(node.child_by_field_name("name"))
    left = node.child_by_field_name("left") if node.type == "assignment" else None
    return (MEMBER, (text_of(left),)) if left is not None and left.type == "constant" else None


def _php(node: Node) -> tuple[str, NameParts] | None:
    if node.type == "const_element":
        return MEMBER, (text_of(node.named_children[0]),)
    return _java(node)


def _sql(node: Node) -> tuple[str, NameParts] | None:
    kind = node.type.removeprefix("create_").replace("materialized_", "")
    if node.type.startswith("create_") and kind in _SQL_KINDS:
        name = node.child_by_field_name("column") if kind == "index" else None
        name = name or next((child for child in node.named_children if child.type == "object_reference"), None)
        parts = tuple(part.strip('`"[] ') for part in text_of(name).split("."))
        return kind, parts if all(parts) else ()
    return None


def _none(_node: Node) -> None:
    return None


#: Language -> how a file's path gives its module's name, and `custom` of its CodeLanguage.
_READING: Mapping[str, tuple[Callable[[str], NameParts], Naming]] = {
    "python": (without_last("__init__"), _python),
    "javascript": (without_last("index"), _script),
    "typescript": (without_last("index"), _script),
    "go": (folder, _go),
    "rust": (crate, _rust),
    "java": (folder, _java),
    "c": (without_last(), _c),
    "cpp": (without_last(), _c),
    "csharp": (folder, _sharp),
    "kotlin": (folder, _kotlin),
    "ruby": (without_last(), _ruby),
    "php": (folder, _php),
    "shell": (without_last(), _none),
    "sql": (without_last(), _sql),
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
