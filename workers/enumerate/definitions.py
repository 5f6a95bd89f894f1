"""The rows of a list of definitions, or of files by what they define and import, off the metadata of code. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from shared.language.text import plain
from shared.models.code import CodeAspect, CodeCondition, CodeDefinition, CodeScan
from shared.models.enumeration import MAX_SENTENCE, ListRow, Scan
from shared.uri import SCHEME, quoted
from workers.enumerate.document import ListedDocument

#: Payload fields that are read of a first chunk, and of those behind it.
FIRST_OF_CODE = ("doc_id", "path", "title", "date", "tags", "kind", "namespace", "ordinal", "definitions", "imports")
FURTHER_OF_CODE = ("doc_id", "ordinal", "definitions", "imports")
#: Kinds that are asked for by another one's name.
_ALSO = {"function": ("method",), "class": ("record",)}
_PACKAGE_FILES = frozenset({"__init__", "index", "mod", "lib"})
_BY_FOLDER = frozenset({".go", ".java", ".cs", ".kt", ".kts", ".php"})
_OF_FILES = frozenset({CodeAspect.IMPORT, CodeAspect.MODULE, CodeAspect.FILE})
_PARTS = re.compile(r"[./:]+")


class CodeLister:
    """Says what of a file belongs to a list. `unparsed` counts files of which it is not known what they define."""

    def __init__(self, scan: Scan, code: CodeScan) -> None:
        self._files, self._lacking = code.rows == "files", code.lacking
        self._tests = "test" in code.kinds
        self._kinds = frozenset(kind for name in code.kinds for kind in (name, *_ALSO.get(name, ())))
        self._of_files = [one for one in code.conditions if one.aspect in _OF_FILES]
        self._of_definitions = [one for one in code.conditions if one.aspect not in _OF_FILES]
        self._asks_definitions = bool(code.kinds or self._of_definitions)
        self._words = [plain(word) for condition in scan.ranking for word in condition.words]
        self.unparsed = 0

    def rows(self, document: ListedDocument) -> list[ListRow]:
        """The file's rows, in the order of its lines."""
        chunks = document.payloads
        if any(chunk.get("definitions") is None for chunk in chunks):
            self.unparsed += 1
            return []
        imports = [str(name) for chunk in chunks for name in chunk.get("imports") or ()]
        path = str(document.first["path"])
        if not all(_file_meets(condition, path, imports) for condition in self._of_files):
            return []
        stored = (CodeDefinition.model_validate(one) for chunk in chunks for one in chunk["definitions"])
        fitting = [one for one in sorted(stored, key=lambda one: one.line) if self._fits(one)]
        if not self._files:
            return [self._row(document, one, number) for number, one in enumerate(fitting, 1)]
        if self._asks_definitions and bool(fitting) == self._lacking:
            return []
        said = fitting[0].signature if self._asks_definitions and fitting else self._import_line(imports)
        return [self._row(document, None, 0, said)]

    def _fits(self, definition: CodeDefinition) -> bool:
        if self._kinds and definition.kind not in self._kinds and not (self._tests and definition.test):
            return False
        return all(_meets(condition, definition) for condition in self._of_definitions)

    def _import_line(self, imports: Sequence[str]) -> str:
        asked = [one for one in self._of_files if one.aspect is CodeAspect.IMPORT and not one.negated]
        return next((name for one in asked for name in imports if _imported(one.values, name)), "")

    def _row(self, document: ListedDocument, one: CodeDefinition | None, number: int, said: str = "") -> ListRow:
        first, path = document.first, str(document.first["path"])
        name = one.name if one else document.title
        place = f"{first['doc_id']}:{number}"
        said = one.signature if one else said
        return ListRow(
            doc_id=str(first["doc_id"]),
            title=name,
            path=path,
            uri=f"{SCHEME}{first.get('namespace') or 'default'}/{quoted(path)}",
            date=first.get("date"),
            tags=tuple(first.get("tags") or ()),
            kind=("test" if one.test and self._tests else one.kind) if one else str(first.get("kind") or ""),
            sentence=said if len(said) <= MAX_SENTENCE else f"{said[: MAX_SENTENCE - 1]}…",
            digest=hashlib.blake2b(place.encode(), digest_size=12).hexdigest(),
            near=sum(word in plain(f"{name} {said}") for word in self._words),
            symbol=".".join((*_module(path), name)) if one else "",
            line=one.line if one else None,
            number=number,
        )


