"""Documents of another program, or uploaded files, put in and removed: as they come, each taken or told why not."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import Field, ValidationError, model_validator

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.documents.feeding import PushedDocument
from orchestrator.intake import bounded_lines
from orchestrator.operations.batch_post import Readable
from orchestrator.operations.operation import HttpRoute, Operation
from shared.errors import InputError
from shared.files.passed_over import has_reader, no_reader
from shared.models.base import Model
from shared.models.request import Name
from shared.settings.faults import json_fault, request_fault

#: What was not taken is listed up to here.
MOST_REJECTS = 100
#: Ids that one request may remove.
_MOST_REMOVED = 100_000
#: Of a line beside the document's bytes in base64.
_BESIDE_BYTES = 64_000
_SHOWN = 200


class PushOptions(Model):
    """Where documents go: `source` names the program or the place that they are from, and ids are its own."""

    source: Name = Field(default="uploads", description="whose ids these are")
    namespace: Name = Field(default="default", description="the part of the corpus")


class PushedLine(Model):
    """A document with its text, or with its bytes as base64; or, with `delete`, one that goes.

    `suffix` chooses the reader (".md", ".pdf" ...), `path` is what people read in a citation, else the id.
    """

    id: str = Field(min_length=1, max_length=1000)
    text: str | None = None
    content: str | None = Field(default=None, description="bytes as base64")
    suffix: str = Field(default=".md", max_length=20)
    path: str = Field(default="", max_length=1000)
    metadata: dict[str, Any] = Field(default_factory=dict)
    delete: bool = False

    @model_validator(mode="after")
    def _one_content(self) -> PushedLine:
        if sum((self.text is not None, self.content is not None, self.delete)) != 1:
            raise ValueError("write one of text, content and delete")
        return self

    def document(self) -> PushedDocument:
        """Raises: InputError for bytes that are no base64, and for a suffix without a reader."""
        try:
            content = self.text if self.content is None else base64.b64decode(self.content, validate=True)
        except (binascii.Error, ValueError):
            raise InputError("content", self.content, "it is no base64") from None
        given = {name: getattr(self, name) for name in ("id", "suffix", "path", "metadata")}
        return PushedDocument(content=content or "", **given)


class PushInput(PushOptions):
    """Documents that are put in or removed, in one request."""

    documents: tuple[PushedLine, ...] = Field(min_length=1, description="over HTTP also as JSON Lines, or as files")


class RejectedDocument(Model):
    """What was not taken: its number (from 1), its id or name, and why."""

    number: int = Field(ge=1)
    name: str
    reason: str


class IngestTaken(Model):
    """Documents were handed over to a job: how many are put in, removed and `rejected`; the first of these by name."""

    job_id: str
    documents: int
    removed: int
    rejected: int
    rejects: tuple[RejectedDocument, ...] = ()
    rejects_left_out: int = 0


class Offered(NamedTuple):
    """One thing that came in: a document, an id that goes, or why it is neither."""

    name: str
    document: PushedDocument | None = None
    removed: bool = False
    fault: str = ""


class Push:
    """Hands over what is offered; `put` once."""

    def __init__(self, client: Ramify, options: PushOptions) -> None:
        self._client, self._options = client, options
        self._most_bytes = client.settings.chunking.max_document_bytes
        self._documents, self._rejected = 0, 0
        self._removed = dict[str, None]()
        self._rejects = list[RejectedDocument]()

    def lines(self, body: Readable) -> IngestTaken:
        """JSON Lines as they come. Raises: as `put`."""
        most = 4 * self._most_bytes // 3 + _BESIDE_BYTES
        return self.put(_offered_line(line, most) for line in bounded_lines(body, most) if line.strip())

    def put(self, offered: Iterable[Offered]) -> IngestTaken:
        """Returns when all is handed over; whatever it raises before leaves a job that ends with what came until then.

        Raises: InputError where nothing can be taken, LaneFullError, RamifyError.
        """
        own = {"source": self._options.source, "namespace": self._options.namespace}
        job_id = self._client.upsert(self._taken(offered), removed=self._removed, **own)
        return IngestTaken(
            job_id=job_id,
            documents=self._documents,
            removed=len(self._removed),
            rejected=self._rejected,
            rejects=tuple(self._rejects),
            rejects_left_out=self._rejected - len(self._rejects),
        )

    def _taken(self, offered: Iterable[Offered]) -> Iterator[PushedDocument]:
        for number, one in enumerate(offered, 1):
            if fault := one.fault or self._fault(one):
                self._reject(number, one.name, fault)
            elif one.document is not None:
                self._documents += 1
                yield one.document
            else:
                self._removed[one.name] = None
        if not self._documents and not self._removed:
            first = self._rejects[0] if self._rejects else None
            fix = f"nothing of it can be taken: {first.reason}" if first else "it holds no document"
            raise InputError("body", first.name if first else "", fix)

    def _fault(self, one: Offered) -> str:
        document = one.document
        if document is None:
            full = len(self._removed) >= _MOST_REMOVED and one.name not in self._removed
            return f"one request may remove {_MOST_REMOVED:,} documents" if full else ""
        if not has_reader(document.suffix.lower()):
            return no_reader(document.suffix.lower())
        size = len(document.content) if isinstance(document.content, bytes) else len(document.content.encode())
        return "" if size <= self._most_bytes else too_large(size, self._most_bytes)

    def _reject(self, number: int, name: str, reason: str) -> None:
        self._rejected += 1
        if len(self._rejects) < MOST_REJECTS:
            shown, why = (said.encode("utf-8", "replace").decode() for said in (name[:_SHOWN], reason))
            self._rejects.append(RejectedDocument(number=number, name=shown, reason=why))


def too_large(size: int, most_bytes: int) -> str:
    """Why a document is not taken."""
    return f"has {size} bytes, more than chunking.max_document_bytes ({most_bytes}): split it"


def offered_of(given: PushedLine) -> Offered:
    """A checked line."""
    if given.delete:
        return Offered(given.id, removed=True)
    try:
        return Offered(given.id, given.document())
    except InputError as error:
        return Offered(given.id, fault=str(error))
    except ValidationError as error:
        return Offered(given.id, fault=str(request_fault(error)))


def _offered_line(line: bytes, most_bytes: int) -> Offered:
    start = line[:_SHOWN].decode("utf-8", "replace").strip()
    if len(line) > most_bytes:
        return Offered(start, fault=f"the line has more than {most_bytes} bytes: split the document")
    try:
        return offered_of(PushedLine.model_validate(json.loads(line.decode("utf-8-sig"))))
    except UnicodeDecodeError as error:
        return Offered(start, fault=f"byte {error.start} is not UTF-8")
    except ValidationError as error:
        return Offered(start, fault=str(request_fault(error)))
    except (ValueError, RecursionError) as error:
        return Offered(start, fault=f"it is no JSON ({json_fault(error)})")


def _push(client: Ramify, given: PushInput) -> IngestTaken:
    options = PushOptions(source=given.source, namespace=given.namespace)
    return Push(client, options).put(offered_of(one) for one in given.documents)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "push", PushInput, IngestTaken, _push, Scope.WRITE, long=True,
        routes=(HttpRoute("POST", "/v1/ingests", 202, location="/v1/jobs/{job_id}", by_hand=True),),
    ),
)  # fmt: skip
