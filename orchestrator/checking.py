"""`ramify check`: a text sentence by sentence, or pairs of claim and passage line by line, held against passages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from typing import IO, Literal

from pydantic import ConfigDict, Field, ValidationError

from shared.errors import InputError
from shared.grounding import ClaimVerdict, Verdict, judge
from shared.grounding.rows import table_rows
from shared.language.sentences import BlockKind, sentence_spans
from shared.language.text import terms
from shared.models import Hit
from shared.models.base import Model
from shared.settings.faults import json_fault, request_fault

MAX_LINE_BYTES = 1_000_000
#: Pieces of that size of a longer line that are passed over.
MOST_PIECES = 64
MAX_TEXT_CHARS = 200_000
#: Passages of the corpus that a sentence is held against.
PASSAGES = 8
#: A word in more paragraphs than these tells them apart no more.
_COMMON = 2_000
#: A passage that contradicts what another one says has so much of the sentence in its order.
_SAME = 0.75
_HEADERS = (BlockKind.HEADING, BlockKind.FENCE)


class ClaimLine(Model):
    """One line of a file of claims; its other fields are left alone."""

    model_config = ConfigDict(extra="ignore")

    id: str | int | None = None
    claim: str = Field(min_length=1, max_length=20_000)
    passage: str | tuple[str, ...] = Field(description="one text, or several of which one has to say it")


class LineVerdict(Model):
    """What is written for one line. `error` instead of a verdict where the line cannot be read."""

    line: int
    id: str | int | None = None
    verdict: Verdict | None = None
    kind: str = ""
    reason: str = ""
    error: str = ""


class CheckedPassage(Model):
    """A passage that a sentence was held against."""

    path: str
    title: str = ""
    chunk_id: str = ""
    text: str


class CheckedSentence(Model):
    """`text[start:end]` of what was checked. `passage` supports it, contradicts it, or is None: nothing comes near.

    `supporting` and `contradicting` are all that do; a sentence that has both is supported, and disputed.
    """

    start: int
    end: int
    text: str
    verdict: Literal["supported", "contradicted", "unsupported", "no claim"]
    kind: str = ""
    reason: str = ""
    passage: CheckedPassage | None = None
    supporting: tuple[CheckedPassage, ...] = ()
    contradicting: tuple[CheckedPassage, ...] = ()

    @property
    def disputed(self) -> bool:
        """Supported by one passage and contradicted by another."""
        return bool(self.supporting and self.contradicting)


class TextCheck(Model):
    """A text sentence by sentence; what is neither sentence nor table row (headings, code) was not read."""

    sentences: tuple[CheckedSentence, ...]
    supported: int = 0
    contradicted: int = 0
    unsupported: int = 0
    disputed: int = Field(default=0, description="of the supported: contradicted by another passage")
    not_read: int = Field(default=0, description="headings and blocks of code")


def check_lines(file: IO[bytes]) -> Iterator[LineVerdict]:
    """One verdict for each line that is not blank."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            yield LineVerdict(line=number, error=f"more than {MAX_LINE_BYTES:,} bytes: give shorter passages")
            for _ in range(MOST_PIECES):
                if not raw or raw.endswith(b"\n"):
                    break
                raw = file.readline(MAX_LINE_BYTES)
            else:
                yield LineVerdict(line=number, error="does not end: what follows was not read")
                return
            continue
        if raw.strip():
            yield _checked_line(number, raw)


