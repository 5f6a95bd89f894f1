"""Holds each sentence of an LLM's summary against its sources; what they do not say is mended, marked or goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from shared.grounding import NEAR, ClaimVerdict, Verdict, judge
from shared.language import claim_pattern, languages, reader_sentence
from shared.language.sentences import BlockKind, sentence_spans
from shared.language.text import fold, has_cjk, is_cjk_text
from shared.models.hits import MergedHit
from shared.models.support import AnswerSentence, RemovedSentence, Support, SupportReport, report_of

_MARK = re.compile(r"\[(\d{1,9})\]")
_MARKS = re.compile(r"(?:[ \t]?\[\d{1,9}\])+")
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]++`(?!`)")
_CLAUSE = re.compile(r"(?<=[,;，；])\s*+|(?<!\s)\s++(?=[–—] )")
_MARKER_ONLY = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)、])[ \t]*(?:\n|\Z)", re.MULTILINE)
_PAIRS = ("()", "[]", "{}", "（）", "【】", "《》", "“”", "「」", "『』")
#: A sentence that is cut keeps at least this share of its characters.
_LEAST_LEFT = 0.4
#: Sources that a sentence is tried against when those that it cites do not support it.
_OTHERS = 12
#: What the lexical checks object to in words that may say the same; the others object to what is another thing.
_UNDECIDED = frozenset({"coverage", "changed"})
#: A claim in words of its own of which less than this stands in its source in order has barely passed.
_BARELY = 0.5
#: A claim with the text of the sources that it cites -> whether they say it, for those pairs that could be told.
Opinions = Mapping[tuple[str, str], bool]
Verify = Callable[[Sequence[tuple[str, str]]], Opinions]
_STATES = {
    "no claim": Support.NOTHING, "other language": Support.UNCHECKED, "moved": Support.REPAIRED, "cut": Support.REPAIRED
}  # fmt: skip


@dataclass(frozen=True)
class GroundedText:
    """A summary of which each sentence is supported or marked, and what became of the others."""

    text: str
    report: SupportReport


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """`text[start:end]` of the summary: a sentence with the citations behind it; code and headings claim nothing."""

    start: int
    end: int
    claims: bool


def grounded(
    text: str, sources: Sequence[MergedHit], *, mark: bool = False, verify: Verify | None = None
) -> GroundedText:
    """`text`, whose `[n]` stand for `sources`, without what they do not say; with `mark`, that stays and is marked.

    `verify` is asked, once, about the sentences that the words leave undecided.
    """
    passages = [hit.full_text for hit in sources]
    units = list(units_of(text))
    opinions = _opinions([text[one.start : one.end] for one in units if one.claims], passages, verify)
    kept: list[str] = []
    found: list[AnswerSentence] = []
    removed: list[RemovedSentence] = []
    place = length = 0
    for unit in units:
        between, body = text[place : unit.start], text[unit.start : unit.end]
        place = unit.end
        held = held_sentence(body, passages, opinions) if unit.claims else HeldSentence(body, "no claim")
        if mark and not held.text:
            held = _marked(body, held)
        if held.text:
            between = between if kept or not between.isspace() else ""
            length += len(between)
            found.append(_placed(held, length))
            kept += (between, held.text)
            length += len(held.text)
        else:
            removed.append(RemovedSentence(text=bare(body), kind=held.kind, reason=held.reason))
            if "\n" in between and kept:
                kept.append(between)
                length += len(between)
    whole = "".join((*kept, text[place:]))
    return GroundedText(*_tidied(whole, found, removed))


@dataclass(frozen=True, slots=True)
class HeldSentence:
    """What stays of a sentence; "" where nothing does, then `kind` and `reason` say why."""

    text: str
    kind: str
    reason: str = ""
    cut: str = ""
    unsupported: bool = False


def _placed(held: HeldSentence, start: int) -> AnswerSentence:
    state = Support.UNSUPPORTED if held.unsupported else _STATES.get(held.kind, Support.SUPPORTED)
    end = start + len(held.text)
    return AnswerSentence(start=start, end=end, support=state, kind=held.kind, cut=held.cut, reason=held.reason)


def _marked(body: str, held: HeldSentence) -> HeldSentence:
    """The sentence as it was, with words behind it that say that its sources do not say it."""
    space = "" if has_cjk(body) else " "
    return replace(held, text=f"{body}{space}{reader_sentence('unsupported', body)}", unsupported=True)


def held_sentence(body: str, passages: Sequence[str], opinions: Opinions = MappingProxyType({})) -> HeldSentence:
    """What stays of one sentence whose `[n]` stand for `passages`."""
    claim, cited = bare(body), [number for number in cited_in(body) if number <= len(passages)]
    own = [passages[number - 1] for number in cited]
    if not cited and claim_pattern("absences").search(fold(claim)):
        return HeldSentence(body, "no claim")
    opinion = opinions.get((claim, _joined(own)))
    if opinion is None and own and all(_other_script(claim, passage) for passage in own):
        return HeldSentence(body, "other language")
    verdict = _judged(claim, own) if opinion is None else _VERIFIED if opinion else _UNVERIFIED
    if verdict.kind == "no claim" or (cited and verdict.verdict is Verdict.SUPPORTED):
        return HeldSentence(body, verdict.kind)
    return _mended(claim, cited, passages, verdict) or HeldSentence(
        "", verdict.kind, verdict.reason if cited else "it cites no source, and none says it"
    )


def _mended(claim: str, cited: Sequence[int], passages: Sequence[str], refused: ClaimVerdict) -> HeldSentence | None:
    """The sentence with a source that says it, or without the end that none says.

    What the cited source speaks of, and says otherwise, is not moved to a source that says it less exactly than that.
    """
    least = refused.share if refused.share >= NEAR and refused.kind != "coverage" else 0.0
    moved = _moved(claim, cited, passages, least)
    if moved is not None:
        return HeldSentence(_citing(claim, [moved]), "moved")
    if cited and (kept := _shortened(claim, [passages[number - 1] for number in cited])):
        whole = f"{kept}。" if has_cjk(claim) else f"{kept}."
        return HeldSentence(_citing(whole, cited), "cut", cut=claim[len(kept) :])
    return None


_VERIFIED = ClaimVerdict(verdict=Verdict.SUPPORTED, kind="verifier")
_UNVERIFIED = ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind="verifier", reason="the verifier finds it in no source")


def _opinions(bodies: Sequence[str], passages: Sequence[str], verify: Verify | None) -> Opinions:
    """What the verifier says of the sentences that the words leave undecided or that barely pass."""
    if verify is None:
        return {}
    asked: dict[tuple[str, str], None] = {}
    for body in bodies:
        claim, own = bare(body), [passages[number - 1] for number in cited_in(body) if number <= len(passages)]
        if not own:
            continue
        if not all(_other_script(claim, passage) for passage in own):
            verdict = _judged(claim, own)
            barely = verdict.kind == "words" and verdict.share < _BARELY
            if verdict.kind not in _UNDECIDED and not barely:
                continue
        asked[claim, _joined(own)] = None
    return verify(list(asked)) if asked else {}


def _joined(own: Sequence[str]) -> str:
    return "\n".join(own)


def _judged(claim: str, own: Sequence[str]) -> ClaimVerdict:
    return judge(claim, [*own, _joined(own)] if len(own) > 1 else own)


def cited_in(body: str) -> list[int]:
    """The numbers of the sources that a sentence cites, in order; `FLASH_TABLE[2]` in code cites none."""
    return list(dict.fromkeys(int(number) for number in _MARK.findall(_CODE_SPAN.sub("", body))))


def _citing(claim: str, numbers: Sequence[int]) -> str:
    """The sentence with its citations before its full stop."""
    body = claim.rstrip(".!?。！？")
    space = "" if has_cjk(claim) else " "
    return f"{body}{space}{''.join(f'[{number}]' for number in numbers)}{claim[len(body) :]}"


def _moved(claim: str, cited: Sequence[int], passages: Sequence[str], least: float) -> int | None:
    """The number of another source that says it, with this share of its words in their order."""
    others = [number for number in range(1, len(passages) + 1) if number not in cited][:_OTHERS]
    found = ((number, judge(claim, [passages[number - 1]])) for number in others)
    return next((n for n, one in found if one.verdict is Verdict.SUPPORTED and one.share >= least), None)


def _shortened(claim: str, own: Sequence[str]) -> str:
    """The longest beginning of the sentence, up to a comma, that its sources support; "" where there is none."""
    ends = [found.start() for found in _CLAUSE.finditer(claim)]
    for end in reversed(ends):
        shorter = claim[:end].rstrip(" ,;，；–—")
        if len(shorter) < _LEAST_LEFT * len(claim):
            return ""
        if _hangs(shorter):
            continue
        verdict: ClaimVerdict = judge(shorter, own)
        if verdict.verdict is Verdict.SUPPORTED and verdict.kind != "no claim":
            return shorter
    return ""


def _hangs(text: str) -> bool:
    """Whether a beginning of a sentence waits for its end: within brackets or quotes, or behind an "if"."""
    if any(text.count(pair[0]) > text.count(pair[1]) for pair in _PAIRS) or text.count('"') % 2:
        return True
    clauses = _CLAUSE.split(text)
    return (len(clauses) == 1 or has_cjk(text)) and any(one.claims.condition.search(clauses[-1]) for one in languages())


def units_of(text: str) -> Iterator[CitedSentence]:
    """Sentences in order, each with the citations that stand behind its full stop."""
    waiting: CitedSentence | None = None
    # A full stop in a code span ends no sentence.
    text = _CODE_SPAN.sub(lambda code: re.sub(r"[.!?。！？]", "_", code[0]), text)
    for span in sentence_spans(text):
        start, claims = span.start, span.kind not in {BlockKind.FENCE, BlockKind.HEADING}
        marks = _MARKS.match(text, start)
        if waiting is not None and waiting.claims and marks:
            start = min(marks.end(), span.end)
            waiting = CitedSentence(waiting.start, start, claims=True)
            start += len(text[start : span.end]) - len(text[start : span.end].lstrip())
        if waiting is not None:
            yield waiting
        waiting = CitedSentence(start, span.end, claims) if start < span.end else None
    if waiting is not None:
        yield waiting


def _tidied(
    text: str, found: Sequence[AnswerSentence], removed: Sequence[RemovedSentence]
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
    return text.rstrip(), report_of(tuple(found), tuple(removed))


def bare(body: str) -> str:
    """The sentence without its citations."""
    return re.sub(r"\s+([.,;:!?。，；：！？])", r"\1", _MARKS.sub("", body)).strip()


def _other_script(claim: str, passage: str) -> bool:
    return is_cjk_text(claim) != is_cjk_text(passage)
