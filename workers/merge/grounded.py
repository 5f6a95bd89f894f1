"""Holds each sentence of an LLM's summary against the sources it cites; what they do not say is mended or goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.grounding import ClaimVerdict, Verdict, judge
from shared.language import alternatives, derived
from shared.language.sentences import BlockKind, sentence_spans
from shared.language.text import fold, has_cjk, is_cjk_text
from shared.models.answer import RemovedSentence, SupportedSentence, SupportReport
from shared.models.hits import MergedHit

_MARK = re.compile(r"\[(\d{1,9})\]")
_MARKS = re.compile(r"(?:[ \t]?\[\d{1,9}\])+")
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]++`(?!`)")
_CLAUSE = re.compile(r"(?<=[,;，；])\s*+|(?<!\s)\s++(?=[–—] )")
_MARKER_ONLY = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)、])[ \t]*(?:\n|\Z)", re.MULTILINE)
#: A sentence that is cut keeps at least this share of its characters.
_LEAST_LEFT = 0.4
#: Sources that a sentence is tried against when those that it cites do not support it.
_OTHERS = 12


@dataclass(frozen=True)
class GroundedText:
    """A summary of which each sentence is supported, and what became of the others."""

    text: str
    report: SupportReport


@dataclass(frozen=True, slots=True)
class _Unit:
    """`text[start:end]` of the summary: a sentence with the citations behind it; code and headings claim nothing."""

    start: int
    end: int
    claims: bool


def grounded(text: str, sources: Sequence[MergedHit]) -> GroundedText:
    """`text`, whose `[n]` stand for `sources`, without what they do not say."""
    passages = [hit.full_text for hit in sources]
    kept: list[str] = []
    found: list[SupportedSentence] = []
    removed: list[RemovedSentence] = []
    place = length = 0
    for unit in _units(text):
        between, body = text[place : unit.start], text[unit.start : unit.end]
        place = unit.end
        held = _held(body, passages) if unit.claims else _HeldSentence(body, "no claim")
        if held.text:
            between = between if kept or not between.isspace() else ""
            length += len(between)
            found.append(SupportedSentence(start=length, end=length + len(held.text), kind=held.kind, cut=held.cut))
            kept += (between, held.text)
            length += len(held.text)
        else:
            removed.append(RemovedSentence(text=_bare(body), kind=held.kind, reason=held.reason))
            if "\n" in between and kept:
                kept.append(between)
                length += len(between)
    whole = "".join((*kept, text[place:]))
    return GroundedText(*_tidied(whole, found, removed))


@dataclass(frozen=True, slots=True)
class _HeldSentence:
    """What stays of a sentence; "" where nothing does, then `kind` and `reason` say why."""

    text: str
    kind: str
    reason: str = ""
    cut: str = ""


def _held(body: str, passages: Sequence[str]) -> _HeldSentence:
    claim, cited = _bare(body), list(dict.fromkeys(int(number) for number in _MARK.findall(body)))
    own = [passages[number - 1] for number in cited]
    if not cited and _absence().search(fold(claim)):
        return _HeldSentence(body, "no claim")
    if own and all(_other_script(claim, passage) for passage in own):
        return _HeldSentence(body, "other language")
    verdict = judge(claim, [*own, "\n".join(own)] if len(own) > 1 else own)
    if verdict.kind == "no claim" or (cited and verdict.verdict is Verdict.SUPPORTED):
        return _HeldSentence(body, verdict.kind)
    moved = _moved(claim, cited, passages)
    if moved is not None:
        return _HeldSentence(_citing(claim, [moved]), "moved")
    if cited and (kept := _shortened(claim, own)):
        return _HeldSentence(
            _citing(f"{kept}。" if has_cjk(claim) else f"{kept}.", cited), "cut", cut=claim[len(kept) :]
        )
    return _HeldSentence("", verdict.kind, verdict.reason if cited else "it cites no source, and none says it")


def _citing(claim: str, numbers: Sequence[int]) -> str:
    """The sentence with its citations before its full stop."""
    body = claim.rstrip(".!?。！？")
    space = "" if has_cjk(claim) else " "
    return f"{body}{space}{''.join(f'[{number}]' for number in numbers)}{claim[len(body) :]}"


def _moved(claim: str, cited: Sequence[int], passages: Sequence[str]) -> int | None:
    """The number of another source that says it."""
    others = [number for number in range(1, len(passages) + 1) if number not in cited][:_OTHERS]
    verdict = judge(claim, [passages[number - 1] for number in others])
    is_found = verdict.verdict is Verdict.SUPPORTED and verdict.passage is not None
    return others[verdict.passage] if is_found and verdict.passage is not None else None


def _shortened(claim: str, own: Sequence[str]) -> str:
    """The longest beginning of the sentence, up to a comma, that its sources support; "" where there is none."""
    ends = [found.start() for found in _CLAUSE.finditer(claim)]
    for end in reversed(ends):
        shorter = claim[:end].rstrip(" ,;，；–—")
        if len(shorter) < _LEAST_LEFT * len(claim):
            return ""
        verdict: ClaimVerdict = judge(shorter, own)
        if verdict.verdict is Verdict.SUPPORTED and verdict.kind != "no claim":
            return shorter
    return ""


def _units(text: str) -> Iterator[_Unit]:
    """Sentences in order, each with the citations that stand behind its full stop."""
    waiting: _Unit | None = None
    # A full stop in a code span ends no sentence.
    text = _CODE_SPAN.sub(lambda code: re.sub(r"[.!?。！？]", "_", code[0]), text)
    for span in sentence_spans(text):
        start, claims = span.start, span.kind not in {BlockKind.FENCE, BlockKind.HEADING}
        marks = _MARKS.match(text, start)
        if waiting is not None and waiting.claims and marks:
            start = min(marks.end(), span.end)
            waiting = _Unit(waiting.start, start, claims=True)
            start += len(text[start : span.end]) - len(text[start : span.end].lstrip())
        if waiting is not None:
            yield waiting
        waiting = _Unit(start, span.end, claims) if start < span.end else None
    if waiting is not None:
        yield waiting


def _tidied(
    text: str, found: Sequence[SupportedSentence], removed: Sequence[RemovedSentence]
) -> tuple[str, SupportReport]:
    """Without the markers of list items that have lost their sentence."""
    if removed:
        for empty in reversed(list(_MARKER_ONLY.finditer(text))):
            if any(one.start < empty.end() and empty.start() < one.end for one in found):
                continue
            gone = empty.end() - empty.start()
            text = text[: empty.start()] + text[empty.end() :]
            found = [
                one.model_copy(update={"start": one.start - gone, "end": one.end - gone})
                if one.start >= empty.end()
                else one
                for one in found
            ]
    claims = [one for one in found if one.kind != "no claim"]
    repaired = sum(one.kind in {"moved", "cut"} for one in claims)
    unchecked = sum(one.kind == "other language" for one in claims)
    report = SupportReport(
        sentences=len(claims) + len(removed),
        supported=len(claims) - repaired - unchecked,
        repaired=repaired,
        unchecked=unchecked,
        removed=tuple(removed),
        spans=tuple(found),
    )
    return text.rstrip(), report


def _bare(body: str) -> str:
    """The sentence without its citations."""
    return re.sub(r"\s+([.,;:!?。，；：！？])", r"\1", _MARKS.sub("", body)).strip()


def _other_script(claim: str, passage: str) -> bool:
    return is_cjk_text(claim) != is_cjk_text(passage)


@derived
def _absence() -> re.Pattern[str]:
    """What a summary says of its sources as a whole: that they do not say something."""
    return re.compile(alternatives(lambda language: [language.claims.absences]))
