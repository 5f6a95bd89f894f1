"""Pages of questions: asked, planned, listed, one job with its tree and answer, its sources, why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from orchestrator.client import Ramify
from orchestrator.early import no_list
from orchestrator.intake import as_request
from orchestrator.planning.preview import preview
from orchestrator.records.export import KINDS, ExportFormat
from orchestrator.server.page.forms import FORM_ID, asked_once, form_of, new_form_id, request_fields
from orchestrator.server.page.job_view import FIRST_ROWS, job_view
from orchestrator.server.page.passages import passage_page
from orchestrator.server.page.rendering import HEADERS
from orchestrator.server.page.tree_rows import BLANK_ROW, planned_rows
from orchestrator.server.page.visitor import AdminVisitor, AskVisitor, PageRoute, ReadVisitor, Visitor
from orchestrator.text_lines import row_lines
from shared.errors import InputError, RamifyError
from shared.models import JobRequest, JobStatus
from shared.models.request import MAX_QUESTION_CHARS

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_RECENT, _JOBS, _MOST_JOBS = 8, 50, 1_000
#: Fields of a form, and characters of each, that are read.
_FIELDS, _CHARACTERS = 60, 400_000


async def posted(request: Request) -> dict[str, str]:
    """The fields of a form, the last of those with the same name."""
    form = await request.form(max_files=0, max_fields=_FIELDS, max_part_size=_CHARACTERS)
    return {name: value for name, value in form.items() if isinstance(value, str)}


Form = Annotated[dict[str, str], Depends(posted)]


def _asking(visitor: Visitor, form: Mapping[str, str], **more: Any) -> Response:
    strategies = sorted(visitor.client.settings.strategies)
    recent = [visitor.told(job) for job in visitor.client.jobs(_RECENT)]
    given = {name: value for name, value in form.items() if value and name != FORM_ID}
    context = {"error": "", "preview": None, "rows": (), "most": MAX_QUESTION_CHARS, "form_id": new_form_id()} | more
    return visitor.page("home.html", form=given, strategies=strategies, jobs=recent, **context)


@router.head("/")
@router.get("/")
def home(visitor: ReadVisitor, question: str = "", again: str = "") -> Response:
    """The form of a question, and the last jobs."""
    return _asking(visitor, _asked_before(visitor.client, again) if again else {"question": question})


def _asked_before(client: Ramify, job_id: str) -> dict[str, str]:
    """The form that asks a job's question again; with its options, where its record has them. Raises: NotFoundError."""
    status = client.status(job_id)
    with suppress(RamifyError):
        record = client.manifest(job_id).record
        return form_of(JobRequest(question=record.question, **record.options))
    return {"question": status.question}


