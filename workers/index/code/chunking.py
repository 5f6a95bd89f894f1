"""A code document as chunks: a definition each, named, with its edges by key."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tree_sitter import Node

from shared.models import Chunk
from shared.models.hits import PagePart
from shared.settings.sections import ChunkingSettings
from shared.store.page_keys import page_keys
from workers.index.blocks import width
from workers.index.code import occurrences as grammar
from workers.index.code.languages import HOLDERS, CodeLanguage, language_of
from workers.index.code.names import Name, key, keys_of
from workers.index.code.occurrences import occurrences
from workers.index.code.outline import Definition, SourceFile, outline
from workers.index.code.resolve import Resolver
from workers.index.code.scopes import Scopes
from workers.index.documents import Document, chunk_id
from workers.index.metadata import kind_of

# --- Gives every line of a file to one definition and cuts what is too wide at statement bounds. Never loses a
# line.

#: A holder with no more lines of its own (its head and its brace) gets no chunk.
_HOLDER_LINES = 4
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class CodePiece:
    """Lines of one definition; `first` is True for its first piece, `rows` are those that no piece before has."""

    definition: int
    text: str
    rows: tuple[int, ...]
    first: bool


def owners(definitions: Sequence[Definition], rows: int) -> list[int]:
    """For each row the innermost definition that it belongs to.

    A definition that begins on a row of its neighbour or on its parent's first row has no rows of its own there: they
    stay with that one (`function a() {} function b() {}`).
    """
    owner = [0] * rows
    home = list(range(len(definitions)))
    for index, item in enumerate(definitions[1:], start=1):
        parent = home[item.parent]
        target = index
        if owner[item.first] != parent or (parent and item.first <= definitions[parent].head):
            target = owner[item.first]
        home[index] = target
        for row in range(item.first, min(item.last + 1, rows)):
            if owner[row] in (parent, target):
                owner[row] = target
    return owner


def pieces(
    definitions: Sequence[Definition], owner: Sequence[int], lines: Sequence[str], sizes: ChunkingSettings
) -> list[CodePiece]:
    """All lines with text, in the order of the file; a definition's pieces stand together."""
    homes = _folded(definitions, owner, lines)
    rows: dict[int, list[int]] = {}
    for row, index in enumerate(homes):
        rows.setdefault(index, []).append(row)
    found = []
    for index, own in sorted(rows.items(), key=lambda item: item[1][0]):
        groups = [own]
        if sum(width(lines[row]) + 1 for row in own) > sizes.max_chars:
            groups = _grouped(own, _cuts(definitions[index], own, sizes), lines, sizes)
        first = True
        for group in groups:
            for count, text in enumerate(_texts(group, lines, sizes.max_chars)):
                found.append(CodePiece(index, text, () if count else tuple(group), first))
                first = False
    return found


def _folded(definitions: Sequence[Definition], owner: Sequence[int], lines: Sequence[str]) -> list[int]:
    """`owner` with lone brackets and the heads of holders given to the definition beside them."""
    homes = list(owner)
    runs = _runs(range(len(homes)), homes)
    own_lines: dict[int, int] = {}
    for row, index in enumerate(homes):
        own_lines[index] = own_lines.get(index, 0) + bool(lines[row].strip())
    for place, run in enumerate(runs):
        index = homes[run[0]]
        holder = definitions[index].kind in HOLDERS and own_lines[index] <= _HOLDER_LINES
        if not holder and any(_WORD.search(lines[row]) for row in run):
            continue
        before = homes[runs[place - 1][0]] if place else None
        after = owner[runs[place + 1][0]] if place + 1 < len(runs) else None
        opens = run[0] <= definitions[index].head and after is not None and definitions[after].parent == index
        target = after if opens or before is None else before
        if target is not None and any(lines[row].strip() for row in run):
            homes[run[0] : run[-1] + 1] = [target] * len(run)
    return homes


