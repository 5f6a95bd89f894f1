"""Cuts documents into chunks along their headings. Never cuts inside a code fence and never loses text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from shared.language.page_keys import label_key, page_keys
from shared.models import Chunk
from shared.models.hits import PagePart
from shared.settings.sections import ChunkingSettings
from workers.index.blocks import (
    Block,
    BlockType,
    blocks_of,
    cut_anywhere,
    join_neighbours,
    part_of,
    timeline_start,
    width,
)
from workers.index.code.chunking import chunk_code
from workers.index.documents import Document, Markup
from workers.index.links import refs_of
from workers.index.metadata import facet_of, kind_of, label_of
from workers.index.offsets import Span, clipped, joined, spans_of, through
from workers.index.rst import rst_blocks

#: A piece narrower than this share of `target_chars` is joined with its neighbour where that fits.
_TINY_SHARE = 4
_ARROW = " > "
#: Labels of one chunk.
_MAX_LABELS = 64
#: Code stays whole up to this many times `max_chars`.
_CODE_FACTOR = 4
#: A table's head is repeated over each part if it takes no more than this share of `max_chars`.
_HEAD_SHARE = 4
_MAX_INFO = 200
_FENCE = re.compile(r"(?P<before>[^`~]*)(?P<marker>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_AFTER_SENTENCE = re.compile(r"[。！？；…][」』”’）】]*+(?![。！？；…])|(?<=[.!?])\s+|(?<=[.!?][\"')\]”’])\s+")
_AFTER_LINE = re.compile(r"\n")
_AFTER_CLAUSE = re.compile(r"[，、：,;:]|\s+")
_CUTS = (_AFTER_SENTENCE, _AFTER_LINE, _AFTER_CLAUSE)


@dataclass(slots=True)
class Section:
    """The blocks under one heading (`title`, empty before the first); `path` is the heading with those above it.

    `source` is the heading as written, with its links, `start` its offset, and `labels` are names of the section.
    `part` is what a rule makes of it, None when none does.
    """

    path: tuple[str, ...] = ()
    title: str = ""
    level: int = 0
    source: str = ""
    part: PagePart | None = None
    labels: tuple[str, ...] = ()
    start: int = 0
    blocks: list[Block] = field(default_factory=list)


class SpannedText(NamedTuple):
    """A part of a block's text, and which of its characters stand where in that."""

    text: str
    spans: tuple[Span, ...]


class _Piece(NamedTuple):
    """Text with the gap before it: an empty line, a line end, or nothing. `spans`: where it stands in the document."""

    text: str
    gap: str
    code: bool
    spans: tuple[Span, ...] = ()
    labels: tuple[str, ...] = ()


class _ChunkText(NamedTuple):
    """The text of a chunk, where it stands in the document, whether it is code alone, and the keys of its labels."""

    text: str
    spans: list[Span]
    code: bool
    labels: tuple[str, ...]


def chunk_document(document: Document, sizes: ChunkingSettings) -> list[Chunk]:
    """Chunks in order.

    `heading` is the path "A > B > C" without the document's title, `facet` the storage facet, `part` compiled truth or
    timeline.

    A chunk never spans two sections. It is as wide as `target_chars` where possible; a single block stays whole up to
    `max_chars`, code up to four times that. Widths count a CJK character as two. Every chunk defines its page's keys
    and refers to what its text links to; a heading's links and labels count for its first chunk.
    """
    if document.markup is Markup.CODE:
        return chunk_code(document, sizes)
    kind = kind_of(document.kind, document.path, sizes.kinds)
    defines = page_keys(document.title, document.path)
    chunks: list[Chunk] = []
    rst = document.markup is Markup.RST
    blocks = list(rst_blocks(document.text)) if rst else blocks_of(document.text, document.markup, sizes.max_chars)
    for section in sections_of(blocks):
        headings = section.path[1:] if section.path[:1] == (document.title,) else section.path
        linking = f"{section.source}\n\n" if section.source else ""
        for text, spans, code, labels in _texts(section, document.text, sizes):
            if not (code and rst):  # a literal block holds no links
                linking += text
            chunks.append(
                document.chunk(
                    len(chunks),
                    text,
                    spans,
                    heading=_ARROW.join(headings),
                    kind=kind,
                    facet=facet_of(headings) or label_of(text) or document.facet,
                    part=PagePart.CODE if code else part_of(document.title, headings) or section.part or PagePart.TEXT,
                    defines=(*defines, *labels),
                    refs=refs_of(linking, document.path),
                )
            )
            linking = ""
    return chunks


