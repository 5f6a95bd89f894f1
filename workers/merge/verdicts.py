"""What an answer says of its sources as a whole: contradicting, out of date, each with its citations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from shared.grounding.conflicts import Conflict, Statement, conflict
from shared.language import reader_sentence
from shared.models import MergedHit, PagePart, Summary
from shared.models.answer import MissingReason
from shared.models.support import AnswerSentence, Quotation, Support, report_of
from shared.models.verdicts import AnswerVerdict, Contradiction, StaleSource
from workers.display import plain_line
from workers.merge.citations import citation, quotation
from workers.merge.pieces import QuotableSentence, quotable_sentences
from workers.merge.stale import stale_sources

#: Results among which a contradicting passage is looked for, and sentences of the answer that are held against them.
_BEST, _SENTENCES = 12, 12
_MOST = 3
#: Of the words of the shorter of two sentences, these many stand in the other before they are compared.
_ALIKE = 0.5


def with_verdicts(summary: Summary, hits: Sequence[MergedHit], question: str, today: str) -> Summary:
    """`summary`, whose support is known, with a line for each contradiction and each source that is out of date."""
    if summary.support is None or not summary.citations:
        return summary
    found = tuple(_contradictions(summary.support.spans, hits, question))
    cited = dict.fromkeys(chain((one.number for one in summary.citations), (one.other.number for one in found)))
    stale = tuple(stale_sources(cited, hits, question, today))
    lines = [*(_contradicting(one, question) for one in found), *(_stale_line(one, question) for one in stale)]
    if not lines:
        return summary
    quotes = [(one.one, one.other) for one in found] + [()] * len(stale)
    text, spans = f"{summary.text}\n", list(summary.support.spans)
    for line, rests_on in zip(lines, quotes, strict=True):
        start = len(text) + 1
        text = f"{text}\n{line}"
        kind = "quote" if rests_on else "structure"
        spans.append(AnswerSentence(start=start, end=len(text), kind=kind, quotes=rests_on))
    known = {one.number: one for one in summary.citations}
    named = {one.other.number: one.other.text for one in found} | {one.newer: "" for one in stale if one.newer}
    known |= {n: citation(n, hits[n - 1], quote) for n, quote in named.items() if n not in known}
    return summary.model_copy(
        update={
            "text": text,
            "citations": tuple(known[number] for number in sorted(known)),
            "support": report_of(tuple(spans), summary.support.removed),
            "contradictions": found,
            "stale": stale,
        }
    )


def verdicts_of(summary: Summary, verdict: str | None) -> tuple[str, ...]:
    """The codes of an answer. `verdict`: its own, that of all its leaves."""
    own = {"nothing relevant": AnswerVerdict.NOTHING_RELEVANT, "no retrieval needed": AnswerVerdict.NO_RETRIEVAL}
    nothing = [AnswerVerdict.NOTHING_RELEVANT] if _found_nothing(summary) else []
    held = [own[verdict]] if verdict in own else nothing
    held += [AnswerVerdict.CONTRADICTING_SOURCES] if summary.contradictions else []
    held += [AnswerVerdict.STALE_SOURCE] if summary.stale else []
    return tuple(code.value for code in held)


def _found_nothing(summary: Summary) -> bool:
    """Whether the text says that the corpus has nothing on the question."""
    nothing = (one.reason in {MissingReason.NOTHING_FOUND, MissingReason.UNNAMED} for one in summary.missing)
    return not summary.citations and any(nothing)


def _contradictions(
    spans: Sequence[AnswerSentence], hits: Sequence[MergedHit], question: str
) -> Iterator[Contradiction]:
    """At most three, each pair of pages once."""
    quotes = [quote for one in spans if one.support is not Support.UNSUPPORTED for quote in one.quotes]
    rivals = [one for one in quotable_sentences(hits[:_BEST]) if not one.code]
    told: set[frozenset[str]] = set()
    for quote in quotes[:_SENTENCES]:
        hit = hits[quote.number - 1]
        said = Statement(quote.text, hit.title, hit.heading)
        own = next((one.words for one in quotable_sentences([hit]) if one.quote == quote.text), frozenset())
        for rival in rivals:
            other = hits[rival.number - 1]
            pair = frozenset((hit.doc_id, other.doc_id))
            if pair in told or not _comparable(hit, other, own, rival):
                continue
            if found := conflict(said, Statement(rival.quote, other.title, other.heading), question):
                told.add(pair)
                yield _told(found, quote, quotation(rival.number, other, rival.quote))
            if len(told) == _MOST:
                return


def _comparable(hit: MergedHit, other: MergedHit, own: frozenset[str], rival: QuotableSentence) -> bool:
    if hit.doc_id == other.doc_id or PagePart.TIMELINE in {hit.part, other.part}:
        return False
    return len(own & rival.words) >= max(1.0, _ALIKE * min(len(own), len(rival.words)))


def _told(found: Conflict, one: Quotation, other: Quotation) -> Contradiction:
    return Contradiction(kind=found.kind.value, one=one, other=other, values=(found.one, found.other))


def _contradicting(found: Contradiction, question: str) -> str:
    texts = (plain_line(one.text) for one in (found.one, found.other))
    (one, other), numbers = texts, (found.one.number, found.other.number)
    return reader_sentence("contradicting", question, one, numbers[0], other, numbers[1])


def _stale_line(found: StaleSource, question: str) -> str:
    why = reader_sentence(f"stale_{found.reason.value}", question, found.said)
    line = reader_sentence("stale", question, found.number, why)
    return f"{line} {reader_sentence('stale_newer', question, found.newer)}" if found.newer else line
