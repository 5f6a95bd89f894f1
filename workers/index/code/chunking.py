"""A code document as chunks: a definition each, named, with its edges by key. Never loses a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from tree_sitter import Node

from shared.language.page_keys import page_keys
from shared.models import Chunk
from shared.models.code import CodeDefinition
from shared.models.hits import PagePart
from shared.settings.sections import ChunkingSettings
from workers.index.blocks import SourceLines, cut_anywhere, join_neighbours, width
from workers.index.code.definitions import definitions_of
from workers.index.code.languages import CONTAINERS, language_of
from workers.index.code.names import NameParts, key, keys_of
from workers.index.code.occurrences import Occurrences, occurrences, parse
from workers.index.code.outline import Definition, SourceFile, outline
from workers.index.code.resolve import Resolver
from workers.index.documents import Document
from workers.index.metadata import kind_of
from workers.index.offsets import Span

#: Edges out of one chunk, the most specific first; a chunk with more is a list of names.
MAX_REFS = 64
#: Keys of one chunk: a module's constants have one chunk for them all.
MAX_DEFINES = 512
#: Longest name of what a file imports, in characters.
_MAX_IMPORT = 200
_NOT_PARSED = "not parsed: it took too long"
#: A container (class, impl, namespace) with no more lines of its own (its head and its brace) gets no chunk.
_CONTAINER_LINES = 4
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class CodePiece:
    """Lines of one definition; `first` is True for its first piece, `rows` are those that no piece before has."""

    definition: int
    text: str
    spans: tuple[Span, ...]
    rows: tuple[int, ...]
    first: bool


def chunk_code(document: Document, sizes: ChunkingSettings) -> list[Chunk]:
    """Chunks in the order of the file: the module's own lines, then each definition with its comment and decorators.

    `symbol` is the qualified name, `heading` says what it is, `defines` and `refs` are the keys that edges join by. A
    definition wider than `max_chars` is several chunks of one symbol. What does not parse stays with the lines around
    it; a file that takes longer than the parser's deadline is cut as plain lines, and its headings say so.
    """
    language = language_of(document.path)
    source = document.text.encode()
    lines = document.text.split("\n")
    tree = parse(source, language.grammar)
    if tree is None:
        whole = Definition("file", (), 0, 0, len(lines) - 1, 0, None, _NOT_PARSED)
        unparsed = SourceFile(document.path, language, language.module(document.path), [whole], [0] * len(lines))
        return _chunks(document, unparsed, {}, None, sizes)
    definitions = outline(tree.root_node, language, len(lines))
    found = occurrences(tree.root_node, source, language, document.path)
    module = found.imports.package or language.module(document.path)
    owner = row_owners(definitions, len(lines))
    file = SourceFile(document.path, language, module, definitions, owner, found.default)
    used = Resolver(file, found).names_by_row()
    return _chunks(document, file, used, found if found.read else None, sizes)


def _chunks(
    document: Document,
    file: SourceFile,
    used: Mapping[int, list[NameParts]],
    found: Occurrences | None,
    sizes: ChunkingSettings,
) -> list[Chunk]:
    kind = kind_of(document.kind, document.path, sizes.kinds)
    pieces = _pieces(file, SourceLines(document.text), sizes)
    listed = _listed(pieces, found, file)
    chunks = []
    for ordinal, (piece, defines) in enumerate(zip(pieces, _defined(file, pieces), strict=True)):
        # Like a page, a file is found by its path and title: links to it lead to its first chunk.
        page = page_keys(document.title, document.path) if ordinal == 0 else ()
        chunks.append(
            document.chunk(
                ordinal,
                piece.text,
                piece.spans,
                heading=_heading(file.definitions, piece.definition),
                kind=kind,
                part=PagePart.CODE,
                symbol=".".join((*file.module, *file.definitions[piece.definition].names)),
                defines=(*page, *defines),
                refs=_refs(piece, used, defines),
                **listed[ordinal],
            )
        )
    return chunks


def _listed(pieces: Sequence[CodePiece], found: Occurrences | None, file: SourceFile) -> list[dict[str, Any]]:
    """For each piece the definitions and imports that begin on its rows; nothing of a file that was not read."""
    if found is None:
        return [{}] * len(pieces)
    piece_of = {row: place for place, piece in enumerate(pieces) for row in piece.rows}
    definitions: list[list[CodeDefinition]] = [[] for _ in pieces]
    imports: list[dict[str, None]] = [{} for _ in pieces]
    for row, definition in definitions_of(found, file.language, file.path):
        definitions[piece_of[row]].append(definition)
    for row, name in found.imports.written:
        imports[piece_of[row]].setdefault(name[:_MAX_IMPORT])
    return [
        {"definitions": tuple(own), "imports": tuple(names)} for own, names in zip(definitions, imports, strict=True)
    ]


def _defined(file: SourceFile, pieces: Sequence[CodePiece]) -> list[tuple[str, ...]]:
    """The keys of each piece: of its definition if it is the first, and of what else begins on its rows."""
    piece_of = {row: place for place, piece in enumerate(pieces) for row in piece.rows}
    firsts = {piece.definition: place for place, piece in enumerate(pieces) if piece.first}
    names: list[list[NameParts]] = [[] for _ in pieces]
    for index, item in enumerate(file.definitions):
        place = firsts.get(index, piece_of.get(item.head))
        if place is not None and item.kind not in CONTAINERS and (index or not file.language.packaged):
            names[place].append(item.names)
        for row, member in item.members:
            if row in piece_of:
                names[piece_of[row]].append(member)
    return [_distinct((each for name in own for each in _keys(file, name)), MAX_DEFINES) for own in names]


def _keys(file: SourceFile, name: NameParts) -> list[str]:
    keys = keys_of(file.module, name, file.language.reexports and name[:1] != ("default",))
    exported = name[:1] == (file.default,)
    return keys + (keys_of(file.module, ("default", *name[1:]), reexported=False) if exported else [])


def _refs(piece: CodePiece, used: Mapping[int, list[NameParts]], defines: Sequence[str]) -> tuple[str, ...]:
    own = set(defines)
    names = sorted((name for row in piece.rows for name in used.get(row, ())), key=lambda name: -len(name))
    return _distinct((each for name in names if (each := key(name)) and each not in own), MAX_REFS)


def _distinct(keys: Iterable[str], limit: int) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(keys), limit))


def _heading(definitions: Sequence[Definition], index: int) -> str:
    """Such as class Store > method open; of the module itself nothing, unless it could not be parsed."""
    labels = [definitions[index].label]
    while index:
        index = definitions[index].parent
        labels.append(definitions[index].label)
    return " > ".join(label for label in reversed(labels) if label)


def row_owners(definitions: Sequence[Definition], rows: int) -> list[int]:
    """For each row the innermost definition that it belongs to.

    Rows shared with a neighbour or the parent's first line belong to that one (`function a() {} function b() {}`).
    """
    owner = [0] * rows
    target_of = list(range(len(definitions)))
    for index, item in enumerate(definitions[1:], start=1):
        parent = target_of[item.parent]
        target = index
        if owner[item.first] != parent or (parent and item.first <= definitions[parent].head):
            target = owner[item.first]
        target_of[index] = target
        for row in range(item.first, min(item.last + 1, rows)):
            if owner[row] in (parent, target):
                owner[row] = target
    return owner


def _pieces(file: SourceFile, lines: SourceLines, sizes: ChunkingSettings) -> list[CodePiece]:
    """All lines with text, in the order of the file, a definition's pieces one after the other."""
    rows: dict[int, list[int]] = {}
    for row, index in enumerate(_merged_owners(file.definitions, file.owner, lines)):
        rows.setdefault(index, []).append(row)
    found = []
    for index, own in sorted(rows.items(), key=lambda item: item[1][0]):
        groups = [own]
        if sum(width(lines[row]) + 1 for row in own) > sizes.max_chars:
            groups = _grouped(own, _cuts(file.definitions[index], own, sizes), lines, sizes)
        first = True
        for group in groups:
            for count, (text, spans) in enumerate(_texts(group, lines, sizes.max_chars)):
                found.append(CodePiece(index, text, spans, () if count else tuple(group), first))
                first = False
    return found


