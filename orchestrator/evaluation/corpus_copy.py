"""The corpus as the engine gets it: unpacked, always at the same place, with nothing but id, title and text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.evaluation.dataset import Corpus
from orchestrator.evaluation.rows import identity, objects
from shared.errors import RamifyError


def corpus_copy(corpus: Corpus, folder: Path) -> Path:
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


def documents(corpus: Corpus) -> Iterator[dict[str, str]]:
    """Id, title and text of every document that can be found: the title stands for a text that is blank."""
    for where, fields in objects(corpus.path):
        title, text = _text(fields, "title"), _text(fields, "text")
        if text or title:
            yield {"id": identity(where, fields, "id", "_id"), "title": title, "text": text or title}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) and value.strip() else ""