def check_text(text: str, passages: Callable[[str], Sequence[CheckedPassage]]) -> TextCheck:
    """Each sentence of `text` against what `passages` gives for it. Raises: InputError for a text that is too long."""
    if len(text) > MAX_TEXT_CHARS:
        raise InputError("TEXT", f"{len(text)} characters", f"check at most {MAX_TEXT_CHARS} at once")
    found, not_read = [], 0
    for span in sentence_spans(text):
        if span.kind in _HEADERS:
            not_read += 1
            continue
        own = text[span.start : span.end]
        for start, end, claim in list(table_rows(own) if span.kind is BlockKind.TABLE else ()) or [(0, len(own), own)]:
            near = passages(claim)
            texts = [f"{passage.title}\n{passage.text}" for passage in near]
            each = [judge(claim, [text]) for text in texts]
            found.append(_checked(span.start + start, own[start:end], judge(claim, texts), near, each))
    counts = {name: sum(one.verdict == name for one in found) for name in ("supported", "contradicted", "unsupported")}
    disputed = sum(one.disputed for one in found)
    return TextCheck(sentences=tuple(found), not_read=not_read, disputed=disputed, **counts)


class Passages:
    """Given texts, paragraph by paragraph; `near` gives those that share most with a sentence."""

    def __init__(self, texts: Sequence[CheckedPassage]) -> None:
        self._parts = [
            given.model_copy(update={"text": block.strip()})
            for given in texts
            for block in given.text.split("\n\n")
            if block.strip()
        ]
        self._places: dict[str, list[int]] = {}
        for place, part in enumerate(self._parts):
            for term in frozenset(terms(part.text)):
                self._places.setdefault(term, []).append(place)

    def near(self, sentence: str) -> Sequence[CheckedPassage]:
        """At most PASSAGES of them, best first."""
        asked = sorted((self._places.get(term, ()) for term in frozenset(terms(sentence))), key=len)
        shared = Counter[int]()
        for places in asked:
            if shared and len(places) > _COMMON:
                break  # the words behind it are no rarer
            shared.update(places)
        best = nlargest(PASSAGES, shared.items(), key=lambda item: (item[1], -item[0]))
        return [self._parts[place] for place, _ in best]


def passage_of(hit: Hit) -> CheckedPassage:
    """A hit as a passage."""
    return CheckedPassage(path=hit.path, title=hit.title, chunk_id=hit.chunk_id, text=hit.text)


def _checked(
    start: int, sentence: str, verdict: ClaimVerdict, passages: Sequence[CheckedPassage], each: Sequence[ClaimVerdict]
) -> CheckedSentence:
    name: Literal["supported", "contradicted", "unsupported", "no claim"]
    if verdict.kind == "no claim":
        name = "no claim"
    elif verdict.verdict is Verdict.SUPPORTED:
        name = "supported"
    else:
        name = "contradicted" if verdict.contradicted else "unsupported"
    shown = name in {"supported", "contradicted"} and verdict.passage is not None
    least = _SAME if name == "supported" else 0.0
    supporting = [p for p, one in zip(passages, each, strict=True) if one.verdict is Verdict.SUPPORTED]
    contradicting = [p for p, one in zip(passages, each, strict=True) if one.contradicted and one.share >= least]
    return CheckedSentence(
        start=start,
        end=start + len(sentence),
        text=sentence,
        verdict=name,
        kind=verdict.kind,
        reason=verdict.reason,
        passage=passages[verdict.passage] if shown and verdict.passage is not None else None,
        supporting=tuple(supporting) if name == "supported" else (),
        contradicting=tuple(contradicting) if name in {"supported", "contradicted"} else (),
    )


def _checked_line(number: int, raw: bytes) -> LineVerdict:
    try:
        given = ClaimLine.model_validate(json.loads(raw.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        return LineVerdict(line=number, error=f"byte {error.start} is no UTF-8: write it in UTF-8")
    except ValidationError as error:
        return LineVerdict(line=number, error=str(request_fault(error)))
    except (ValueError, RecursionError) as error:
        return LineVerdict(line=number, error=f"it is no JSON: {json_fault(error)}")
    passages = [given.passage] if isinstance(given.passage, str) else given.passage
    verdict = judge(given.claim, passages)
    return LineVerdict(line=number, id=given.id, verdict=verdict.verdict, kind=verdict.kind, reason=verdict.reason)
