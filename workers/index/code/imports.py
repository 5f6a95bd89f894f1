"""What a file imports: local names and the qualified names they stand for. One reader a language; pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from workers.index.code.languages import text_of
from workers.index.code.names import NameParts, crate, crate_root, path_parts

#: Longer import statements are cut: nobody wrote them by hand.
_MAX_TEXT = 20_000
_QUOTED = re.compile(r"""["'`]([^"'`\n]{1,500})["'`]""")
_ALIASES = re.compile(r"^[@~#]/")
_SCRIPT = re.compile(r"\.(d\.ts|tsx?|mts|cts|jsx?|mjs|cjs|json)$")
_VERSION = re.compile(r"v\d+")
_THREE_PART_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org"})
_WORD = re.compile(r"[\w$]+")


@dataclass(slots=True)
class Imports:
    """`names`: local name -> qualified name. `stars`: modules of which everything is taken. `all`: (row, name).

    `written`: (row, what is imported as the file writes it, with dots); what is relative begins with a dot, behind
    which it is put in full.
    """

    names: dict[str, NameParts] = field(default_factory=dict)
    stars: list[NameParts] = field(default_factory=list)
    all: list[tuple[int, NameParts]] = field(default_factory=list)
    written: list[tuple[int, str]] = field(default_factory=list)
    package: NameParts = ()

    def add(self, row: int, local: str, name: NameParts) -> None:
        self.names[local] = name
        self.all.append((row, name))


def _python(node: Node, path: str, into: Imports) -> None:
    row = node.start_point[0]
    source = node.child_by_field_name("module_name")
    module = _python_module(text_of(source), path) if source is not None else ()
    relative = "." if text_of(source).startswith(".") else ""
    if any(child.type == "wildcard_import" for child in node.named_children):
        into.written.append((row, relative + ".".join(module)))
        into.stars.append(module)
        into.all.append((row, module))
    for item in node.children_by_field_name("name"):
        alias = text_of(item.child_by_field_name("alias"))
        name = tuple(text_of(item.child_by_field_name("name") if alias else item).replace(" ", "").split("."))
        line = item.start_point[0]
        into.written.append((line, relative + ".".join((*module, *name))))
        if source is not None:
            into.add(line, alias or name[-1], (*module, *name))
        elif alias:
            into.add(line, alias, name)
        else:
            into.names.setdefault(name[0], name[:1])
            into.all.append((line, name))


def _python_module(text: str, path: str) -> NameParts:
    dotted = text.replace(" ", "")
    bare = dotted.lstrip(".")
    level = len(dotted) - len(bare)
    parts = tuple(bare.split(".")) if bare else ()
    return (*path_parts(path)[: max(len(path_parts(path)) - level, 0)], *parts) if level else parts


def _script(node: Node, path: str, into: Imports) -> None:
    row = node.start_point[0]
    text = text_of(node)[:_MAX_TEXT]
    quoted = _QUOTED.findall(text)
    if not quoted:
        return
    module = _script_module(quoted[-1], path)
    into.written.append((row, "." + ".".join(module) if quoted[-1].startswith(".") else quoted[-1]))
    if node.type == "variable_declarator":
        _required(node, row, module, into)
        return
    before = len(into.all)
    for item in _descendants(node):
        name = text_of(item.child_by_field_name("name"))
        alias = text_of(item.child_by_field_name("alias"))
        if item.type == "import_specifier":
            into.add(row, alias or name, (*module, name))
        elif item.type == "export_specifier":
            into.all.append((row, (*module, name)))
        elif item.type == "namespace_import":
            into.names[text_of(item.named_children[0])] = module
        elif item.type == "import_clause" and item.named_children[:1] and item.named_children[0].type == "identifier":
            into.add(row, text_of(item.named_children[0]), (*module, "default"))
    if len(into.all) == before:
        into.all.append((row, module))


def _required(node: Node, row: int, module: NameParts, into: Imports) -> None:
    """`const m = require("./m")`, `const {a, b: c} = require("./m")`, `const f = require("./m").f`."""
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if target is None or value is None:
        return
    taken = text_of(value.child_by_field_name("property"))
    if target.type == "identifier":
        into.add(row, text_of(target), (*module, taken) if taken else module)
    for item in target.named_children if target.type == "object_pattern" else []:
        names = _WORD.findall(text_of(item).partition("=")[0])
        if names:
            into.add(row, names[-1], (*module, names[0]))


def _script_module(source: str, path: str) -> NameParts:
    relative = source.startswith(".")
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), source)) if relative else source
    clean = _SCRIPT.sub("", _ALIASES.sub("", joined)).removeprefix("@").removeprefix("node:")
    parts = path_parts(clean)
    return parts[:-1] if len(parts) > 1 and parts[-1] == "index" else parts


def _go(node: Node, _path: str, into: Imports) -> None:
    parts = text_of(node.child_by_field_name("path")).strip('"`').split("/")
    into.written.append((node.start_point[0], "/".join(parts)))
    parts = [part for place, part in enumerate(parts) if part and not (place and _VERSION.fullmatch(part))]
    if not parts:
        return
    # The path of the package's folder follows the module's own path, which no file of it names.
    inside = parts[3:] if parts[0] in _THREE_PART_HOSTS else parts[2:] if "." in parts[0] else parts[1:]
    name = tuple(part.replace(".", "_") for part in (inside[-2:] or parts[-1:]))
    name = (parts[0], *name) if "." not in parts[0] and parts[0] != name[0] and len(name) == 1 else name
    alias = text_of(node.child_by_field_name("name"))
    into.names[alias or parts[-1].partition(".")[0].removeprefix("go-")] = name
    if alias == ".":
        into.stars.append(name)


def _rust(node: Node, path: str, into: Imports) -> None:
    if node.type == "mod_item":
        name = text_of(node.child_by_field_name("name"))
        into.names.setdefault(name, (*crate(path), name))
        return
    stack: list[tuple[Node, NameParts]] = [(item, ()) for item in node.children_by_field_name("argument")]
    while stack:
        stack += _use_item(*stack.pop(), path, into)


def _use_item(item: Node, before: NameParts, path: str, into: Imports) -> list[tuple[Node, NameParts]]:
    """Take one item of a `use` tree; the items inside it, each with its prefix."""
    row = item.start_point[0]
    if item.type not in {"scoped_use_list", "use_list"}:
        inner = item.child_by_field_name("path") if item.type == "use_as_clause" else item
        into.written.append((row, ".".join((*before, *_segments(inner)))))
    if item.type == "scoped_use_list":
        inner = item.child_by_field_name("list")
        prefix = (*before, *_segments(item.child_by_field_name("path")))
        return [(child, prefix) for child in inner.named_children] if inner is not None else []
    if item.type == "use_list":
        return [(child, before) for child in item.named_children]
    if item.type == "use_wildcard":
        full = (*before, *_segments(item.named_children[0] if item.named_children else None))
        into.stars.append(rust_name(full, path))
    elif item.type == "use_as_clause":
        full = (*before, *_segments(item.child_by_field_name("path")))
        into.add(row, text_of(item.child_by_field_name("alias")), rust_name(full, path))
    elif item.type in {"identifier", "scoped_identifier", "self", "crate", "super"}:
        full = (*before, *_segments(item))
        full = full[:-1] if full[-1:] == ("self",) and len(full) > 1 else full
        into.add(row, full[-1], rust_name(full, path))
    return []


def _segments(node: Node | None) -> NameParts:
    return tuple(_WORD.findall(text_of(node)[:_MAX_TEXT]))


def rust_name(name: NameParts, path: str) -> NameParts:
    """A path with `crate`, `self` and `super` at its head put in."""
    here = crate(path)
    if name[:1] == ("crate",):
        return (*(part.replace("-", "_") for part in crate_root(path)), *name[1:])
    if name[:1] == ("self",):
        return (*here, *name[1:])
    while name[:1] == ("super",):
        here, name = here[:-1], name[1:]
        if name[:1] != ("super",):
            return (*here, *name)
    return name


def _java(node: Node, _path: str, into: Imports) -> None:
    text = text_of(node)[:_MAX_TEXT]
    name = tuple(word for word in _WORD.findall(text) if word not in {"import", "static", "package"})
    if node.type == "package_declaration":
        into.package = name
        return
    into.written.append((node.start_point[0], ".".join(name)))
    if "*" in text:
        into.stars.append(name)
    elif name:
        into.add(node.start_point[0], name[-1], name)


def _c(node: Node, path: str, into: Imports) -> None:
    written = text_of(node.child_by_field_name("path"))[:_MAX_TEXT]
    name = written.strip('<>" \t')
    if name:
        into.written.append((node.start_point[0], name))
        beside = written.startswith('"') and "/" not in name
        _file(node, posixpath.join(posixpath.dirname(path), name) if beside else name, into)


def _file(node: Node, path: str, into: Imports) -> None:
    """A file of the program that is taken in whole."""
    if parts := tuple(part for part in path_parts(posixpath.normpath(path)) if part != ".."):
        into.all.append((node.start_point[0], parts))


def _sharp(node: Node, _path: str, into: Imports) -> None:
    words = _WORD.findall(text_of(node)[:_MAX_TEXT].partition("{")[0])
    name = tuple(word for word in words if word not in {"global", "using", "static", "namespace", "unsafe"})
    if node.type.endswith("namespace_declaration"):
        into.package = into.package or name
        return
    alias = node.child_by_field_name("name")
    name = name[1:] if alias is not None else name
    if not name:
        return
    into.written.append((node.start_point[0], ".".join(name)))
    if alias is not None:
        into.add(node.start_point[0], text_of(alias), name)
    else:
        into.stars.append(name)


def _kotlin(node: Node, _path: str, into: Imports) -> None:
    text = text_of(node)[:_MAX_TEXT].partition("\n")[0]
    head, _, alias = text.partition(" as ")
    name = tuple(_WORD.findall(head))[1:]
    if node.type == "package_header":
        into.package = name
    elif name:
        into.written.append((node.start_point[0], ".".join(name)))
        if "*" in head:
            into.stars.append(name)
        else:
            into.add(node.start_point[0], alias.strip() or name[-1], name)


def _ruby(node: Node, path: str, into: Imports) -> None:
    quoted = _QUOTED.findall(text_of(node)[:_MAX_TEXT])
    if not quoted:
        return
    beside = text_of(node.child_by_field_name("method")) == "require_relative"
    into.written.append((node.start_point[0], quoted[0]))
    _file(node, posixpath.join(posixpath.dirname(path), quoted[0]) if beside else quoted[0], into)


def _php(node: Node, path: str, into: Imports) -> None:
    row, text = node.start_point[0], text_of(node)[:_MAX_TEXT]
    if node.type == "namespace_definition":
        into.package = into.package or tuple(_WORD.findall(text_of(node.child_by_field_name("name"))))
        return
    if node.type != "namespace_use_declaration":
        for quoted in _QUOTED.findall(text)[:1]:
            into.written.append((row, quoted))
            _file(node, posixpath.join(posixpath.dirname(path), quoted.lstrip("/")), into)
        return
    head, grouped, inside = text.partition("{")
    prefix = _php_name(head) if grouped else ()
    for item in (inside.partition("}")[0] if grouped else head).split(","):
        written, _, alias = item.partition(" as ")
        if name := (*prefix, *_php_name(written)):
            into.written.append((row, ".".join(name)))
            into.add(row, next(iter(_WORD.findall(alias)), name[-1]), name)


def _php_name(text: str) -> NameParts:
    return tuple(word for word in _WORD.findall(text) if word not in {"use", "function", "const"})


def _shell(node: Node, path: str, into: Imports) -> None:
    written = text_of(node.child_by_field_name("argument"))[:_MAX_TEXT].strip("\"'")
    if written:
        into.written.append((node.start_point[0], written))
        plain = posixpath.join(*(part for part in written.split("/") if part and "$" not in part), "")
        _file(node, posixpath.join(posixpath.dirname(path), plain.rstrip("/")), into)


def _nothing(_node: Node, _path: str, _into: Imports) -> None:
    """A language whose files do not take in each other."""


def _descendants(node: Node) -> Iterator[Node]:
    stack = list(node.named_children)
    while stack:
        item = stack.pop()
        yield item
        stack += item.named_children


READERS: Mapping[str, Callable[[Node, str, Imports], None]] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
    "cpp": _c,
    "csharp": _sharp,
    "kotlin": _kotlin,
    "ruby": _ruby,
    "php": _php,
    "shell": _shell,
    "sql": _nothing,
}
