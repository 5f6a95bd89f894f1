"""What the page of one job shows, read through the client. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.answer_text import Kind, TextBlock, TextSentence, blocks, groups, sentences
from orchestrator.client import Ramify
from orchestrator.growth import of_answer, replay
from orchestrator.server.page.tree_rows import TreeRow, best_hits, rows_of
from orchestrator.server.page.words import Words
from shared.errors import NoAnswerError, NotRunningError, RamifyError
from shared.models import Answer, JobStatus, LeafStatus, MergedHit
from shared.models.answer import ReasoningStep
from shared.models.ingest import IngestResult
from shared.models.support import Citation

#: Seconds that reading the events so far of an open job may take.
_EVENTS_S = 0.02
#: Of a list, rows on the job's own page.
FIRST_ROWS = 50
_STAGES = ("queued", "planning", "searching", "merging", "summarising", "done")
_INGEST_STAGES = ("queued", "planning", "indexing", "finishing", "done")


@dataclass(frozen=True)
class Stage:
    """One step of a job: `stands` is past, now or ahead; `ms`: what it took, once it is past."""

    name: str
    stands: str
    ms: float | None = None


@dataclass(frozen=True)
class CitedResult:
    """A citation with the result that it stands for, if that is among the results."""

    citation: Citation
    hit: MergedHit | None = None


@dataclass(frozen=True)
class JobView:
    """One job. `answer` None: there is none (yet). `early`: what its leaves have found so far was asked for."""

    status: JobStatus
    rows: Sequence[TreeRow]
    answer: Answer | None = None
    ingest: IngestResult | None = None
    blocks: Sequence[TextBlock] = ()
    sources: Sequence[CitedResult] = ()
    early: bool = False
    error: str = ""

    @property
    def is_list(self) -> bool:
        """True where the answer is a table of rows."""
        return bool(self.answer and self.answer.table)

    def stages(self) -> list[Stage]:
        """The steps in their order, as far as the job went."""
        names = _INGEST_STAGES if self.status.ingest is not None else _STAGES
        spans, state = self.status.timings_ms, self.status.state
        if state in names:
            now = names.index(state)
            stands = ["past" if place < now or state == "done" else "ahead" for place in range(len(names))]
            if state != "done":
                stands[now] = "now"
        else:  # it ended early
            stands = ["past" if name in spans else "ahead" for name in names]
        return [
            Stage(name, how, spans.get(name) if how == "past" else None)
            for name, how in zip(names, stands, strict=True)
        ]

    def coverage(self, words: Words) -> str:
        """How many of its leaves have answered."""
        leaves = self.answer.leaves if self.answer else ()
        done = sum(leaf.status is LeafStatus.DONE for leaf in leaves)
        return words("answer.coverage", done=done, of=len(leaves)) if leaves else ""

    def groups(self) -> list[tuple[Kind, list[TextBlock]]]:
        """The blocks of the text, neighbours of one kind together."""
        return groups(self.blocks)

    def degraded_parts(self, reason: str) -> str:
        """The parts of the work that a reason for being degraded is about."""
        at = self.answer.degraded_at if self.answer else {}
        return ", ".join(sorted(item for item, reasons in at.items() if reason in reasons))

    def budget_facts(self, words: Words) -> list[tuple[str, str]]:
        """What is spent of each limit."""
        spent = self.answer.budget if self.answer else None
        if spent is None:
            return []
        of = {
            "max_calls": spent.calls,
            "max_tokens": spent.tokens,
            "max_seconds": spent.seconds,
            "max_cost": spent.cost,
        }
        return [
            (words(f"budget.{name}"), words("budget.of", spent=f"{of[name]:.6g}", most=f"{most:.6g}"))
            for name, most in spent.limits().items()
        ]

    def step_sentences(self, step: ReasoningStep) -> Sequence[TextSentence]:
        """The text of a step with its citations."""
        return sentences(step.text, step.spans, frozenset(one.citation.number for one in self.sources))


def job_view(client: Ramify, job_id: str, *, early: bool = False) -> JobView:
    """Raises: NotFoundError, NotRunningError; RamifyError for a job that cannot be read."""
    status = client.status(job_id)
    if status.ingest is not None:
        return JobView(status, (), ingest=client.ingest_result(job_id))
    answer, error = _answer(client, status, early=early)
    if answer is None:
        growth = replay(status.question, client.stream(job_id, _EVENTS_S))
        return JobView(status, rows_of(growth), early=early, error=error)
    hits = {hit.chunk_id: hit for hit in answer.results}
    summary = answer.summary
    numbers = frozenset(one.number for one in summary.citations)
    return JobView(
        status=status,
        rows=rows_of(of_answer(answer), best_hits(answer)),
        answer=answer,
        blocks=blocks(summary.text, summary.support.spans if summary.support else (), numbers),
        sources=[CitedResult(one, hits.get(one.chunk_id)) for one in summary.citations],
        early=early and not status.terminal,
    )


def _answer(client: Ramify, status: JobStatus, *, early: bool) -> tuple[Answer | None, str]:
    """The answer, or None with the reason why there is none where it was to be there."""
    if status.state != "done" and not early:
        return None, ""
    try:
        return client.result(status.job_id, partial=early), ""
    except NotRunningError:
        raise
    except NoAnswerError as error:
        return None, str(error) if error.terminal else ""
    except RamifyError as error:
        return None, str(error)
