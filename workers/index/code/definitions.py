"""Every definition of a file as lists show it, also those inside of functions, which have no chunk. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tree_sitter import Node

from shared.models.code import CodeDefinition
from workers.index.code.imports import Imports
from workers.index.code.languages import CONTAINERS, MEMBER, TYPES, CodeLanguage, named, text_of
from workers.index.code.names import MAX_NAME, NameParts
from workers.index.code.occurrences import Occurrences, UseKind

#: Names of one definition (its calls, bases, decorators), and scopes around it; more were written by a program.
_MAX_NAMES, _MAX_SCOPES = 256, 64
_MAX_SIGNATURE = 240
#: Of a longer signature or base class no more is read.
_MAX_TEXT = 2000
_FUNCTIONS = frozenset({"function", "method"})
_SIGNATURES = frozenset({
    "method_declaration", "method_signature", "abstract_method_signature", "method_elem", "function_signature_item",
})  # fmt: skip
#: Nodes between a class and the names of its bases.
_HERITAGE = frozenset({
    "argument_list", "class_heritage", "extends_clause", "implements_clause", "extends_type_clause", "superclass",
    "super_interfaces", "extends_interfaces", "type_list", "base_class_clause", "base_list", "base_clause",
    "class_interface_clause", "delegation_specifiers", "delegation_specifier",
})  # fmt: skip
_WITH_BASES = frozenset({
    "interface_declaration", "record_declaration", "enum_declaration", "struct_declaration", "struct_specifier",
    "object_declaration",
})  # fmt: skip
_NO_BASES = frozenset(
    {"keyword_argument", "comment", "type_arguments", "list_splat", "dictionary_splat", "access_specifier"}
)
_NAME_END = re.compile(r"[(\[<{=\s]")
_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//)[^\n]*")
_CALLED = re.compile(
    r"(?<![A-Za-z0-9_$])(?<![A-Za-z0-9_$]\.)(?<![A-Za-z0-9_$]::)[A-Za-z_$][\w$]*+(?:(?:\.|::)[A-Za-z_$][\w$]*+)*+$"
)
_HEAD_END = re.compile(r"(?<!\s)\s*+(?:(?:=>|[:{=])\s*+)?+$")
_TEST_NAME = re.compile(r"test(?:_|$|[A-Z0-9])", re.IGNORECASE)
_TEST_FILE = re.compile(r"^(?:test|tests|conftest)$|^test_|[_.](?:test|tests|spec)$|Tests?$")
_TEST_FOLDERS = frozenset({"test", "tests", "t", "__tests__"})
_TEST_MARKS = frozenset({"test", "Test", "rstest", "test_case", "ParameterizedTest", "Fact", "Theory", "TestMethod"})


@dataclass(frozen=True, slots=True)
class _Scope:
    """A definition around others: its name, whether it is a type, whether it stands in a function, where it ends."""

    names: NameParts
    is_type: bool
    in_function: bool
    end: int


def definitions_of(found: Occurrences, language: CodeLanguage, path: str) -> list[tuple[int, CodeDefinition]]:
    """(row, definition) in the order of the file. Overloads and definitions in branches are one each."""
    read = list(_in_scopes(found.definitions, language))
    decorators = _decorators(found.decorators)
    calls = _calls(found, [node for node, *_ in read])
    in_tests = _is_test_file(path)
    made = []
    for place, (node, kind, around, names) in enumerate(read):
        marks = tuple(decorators.get((node.start_byte, node.end_byte), ()))
        definition = CodeDefinition(
            kind=kind,
            name=".".join(names),
            line=node.start_point[0] + 1,
            signature=_signature(node),
            is_async=_is_async(node),
            test=kind in _FUNCTIONS and not around.in_function and _is_test(names, marks, in_tests=in_tests),
            decorators=_with_full(marks, found.imports),
            bases=_with_full(_bases(node), found.imports),
            calls=_with_full(calls.get(place, ()), found.imports),
        )
        made.append((node.start_point[0], definition))
    return made


def _in_scopes(nodes: Sequence[Node], language: CodeLanguage) -> Iterator[tuple[Node, str, _Scope, NameParts]]:
    """Each node that defines something, its kind, the scope around it, and its name within the module."""
    stack: list[_Scope] = []
    for node in sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)):
        while stack and stack[-1].end <= node.start_byte:
            stack.pop()
        if (naming := _naming(node, language)) is None or len(stack) >= _MAX_SCOPES:
            continue
        kind, own = naming
        around = stack[-1] if stack else _Scope((), is_type=False, in_function=False, end=0)
        kind = "method" if kind == "function" and around.is_type else kind
        names = tuple(name[:MAX_NAME] for name in (*around.names, *own))
        stack.append(_Scope(names, kind in TYPES, around.in_function or kind in _FUNCTIONS, node.end_byte))
        if kind not in CONTAINERS and kind != "object":
            yield node, kind, around, names


def _naming(node: Node, language: CodeLanguage) -> tuple[str, NameParts] | None:
    """The kind and the name of what a node defines; None where it has none, as a lambda that is an argument."""
    kind = language.kinds.get(node.type)
    naming = (kind, named(node)) if kind else language.custom(node)
    if naming is None or (not naming[1] and naming[0] not in CONTAINERS):
        return None
    if naming[0] == MEMBER:
        return ("method", naming[1]) if node.type in _SIGNATURES else None
    return naming


def _decorators(nodes: Sequence[Node]) -> Mapping[tuple[int, int], list[str]]:
    """Bytes of a definition -> the names of its decorators, annotations and attributes, in their order."""
    found: dict[tuple[int, int], list[str]] = {}
    for node in nodes:
        target = _decorated(node)
        name = _NAME_END.split(text_of(node)[:_MAX_TEXT].strip("@#[] \t"), maxsplit=1)[0].strip("[]").replace("::", ".")
        if target is not None and name:
            found.setdefault((target.start_byte, target.end_byte), []).append(name[:MAX_NAME])
    return found


def _decorated(decorator: Node) -> Node | None:
    """The definition that a decorator belongs to: below it, or around it."""
    around = decorator.parent
    if around is None:
        return None
    if around.type == "modifiers":
        return around.parent
    if decorator.type == "attribute_list":
        return around
    if around.type in {"decorated_definition", "export_statement"}:
        return around.child_by_field_name("definition") or around.child_by_field_name("declaration")
    if decorator.type == "decorator" and around.type != "class_body":
        return around
    below = decorator.next_named_sibling
    while below is not None and (below.type in {"decorator", "attribute_item"} or "comment" in below.type):
        below = below.next_named_sibling
    return below


def _bases(node: Node) -> tuple[str, ...]:
    """The names of base classes and interfaces, without their arguments."""
    if "class" not in node.type and node.type not in _WITH_BASES:
        return ()
    found: list[str] = []
    stack = [child for child in reversed(node.named_children) if child.type in _HERITAGE]
    while stack and len(found) < _MAX_NAMES:
        item = stack.pop()
        if item.type in _HERITAGE:
            stack += [child for child in reversed(item.named_children) if child.type not in _NO_BASES]
        elif name := _NAME_END.split(" ".join(text_of(item)[:_MAX_TEXT].split()), maxsplit=1)[0]:
            found.append(name[:MAX_NAME])
    return tuple(found)


def _calls(found: Occurrences, nodes: Sequence[Node]) -> Mapping[int, Mapping[str, None]]:
    """Place of a definition -> what is called on its rows that belong to no definition inside it."""
    owner: dict[int, int] = {}
    for place, node in enumerate(nodes):
        owner |= dict.fromkeys(range(node.start_point[0], node.end_point[0] + 1), place)
    calls: dict[int, dict[str, None]] = {}
    for use in found.uses:
        if use.kind is UseKind.CALL and use.row in owner and (called := _CALLED.search(use.text)):
            own = calls.setdefault(owner[use.row], {})
            if len(own) < _MAX_NAMES:
                own.setdefault(called[0].replace("::", ".")[-MAX_NAME:])
    return calls


def _signature(node: Node) -> str:
    """The head of a definition, without its body, on one line."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right") or node
    body = value.child_by_field_name("body") or node.child_by_field_name("body")
    end = body.start_byte - node.start_byte if body is not None else _MAX_TEXT
    head = (node.text or b"")[: min(end, _MAX_TEXT)].decode("utf-8", "ignore")
    if body is None:
        head = head.partition("\n")[0]
    line = _HEAD_END.sub("", " ".join(_COMMENT.sub("", head).split()))
    return line if len(line) <= _MAX_SIGNATURE else f"{line[: _MAX_SIGNATURE - 1]}…"