def _texts(section: Section, source: str, sizes: ChunkingSettings) -> Iterator[_ChunkText]:
    """The texts of a section's chunks; `source` is the document's."""
    above = section.labels
    for group in _packed(_pieces(section, source, sizes), sizes):
        text, spans = "", list[Span]()
        for index, piece in enumerate(group):
            text += piece.gap if index else ""
            spans += [Span(len(text) + at, start, length) for at, start, length in piece.spans]
            text += piece.text
        if trimmed := text.strip("\n").rstrip():
            cut = len(text) - len(text.lstrip("\n"))
            kept = list(clipped(joined(spans, text, source), cut, cut + len(trimmed)))
            labels = [*above, *(label for piece in group for label in piece.labels)][:_MAX_LABELS]
            code = all(piece.code for piece in group)
            yield _ChunkText(trimmed, kept, code, tuple(dict.fromkeys(map(label_key, labels))))
            above = ()


def _pieces(section: Section, source: str, sizes: ChunkingSettings) -> Iterator[_Piece]:
    for block in section.blocks:
        whole = spans_of(block.text, source, block.start)
        code = block.kind is BlockType.FENCE or block.kind is BlockType.CODE
        if len(block.text) <= sizes.max_chars // 2:  # most blocks: no width is above twice the length
            yield _Piece(block.text, "\n\n" if block.loose else "\n", code, whole, block.labels)
            continue
        for index, part in enumerate(split_block(block, sizes.target_chars, sizes.max_chars)):
            # Parts of cut text are verbatim and join without a gap; parts of code and tables are blocks of their own.
            verbatim = index and block.kind is BlockType.TEXT
            gap = "" if verbatim else "\n\n" if block.loose or index else "\n"
            yield _Piece(part.text, gap, code, tuple(through(part.spans, whole)), () if index else block.labels)


def _packed(pieces: Iterator[_Piece], sizes: ChunkingSettings) -> list[list[_Piece]]:
    """Neighbours joined up to `target_chars`. A tiny one joins further, up to `max_chars`."""
    tiny = sizes.target_chars // _TINY_SHARE

    def wide(piece: _Piece) -> int:
        return width(piece.text) + len(piece.gap)

    def fits(_: _Piece, before: int, total: int) -> bool:
        return total <= sizes.target_chars or (before < tiny and total <= sizes.max_chars)

    groups = join_neighbours(pieces, wide, fits)
    if len(groups) > 1:
        before, last = (sum(map(wide, group)) for group in groups[-2:])
        if last < tiny and before + last <= sizes.max_chars:
            tail = groups.pop()
            groups[-1] += tail
    return groups


def sections_of(blocks: Sequence[Block]) -> list[Section]:
    """Sections in order. A timeline begins one of its own, and so does each facet of a section that labels several."""
    start = timeline_start(blocks)
    above, below = (None, None) if start is None else (PagePart.TRUTH, PagePart.TIMELINE)
    sections = [Section(part=above)]
    open_headings: list[tuple[int, str]] = []
    for place, block in enumerate(blocks):
        if place == start:
            last = sections[-1]
            # No title: the section above already has the heading, if there is one.
            sections.append(Section(last.path, "", last.level, part=below))
        if block.kind is BlockType.HEADING:
            open_headings = [(level, title) for level, title in open_headings if level < block.level]
            if block.text:
                open_headings.append((block.level, block.text))
            path = tuple(title for _, title in open_headings)
            part = sections[-1].part
            sections.append(Section(path, block.text, block.level, block.source, part, block.labels, block.start))
        elif block.kind is not BlockType.RULE:
            sections[-1].blocks.append(block)
    return [part for section in _with_bare_headings(sections) if section.blocks for part in _by_label(section)]


def _with_bare_headings(sections: list[Section]) -> Iterator[Section]:
    """A heading with nothing under it, not even a deeper heading, would vanish: it becomes its own text."""
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        bare = section.title and not section.blocks
        if bare and (following is None or following.level <= section.level):
            # A heading of several lines has one line as its title, which stands nowhere.
            text = section.source if "\n" in section.source else section.title
            section.blocks.append(Block(BlockType.TEXT, text, start=section.start))
        if following is not None and not section.blocks:
            following.labels = (*section.labels, *following.labels)
        yield section


def _by_label(section: Section) -> Iterator[Section]:
    """A section cut where a paragraph begins with a facet's label, if it labels two facets or more: a memory."""
    labelled = [label_of(block.text) if block.kind is BlockType.TEXT else None for block in section.blocks]
    if len({facet for facet in labelled if facet}) < 2:
        yield section
        return
    cuts = [place for place, facet in enumerate(labelled) if facet and place]
    for start, end in zip([0, *cuts], [*cuts, len(labelled)], strict=True):
        source, labels = ("", ()) if start else (section.source, section.labels)
        own = section.blocks[start:end]
        yield replace(section, source=source, labels=labels, blocks=own)


