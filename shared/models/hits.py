"""Chunks as they are found, ranked and merged."""

from __future__ import annotations

import base64
import json
import struct
from enum import StrEnum
from math import inf

from pydantic import Field, field_serializer, field_validator

from shared.models.base import Model
from shared.models.code import CodeDefinition
from shared.models.cost import Cost
from shared.models.place import LineBox, Place, box_of, place_of
from shared.models.told import Sentence


class Effect(Model):
    """What one stage did to a score: `effect` was added. `detail` says from what (arm, rank, factor, cosine ...)."""

    stage: str
    effect: float
    detail: dict[str, float | str] = Field(default_factory=dict)


class OpenedDirectory(Model):
    """A directory that a hierarchical search opened: in which round, at which score, and how many hits it gave.

    `own` is how well the directory itself fits the question, `parent` the score of the one that led to it.
    """

    round: int = Field(ge=1)
    path: str
    score: float
    own: float
    parent: float | None = None
    hits: int = 0


class StageTrace(Model):
    """One stage of one search: its time, how many hits it left, and why it did nothing, if so.

    `trail` are the directories that it opened, in order, and `stopped` says why it opened no more. `note` is
    what else it has to say, such as the ambiguous names that it did not follow.
    """

    stage: str
    ms: float
    hits: int
    skipped: str | None = None
    trail: tuple[OpenedDirectory, ...] = ()
    stopped: str | None = None
    note: str | None = None


class PagePart(StrEnum):
    """What a chunk is of its page; `abstract` (L0) and `overview` (L1) stand for a directory."""

    TEXT = "text"
    TRUTH = "truth"
    TIMELINE = "timeline"
    CODE = "code"
    ABSTRACT = "abstract"
    OVERVIEW = "overview"


class Chunk(Model):
    """A piece of a document as stored. `doc_id` is stable over ingests; `path` is what a person reads.

    `date` is ISO (YYYY-MM-DD) or None; `ordinal` counts the chunks of a document from 0. `backlinks` is the number of
    other documents that link to this one: the store has it from the end of an ingest on.

    Edges join by key, at search time: a chunk that `defines` a key is where every chunk leads that has it among its
    `refs` (what the text itself links to, calls or imports) or `mentions` (titles of other pages in its prose, found
    at the end of an ingest). So an edge whose target is not there yet waits as a name, and none can dangle. Keys are
    "title:<folded title>" and "path:<path>" for pages, "label:<name>" for a place in a page, dotted names
    ("pkg.mod.Class.method" and every suffix of it) for code. `symbol` is the qualified name of the definition that a
    code chunk is.

    `definitions` are those of a file of code that begin in this chunk, and `imports` what it imports, as it is written;
    None: not known, as in a file that could not be parsed. Only lists read them; a hit has none.
    """

    chunk_id: str
    doc_id: str
    path: str
    title: str
    text: str
    heading: str = ""
    date: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = "resource"
    facet: str | None = Field(default=None, description="storage facet: context, intent, action, result, insight")
    ordinal: int = 0
    namespace: str = "default"
    version: str = Field(default="", description="of its document's content: the first digits of the hash of an ingest")
    backlinks: int = 0
    part: PagePart = PagePart.TEXT
    symbol: str | None = None
    defines: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    definitions: tuple[CodeDefinition, ...] | None = None
    imports: tuple[str, ...] = ()
    superseded: str = Field(default="", description="what in its document says that this is out of date, as written")
    valid_until: str | None = Field(default=None, description="ISO day until which its document says that it holds")
    places: tuple[tuple[int, str], ...] = Field(
        default=(), description="offsets in `text` at which a page, slide or range of rows begins, with its name"
    )
    boxes: tuple[LineBox, ...] = Field(default=(), description="of each line of a page: its offset in `text`, its box")
    start: int | None = Field(default=None, description="offset of its first character in the document's text")
    end: int | None = Field(default=None, description="offset behind its last character there")
    spans: tuple[tuple[int, int, int], ...] = Field(
        default=(), description="where `text` is not one slice of the document: offset in it, in the document, length"
    )

    @field_validator("boxes", mode="before")
    @classmethod
    def _from_stored(cls, value: object) -> object:
        """Stores hold them as JSON text."""
        return json.loads(value) if isinstance(value, str) else value

    def place_of(self, quote: str) -> str:
        """Where in its file `quote`, a slice of `text`, begins; "" where the file has no places."""
        return self._place_name(max(0, self.text.find(quote)))

    def place_at(self, first: int, last: int) -> Place:
        """Where in its file `text[first:last]` begins, with the box of its lines on that page."""
        starts = [offset for offset, _ in self.places]
        until = next((offset for offset in starts if offset > first), len(self.text))
        ends = [*(line[0] for line in self.boxes[1:]), len(self.text)]
        own = [
            line[1:] for line, end in zip(self.boxes, ends, strict=False) if end > first and line[0] < min(last, until)
        ]
        return place_of(self._place_name(first), self.heading, box_of(own))

    def in_document(self, first: int = 0, last: int | None = None) -> tuple[tuple[int, int], ...]:
        """Where `text[first:last]` stands in the document's text: slices of that, in the order of the passage.

        One where it is verbatim. Characters that were added to the chunk (a table's head over its later rows, a fence's
        first line) stand where they were repeated from, or nowhere.
        """
        if self.start is None:
            return ()
        last = len(self.text) if last is None else last
        found: list[tuple[int, int]] = []
        for at, start, length in self.spans or ((0, self.start, len(self.text)),):
            begin, end = max(first, at), min(last, at + length)
            if begin < end:
                found.append((start + begin - at, start + end - at))
        return tuple(found)

    def _place_name(self, offset: int) -> str:
        return next((name for begin, name in reversed(self.places) if begin <= offset), "")

    @property
    def full_text(self) -> str:
        """What is encoded, reranked and compared: title, heading and text, a line each."""
        return "\n".join(part for part in (self.title, self.heading, self.text) if part)


