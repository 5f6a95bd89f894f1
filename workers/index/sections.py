"""A document's blocks as sections: one heading, one part of the page, one facet. Never loses a block but rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.models.hits import Part
from workers.index.blocks import Block, Kind
from workers.index.facets import label_of
from workers.index.parts import timeline_start


@dataclass(slots=True)
class Section:
    """The blocks under one heading (`title`, empty before the first); `path` is the heading with those above it.

    `source` is the heading as written, with its links, and `labels` are names of the section. `part` is what a rule
    makes of it, None when none does.
    """

    path: tuple[str, ...] = ()
    title: str = ""
    level: int = 0
    source: str = ""
    part: Part | None = None
    labels: tuple[str, ...] = ()
    blocks: list[Block] = field(default_factory=list)


def sections_of(blocks: Sequence[Block]) -> list[Section]:
    """Sections in order. A timeline begins one of its own, and so does each facet of a section that labels several."""
    start = timeline_start(blocks)
    above, below = (None, None) if start is None else (Part.TRUTH, Part.TIMELINE)
    sections = [Section(part=above)]
    open_headings: list[tuple[int, str]] = []
    for place, block in enumerate(blocks):
        if place == start:
            last = sections[-1]
            # Not bare: the heading, if it is one, stands in the section above already.
            sections.append(Section(last.path, "", last.level, part=below))
        if block.kind is Kind.HEADING:
            open_headings = [(level, title) for level, title in open_headings if level < block.level]
            if block.text:
                open_headings.append((block.level, block.text))
            path = tuple(title for _, title in open_headings)
            sections.append(Section(path, block.text, block.level, block.source, sections[-1].part, block.labels))
        elif block.kind is not Kind.RULE:
            sections[-1].blocks.append(block)
    return [part for section in _with_bare_headings(sections) if section.blocks for part in _by_label(section)]


def _with_bare_headings(sections: list[Section]) -> Iterator[Section]:
    """A heading with nothing under it, not even a deeper heading, would vanish: it becomes its own text."""
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        bare = section.title and not section.blocks
        if bare and (following is None or following.level <= section.level):
            section.blocks.append(Block(Kind.TEXT, section.title))
        if following is not None and not section.blocks:
            following.labels = (*section.labels, *following.labels)
        yield section


def _by_label(section: Section) -> Iterator[Section]:
    """A section cut where a paragraph begins with a facet's label, if it labels two facets or more: a memory."""
    labelled = [label_of(block.text) if block.kind is Kind.TEXT else None for block in section.blocks]
    if len({facet for facet in labelled if facet}) < 2:
        yield section
        return
    cuts = [place for place, facet in enumerate(labelled) if facet and place]
    for start, end in zip([0, *cuts], [*cuts, len(labelled)], strict=True):
        source, labels = ("", ()) if start else (section.source, section.labels)
        yield Section(
            section.path, section.title, section.level, source, section.part, labels, section.blocks[start:end]
        )
