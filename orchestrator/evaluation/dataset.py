"""A labelled set: corpus, questions and judgements. Reads and checks files; searches nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.evaluation.qrels import Qrels, read_qrels, relevant_from
from orchestrator.evaluation.rows import as_object, identity, lines, objects
from shared.errors import InputError

CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
QUERIES = ("queries.jsonl", "queries.jsonl.gz")
QRELS = ("qrels.tsv", "qrels.tsv.gz", "qrels.jsonl", "qrels.jsonl.gz")


@dataclass(frozen=True)
class LabelledQuestion:
    """One question. `labels` are its other fields (answer, decomposition ...): never searched with."""

    id: str
    text: str
    labels: Mapping[str, Any]


@dataclass(frozen=True)
class Corpus:
    """The documents' file; `digest` is the SHA-256 of its unpacked bytes, so a gzipped copy is the same corpus.

    `blank` documents have neither title nor text.
    """

    path: Path
    digest: str
    ids: frozenset[str]
    blank: int = 0


@dataclass(frozen=True)
class Dataset:
    """Questions in the file's order, each with at least one document of grade `relevant_from` or better."""

    name: str
    corpus: Corpus
    questions: tuple[LabelledQuestion, ...]
    qrels: Qrels
    relevant_from: int
    warnings: tuple[str, ...] = ()


def load_dataset(
    folder: Path,
    *,
    queries: Path | None = None,
    qrels: Path | None = None,
    limit: int | None = None,
    relevant: int | None = None,
) -> Dataset:
    """Read a folder; `queries` and `qrels` override its files, `limit` keeps the first questions.

    `relevant` is the grade that binary measures count (None: 1, or 2 on scales that reach 3).
    Raises: InputError naming the file, the line and the fix.
    """
    if not folder.is_dir():
        fix = "it is no folder" if folder.exists() else "there is no such folder"
        raise InputError("DATASET", str(folder), f"{fix}: name one with corpus.jsonl, queries.jsonl and qrels.tsv")
    corpus = read_corpus(_file(folder, CORPUS))
    questions = _questions(queries or _file(folder, QUERIES))
    judged = read_qrels(qrels or _file(folder, QRELS), {question.id for question in questions}, corpus.ids)
    bar = relevant if relevant is not None else relevant_from(judged)
    kept = tuple(q for q in questions if any(grade >= bar for grade in judged.get(q.id, {}).values()))
    if not kept:
        raise InputError("qrels", f"grade {bar}", "no question has a document of that grade: lower --relevant-from")
    return Dataset(
        name=folder.resolve().name,
        corpus=corpus,
        questions=kept[:limit],
        qrels={q.id: judged[q.id] for q in kept[:limit]},
        relevant_from=bar,
        warnings=tuple(_left_out(len(questions) - len(kept), bar, corpus.blank)),
    )


def _left_out(questions: int, bar: int, documents: int) -> Iterator[str]:
    if questions:
        yield f"{questions} questions are left out: no document is judged grade {bar} or better for them."
    if documents:
        yield f"{documents} documents have neither title nor text: nothing can find them."


def _file(folder: Path, names: tuple[str, ...]) -> Path:
    """The first of these files that is there."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError("DATASET", str(folder), f"it holds none of the files {', '.join(names)}")


def read_corpus(path: Path) -> Corpus:
    """Check every document's line. Raises: InputError for a broken line, an id given twice, an empty file."""
    digest, ids, blank = hashlib.sha256(), set[str](), 0
    for where, line in lines(path):
        digest.update(line)
        if not line.strip():
            continue
        fields = as_object(where, line)
        document = identity(where, fields, "id", "_id")
        if document in ids:
            raise InputError(where, document, "a document of that id stands above: give each its own")
        if not isinstance(fields.get("text"), str):
            raise InputError(f"{where}, text", fields.get("text"), "give a text")
        ids.add(document)
        blank += not (fields["text"].strip() or str(fields.get("title") or "").strip())
    if len(ids) == blank:
        raise InputError(path.name, str(path), "it holds no documents")
    return Corpus(path=path.resolve(), digest=digest.hexdigest(), ids=frozenset(ids), blank=blank)


def _questions(path: Path) -> list[LabelledQuestion]:
    found: dict[str, LabelledQuestion] = {}
    for where, fields in objects(path):
        name, text = identity(where, fields, "id", "_id"), fields.get("text")
        if name in found:
            raise InputError(where, name, "a question of that id stands above: give each its own")
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where}, text", text, "give the question as a text")
        labels = {key: value for key, value in fields.items() if key not in {"id", "_id", "text"}}
        found[name] = LabelledQuestion(id=name, text=text.strip(), labels=labels)
    if not found:
        raise InputError(path.name, str(path), "it holds no questions")
    return list(found.values())