class Via(Model):
    """How a hit was reached from another one: over which key or name, at which hop (from 1), from which chunk.

    `precedence` is set on a named symbol's definition (0) and what calls lead to from there: hits with one stand
    before all others, the lowest first, whatever their scores are. `callers`, of such a definition, is how many
    definitions call it in all.
    """

    chunk_id: str
    bridge: str
    hop: int = Field(ge=1)
    how: str = Field(
        description="link, linked by, mention, mentioned by, call, called by, symbol (asked for), name, directory"
    )
    precedence: int | None = Field(default=None, ge=0)
    callers: int | None = Field(default=None, ge=0)


class Hit(Chunk):
    """A chunk with its score. `snippet` is what a person reads of it first.

    `parts` names scores of single steps (bm25, dense, rerank ...). `via` says how it was reached from another hit;
    None: the question itself found it.

    `explain` lists what every stage added to the score, in order: the effects sum to it. Filled when asked for.
    `vector` is the chunk's dense vector, kept where a later step needs it (dedup), else empty.
    """

    score: float
    snippet: str = ""
    via: Via | None = None
    parts: dict[str, float] = Field(default_factory=dict)
    explain: tuple[Effect, ...] = ()
    vector: tuple[float, ...] = Field(default=(), repr=False)

    @property
    def precedence(self) -> float:
        """What hits are ordered by before their scores: infinite where the scores alone decide."""
        return inf if self.via is None or self.via.precedence is None else self.via.precedence

    @field_serializer("vector", when_used="json")
    def _as_half_floats(self, vector: tuple[float, ...]) -> str | tuple[float, ...]:
        """Vectors travel between pools as half floats in base64: a tenth of their size as JSON numbers."""
        return base64.b64encode(struct.pack(f"<{len(vector)}e", *vector)).decode() if vector else vector

    @field_validator("vector", mode="before")
    @classmethod
    def _from_half_floats(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        raw = base64.b64decode(value, validate=True)
        if len(raw) % 2:  # which struct would refuse with an error that is no ValueError
            raise ValueError("is no list of half floats")
        return struct.unpack(f"<{len(raw) // 2}e", raw)


def as_half_floats(vector: tuple[float, ...]) -> tuple[float, ...]:
    """A vector with the precision it travels with, so that it reads back as it was."""
    return struct.unpack(f"<{len(vector)}e", struct.pack(f"<{len(vector)}e", *vector))


class LeafStatus(StrEnum):
    """Where one leaf stands. It waits while the leaves that it depends on are open."""

    WAITING = "waiting"
    PENDING = "pending"
    SEARCHED = "searched"
    DONE = "done"
    FAILED = "failed"


class SearchResult(Model):
    """What was found for one query, best first. `mode` is the strategy; `verdict` says "nothing relevant"."""

    hits: tuple[Hit, ...] = ()
    mode: str
    candidates: int = 0
    rewrites: tuple[str, ...] = ()
    strong_signal: bool = False
    reranked_by: str | None = None
    verdict: str | None = None
    stages: tuple[StageTrace, ...] = ()
    timings_ms: dict[str, float] = Field(default_factory=dict)
    warnings: tuple[Sentence, ...] = ()
    cost: Cost = Cost()
    index_version: int = Field(default=0, description="of the collection when it was searched; 0: not known")


class LeafResult(Model):
    """The recorded outcome of one leaf: its best hits, or the error that ended it.

    `out_of_time`: that error is only that the job's time was up.
    """

    node_id: str
    status: LeafStatus
    hits: tuple[Hit, ...] = ()
    candidates: int = 0
    error: Sentence | None = None
    out_of_time: bool = False
    warnings: tuple[Sentence, ...] = ()
    stages: tuple[StageTrace, ...] = ()
    mode: str = Field(default="", description="the strategy that searched it")
    index_version: int = 0
    reranker: str | None = None
    verdict: str | None = None
    floor: dict[str, float] = Field(
        default_factory=dict, description="arm -> the score of its last candidate; none where it found all there was"
    )


class Source(Model):
    """Which leaf found a hit, at which rank (from 1) and score."""

    node_id: str
    facet: str
    rank: int
    score: float


class MergedHit(Hit):
    """A hit of the merged tree with all leaves that found it."""

    sources: tuple[Source, ...] = ()


class Folds(Model):
    """Chunk id of each near-duplicate -> that of the better hit: of the merge, and of what a second round found."""

    first: dict[str, str] = Field(default_factory=dict)
    again: dict[str, str] | None = Field(default=None, description="None: there was no second round")


class MergedPool(Model):
    """The merged tree: hits best first, and how many near-duplicates were folded.

    `folds`: which ones, where vectors decided it: an answer does not keep those, so a replay takes them from here.
    """

    hits: tuple[MergedHit, ...] = ()
    per_leaf: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="leaf id -> chunk ids kept")
    folded: int = 0
    folds: Folds | None = None
    reranked_by: str | None = None
    warnings: tuple[str, ...] = ()
