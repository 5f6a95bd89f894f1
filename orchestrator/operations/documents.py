"""The documents of the corpus: counted, listed, shown, read and removed. And conversations that are kept."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.documents.corpus import CorpusOverview
from orchestrator.operations.operation import HttpRoute, Operation
from shared.errors import NotFoundError
from shared.models.base import Model
from shared.models.corpus import MAX_AROUND, MAX_NAME, MAX_QUOTE, PAGE, DocumentsReply, Passage, StoredDocument
from shared.models.ingest import DocumentOutcome
from shared.models.request import MAX_MESSAGE_CHARS, Name, Session
from shared.tenants import DEFAULT_TENANT

#: The namespace of what names none.
DEFAULT_NAMESPACE = DEFAULT_TENANT
#: A citation of a job's answer.
_CITED = re.compile(r"([0-9a-z\-]{8,40})#(\d{1,4})")
DocumentName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Around = Annotated[int, Field(ge=0, le=MAX_AROUND, description="characters before and behind what is marked")]


class CorpusInput(Model):
    """Which documents are counted."""

    namespace: Name | None = Field(default=None, description="of this namespace alone")


#: Where a page of documents may begin: at one's id, or at the first.
START = r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$"


class DocumentsInput(Model):
    """A page of the list of documents."""

    start: str = Field(
        default="",
        pattern=START,
        description="`following` of the page before",
    )
    limit: int = Field(default=PAGE, ge=1, le=PAGE, description="how many")
    namespace: Name | None = Field(default=None, description="of this namespace alone")


class DocumentPage(Model):
    """Documents in the order of their ids. `following`: where the next page begins; `total`: of the first page alone.

    Without `following` it is the last one.
    """

    documents: tuple[StoredDocument, ...]
    following: str = ""
    total: int | None = None


class DocumentInput(Model):
    """One document."""

    document: DocumentName = Field(description="id, path or title of a document, or a part of one that only it has")
    namespace: Name = DEFAULT_NAMESPACE


class ShowInput(DocumentInput):
    """A passage: of a chunk, a quote (in that chunk, if both are given), a page, else of the beginning."""

    document: DocumentName = Field(description="id, path or title of a document; or JOB#N, a citation of an answer")
    page: int | None = Field(default=None, ge=1, le=1_000_000, description="this page or slide")
    chunk: str | None = Field(default=None, max_length=64, description="this chunk, marked")
    quote: str | None = Field(default=None, max_length=MAX_QUOTE, description="this quote, marked")
    around: Around = 600


class RemovedDocument(Model):
    """What became of a document that was to be removed; it comes again with the next ingest of its file."""

    documents: tuple[DocumentOutcome, ...]


class SessionInput(Model):
    """One conversation that is kept."""

    session_id: Name


class MessageInput(SessionInput):
    """A message of a conversation. `summary`: it sums up what was said before."""

    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    role: Literal["user", "assistant", "system", "tool"] = Field(default="user", description="whose")
    summary: StrictBool = False


class SessionDropped(Model):
    """Whether there was something to forget."""

    session_id: str
    dropped: bool


def _corpus(client: Ramify, given: CorpusInput) -> CorpusOverview:
    return client.corpus.overview(given.namespace)


def _documents(client: Ramify, given: DocumentsInput) -> DocumentPage:
    found: DocumentsReply = client.corpus.page(given.start, given.limit, namespace=given.namespace)
    total = None if given.start else found.total
    return DocumentPage(documents=found.documents, following=found.following, total=total)


def _document(client: Ramify, given: DocumentInput) -> StoredDocument:
    return client.corpus.document(given.document, given.namespace)


def _show(client: Ramify, given: ShowInput) -> Passage:
    if cited := _CITED.fullmatch(given.document):
        return client.corpus.cited(cited[1], int(cited[2]), given.around)
    wanted = {"page": given.page, "chunk_id": given.chunk, "quote": given.quote, "around": given.around}
    return client.corpus.passage(given.document, namespace=given.namespace, **wanted)


def _text(client: Ramify, given: DocumentInput) -> Passage:
    return client.corpus.passage(given.document, namespace=given.namespace, whole=True)


def _remove(client: Ramify, given: DocumentInput) -> RemovedDocument:
    """Only what is named in full: a part of a title may mean another document tomorrow."""
    found = client.corpus.document(given.document, given.namespace)
    if given.document not in {found.doc_id, found.path}:
        raise NotFoundError("document", given.document, f"give its whole id: {found.doc_id} is {found.path}")
    return RemovedDocument(documents=tuple(client.corpus.remove([found])))


def _session(client: Ramify, given: SessionInput) -> Session:
    return client.session(given.session_id).load()


def _add(client: Ramify, given: MessageInput) -> Session:
    session = client.session(given.session_id)
    if given.summary:
        session.summarise(given.text)
    else:
        session.append(given.role, given.text)
    return session.load()


def _drop(client: Ramify, given: SessionInput) -> SessionDropped:
    return SessionDropped(session_id=given.session_id, dropped=client.session(given.session_id).drop())


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "corpus", CorpusInput, CorpusOverview, _corpus, command="corpus", waits=True,
        routes=(HttpRoute("GET", "/v1/corpus"),),
    ),
    Operation(
        "documents", DocumentsInput, DocumentPage, _documents, waits=True, routes=(HttpRoute("GET", "/v1/documents"),)
    ),
    Operation(
        "corpus_show", DocumentInput, StoredDocument, _document, command="corpus show", waits=True,
        routes=(HttpRoute("GET", "/v1/documents/{document}"),),
    ),
    Operation(
        "corpus_text", DocumentInput, Passage, _text, waits=True,
        routes=(HttpRoute("GET", "/v1/documents/{document}/text"),),
    ),
    Operation(
        "corpus_remove", DocumentInput, RemovedDocument, _remove, Scope.WRITE, command="corpus remove", waits=True,
        routes=(HttpRoute("DELETE", "/v1/documents/{document}"),),
    ),
    Operation("show", ShowInput, Passage, _show, command="show", waits=True, routes=(HttpRoute("GET", "/v1/show"),)),
    Operation(
        "session_show", SessionInput, Session, _session, command="session show",
        routes=(HttpRoute("GET", "/v1/sessions/{session_id}"),),
    ),
    Operation(
        "session_add", MessageInput, Session, _add, Scope.ASK, command="session add", idempotent=False,
        routes=(HttpRoute("POST", "/v1/sessions/{session_id}"),),
    ),
    Operation(
        "session_drop", SessionInput, SessionDropped, _drop, Scope.ASK, command="session drop",
        routes=(HttpRoute("DELETE", "/v1/sessions/{session_id}"),),
    ),
)  # fmt: skip
