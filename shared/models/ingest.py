"""Documents on their way into the store."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from shared.models.base import Model

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
    ".yml": "structured", ".toml": "structured",
}  # fmt: skip
#: Parser -> the package of the extra `documents` that it needs.
FORMAT_PACKAGES = {
    "pdf": "pypdfium2", "docx": "docx", "pptx": "pptx", "xlsx": "openpyxl", "html": "trafilatura",
    "epub": "trafilatura", "mail": "trafilatura", "mbox": "trafilatura",
}  # fmt: skip
TEXT_SUFFIXES = frozenset({".md", ".markdown", ".txt", ".text", ".rst"})
#: Files of many documents, that travel in pieces: of lines, or of messages.
LINES = frozenset({".jsonl", ".ndjson"})
BOXES = frozenset({".mbox"})
SUFFIXES = TEXT_SUFFIXES | LINES | CODE_SUFFIXES | FORMATS.keys()


class RawDocument(Model):
    """A file as read by the caller, not yet parsed.

    `identity` makes ids stable (the absolute path); `path` is what a person reads; `source` is the root it was
    ingested from, the scope of a prune; `namespace` keeps corpora of a `tenant` apart. `line_offset` counts the lines
    before this piece of a JSON Lines file or of a box of mail.
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


class DocumentStatus(StrEnum):
    """What became of a document."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    FAILED = "failed"


#: Of documents whose chunks were written.
WRITTEN = frozenset({DocumentStatus.ADDED, DocumentStatus.CHANGED})


class DocumentOutcome(Model):
    """What became of one document; `reason` is a sentence for failures and for what was left out."""

    path: str
    doc_id: str = ""
    status: DocumentStatus
    chunks: int = Field(default=0, ge=0)
    reason: str = ""
