"""What evaluations keep in `data_dir/eval`: unpacked corpora, and indexes that are locked while in use."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.evaluation.dataset import LabelledCorpus, identity, objects
from shared.errors import RamifyError
from shared.providers.encoders.sparse import NAME as SPARSE
from shared.providers.encoders.sparse import TrigramEncoder
from shared.settings import Settings, data_folder
from shared.store.meta import FORMAT

#: What may differ without another index: where, how fast and under which key the model is called, and the query side.
_NOT_INDEXED = frozenset({"api_key", "api_key_for", "timeout_s", "threads", "query_prefix", "languages"})


def corpus_copy(corpus: LabelledCorpus, folder: Path) -> Path:
    """`corpus.jsonl` in a folder of the corpus's digest below `folder`, written unless it is there.

    Always the same place, for an ingest knows documents by their file's path. `path`, `url` and labels are left out:
    they would be shown in the id's stead, or searched. Raises: RamifyError when it cannot be written.
    """
    plain = folder / f"corpus-{corpus.digest[:16]}" / "corpus.jsonl"
    if plain.is_file():
        return plain
    fresh = plain.with_suffix(".new")
    try:
        plain.parent.mkdir(mode=0o700, exist_ok=True)
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in documents(corpus))
        fresh.replace(plain)
    except OSError as error:
        raise RamifyError(f"the corpus cannot be unpacked into {plain.parent}: {error.strerror}") from None
    return plain


def documents(corpus: LabelledCorpus) -> Iterator[dict[str, str]]:
    """Id, title and text of every document that can be found: the title takes the place of a blank text."""
    for where, fields in objects(corpus.path):
        title, text = _text(fields, "title"), _text(fields, "text")
        if text or title:
            yield {"id": identity(where, fields, "id", "_id"), "title": title, "text": text or title}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) and value.strip() else ""


@dataclass(frozen=True)
class IndexFolder:
    """`path` is the search process's own; a file beside it says that the index in it was built to its end."""

    path: Path

    @property
    def complete(self) -> bool:
        """True when the index was built to its end."""
        return self._mark.is_file() and self.path.is_dir()

    def mark_complete(self, documents: int, chunks: int) -> None:
        """Note that the index was built to its end."""
        self._mark.write_text(json.dumps({"documents": documents, "chunks": chunks}) + "\n", encoding="utf-8")

    def mark_started(self) -> None:
        """Note that it is being built: what an interrupt leaves is not taken for an index."""
        self._mark.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self.path.with_suffix(".json")


def eval_dir(settings: Settings) -> Path:
    """Absolute folder of all that evaluations keep. Raises: InputError when it cannot be made, or is another's."""
    data_folder.made(settings, "eval")
    return settings.data_dir.absolute() / "eval"


def index_key(corpus: LabelledCorpus, settings: Settings) -> str:
    """16 hex digits of SHA-256 over the corpus's bytes, the encoders, the chunking and the store's format."""
    parts = {
        "corpus": corpus.digest,
        "sparse": SPARSE,
        "trigrams": TrigramEncoder.name if settings.search.trigrams else None,
        "dense": settings.embedding.model_dump(mode="json", exclude=set(_NOT_INDEXED)),
        "chunking": settings.chunking.model_dump(mode="json"),
        "format": FORMAT,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def index_folder(corpus: LabelledCorpus, settings: Settings) -> Iterator[IndexFolder]:
    """The corpus's index folder, ours until the end. Raises: RamifyError while another evaluation has it."""
    folder = eval_dir(settings) / index_key(corpus, settings)
    with folder.with_suffix(".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RamifyError(
                f"another evaluation uses the index in {folder}: wait for its end, or give --data-dir"
            ) from None
        if folder.is_dir():
            folder.chmod(0o700)  # earlier versions left it to the umask, in a folder that is closed
        yield IndexFolder(folder)
