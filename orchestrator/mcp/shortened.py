"""Results as the views that a model gets of them, within a number of characters. What is cut is named. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from orchestrator.checking import CheckedPassage, CheckedSentence, TextCheck
from orchestrator.mcp.addresses import chunk_address, chunk_address_of, document_address
from orchestrator.mcp.views import (
    AnswerView,
    BatchView,
    CancelView,
    CheckView,
    ClaimView,
    DiffView,
    FindView,
    IngestView,
    PassageView,
    SearchView,
    SourceView,
    StatusView,
)
from orchestrator.operations.jobs import Cancelled
from orchestrator.records.diff import AnswerDifference
from shared.errors import shown
from shared.hidden import visible
from shared.jobs.states import TERMINAL
from shared.models import Answer, BatchStatus, Citation, Hit, JobStatus
from shared.models.answer import MissingReason
from shared.models.enumeration import ListRow
from shared.models.find import FindResult, SessionResult
from shared.models.ingest import IngestResult
from shared.models.support import Support

#: Characters of one passage, of a quote, and of a line such as a warning.
_PASSAGE, _QUOTE, _LINE = 2_000, 500, 400
#: What an entry takes besides its longest text, about.
_ENTRY = 250
#: Warnings and the like, and what is left out and named.
_LINES, _NAMED = 12, 6
#: Share of a result that an answer's text may take.
_TEXT_SHARE = 0.6
_MISSING = {
    MissingReason.NOTHING_FOUND: "nothing was found",
    MissingReason.UNNAMED: "no document names it",
    MissingReason.UNSAID: "the passages found do not say it",
}
T = TypeVar("T")


class Fitted(NamedTuple):
    """The entries that there is room for, and a sentence about the others, if there are any."""

    kept: tuple[Any, ...]
    note: tuple[str, ...] = ()


def find_view(found: FindResult, most: int) -> FindView:
    """The hits of a search."""
    return FindView(**_passages(found, most))


def search_view(found: SessionResult, most: int) -> SearchView:
    """The same of a question in its conversation."""
    return SearchView(
        **_passages(found, most),
        understood_as=one_line(found.standalone or found.question),
        retrieval=found.retrieval,
        reason=one_line(found.reason),
        coverage=one_line(found.coverage),
        partial=found.partial,
    )


def answer_view(answer: Answer, most: int) -> AnswerView:
    """An answer: its text first, then as many sources as there is room for."""
    summary = answer.summary
    text, text_note = _cut(visible(summary.text), int(most * _TEXT_SHARE), "the answer's text")
    rows = answer.table.rows if answer.table else ()
    wanted = [_source(one, answer.results) for one in summary.citations]
    wanted += [_listed(number, row) for number, row in enumerate(rows, 1) if f"\n| {number} |" in text]
    listed = len(wanted) if rows else 0
    sources = fitted(wanted, most - len(text), lambda one: len(one.quote), lambda one: f"[{one.number}] {one.path}")
    matched = answer.table.matched if answer.table else 0
    more = (f"{matched - listed} of the {matched:,} rows of the list: narrow the question",) if matched > listed else ()
    return AnswerView(
        job_id=answer.job_id,
        state=answer.state,
        ended=answer.state in TERMINAL,
        question=one_line(answer.question),
        answer=text or None,
        sources=sources.kept,
        coverage=one_line(answer.coverage),
        partial=answer.partial,
        written_by=summary.kind,
        not_found=_some(f"{one_line(one.asked)} ({_MISSING[one.reason]})" for one in summary.missing),
        gaps=_some(gap.text for gap in answer.gaps if not gap.closed),
        unsupported=_some(_unsupported(answer)),
        degraded=answer.degraded,
        warnings=_some(answer.warnings),
        left_out=(*text_note, *sources.note, *more),
    )


def pending_view(status: JobStatus, after_s: float, note: str | None = None) -> AnswerView:
    """A job that has no answer yet: how far it is, and what to do.

    `after_s`: it was waited for so long; `note`: a warning beside those of the job.
    """
    leaves = f"{status.leaves_done} of {status.leaves_total} parts of the search have answered"
    return AnswerView(
        job_id=status.job_id,
        state=status.state,
        ended=status.terminal,
        question=one_line(status.question),
        sources=(),
        coverage=leaves if status.leaves_total else "",
        degraded=status.degraded,
        warnings=_some(filter(None, (note, *status.warnings))),
        next=_not_yet(status, after_s),
    )


def status_view(status: JobStatus, _: int = 0) -> StatusView:
    """How far one job is."""
    return StatusView(
        job_id=status.job_id,
        state=status.state,
        ended=status.terminal,
        question="" if status.ingest else one_line(status.question),  # of an ingest it names folders of the server
        leaves_done=status.leaves_done,
        leaves_failed=status.leaves_failed,
        leaves_total=status.leaves_total,
        partial=status.partial,
        degraded=status.degraded,
        files=status.ingest.said if status.ingest else "",
        waits_for=_some(one_line(wait.why) or f"a server ({wait.provider})" for wait in status.postponed.values()),
        warnings=_some(status.warnings),
        error=one_line(status.error) if status.error else None,
        next=_next(status),
    )


def batch_view(status: BatchStatus, _: int = 0) -> BatchView:
    """How far a batch is."""
    return BatchView(
        batch_id=status.batch_id,
        ended=status.terminal,
        enqueued=status.enqueued,
        open=status.open,
        outcomes={name: count for name, count in status.outcomes().items() if name != "open"},
        rejected=status.rejected,
        next="" if status.terminal else "It is under way: call `status` with this id again in a while.",
    )


def cancel_view(found: Cancelled, _: int = 0) -> CancelView:
    """What a cancel has ended."""
    return CancelView(id=found.id, ended=found.cancelled, state=found.state)


def check_view(found: TextCheck, most: int) -> CheckView:
    """A checked text: what is not supported stands first where there is no room for all sentences."""
    views = [_claim(one) for one in found.sentences]
    order = sorted(range(len(views)), key=lambda place: views[place].verdict in {"supported", "no claim"})
    kept = fitted(
        [(place, views[place]) for place in order],
        most,
        lambda one: len(one[1].sentence) + len(one[1].passage),
        lambda one: f"sentence {one[0] + 1}",
    )
    return CheckView(
        supported=found.supported,
        contradicted=found.contradicted,
        unsupported=found.unsupported,
        disputed=found.disputed,
        sentences=tuple(view for _, view in sorted(kept.kept, key=lambda one: one[0])),
        left_out=kept.note,
    )


def ingest_view(status: JobStatus, result: IngestResult) -> IngestView:
    """How far an ingest is, and what of it failed."""
    counts = result.counts
    failures = [f"{one_line(one.path)}: {one_line(one.reason)}" for one in result.failures]
    return IngestView(
        job_id=result.job_id,
        state=result.state,
        ended=status.terminal,
        **{name: getattr(counts, name) for name in ("added", "changed", "unchanged", "removed", "failed")},
        files=counts.said,
        failures=_some(failures),
        passed_over=_some(result.passed_over),
        warnings=_some(result.warnings),
        error=one_line(result.error) if result.error else None,
        next="" if status.terminal else f"It goes on: call `status` with the id {result.job_id} in a while.",
    )


def fitted(entries: Iterable[T], most: int, size: Callable[[T], int], name: Callable[[T], str]) -> Fitted:
    """The first entries that take `most` characters together, at least one, and the names of the others."""
    kept, left, used = list[T](), list[str](), 0
    for entry in entries:
        used += size(entry) + _ENTRY
        if left or (kept and used > most):
            left.append(one_line(name(entry)))
        else:
            kept.append(entry)
    if not left:
        return Fitted(tuple(kept))
    named = ", ".join(left[:_NAMED])
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    return Fitted(tuple(kept), (f"{len(left)} of {len(kept) + len(left)}: {named}{more}",))


def one_line(text: str, most: int = _LINE) -> str:
    """`text` as one line of at most `most` characters, without what nobody sees."""
    line = " ".join(visible(text.replace("\r", " ")).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _cut(text: str, most: int, what: str) -> tuple[str, tuple[str, ...]]:
    """The beginning of a text, and a note where it has more than `most` characters."""
    if len(text) <= most:
        return text, ()
    return f"{text[:most]} […]", (f"{len(text) - most:,} of the {len(text):,} characters of {what}",)


def diff_view(found: AnswerDifference, _: int) -> DiffView:
    """What differs between two answers, and why; of each kind the first lines."""
    changed = (*found.options, *found.settings, *found.models)
    return DiffView(
        a=found.a,
        b=found.b,
        cause=one_line(found.sentence),
        gone=_some(found.sentences_went),
        new=_some(found.sentences_came),
        kept=found.sentences_kept,
        documents=_some(f"{one.path} ({one.how})" for one in found.documents),
        settings=_some(f"{one.name}: {shown(one.before)} -> {shown(one.after)}" for one in changed),
    )


def _some(sentences: Iterable[str]) -> tuple[str, ...]:
    """The first of these as lines, each once, and how many there are more."""
    found = list(dict.fromkeys(map(one_line, sentences)))
    more = (f"and {len(found) - _LINES} more",) if len(found) > _LINES else ()
    return (*found[:_LINES], *more)


def _passages(found: FindResult, most: int) -> dict[str, Any]:
    hits = [_passage(number, hit) for number, hit in enumerate(found.hits, 1)]
    kept = fitted(hits, most, lambda one: len(one.text), lambda one: f"[{one.number}] {one.path}")
    return {
        "found": len(hits),
        "passages": kept.kept,
        "verdict": found.verdict,
        "warnings": _some(found.warnings),
        "left_out": kept.note,
    }


def _passage(number: int, hit: Hit) -> PassageView:
    title = f"{hit.title} › {hit.heading}" if hit.heading and hit.heading != hit.title else hit.title
    text = visible(hit.text)
    if len(text) > _PASSAGE:
        text = f"{text[:_PASSAGE]} [… {len(text) - _PASSAGE:,} more characters: read the uri]"
    return PassageView(
        number=number,
        title=one_line(hit.symbol or title),
        path=one_line(hit.path),
        uri=chunk_address(hit),
        date=hit.date,
        score=round(hit.score, 4),
        text=text,
    )


def _source(citation: Citation, results: Sequence[Hit]) -> SourceView:
    hit = next((hit for hit in results if hit.chunk_id == citation.chunk_id), None)
    doc_id = citation.doc_id or (hit.doc_id if hit else "")
    heading = " › ".join(citation.where.heading) if citation.where else hit.heading if hit else ""
    return SourceView(
        number=citation.number,
        title=one_line(citation.title),
        path=one_line(citation.path),
        place=one_line(", ".join(filter(None, (citation.place, heading)))),
        uri=chunk_address_of(doc_id, citation.chunk_id) if doc_id else "",
        quote=one_line(citation.quote, _QUOTE),
    )


def _listed(number: int, row: ListRow) -> SourceView:
    """The document of a list's row."""
    return SourceView(
        number=number, title=one_line(row.title), path=one_line(row.place), uri=document_address(row.doc_id)
    )