def _runs(rows: Iterable[int], key: Sequence[int] | None = None) -> list[list[int]]:
    """Rows that follow each other (and have the same key) in lists."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1 and (key is None or key[row] == key[row - 1]):
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _cuts(item: Definition, own: Sequence[int], sizes: ChunkingSettings) -> set[int]:
    """Rows before which a statement begins: the outermost, and those within a statement that is too wide itself."""
    mine, found = set(own), set()
    stack: list[Node] = [item.node]
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
    statements: list[list[int]] = []
    for row in own:
        if statements and row not in cuts and row == statements[-1][-1] + 1:
            statements[-1].append(row)
        else:
            statements.append([row])
    groups: list[list[int]] = []
    total = 0
    for rows in statements:
        wide = sum(width(lines[row]) + 1 for row in rows)
        for part, size in [(rows, wide)] if wide <= sizes.max_chars else [([r], width(lines[r]) + 1) for r in rows]:
            if groups and total + size <= (sizes.target_chars if part is rows else sizes.max_chars):
                groups[-1] += part
                total += size
            else:
                groups.append(list(part))
                total = size
    return groups


def _texts(rows: Sequence[int], lines: Sequence[str], limit: int) -> list[str]:
    """The rows as text, an empty line where others stood between; a single line wider than `limit` in several."""
    runs = ["\n".join(lines[row] for row in run).strip("\n") for run in _runs(rows)]
    text = "\n\n".join(run.rstrip() for run in runs if run.strip())
    if width(text) <= limit or len(rows) > 1:
        return [text] if text else []
    step = limit if text.isascii() else limit // 2
    return [part for start in range(0, len(text), step) if (part := text[start : start + step]).strip()]


#: Edges out of one chunk, the most specific first; a chunk with more is a list of names.
MAX_REFS = 64
#: Keys of one chunk: a module's constants have one chunk for them all.
MAX_DEFINES = 512
_NOT_PARSED = "not parsed: it took too long"


def chunk_code(document: Document, sizes: ChunkingSettings) -> list[Chunk]:
    """Chunks in the order of the file: the module's own lines, then each definition with its comment and decorators.

    `symbol` is the qualified name, `heading` says what it is, `defines` and `refs` are the keys that edges join by. A
    definition wider than `max_chars` is several chunks of one symbol. What does not parse stays with the lines around
    it; a file that takes longer than the parser's deadline is cut as plain lines, and its headings say so.
    """
    language = language_of(document.path)
    source = document.text.encode()
    lines = document.text.split("\n")
    tree = grammar.parse(source, language.grammar, time.monotonic() + grammar.DEADLINE_S)
    if tree is None:
        return _unparsed_chunks(document, language, lines, sizes)
    definitions = outline(tree.root_node, language, len(lines))
    matches = grammar.captures(tree.root_node, language.grammar, language.queries)
    found = occurrences(matches, source, language, document.path)
    module = found.imports.package or language.module(document.path)
    owner = owners(definitions, len(lines))
    file = SourceFile(document.path, language, module, definitions, owner, found.default)
    used = Resolver(file, Scopes(file, found), found).names_by_row()
    return _chunks(document, file, pieces(definitions, owner, lines, sizes), used, sizes)


def _unparsed_chunks(
    document: Document, language: CodeLanguage, lines: list[str], sizes: ChunkingSettings
) -> list[Chunk]:
    """Without a tree: the lines in pieces, under the module's name, with no edges but those to it."""
    tree = grammar.parse(b"", language.grammar, time.monotonic())
    definitions = outline(tree.root_node, language, len(lines)) if tree is not None else []
    definitions[0].label = _NOT_PARSED
    file = SourceFile(document.path, language, language.module(document.path), definitions, [0] * len(lines))
    return _chunks(document, file, pieces(definitions, file.owner, lines, sizes), {}, sizes)


def _chunks(
    document: Document,
    file: SourceFile,
    cut: Sequence[CodePiece],
    used: Mapping[int, list[Name]],
    sizes: ChunkingSettings,
) -> list[Chunk]:
    kind = kind_of(document.kind, document.path, sizes.kinds)
    chunks = []
    for ordinal, (piece, defines) in enumerate(zip(cut, _defined(file, cut), strict=True)):
        # Like a page, a file is found by its path and title: links to it lead to its first chunk.
        page = page_keys(document.title, document.path) if ordinal == 0 else ()
        chunks.append(
            Chunk(
                chunk_id=chunk_id(document.doc_id, ordinal, piece.text),
                doc_id=document.doc_id,
                path=document.path,
                title=document.title,
                text=piece.text,
                heading=_heading(file.definitions, piece.definition),
                date=document.date,
                tags=document.tags,
                kind=kind,
                ordinal=ordinal,
                namespace=document.namespace,
                part=PagePart.CODE,
                symbol=".".join((*file.module, *file.definitions[piece.definition].names)),
                defines=(*page, *defines),
                refs=_refs(piece, used, defines),
            )
        )
    return chunks


def _defined(file: SourceFile, cut: Sequence[CodePiece]) -> list[tuple[str, ...]]:
    """The keys of each piece: of its definition if it is the first, and of what else begins on its rows."""
    home = {row: place for place, piece in enumerate(cut) for row in piece.rows}
    firsts = {piece.definition: place for place, piece in enumerate(cut) if piece.first}
    names: list[list[Name]] = [[] for _ in cut]
    for index, item in enumerate(file.definitions):
        place = firsts.get(index, home.get(item.head))
        if place is not None and item.kind not in HOLDERS and (index or not file.language.packaged):
            names[place].append(item.names)
        for row, member in item.members:
            if row in home:
                names[home[row]].append(member)
    return [
        _distinct(
            (
                each
                for name in own
                for alias in ((name, ("default", *name[1:])) if name[:1] == (file.default,) else (name,))
                for each in keys_of(file.module, alias, file.language.handed_on and alias[:1] != ("default",))
            ),
            MAX_DEFINES,
        )
        for own in names
    ]


def _refs(piece: CodePiece, used: Mapping[int, list[Name]], defines: Sequence[str]) -> tuple[str, ...]:
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
