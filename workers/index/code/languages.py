"""The languages that are read, by suffix."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from tree_sitter import Node

from workers.index.code.names import Name, crate, dropping, folder

# --- What one language's syntax trees mean: which nodes define, which only carry or hold definitions. No walking.

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


_FUNCTIONS = frozenset({
    "arrow_function", "function_expression", "function", "generator_function", "class", "class_expression",
})  # fmt: skip
_EXPORTS = re.compile(r"^(module\.)?exports\.|^this\.|(?<=\.)prototype\.")
_DOTTED = re.compile(r"[\w$]+(\.[\w$]+){0,3}")
_TYPE_NAME = re.compile(r"[A-Za-z_]\w*")


def _python(node: Node) -> tuple[str, Name] | None:
    if node.type == "assignment":
        left = node.child_by_field_name("left")
        return (MEMBER, (text_of(left),)) if left is not None and left.type == "identifier" else None
    return None


def _script(node: Node) -> tuple[str, Name] | None:
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
        value = node.child_by_field_name("value")
        kind = _value_kind(value)
        return (kind, ("default",)) if kind else None
    return None


_NAME_FIELDS = {"pair": "key", "field_definition": "property"}


def _value_kind(value: Node | None) -> str:
    """function, class or object for a value that defines one, also behind one call (`memo(() => ...)`)."""
    if value is not None and value.type == "call_expression":
        arguments = value.child_by_field_name("arguments")
        inner = arguments.named_children[:3] if arguments is not None else []
        return "function" if any(child.type in _FUNCTIONS for child in inner) else ""
    if value is None:
        return ""
    if value.type == "object":
        members = value.named_children[:50]
        holds = any(m.type == "method_definition" or _value_kind(_pair_value(m)) == "function" for m in members)
        return "object" if holds else ""
    if value.type in _FUNCTIONS:
        return "class" if value.type.startswith("class") else "function"
    return ""


def _pair_value(member: Node) -> Node | None:
    value = member.child_by_field_name("value") if member.type == "pair" else None
    return value if value is not None and value.type in _FUNCTIONS else None


def _go(node: Node) -> tuple[str, Name] | None:
    if node.type in {"type_spec", "type_alias"}:
        body = node.child_by_field_name("type")
        kind = {"struct_type": "struct", "interface_type": "interface"}.get(body.type if body else "", "type")
        return kind, named(node)
    if node.type == "method_declaration":
        receiver = text_of(node.child_by_field_name("receiver")).partition("[")[0]
        owner = _TYPE_NAME.findall(receiver)[-1:]
        return "method", (*owner, *named(node))
    return None


def _rust(node: Node) -> tuple[str, Name] | None:
    if node.type == "impl_item":
        kept = text_of(node.child_by_field_name("type")).partition("<")[0]
        return "impl", tuple(_TYPE_NAME.findall(kept)[-1:])
    if node.type == "mod_item":
        return ("mod", named(node)) if node.child_by_field_name("body") is not None else None
    return None


def _java(node: Node) -> tuple[str, Name] | None:
    if node.type == "method_declaration":
        bodiless = node.child_by_field_name("body") is None
        return MEMBER if bodiless else "method", named(node)
    return None


_PYTHON = CodeLanguage(
    name="python",
    grammar=("tree_sitter_python", "language"),
    queries=("python",),
    module=dropping("__init__"),
    kinds={"function_definition": "function", "class_definition": "class"},
    naming=_python,
    carriers=frozenset({"decorated_definition", "expression_statement"}),
    through=frozenset({
        "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause", "finally_clause",
        "with_statement", "block", "ERROR",
    }),
    selves=frozenset({"self", "cls"}),
)  # fmt: skip
_JAVASCRIPT = CodeLanguage(
    name="javascript",
    grammar=("tree_sitter_javascript", "language"),
    queries=("javascript", "jsx", "heritage"),
    module=dropping("index"),
    kinds={
        "function_declaration": "function", "generator_function_declaration": "function", "class_declaration": "class",
        "method_definition": "method",
    },
    naming=_script,
    carriers=frozenset({"export_statement", "lexical_declaration", "variable_declaration", "expression_statement"}),
    through=frozenset({"ERROR", "if_statement", "statement_block"}),
    leads=frozenset({"comment", "decorator"}),
)  # fmt: skip
_TS_KINDS = {
    **_JAVASCRIPT.kinds, "abstract_class_declaration": "class", "interface_declaration": "interface",
    "type_alias_declaration": "type", "enum_declaration": "enum", "internal_module": "namespace", "module": "namespace",
    "method_signature": MEMBER, "abstract_method_signature": MEMBER, "function_signature": "function",
}  # fmt: skip


def _typescript(function: str, *more: str) -> CodeLanguage:
    return CodeLanguage(
        name="typescript",
        grammar=("tree_sitter_typescript", function),
        queries=("javascript", "typescript", *more),
        module=_JAVASCRIPT.module,
        kinds=_TS_KINDS,
        naming=_script,
        carriers=_JAVASCRIPT.carriers | {"ambient_declaration"},
        through=_JAVASCRIPT.through,
        leads=_JAVASCRIPT.leads,
    )


_GO = CodeLanguage(
    name="go",
    grammar=("tree_sitter_go", "language"),
    queries=("go",),
    module=folder,
    kinds={"function_declaration": "function", "method_elem": MEMBER, "const_spec": MEMBER, "var_spec": MEMBER},
    naming=_go,
    carriers=frozenset({"type_declaration", "const_declaration", "var_declaration"}),
    through=frozenset({"ERROR", "var_spec_list"}),
    selves=frozenset(),
    plain=Plain.PACKAGE,
    handed_on=False,
    packaged=True,
)
_RUST = CodeLanguage(
    name="rust",
    grammar=("tree_sitter_rust", "language"),
    queries=("rust",),
    module=crate,
    kinds={
        "function_item": "function", "struct_item": "struct", "enum_item": "enum", "union_item": "union",
        "trait_item": "trait", "type_item": "type", "macro_definition": "macro", "const_item": MEMBER,
        "static_item": MEMBER, "function_signature_item": MEMBER, "enum_variant": MEMBER,
    },
    naming=_rust,
    leads=frozenset({"line_comment", "block_comment", "attribute_item"}),
    selves=frozenset({"self", "Self"}),
)  # fmt: skip
_JAVA = CodeLanguage(
    name="java",
    grammar=("tree_sitter_java", "language"),
    queries=("java",),
    module=folder,
    kinds={
        "class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
        "record_declaration": "record", "annotation_type_declaration": "interface", "constructor_declaration": "method",
        "compact_constructor_declaration": "method",
    },
    naming=_java,
    through=frozenset({"ERROR", "enum_body_declarations"}),
    leads=frozenset({"line_comment", "block_comment"}),
    plain=Plain.CLASS,
    handed_on=False,
    packaged=True,
)  # fmt: skip

#: Suffix, lower case with its dot -> language.
LANGUAGES: Mapping[str, CodeLanguage] = {
    ".py": _PYTHON, ".pyi": _PYTHON,
    ".js": _JAVASCRIPT, ".jsx": _JAVASCRIPT, ".mjs": _JAVASCRIPT, ".cjs": _JAVASCRIPT,
    ".ts": _typescript("language_typescript"), ".mts": _typescript("language_typescript"),
    ".cts": _typescript("language_typescript"), ".tsx": _typescript("language_tsx", "jsx"),
    ".go": _GO, ".rs": _RUST, ".java": _JAVA,
}  # fmt: skip


def language_of(path: str) -> CodeLanguage:
    """The language of a file by its suffix.

    Raises: KeyError when none of LANGUAGES has it.
    """
    return LANGUAGES[PurePosixPath(path).suffix.lower()]
