"""A claim is supported by a passage that no check objects to. Pure, no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum

from pydantic import Field

from shared.grounding.alignment import NEAR, Alignment, align
from shared.grounding.checks import CHECKS, CONTRADICTING
from shared.grounding.coverage import content_units
from shared.grounding.rows import Row, told_by_rows
from shared.grounding.tokens import tokens_of
from shared.models.base import Model

#: A longer claim is no sentence. With the length of a part they bound the time of one comparison.
MAX_CLAIM_CHARS, MAX_CLAIM_TOKENS = 4_000, 300
#: Passages are compared in parts of so many characters, each of which has so many of the one before.
PART_CHARS, OVERLAP_CHARS = 6_000, 2_000


#: A claim of so many clauses is looked at clause by clause too, those of so many words of weight, by these checks;
#: one that the passage has nearly word for word is not.
_SEVERAL, _STATEMENT, _WHOLE = 2, 3, 0.9
CLAUSE_KINDS = frozenset({"number", "name", "roles", "opposed", "changed"})


_MARK = r"\[\d{1,3}(?:[,;] ?\d{1,3})*\]"
#: Apart from the word before them, or at the end of a clause or a sentence.
_SOURCES = re.compile(
    rf"(?<=[^\s\[(])[ \t](?:{_MARK})++|(?:{_MARK})++(?=[.,;:!?。，；：！？\s]*$|[.,;:!?。，；：！？]\s)"
)

_NO_ROWS = Row("")

#: What stands before a sentence, and how it ends; a short word and a full stop may be an abbreviation.
_BEGINS = re.compile(r"(?:\n|[。！？]|(?:[!?]|(?:[^\W_]{5}|\d)\.)[\"'”’)\]]*[ \t])[ \t]*$")
_ENDS = re.compile(r"[。！？]|[.!?][\"'”’)\]]*(?=\s|$)|[ \t]*(?:\n|$)")
_MARKS, _EDGE = frozenset(".!?。！？"), 16


class Verdict(StrEnum):
    """What the passages say of a claim."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ClaimVerdict(Model):
    """What was found of one claim.

    `kind`: the check that objected; of a supported claim "quote" (its own words stand there), "words", or "no claim".
    `share`: how much of the claim stands in that passage in its order, 0..1.
    """

    verdict: Verdict
    kind: str
    reason: str = ""
    passage: int | None = Field(default=None, description="from 0, the one that supports it or comes nearest to it")
    share: float = 0.0

    @property
    def contradicted(self) -> bool:
        """Whether the passage speaks of the same and says another thing."""
        return self.kind in CONTRADICTING and self.share >= NEAR


def judge(claim: str, passages: Sequence[str]) -> ClaimVerdict:
    """Whether one of the `passages` says what `claim` says; of those that do not, the one that comes nearest.

    Numbers of sources in it, such as " [1]", are no part of the claim.
    """
    claim = _SOURCES.sub("", claim)
    said = tokens_of(claim[:MAX_CLAIM_CHARS])
    if len(claim) > MAX_CLAIM_CHARS or len(said.tokens) > MAX_CLAIM_TOKENS:
        reason = f"it has more than {MAX_CLAIM_TOKENS} words: it was not read"
        return ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind="too long", reason=reason)
    if not content_units(said.tokens):
        return ClaimVerdict(verdict=Verdict.SUPPORTED, kind="no claim", reason="it states nothing")
    refused = ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind="coverage", reason="no passage speaks of it")
    for number, part in ((number, part) for number, text in enumerate(passages) for part in _parts(text)):
        if _is_sentence(claim.strip(), part):
            return ClaimVerdict(verdict=Verdict.SUPPORTED, kind="quote", passage=number, share=1.0)
        rows = told_by_rows(said, part)
        passage = tokens_of(rows.text)
        found = align(said.told_as(passage), passage)
        verdict = _verdict(found, number, rows)
        if verdict.verdict is Verdict.SUPPORTED and (other := _part_refused(found, number)):
            verdict = other
        if verdict.verdict is Verdict.SUPPORTED:
            return verdict
        if refused.passage is None or found.share > refused.share:
            refused = verdict
    return refused


def _is_sentence(claim: str, passage: str) -> bool:
    """Whether a claim is a sentence of a passage, or several, character by character: no check can object to it."""
    start = passage.find(claim)
    while start >= 0:
        end = start + len(claim)
        before = start == 0 or _BEGINS.search(passage, max(0, start - _EDGE), start) is not None
        if before and _ENDS.match(passage, end - 1 if claim[-1:] in _MARKS else end):
            return True
        start = passage.find(claim, end)
    return False


def _part_refused(found: Alignment, passage: int) -> ClaimVerdict | None:
    """The verdict on the clause of a supported claim that the passage contradicts, taken by itself."""
    claim = found.claim
    if len(claim.clauses) < _SEVERAL or found.share >= _WHOLE:
        return None
    for first, last in claim.clauses:
        if sum(1 for unit in claim.units[first:last] if unit) < _STATEMENT:
            continue
        clause = align(tokens_of(claim.text[claim.tokens[first].start : claim.tokens[last - 1].end]), found.passage)
        verdict = _verdict(clause, passage)
        if verdict.kind in CLAUSE_KINDS:
            return verdict
    return None


def _parts(text: str) -> Iterator[str]:
    """A long passage part by part; what stands at the end of one stands at the start of the next one too."""
    step = PART_CHARS - OVERLAP_CHARS
    for start in range(0, max(1, len(text) - OVERLAP_CHARS), step):
        yield text[start : start + PART_CHARS]


def _verdict(found: Alignment, passage: int, rows: Row = _NO_ROWS) -> ClaimVerdict:
    share = round(found.share, 3)
    if rows.worked_out:
        return ClaimVerdict(verdict=Verdict.SUPPORTED, kind="words", passage=passage, share=share)
    if rows.objection:
        kind = "number"
        return ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind=kind, reason=rows.objection, passage=passage, share=share)
    for kind, check in CHECKS:
        if reason := check(found):
            return ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind=kind, reason=reason, passage=passage, share=share)
    kind = "words" if found.deviations else "quote"
    return ClaimVerdict(verdict=Verdict.SUPPORTED, kind=kind, passage=passage, share=share)