def _unsupported(answer: Answer) -> Iterator[str]:
    """What an LLM wrote and no source says: removed, or still there with a mark."""
    support = answer.summary.support
    if support is None:
        return
    for removed in support.removed:
        yield f"left out: {removed.text} ({removed.reason or removed.kind})"
    for span in support.spans:
        if span.support is Support.UNSUPPORTED:
            yield f"marked: {answer.summary.text[span.start : span.end]} ({span.reason or span.kind})"


def _claim(found: CheckedSentence) -> ClaimView:
    passage: CheckedPassage | None = found.passage
    return ClaimView(
        sentence=one_line(found.text, _QUOTE),
        verdict=found.verdict,
        reason=one_line(found.reason),
        disputed=found.disputed,
        title=one_line(passage.title) if passage else "",
        path=one_line(passage.path) if passage else "",
        passage=one_line(passage.text, _QUOTE) if passage else "",
    )


def _next(status: JobStatus) -> str:
    if status.ingest is not None:
        return "" if status.terminal else "It goes on: call `status` with this id again in a while."
    if status.state == "done":
        return f"Call `result` with the id {status.job_id} for the answer."
    return _ended_without(status) if status.terminal else f"Call `result` with the id {status.job_id}: it waits."


def _not_yet(status: JobStatus, after_s: float) -> str:
    return (
        f"No answer yet after {after_s:.0f} s; the job goes on. Call `result` with the id {status.job_id}: it waits "
        "again, and gives the answer once it is there."
    )


def _ended_without(status: JobStatus) -> str:
    if status.leaves_done:
        return f"It ended without an answer. `result` with the id {status.job_id} and partial gives what was found."
    return "It ended without an answer. Ask again, or with other words."
