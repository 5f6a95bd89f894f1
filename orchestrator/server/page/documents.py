"""Pages of the corpus: what there is, the documents, the text of one, pages of its PDF."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import Response

from orchestrator.documents.corpus import counted_as
from orchestrator.operations.documents import START
from orchestrator.server.page.overviews import CorpusOverviews, SeenCount
from orchestrator.server.page.passages import original, passage_page
from orchestrator.server.page.pdf_page import page_image
from orchestrator.server.page.rendering import HEADERS
from orchestrator.server.page.visitor import PageRoute, ReadVisitor, Visitor
from shared.errors import InputError, NotFoundError, NotRunningError
from shared.models import JobStatus
from shared.models.corpus import PAGE, StoredDocument
from shared.models.place import Box
from shared.tenants import DEFAULT_TENANT

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_PAGE, _INGESTS = 50, 8
#: Jobs among which ingests are sought, and seconds after which a page of a filtered list ends.
_JOBS_LOOKED_AT, _SEARCH_S = 300, 0.6
#: The id with which a list begins; without one the pool would count all documents each time.
_FIRST = str(uuid.UUID(int=0))
_FILTERS = ("kinds", "folders", "formats", "languages", "years", "sizes", "namespaces")


@router.get("/corpus")
def overview(visitor: ReadVisitor) -> Response:
    """Documents by kind, folder, format and so on, how fresh they are, the last ingests, and a form to upload more."""
    seen, problem = SeenCount(), ""
    try:
        seen = _seen(visitor)
    except NotRunningError as error:
        problem = str(error)
    found = visitor.told(seen.overview) if seen.overview else None
    return visitor.page("corpus.html", overview=found, seen=seen, problem=problem, jobs=_ingests(visitor))


def _seen(visitor: Visitor) -> SeenCount:
    overviews: CorpusOverviews = visitor.request.app.state.overviews
    return overviews.of(visitor.client.tenant or DEFAULT_TENANT, lambda: visitor.client.corpus)


def _ingests(visitor: Visitor) -> list[JobStatus]:
    jobs = visitor.client.jobs(_JOBS_LOOKED_AT)
    return [visitor.told(job) for job in jobs if job.ingest is not None][:_INGESTS]


@router.get("/corpus/documents")
def listed(
    visitor: ReadVisitor,
    q: str = "",
    start: Annotated[str, Query(pattern=START)] = "",
    skip: Annotated[int, Query(ge=0, le=PAGE)] = 0,
) -> Response:
    """Documents, filtered by what an overview counts and by a part of title or path."""
    given = visitor.request.query_params
    chosen = {name: given[name] for name in _FILTERS if given.get(name)}
    found, following, passed = _page(visitor, q, chosen, start or _FIRST, skip)
    cursor = {"start": following, "skip": passed} if passed else {"start": following}
    more = f"/corpus/documents?{urlencode({**chosen, 'q': q, **cursor})}" if following else ""
    overview = None if q.strip() or chosen or start else _seen(visitor).overview
    total = overview.documents if overview else None
    return visitor.page("documents.html", documents=found, following=more, total=total, q=q, chosen=chosen)


def _page(
    visitor: Visitor, q: str, chosen: Mapping[str, str], at: str, skip: int
) -> tuple[list[StoredDocument], str, int]:
    """A page, from the `skip`th document behind the id `at` on; and both for the next one, "" where there is none.

    What is sought is sought for a moment: then the page is short.
    """
    corpus, namespace, sought = visitor.client.corpus, chosen.get("namespaces"), q.casefold().strip()
    filtered = bool(sought or set(chosen) - {"namespaces"})
    found, until = list[StoredDocument](), time.monotonic() + _SEARCH_S
    while len(found) < _PAGE and at:
        page = corpus.page(at, PAGE if filtered else _PAGE, namespace=namespace)
        for number, one in enumerate(page.documents[skip:], skip):
            if len(found) == _PAGE:
                return found, at, number
            if _fits(one, sought, chosen):
                found.append(one)
        at, skip = page.following, 0
        if time.monotonic() > until:
            break
    return found, at, 0


def _fits(document: StoredDocument, sought: str, chosen: Mapping[str, Any]) -> bool:
    counted = counted_as(document)
    said = f"{document.title}\n{document.path}".casefold()
    return sought in said and all(counted[name] == value for name, value in chosen.items())


@router.get("/corpus/documents/{doc_id}")
def one(
    visitor: ReadVisitor,
    doc_id: str,
    chunk: str = "",
    page: Annotated[int | None, Query(ge=1)] = None,
    *,
    whole: bool = False,
) -> Response:
    """A document: its beginning, one chunk, one page of it, or all of its text."""
    wanted: dict[str, Any] = {"whole": True} if whole else {"around": 2_000}
    wanted |= {"chunk_id": chunk} if chunk else {"page": page} if page else {}
    passage = visitor.client.corpus.passage(doc_id, **wanted)
    return passage_page(visitor, passage, whole=whole or passage.end - passage.start == passage.characters)


@router.get("/corpus/documents/{doc_id}/pages/{page}.png")
def page_picture(visitor: ReadVisitor, doc_id: str, page: int, box: str = "") -> Response:
    """A page of a PDF whose file is at hand, with a box drawn."""
    file = original(visitor, visitor.client.corpus.document(doc_id))
    image = page_image(file, page, _box(box)) if file else None
    if image is None:
        raise NotFoundError("page", page, "its file is not at hand, or has no such page")
    return Response(image.png, media_type="image/png", headers={**HEADERS, "Cache-Control": "private, max-age=300"})


def _box(given: str) -> Box | None:
    """Raises: InputError for what is no box."""
    if not given:
        return None
    try:
        left, bottom, right, top = (max(-100_000, min(100_000, int(part))) for part in given.split(","))
    except ValueError:
        raise InputError("box", given, "give left, bottom, right and top in points") from None
    return left, bottom, right, top
