"""Cuts documents into chunks along their headings. Never cuts inside a code fence and never loses text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.models import Chunk
from shared.models.hits import Part
from shared.page_keys import label_key, page_keys, path_key
from shared.settings.sections import Chunking
from workers.index.blocks import Block, Kind, blocks_of
from workers.index.code.chunking import chunk_code
from workers.index.documents import Document, Markup, chunk_id
from workers.index.facets import facet_of, label_of
from workers.index.kinds import kind_of
from workers.index.links import refs_of
from workers.index.parts import part_of
from workers.index.rst import rst_blocks
from workers.index.sections import Section, sections_of
from workers.index.splitting import split_block
from workers.index.widths import width

#: A piece narrower than this share of `target_chars` does not stand alone if it can join its neighbour.
_TINY_SHARE = 4
_ARROW = " > "
#: Labels of one chunk.
_MAX_LABELS = 64


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text with what parts it from the piece before: an empty line, a line end, or nothing."""

    text: str
    gap: str
    code: bool
    labels: tuple[str, ...] = ()


def chunk_document(document: Document, sizes: Chunking) -> list[Chunk]:
    """Chunks in order. `heading` is the path "A > B > C" without the document's title; `facet` as B9, `part` as F8.

    A chunk never spans two sections. It is as wide as `target_chars` where possible; a single block stays whole up to
    `max_chars`, code up to four times that. Widths count a CJK character as two. Every chunk defines its page's keys
    and refers to what its text links to; a heading's links and labels count for its first chunk.
    """
    if document.markup is Markup.CODE:
        return _linkable(chunk_code(document, sizes))
    kind = kind_of(document.kind, document.path, sizes.kinds)
    defines = page_keys(document.title, document.path)
    chunks: list[Chunk] = []
    for section in sections_of(_blocks(document, sizes)):
        headings = section.path[1:] if section.path[:1] == (document.title,) else section.path
        linking = section.source
        for text, code, labels in _texts(section, sizes):
            ordinal = len(chunks)
            chunks.append(
                Chunk(
                    chunk_id=chunk_id(document.doc_id, ordinal, text),
                    doc_id=document.doc_id,
                    path=document.path,
                    title=document.title,
                    text=text,
                    heading=_ARROW.join(headings),
                    date=document.date,
                    tags=document.tags,
                    kind=kind,
                    facet=facet_of(headings) or label_of(text) or document.facet,
                    ordinal=ordinal,
                    namespace=document.namespace,
                    part=Part.CODE if code else part_of(document.title, headings) or section.part or Part.TEXT,
                    defines=(*defines, *labels),
                    refs=refs_of(_linking(linking, text, code=code and document.markup is Markup.RST), document.path),
                )
            )
            linking = ""
    return chunks


def _blocks(document: Document, sizes: Chunking) -> list[Block]:
    if document.markup is Markup.RST:
        return list(rst_blocks(document.text))
    return blocks_of(document.text, document.markup, sizes.max_chars)


def _linking(heading: str, text: str, *, code: bool) -> str:
    """Where links are sought: code without the line that says so, as a literal block, holds none."""
    text = "" if code else text
    return f"{heading}\n\n{text}" if heading else text


def _linkable(chunks: list[Chunk]) -> list[Chunk]:
    """Chunks of code, the first with the file's path among its keys: prose links to files."""
    return [
        chunk if chunk.ordinal else chunk.model_copy(update={"defines": (*chunk.defines, path_key(chunk.path))})
        for chunk in chunks
    ]


def _texts(section: Section, sizes: Chunking) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    """The texts of a section's chunks, whether each is code alone, and the keys of the labels in it."""
    above = section.labels
    for group in _packed(_pieces(section, sizes), sizes):
        text = "".join((piece.gap if index else "") + piece.text for index, piece in enumerate(group))
        if trimmed := text.strip("\n").rstrip():
            labels = [*above, *(label for piece in group for label in piece.labels)][:_MAX_LABELS]
            yield trimmed, all(piece.code for piece in group), tuple(dict.fromkeys(map(label_key, labels)))
            above = ()


def _pieces(section: Section, sizes: Chunking) -> Iterator[_Piece]:
    for block in section.blocks:
        for index, text in enumerate(split_block(block, sizes.target_chars, sizes.max_chars)):
            # Parts of cut text are verbatim and join without a gap; parts of code and tables are blocks of their own.
            verbatim = index and block.kind is Kind.TEXT
            gap = "" if verbatim else "\n\n" if block.loose or index else "\n"
            yield _Piece(text, gap, block.kind in {Kind.FENCE, Kind.CODE}, () if index else block.labels)


def _packed(pieces: Iterator[_Piece], sizes: Chunking) -> list[list[_Piece]]:
    """Neighbours joined up to `target_chars`. A tiny one joins further, up to `max_chars`."""
    tiny = sizes.target_chars // _TINY_SHARE
    groups: list[list[_Piece]] = []
    widths: list[int] = []
    for piece in pieces:
        wide = width(piece.text) + len(piece.gap)
        total = widths[-1] + wide if groups else 0
        if groups and (total <= sizes.target_chars or (widths[-1] < tiny and total <= sizes.max_chars)):
            groups[-1].append(piece)
            widths[-1] = total
        else:
            groups.append([piece])
            widths.append(wide)
    if len(groups) > 1 and widths[-1] < tiny and widths[-2] + widths[-1] <= sizes.max_chars:
        tail = groups.pop()
        groups[-1] += tail
    return groups
