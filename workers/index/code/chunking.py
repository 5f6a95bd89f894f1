"""A code document as chunks: a definition each, named, with its edges by key."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from shared.models import Chunk
from shared.models.hits import Part
from shared.page_keys import page_keys
from shared.settings.sections import Chunking
from workers.index.code import grammar
from workers.index.code.language import HOLDERS, CodeLanguage
from workers.index.code.languages import language_of
from workers.index.code.names import Name, key, keys_of
from workers.index.code.occurrences import occurrences
from workers.index.code.outline import Definition, SourceFile, outline
from workers.index.code.pieces import Piece, owners, pieces
from workers.index.code.resolve import Resolver
from workers.index.code.scopes import Scopes
from workers.index.documents import Document, chunk_id
from workers.index.kinds import kind_of

#: Edges out of one chunk, the most specific first; a chunk with more is a list of names.
MAX_REFS = 64
#: Keys of one chunk: a module's constants have one chunk for them all.
MAX_DEFINES = 512
_NOT_PARSED = "not parsed: it took too long"


def chunk_code(document: Document, sizes: Chunking) -> list[Chunk]:
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


def _unparsed_chunks(document: Document, language: CodeLanguage, lines: list[str], sizes: Chunking) -> list[Chunk]:
    """Without a tree: the lines in pieces, under the module's name, with no edges but those to it."""
    tree = grammar.parse(b"", language.grammar, time.monotonic())
    definitions = outline(tree.root_node, language, len(lines)) if tree is not None else []
    definitions[0].label = _NOT_PARSED
    file = SourceFile(document.path, language, language.module(document.path), definitions, [0] * len(lines))
    return _chunks(document, file, pieces(definitions, file.owner, lines, sizes), {}, sizes)


def _chunks(
    document: Document,
    file: SourceFile,
    cut: Sequence[Piece],
    used: Mapping[int, list[Name]],
    sizes: Chunking,
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
                part=Part.CODE,
                symbol=".".join((*file.module, *file.definitions[piece.definition].names)),
                defines=(*page, *defines),
                refs=_refs(piece, used, defines),
            )
        )
    return chunks


def _defined(file: SourceFile, cut: Sequence[Piece]) -> list[tuple[str, ...]]:
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


def _refs(piece: Piece, used: Mapping[int, list[Name]], defines: Sequence[str]) -> tuple[str, ...]:
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