@router.post("/ask")
def ask(visitor: AskVisitor, form: Form) -> Response:
    """Enqueue a question and go to its page; a form that cannot be taken is shown again with the reason."""
    try:
        job_id = visitor.client.submit(asked_once(form))
    except InputError as error:
        return _asking(visitor, form, error=str(error), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/preview")
def planned(visitor: AskVisitor, form: Form) -> Response:
    """The plan of a question and what it may cost; nothing is searched. A script gets the plan alone."""
    try:
        request = as_request(request_fields(form), tenant=visitor.client.tenant)
        found = preview(request, visitor.client.settings)
    except InputError as error:
        return _asking(visitor, form, error=str(error), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    rows = planned_rows(found.question, found.tree)
    if visitor.request.headers.get("x-fragment") == "1":
        return visitor.page("_plan.html", preview=found, rows=rows)
    return _asking(visitor, form, preview=found, rows=rows)


@router.get("/jobs")
def listed(
    visitor: ReadVisitor, state: str = "", limit: Annotated[int, Query(ge=1, le=_MOST_JOBS)] = _JOBS
) -> Response:
    """The newest jobs, all or those in one state."""
    found = visitor.client.jobs(limit + 1, state=state or None)
    more = min(_MOST_JOBS, limit * 2) if len(found) > limit < _MOST_JOBS else 0
    return visitor.page("jobs.html", jobs=[visitor.told(job) for job in found[:limit]], state=state, more=more)


@router.get("/jobs/{job_id}")
def one(visitor: ReadVisitor, job_id: str, *, early: bool = False) -> Response:
    """One job: its tree, its answer."""
    view = job_view(visitor.client, job_id, early=early)
    ingest = visitor.told(view.ingest) if view.ingest else None
    view = replace(view, status=visitor.told(view.status), ingest=ingest)
    return visitor.page("job.html", view=view, blank_row=BLANK_ROW)


@router.get("/jobs/{job_id}/state")
def state(visitor: ReadVisitor, job_id: str) -> Response:
    """What changes on a job's page while it runs, for scripts."""
    view = job_view(visitor.client, job_id)
    said = _told(view.status) | {"rows": [row.model_dump(mode="json") for row in view.rows]}
    return JSONResponse(said, headers=HEADERS)


def _told(status: JobStatus) -> dict[str, Any]:
    ingest, cost = status.ingest, status.cost
    return {
        "state": status.state,
        "open": not status.terminal,
        "done": ingest.read if ingest else status.leaves_done + status.leaves_failed,
        "total": ingest.files if ingest else status.leaves_total,
        "calls": cost.llm_calls,
        "tokens": cost.llm_tokens_in + cost.llm_tokens_out + cost.embed_tokens,
        "strategy": status.route.strategy if status.route else "",
        "spans": status.timings_ms,
    }


@router.post("/jobs/{job_id}/cancel")
def cancel(visitor: AskVisitor, job_id: str) -> Response:
    """End a job."""
    visitor.client.cancel(job_id)
    return RedirectResponse(f"/jobs/{job_id}", HTTPStatus.SEE_OTHER)


@router.post("/jobs/{job_id}/retry")
def retry(visitor: AskVisitor, job_id: str, form: Form) -> Response:
    """Try a job again, or the part of it that was made without something, and go to the new one."""
    status, given = visitor.client.status(job_id), form.get("deadline_s", "").strip()
    repair = status.state == "done" and not status.partial
    made = visitor.client.retry(job_id, degraded=repair, deadline_s=_seconds(given) if given else None)
    return RedirectResponse(f"/jobs/{made.job_id}", HTTPStatus.SEE_OTHER)


def _seconds(given: str) -> float:
    """Raises: InputError for what is no number."""
    try:
        return float(given)
    except ValueError:
        raise InputError("deadline_s", given, "give a number of seconds") from None


@router.post("/jobs/{job_id}/refresh")
def refresh(visitor: AskVisitor, job_id: str) -> Response:
    """Run the stale part of an answer again, and go to the new job."""
    made = visitor.client.refresh(job_id)
    return RedirectResponse(f"/jobs/{made.job_id}", HTTPStatus.SEE_OTHER)


@router.get("/jobs/{job_id}/why")
def why(visitor: ReadVisitor, job_id: str) -> Response:
    """What a job waits for, or how it ended."""
    return visitor.page("why.html", found=visitor.told(visitor.client.why(job_id)), back=f"/jobs/{job_id}")


@router.get("/why")
def why_any(visitor: AdminVisitor, id_: Annotated[str, Query(alias="id", max_length=100)]) -> Response:
    """The same of a job or a batch of any tenant, for operators."""
    found = visitor.told(visitor.client.why(id_.strip()))
    batch = getattr(found, "batch_id", None)
    back = f"/batches/{batch}" if batch else f"/jobs/{found.job_id}"  # type: ignore[union-attr]
    return visitor.page("why.html", found=found, back=back)


@router.get("/jobs/{job_id}/sources/{number}")
def source(
    visitor: ReadVisitor,
    job_id: str,
    number: int,
    sentence: Annotated[int | None, Query(ge=0)] = None,
    step: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    """The passage that a citation stands for, in its document; of a sentence of the answer: what that rests on."""
    passage = visitor.client.corpus.cited(job_id, number, sentence=sentence, step=step)
    return passage_page(visitor, passage, back=f"/jobs/{job_id}")


@router.get("/jobs/{job_id}/rows")
def rows(visitor: ReadVisitor, job_id: str, first: Annotated[int, Query(alias="from", ge=1, le=10**9)] = 1) -> Response:
    """A page of the rows of a list."""
    answer = visitor.client.result(job_id)
    if answer.table is None:
        raise no_list(visitor.client.status(job_id))
    found = list(islice(visitor.client.rows(job_id), first - 1, first - 1 + 2 * FIRST_ROWS))
    return visitor.page(
        "rows.html", id=job_id, question=answer.question, rows=found, first=first, columns=answer.table.columns,
        matched=answer.table.matched, size=2 * FIRST_ROWS, cited=len(answer.table.rows),
    )  # fmt: skip


@router.get("/jobs/{job_id}/rows.{ending}")
def rows_file(visitor: ReadVisitor, job_id: str, ending: str) -> Response:
    """All rows of a list as a file."""
    answer = visitor.client.result(job_id)
    if answer.table is None:
        raise no_list(visitor.client.status(job_id))
    found = visitor.client.rows(job_id)
    return download(row_lines(ending, found, answer.table.columns), f"{job_id}.{ending}", ending)


def download(lines: Iterator[str], name: str, ending: str) -> Response:
    """A file that is written as it is read."""
    kind = "text/csv; charset=utf-8" if ending == "csv" else "application/jsonl"
    return StreamingResponse(lines, media_type=kind, headers=_kept_as(name))


def _kept_as(name: str) -> dict[str, str]:
    """Headers by which browsers keep a file and show nothing of it."""
    return {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}


@router.get("/jobs/{job_id}/export.{written_as}")
def export(visitor: ReadVisitor, job_id: str, written_as: ExportFormat) -> Response:
    """An answer with its sources as a file."""
    kind = KINDS[written_as]
    text = kind.answer(visitor.client.result(job_id))
    return Response(text, media_type=kind.media_type, headers=_kept_as(f"{job_id}{kind.ending}"))
