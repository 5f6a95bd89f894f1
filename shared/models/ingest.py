"""Documents on their way into the store."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field

from shared.models.base import Model
from shared.models.cost import Cost
from shared.models.told import Sentence, ServerPath

#: What has a reader; `workers.index.readers` is held to it by a test.
CODE_SUFFIXES = frozenset({
    ".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".go", ".rs", ".java", ".c", ".h",
    ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".cs", ".kt", ".kts", ".rb", ".php", ".sh", ".bash", ".sql",
})  # fmt: skip
#: Suffix -> the module of its parser (`workers.formats`).
FORMATS = {
    ".pdf": "pdf", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx", ".xlsm": "xlsx", ".html": "html", ".htm": "html",
    ".xhtml": "html", ".epub": "epub", ".odt": "odf", ".ods": "odf", ".odp": "odf", ".eml": "mail", ".mbox": "mbox",
    ".ipynb": "notebook", ".csv": "tabular", ".tsv": "tabular", ".json": "structured", ".yaml": "structured",
    ".yml": "structured", ".toml": "structured", ".ini": "structured", ".cfg": "structured", ".conf": "structured",
}  # fmt: skip
#: Parser -> the package of the extra `documents` that it needs.
FORMAT_PACKAGES = {
    "pdf": "pypdfium2", "docx": "docx", "pptx": "pptx", "xlsx": "openpyxl", "html": "trafilatura",
    "epub": "trafilatura", "mail": "trafilatura", "mbox": "trafilatura",
}  # fmt: skip
TEXT_SUFFIXES = frozenset({
    ".md", ".markdown", ".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".tex", ".log",
})  # fmt: skip
#: Files of many documents, that travel in pieces: of lines, or of messages.
LINES = frozenset({".jsonl", ".ndjson"})
BOXES = frozenset({".mbox"})
SUFFIXES = TEXT_SUFFIXES | LINES | CODE_SUFFIXES | FORMATS.keys()
#: Files that one request may name as changed; more are a new walk over the root.
MOST_CHANGED = 5_000


class RawDocument(Model):
    """A file as read by the caller, not yet parsed.

    `identity` makes ids stable (the absolute path); `path` is what a person reads; `source` is the root it was
    ingested from, the scope of a prune; `namespace` keeps corpora of a `tenant` apart. `line_offset` counts the lines
    before this piece of a JSON Lines file or of a box of mail. `whole`: it is all of the file, so that what else
    the store has of that is to go. `metadata`: what is known of it beside its bytes (title,
    date, tags, kind, fields of its own), which counts for more than what it says itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    source: str = Field(min_length=1)
    path: str = Field(min_length=1)
    identity: str = Field(min_length=1)
    suffix: str
    content: bytes
    namespace: str = "default"
    tenant: str = "default"
    line_offset: int = Field(default=0, ge=0)
    whole: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)


class FileHash(Model):
    """A file, or a piece of a JSON Lines file, that need not travel if the store has it already.

    `identity` and `line_offset` are those of its RawDocument; `digest` is the SHA-256 (hex) of its bytes.
    """

    identity: str = Field(min_length=1)
    digest: str
    line_offset: int = Field(default=0, ge=0)


class FileHashes(Model):
    """Files of one source, to be asked which of them are known. All pieces of a file stand in the same one."""

    source: str = Field(min_length=1)
    namespace: str = "default"
    files: tuple[FileHash, ...]


class HandedOver(StrEnum):
    """What a client gives for an ingest: names of files that the index pool reads itself, or the documents' bytes."""

    PATHS = "paths"
    DOCUMENTS = "documents"


class IngestRequest(Model):
    """What an ingest is of. `sources`: absolute roots, or the name of what pushed documents come from.

    `changed`: of paths, only these files below the one root, and those of them that are gone are removed; none: all
    below the roots. `dry_run`: nothing is put in, only told. `prune`: what the store has from the roots
    beyond what was found there is removed. `seal`: of paths, proof that they were named by somebody who may read the
    stack's data folder (`shared.settings.path_key`).
    """

    by: HandedOver
    sources: tuple[str, ...] = Field(min_length=1, max_length=1000)
    changed: tuple[str, ...] = Field(default=(), max_length=MOST_CHANGED)
    prune: bool = False
    dry_run: bool = False
    seal: str = ""


