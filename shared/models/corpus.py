"""Documents of a corpus as they are looked at, and the messages that ask for them."""

from __future__ import annotations

from pathlib import PurePath

from pydantic import Field

from shared.models.base import Model
from shared.models.ingest import DocumentOutcome
from shared.models.place import Place
from shared.models.request import Name, TenantName
from shared.models.told import ServerPath

#: Documents of one page of a listing, and of one removal.
PAGE = 500
MAX_NAME, MAX_QUOTE = 1000, 4000
#: Characters shown before and behind a passage, at most.
MAX_AROUND = 20_000


class DocumentSize(Model):
    """What is known of a document as a whole: kept with its first chunk.

    `ingested`: when it was written, in seconds since 1970. `language`: the code of what its text is written in.
    """

    characters: int = Field(ge=0)
    chunks: int = Field(ge=0)
    ingested: int = Field(ge=0)
    language: str = ""


class StoredDocument(Model):
    """One document of a corpus. `size` None: an older release stored it."""

    doc_id: str
    path: str
    title: str
    source: ServerPath
    namespace: str = "default"
    kind: str = "resource"
    tags: tuple[str, ...] = ()
    date: str | None = None
    size: DocumentSize | None = None

    @property
    def suffix(self) -> str:
        """Of its file, such as ".pdf"."""
        return PurePath(self.path.partition("#")[0]).suffix.lower()


class PassageMark(Model):
    """Characters of a document's text: offsets of the first and of the one behind the last."""

    start: int
    end: int


class Passage(Model):
    """Some of a document's extracted text, from `start` to `end` of `characters`, and what is marked in it."""

    document: StoredDocument
    text: str
    start: int
    end: int
    characters: int
    marks: tuple[PassageMark, ...] = ()
    place: Place = Place()
    chunk_id: str | None = None


class DocumentsRequest(Model):
    """A page of the documents of a tenant, from the id `start` on, of `most` documents."""

    tenant: TenantName
    namespace: Name | None = None
    start: str = ""
    most: int = Field(default=PAGE, ge=1, le=PAGE)


class DocumentsReply(Model):
    """Documents, where the next page begins ("": nowhere), and how many there are in all."""

    documents: tuple[StoredDocument, ...] = ()
    following: str = ""
    total: int = 0
    error: str | None = None


class PassageRequest(Model):
    """A passage of the document that `name` means: an id, a path, a title, or a part of one of these.

    Which one: of a chunk, a quote (in that chunk, if both are given), a page, else the beginning. `whole`: all text.
    `at`: where the quote stood in the document's text; where it stands there no more, it is sought.
    """

    tenant: TenantName
    name: str = Field(max_length=MAX_NAME)
    namespace: Name | None = None
    chunk_id: str | None = Field(default=None, max_length=64)
    quote: str | None = Field(default=None, max_length=MAX_QUOTE)
    at: int | None = Field(default=None, ge=0)
    page: int | None = Field(default=None, ge=1)
    around: int = Field(default=600, ge=0, le=MAX_AROUND)
    whole: bool = False


class PassageReply(Model):
    """The passage; or the documents that the name may mean; or why there is none.

    `bad_input`: field, value and way out, where what was asked for cannot be found.
    """

    passage: Passage | None = None
    bad_input: tuple[str, str, str] | None = None
    candidates: tuple[StoredDocument, ...] = ()
    error: str | None = None


class RemoveRequest(Model):
    """Documents to remove. `last`: what follows from it for the rest of the corpus is done now."""

    tenant: TenantName
    doc_ids: tuple[str, ...] = Field(max_length=PAGE)
    namespaces: tuple[Name, ...] = ()
    last: bool = True


class RemoveReply(Model):
    """What was removed."""

    outcomes: tuple[DocumentOutcome, ...] = ()
    error: str | None = None