def _meets(condition: CodeCondition, one: CodeDefinition) -> bool:
    return _holds(condition, one) != condition.negated


def _holds(condition: CodeCondition, one: CodeDefinition) -> bool:
    values = condition.values
    if condition.aspect is CodeAspect.ASYNC:
        return one.is_async
    if condition.aspect is CodeAspect.NAME:
        return any(_pattern(value)(one.name if "." in value else one.name.rpartition(".")[2]) for value in values)
    if condition.aspect is CodeAspect.OWNER:
        around = one.name.split(".")[:-1]
        return any(_ends_with(around, value) for value in values)
    names = {CodeAspect.DECORATOR: one.decorators, CodeAspect.BASE: one.bases, CodeAspect.CALL: one.calls}
    found = names[condition.aspect]
    if not values:
        return bool(found)
    return any(_named(value, name, condition.aspect) for value in values for name in found)


def _named(value: str, name: str, aspect: CodeAspect) -> bool:
    """True when what was asked for is the whole name or its last part; of what is called, its last parts."""
    if "." not in value:
        return _same(value, name.rpartition(".")[2], folded=aspect is CodeAspect.BASE)
    return name == value or (aspect is CodeAspect.CALL and name.endswith(f".{value}"))


def _same(value: str, name: str, *, folded: bool) -> bool:
    """Equal; in any case of letters where `folded` and nothing of `value` is a capital."""
    return name == value or (folded and value == value.lower() and name.lower() == value)


def _pattern(value: str) -> Callable[[str], bool]:
    flags = re.IGNORECASE if value == value.lower() else re.NOFLAG
    found = re.compile(re.escape(value).replace(r"\*", ".*"), flags)
    return lambda name: found.fullmatch(name) is not None


def _ends_with(parts: Sequence[str], value: str) -> bool:
    wanted = value.split(".")
    return len(parts) >= len(wanted) and all(
        _same(asked, own, folded=value == value.lower())
        for asked, own in zip(wanted, parts[-len(wanted) :], strict=True)
    )


def _file_meets(condition: CodeCondition, path: str, imports: Iterable[str]) -> bool:
    return _file_holds(condition, path, imports) != condition.negated


def _file_holds(condition: CodeCondition, path: str, imports: Iterable[str]) -> bool:
    if condition.aspect is CodeAspect.IMPORT:
        return any(_imported(condition.values, name) for name in imports)
    if condition.aspect is CodeAspect.FILE:
        return any(path == value or path.endswith(f"/{value}") for value in condition.values)
    return any(_in_module(value, path) for value in condition.values)


def _imported(values: Sequence[str], name: str) -> bool:
    """True when a module, or something in it, is what was asked for: "asyncio" is in "asyncio.events.Handle".

    A name with capitals or a "_" may also be what is taken out of a module. What is imported by a relative name counts
    where at least a package of it is named.
    """
    parts = [part for part in _PARTS.split(name) if part]
    for value in values:
        wanted = [part for part in _PARTS.split(value) if part]
        size = len(wanted)
        if not name.startswith(".") and parts[:size] == wanted:
            return True
        inside = size > 1 or value != value.lower() or "_" in value or "/" in value
        if inside and any(parts[at : at + size] == wanted for at in range(len(parts) - size + 1)):
            return True
    return False


def _in_module(value: str, path: str) -> bool:
    """True for the file of a module, or, where `value` ends with ".*", for all files of a package."""
    parts = _module(path)
    if value.endswith(".*"):
        wanted = tuple(value[:-2].split("."))
        return any(parts[at : at + len(wanted)] == wanted for at in range(len(parts) - len(wanted) + 1))
    wanted = tuple(value.split("."))
    folder = parts[:-1] if PurePosixPath(path).suffix in _BY_FOLDER else parts
    return wanted in {parts[-len(wanted) :], folder[-len(wanted) :]}


def _module(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).with_suffix("").parts
    return parts[:-1] if len(parts) > 1 and parts[-1] in _PACKAGE_FILES else parts