class FileSpan(Model):
    """Bytes of a file that are read as one: all of it where `size` is None, else whole lines of a JSON Lines file.

    `ends`: nothing of the file comes behind it.
    """

    file: str = Field(min_length=1)
    start: int = Field(default=0, ge=0)
    size: int | None = Field(default=None, ge=0)
    line_offset: int = Field(default=0, ge=0)
    ends: bool = True


class DocumentStatus(StrEnum):
    """What became of a document."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    FAILED = "failed"


#: Of documents whose chunks were written; of those after which the corpus is another one.
WRITTEN = frozenset({DocumentStatus.ADDED, DocumentStatus.CHANGED})
CHANGING = WRITTEN | {DocumentStatus.REMOVED}


class DocumentOutcome(Model):
    """What became of one document; `reason` is a sentence for failures and for what was left out.

    `fresh`: of a document that was changed, the ids of the chunks that it did not have before; none where it has none
    such, or too many: then any of its chunks may be new. For workers alone.
    """

    path: str
    doc_id: str = ""
    status: DocumentStatus
    chunks: int = Field(default=0, ge=0)
    reason: str = ""
    fresh: tuple[str, ...] = ()


class IngestItem(Model):
    """One piece of an ingest's work, of one source. One of `files` to `removed` is given.

    `files`: to be hashed, and read where the store lacks them. `spans`: to be read and put in. `documents`: the same
    with their bytes. `hashes`: of files whose bytes the client has, to be told which it has to send. `removed`:
    identities of documents, and of files, whose documents are to go. `met`: what the client could not read; `ends`: how
    many files end with `documents`.
    """

    tenant: str
    namespace: str = "default"
    source: str = Field(min_length=1)
    files: tuple[str, ...] = ()
    spans: tuple[FileSpan, ...] = ()
    documents: tuple[RawDocument, ...] = ()
    hashes: FileHashes | None = None
    removed: tuple[str, ...] = ()
    met: tuple[DocumentOutcome, ...] = ()
    ends: int = 0

    @property
    def names_files(self) -> bool:
        """True when a worker is to read files of its machine."""
        return bool(self.files or self.spans)

    def single(self) -> list[IngestItem]:
        """An item for each file or document of it that is to be put in; none where it is only one."""
        spans = [self.model_copy(update={"spans": (span,)}) for span in self.spans]
        alone = {"met": (), "ends": 0}
        documents = [self.model_copy(update={"documents": (one,), **alone}) for one in self.documents]
        if documents:
            documents[-1] = documents[-1].model_copy(update={"met": self.met, "ends": self.ends})
        both = [*spans, *documents]
        return both if len(both) > 1 else []


class IngestReport(Model):
    """What became of one item. `wanted`: numbers of the hashes whose files must be sent; `passed_over`: sentences."""

    item: str
    outcomes: tuple[DocumentOutcome, ...] = ()
    wanted: tuple[int, ...] = ()
    passed_over: tuple[str, ...] = ()


class IngestCounts(Model):
    """How far an ingest is: files found and read (or documents handed over), and documents by what became of them.

    `parts`: seconds of the workers, by what they did.
    """

    files: int = 0
    read: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    chunks: int = 0
    stale: int = Field(default=0, description="kept answers that it has made stale")
    parts: dict[str, float] = Field(default_factory=dict)

    @property
    def said(self) -> str:
        """In a few words."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.read:,} of {self.files:,} files read{failed}"


class IngestResult(Model):
    """An ingest as far as it is: its job's state, its counts, and what a person should know.

    `failures`: the first thousand documents that failed; `passed_over`: what was left out, as sentences.
    """

    job_id: str
    state: str
    sources: tuple[ServerPath, ...]
    namespace: str = "default"
    error: Sentence | None = None
    partial: bool = False
    counts: IngestCounts = IngestCounts()
    failures: tuple[DocumentOutcome, ...] = ()
    passed_over: tuple[str, ...] = ()
    warnings: tuple[Sentence, ...] = ()
    cost: Cost = Cost()
    seconds: float = 0.0