def _merged_owners(definitions: Sequence[Definition], owner: Sequence[int], lines: Sequence[str]) -> list[int]:
    """`owner` with lone brackets and the heads of containers given to the definition beside them."""
    merged = list(owner)
    runs = _runs(range(len(merged)), lambda row: owner[row] == owner[row - 1])
    own_lines = Counter(index for row, index in enumerate(merged) if lines[row].strip())
    for place, run in enumerate(runs):
        index = merged[run[0]]
        container = definitions[index].kind in CONTAINERS and own_lines[index] <= _CONTAINER_LINES
        if not container and any(_WORD.search(lines[row]) for row in run):
            continue
        before = merged[runs[place - 1][0]] if place else None
        after = owner[runs[place + 1][0]] if place + 1 < len(runs) else None
        opens = run[0] <= definitions[index].head and after is not None and definitions[after].parent == index
        target = after if opens or before is None else before
        if target is not None and any(lines[row].strip() for row in run):
            merged[run[0] : run[-1] + 1] = [target] * len(run)
    return merged


def _runs(rows: Iterable[int], joins: Callable[[int], bool] = lambda _: True) -> list[list[int]]:
    """Rows that follow each other in lists; a row for which `joins` is False begins a list."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1 and joins(row):
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _cuts(item: Definition, own: Sequence[int], sizes: ChunkingSettings) -> set[int]:
    """Rows before which a statement begins: the outermost, and those within a statement that is too wide itself."""
    mine, found = set(own), set()
    stack: list[Node] = [item.node] if item.node else []
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


def _grouped(own: Sequence[int], cuts: set[int], lines: Sequence[str], sizes: ChunkingSettings) -> list[list[int]]:
    """Rows in groups of about `target_chars`, parted at `cuts`; between cuts more than `max_chars` apart, anywhere."""

    def wide(rows: Sequence[int]) -> int:
        return sum(width(lines[row]) + 1 for row in rows)

    parts: list[tuple[list[int], int]] = []
    for statement in _runs(own, lambda row: row not in cuts):
        if wide(statement) <= sizes.max_chars:
            parts.append((statement, sizes.target_chars))
        else:
            parts += [([row], sizes.max_chars) for row in statement]
    groups = join_neighbours(parts, lambda part: wide(part[0]), lambda part, _, total: total <= part[1])
    return [[row for rows, _ in group for row in rows] for group in groups]


def _texts(rows: Sequence[int], lines: SourceLines, limit: int) -> list[tuple[str, tuple[Span, ...]]]:
    """The rows as text, an empty line where others stood between; a single line wider than `limit` in several.

    Each with where it stands in the file.
    """
    texts, spans, at = list[str](), list[Span](), 0
    for run in _runs(rows):
        whole = "\n".join(lines[row] for row in run)
        text = whole.lstrip("\n")
        start = lines.starts[run[0]] + len(whole) - len(text)
        if text := text.rstrip():
            texts.append(text)
            spans.append(Span(at, start, len(text)))
            at += len(text) + 2
    text = "\n\n".join(texts)
    if width(text) <= limit or len(rows) > 1:
        return [(text, tuple(spans))] if text else []
    parts = cut_anywhere(text, limit)
    starts = accumulate(map(len, parts), initial=spans[0].start)
    return [(part, (Span(0, start, len(part)),)) for part, start in zip(parts, starts, strict=False) if part.strip()]