def split_block(block: Block, target: int, limit: int) -> list[SpannedText]:
    """Parts of `block` in order. Text parts are verbatim: joined without separator they are the block again.

    `target` is the aimed width of a part and `limit` (>= target) the width up to which a block stays whole.
    """
    size = width(block.text)
    if size <= limit or (block.kind in {BlockType.FENCE, BlockType.CODE} and size <= _CODE_FACTOR * limit):
        return [_part(block.text, 0)]
    if block.kind is BlockType.FENCE:
        return _split_fence(block.text, limit)
    if block.kind is BlockType.CODE:
        return _verbatim(_joined(_lines(block.text, limit), limit))
    if block.kind is BlockType.TABLE:
        return _split_table(block.text, limit)
    return _verbatim(_joined(_spans(block.text, limit), target))


def _part(text: str, start: int, lead: int = 0, length: int | None = None) -> SpannedText:
    """A part whose `length` characters behind the first `lead` stand at `start` in the block."""
    return SpannedText(text, (Span(lead, start, len(text) if length is None else length),))


def _verbatim(texts: Sequence[str], start: int = 0) -> list[SpannedText]:
    """Texts that follow each other in the block."""
    starts = accumulate(map(len, texts), initial=start)
    return [_part(text, place) for text, place in zip(texts, starts, strict=False)]


def _split_fence(text: str, limit: int) -> list[SpannedText]:
    """At line ends, each part fenced as the whole was; in a list or quote with the same prefix."""
    opening, *rest = text.split("\n")
    found = _FENCE.match(opening)
    if found is None:
        return _verbatim(_joined(_lines(text, limit), limit))
    before, marker, info = found["before"], found["marker"], found["info"]
    body = rest[:-1] if rest and rest[-1].strip().strip("> ").startswith(marker) else rest
    start = len(opening) + 1
    if len(info) > _MAX_INFO:
        body, info, start = [info, *body], "", len(before) + len(marker)
    # A list's bullet opens the first part only; the others keep its indent.
    indent = re.sub(r"[^>\s]", " ", before)
    inside = _verbatim(_joined(_lines("\n".join(body), limit), limit), start)
    heads = [f"{head}{marker}{info}\n" for head in (before, *[indent] * (len(inside) - 1))]
    closing = f"\n{indent}{marker}"
    return [_fenced(text, head, part, closing) for head, part in zip(heads, inside, strict=True)]


def _fenced(block: str, head: str, part: SpannedText, closing: str) -> SpannedText:
    """A part of a fence with its first and its last line, which stand in the block, too, where they are the same."""
    body = part.text.removesuffix("\n")
    spans = [Span(len(head), part.spans[0].start, len(body))]
    if block.startswith(head):
        spans.insert(0, Span(0, 0, len(head)))
    if block.endswith(closing):
        spans.append(Span(len(head) + len(body), len(block) - len(closing), len(closing)))
    return SpannedText(head + body + closing, tuple(spans))


def _split_table(text: str, limit: int) -> list[SpannedText]:
    head = "".join(line + "\n" for line in text.split("\n", 2)[:2])
    if width(head) > limit // _HEAD_SHARE:
        return _verbatim(_joined(_lines(text, limit), limit))
    rows = _joined(_lines(text[len(head) :], limit - width(head)), limit - width(head))
    again = Span(0, 0, len(head))
    return [
        SpannedText(head + part.text, (again, Span(len(head), part.spans[0].start, len(part.text))))
        for part in _verbatim(rows, len(head))
    ]


def _lines(text: str, limit: int) -> list[str]:
    """Lines with their ends; a line wider than `limit` in several pieces."""
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    return [piece for line in lines for piece in ([line] if width(line) <= limit else cut_anywhere(line, limit))]


def _spans(text: str, limit: int, level: int = 0) -> list[str]:
    """Sentences; a sentence wider than `limit` as lines, a line as clauses, a clause cut anywhere."""
    if width(text) <= limit and level:
        return [text]
    if level == len(_CUTS):
        return cut_anywhere(text, limit)
    ends = [found.end() for found in _CUTS[level].finditer(text)]
    starts = [0, *ends]
    pieces = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [span for piece in pieces if piece for span in _spans(piece, limit, level + 1)]


def _joined(pieces: Iterable[str], size: int) -> list[str]:
    """Neighbours joined while they are no wider than `size`."""
    return ["".join(group) for group in join_neighbours(pieces, width, lambda _, __, total: total <= size)]