def _is_async(node: Node) -> bool:
    nodes = (node, *(child for name in ("value", "right") if (child := node.child_by_field_name(name))))
    children = [child for each in nodes for child in each.children]
    children += [
        inner for child in children if child.type in {"function_modifiers", "modifier"} for inner in child.children
    ]
    return any(child.type == "async" for child in children)


def _with_full(names: Iterable[str], imports: Imports) -> tuple[str, ...]:
    """The names, and behind them in full those whose head an import of the file explains otherwise."""
    found = dict.fromkeys(name for name in names if name)
    for name in tuple(found):
        head, dot, rest = name.partition(".")
        if full := imports.names.get(head):
            found.setdefault(".".join(full) + dot + rest)
    return tuple(found)


def _is_test(names: NameParts, decorators: Sequence[str], *, in_tests: bool) -> bool:
    """True for a function that a test runner collects, by its name in a file of tests or by a mark of its own."""
    if any(name.rpartition(".")[2] in _TEST_MARKS for name in decorators):
        return True
    collected = in_tests or any(part.startswith("Test") for part in names[:-1])
    return collected and _TEST_NAME.match(names[-1]) is not None


def _is_test_file(path: str) -> bool:
    place = PurePosixPath(path)
    return _TEST_FILE.search(place.stem) is not None or not _TEST_FOLDERS.isdisjoint(place.parts[:-1])
