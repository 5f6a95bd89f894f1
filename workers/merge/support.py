"""What each sentence of an answer rests on, whoever wrote it: its place, and the characters of its sources. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shared.language.text import terms
from shared.models import Hit, MergedHit, Summary
from shared.models.enumeration import ListTable
from shared.models.support import AnswerSentence, Quotation, Support, SupportReport, report_of
from workers.merge.citations import quotation
from workers.merge.findings import Aggregated
from workers.merge.grounded import bare, cited_in, held_sentence
from workers.merge.pieces import QuotableSentence, code_blocks, quotable_sentences

_FENCE = re.compile(r"`{3,}")
#: A block of code is one line with the citation below it.
_LINE = re.compile(
    r"^(`{3,}+)[^\n]*+\n(?:[\s\S]*?\n)??\1[ \t]*+$(?:\n(?:\[\d{1,9}\])++[ \t]*+$)?|^[^\n]*\S(?=[ \t]*$)", re.MULTILINE
)
_ROW = re.compile(r"\|\s*(\d{1,6})\s*\|")
#: Sentences that a rule makes of what the index knows are no words of their sources; these begin with what they name.
_NAMED = re.compile(r"`[^`\n]+`")


def with_support(made: Aggregated, hits: Sequence[MergedHit]) -> Aggregated:
    """`made` with the sentences of its text and of its steps, each with the quotes of the hits that it cites."""
    steps = tuple(step.model_copy(update={"spans": tuple(_spans(step.text, hits))}) for step in made.steps)
    summary = made.summary.model_copy(update={"support": _report(made.summary, made.table, hits)})
    return made.model_copy(update={"summary": summary, "steps": steps})


def best_quote(hit: Hit, claim: str) -> str:
    """The sentence of `hit` that shares most terms with `claim`; its first one when none does, "" without any."""
    asked = frozenset(terms(claim))
    sentences = quotable_sentences([hit])
    best = max(sentences, key=lambda p: (len(p.words & asked) / len(p.words | asked), -p.position), default=None)
    return best.quote if best else ""


def _report(summary: Summary, table: ListTable | None, hits: Sequence[MergedHit]) -> SupportReport | None:
    if not summary.text:
        return summary.support
    if summary.support is not None:  # held sentence by sentence when it was written
        spans = (_quoted(summary.text, one, hits) for one in summary.support.spans)
        return summary.support.model_copy(update={"spans": tuple(spans)})
    return report_of(tuple(_spans(summary.text, hits) if table is None else _listed(summary, table, hits)))


def _quoted(text: str, one: AnswerSentence, hits: Sequence[MergedHit]) -> AnswerSentence:
    """A sentence of an LLM with what of each source is most like it; of an unsupported one, nothing is."""
    if one.support in {Support.NOTHING, Support.UNSUPPORTED}:
        return one
    body = text[one.start : one.end]
    claim = bare(body)
    quotes = (quotation(n, hits[n - 1], best_quote(hits[n - 1], claim)) for n in cited_in(body) if n <= len(hits))
    return one.model_copy(update={"quotes": tuple(quotes)})


def _spans(text: str, hits: Sequence[MergedHit], begin: int = 0, stop: int | None = None) -> Iterator[AnswerSentence]:
    """The lines of a text that rules made; what is quoted stands in its source as it is."""
    for line in _LINE.finditer(text, begin, len(text) if stop is None else stop):
        (start, end), body = line.span(), line[0]
        cited = [number for number in cited_in(body) if number <= len(hits)]
        found = [_found(body, hits[number - 1], number) for number in cited]
        quotes = tuple(one for one in found if one is not None)
        if not cited:
            yield AnswerSentence(start=start, end=end, support=Support.NOTHING, kind="no claim")
        elif quotes:
            yield AnswerSentence(start=start, end=end, kind="quote", quotes=quotes)
        else:
            yield _worded(body, start, cited, hits)


def _worded(body: str, start: int, cited: Sequence[int], hits: Sequence[MergedHit]) -> AnswerSentence:
    """A line that is no quote: made of what the index knows of a definition, or held as the sentence of an LLM is."""
    end = start + len(body)
    quotes = tuple(quotation(number, hits[number - 1], best_quote(hits[number - 1], body)) for number in cited)
    if _NAMED.search(body) and all(hits[number - 1].symbol for number in cited):
        return AnswerSentence(start=start, end=end, kind="structure", quotes=quotes)
    held = held_sentence(body, [hit.full_text for hit in hits])
    if held.text == body:
        return AnswerSentence(start=start, end=end, kind=held.kind, quotes=quotes)
    return AnswerSentence(start=start, end=end, support=Support.UNSUPPORTED, kind=held.kind, reason=held.reason)


def _found(body: str, hit: Hit, number: int) -> Quotation | None:
    """The longest piece of a hit that a line shows."""
    shown = bare(body)
    pieces: list[QuotableSentence] = code_blocks([hit]) if _FENCE.match(shown) else quotable_sentences([hit])
    best = max((one for one in pieces if one.text in shown), key=lambda one: len(one.text), default=None)
    return quotation(number, hit, best.quote) if best else None


def _listed(summary: Summary, table: ListTable, hits: Sequence[MergedHit]) -> Iterator[AnswerSentence]:
    """The lines of a list: each row with the sentence of its document, below what was counted; then what was searched.

    What was counted under words that were not understood is no claim. Where sources are cited, rows have no numbers.
    """
    text, rows = summary.text, 0
    for start, end in (line.span() for line in _LINE.finditer(text)):
        row = _ROW.match(text, start)
        if row is not None and int(row[1]) == rows + 1 <= len(table.rows):
            said, rows = table.rows[rows].sentence, rows + 1
            quotes = (Quotation(number=rows, text=said),) if said and not summary.citations else ()
            yield AnswerSentence(start=start, end=end, kind="structure", quotes=quotes)
        elif summary.citations and rows and cited_in(text[start:end]):
            yield from _spans(text, hits, start, end)
        else:
            head = start == 0 and not table.unread
            state = Support.SUPPORTED if head else Support.NOTHING
            yield AnswerSentence(start=start, end=end, support=state, kind="structure" if head else "no claim")
