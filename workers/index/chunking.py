"""Cuts documents into chunks along their headings. Never cuts inside a code fence and never loses text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.models import Chunk
from shared.settings.sections import Chunking
from workers.index.blocks import Block, Kind, blocks_of
from workers.index.documents import Document, chunk_id
from workers.index.facets import facet_of
from workers.index.splitting import split_block
from workers.index.widths import width

#: A piece narrower than this share of `target_chars` does not stand alone if it can join its neighbour.
_TINY_SHARE = 4
_ARROW = " > "


@dataclass(slots=True)
class _Section:
    """The blocks under one heading (`title`, empty before the first); `path` is the heading with those above it."""

    path: tuple[str, ...] = ()
    title: str = ""
    level: int = 0
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text with what parts it from the piece before: an empty line, a line end, or nothing."""

    text: str
    gap: str


def chunk_document(document: Document, sizes: Chunking) -> list[Chunk]:
    """Chunks in order. `heading` is the path "A > B > C" without the document's title; `facet` as B9.

    A chunk never spans two sections. It is as wide as `target_chars` where possible; a single block stays whole up to
    `max_chars`, code up to four times that. Widths count a CJK character as two.
    """
    chunks: list[Chunk] = []
    for section in _sections(blocks_of(document.text, document.markup, sizes.max_chars)):
        headings = section.path[1:] if section.path[:1] == (document.title,) else section.path
        for text in _texts(section, sizes):
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
                    kind=document.kind,
                    facet=facet_of(headings),
                    ordinal=ordinal,
                    namespace=document.namespace,
                )
            )
    return chunks


def _sections(blocks: list[Block]) -> list[_Section]:
    sections = [_Section()]
    open_headings: list[tuple[int, str]] = []
    for block in blocks:
        if block.kind is not Kind.HEADING:
            sections[-1].blocks.append(block)
            continue
        open_headings = [(level, title) for level, title in open_headings if level < block.level]
        if block.text:
            open_headings.append((block.level, block.text))
        sections.append(_Section(tuple(title for _, title in open_headings), block.text, block.level))
    return [section for section in _with_bare_headings(sections) if section.blocks]


def _with_bare_headings(sections: list[_Section]) -> Iterator[_Section]:
    """A heading with nothing under it, not even a deeper heading, would vanish: it becomes its own text."""
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        bare = section.title and not section.blocks
        if bare and (following is None or following.level <= section.level):
            section.blocks.append(Block(Kind.TEXT, section.title))
        yield section


def _texts(section: _Section, sizes: Chunking) -> Iterator[str]:
    for group in _packed(_pieces(section, sizes), sizes):
        text = "".join((piece.gap if index else "") + piece.text for index, piece in enumerate(group))
        if trimmed := text.strip("\n").rstrip():
            yield trimmed


def _pieces(section: _Section, sizes: Chunking) -> Iterator[_Piece]:
    for block in section.blocks:
        for index, text in enumerate(split_block(block, sizes.target_chars, sizes.max_chars)):
            # Parts of cut text are verbatim and join without a gap; parts of code and tables are blocks of their own.
            verbatim = index and block.kind is Kind.TEXT
            yield _Piece(text, "" if verbatim else "\n\n" if block.loose or index else "\n")


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
