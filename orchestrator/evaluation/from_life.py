"""A labelled set of kept answers and what people have said of them, as `ramify eval` reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from pydantic import Field

from orchestrator.client import Ramify
from shared.errors import InputError, NotFoundError, RamifyError
from shared.models import Answer
from shared.models.base import Model
from shared.models.judgement import Judged, Judgement

_SKIPPED = "judged bad, and no document of it was named good"


class ExportedSet(Model):
    """What was written: questions, documents, judgements, and why judged answers were left out."""

    path: str
    questions: int
    documents: int
    judgements: int
    left_out: dict[str, int] = Field(default_factory=dict)


def grades(judgement: Judgement, answer: Answer) -> dict[str, int]:
    """Document -> 1 for a good one, 0 for a bad one. Pure.

    What was said of a document counts; an answer that is good makes those good that it cites.
    """
    cited = {one.doc_id for one in answer.summary.citations if one.doc_id}
    said = {doc_id: int(verdict is Judged.GOOD) for doc_id, verdict in judgement.documents.items()}
    whole = {Judged.GOOD: dict.fromkeys(cited, 1), Judged.BAD: dict.fromkeys(cited, 0), None: {}}
    return {**whole[judgement.answer], **said}


def export_as_eval(client: Ramify, judgements: Iterable[Judgement], folder: Path) -> ExportedSet:
    """Write `queries.jsonl`, `qrels.tsv` and `corpus.jsonl` into a new folder.

    The corpus holds every document that one of the answers shows, so that the judged ones have others beside them.
    Raises: InputError for a folder that is there, or where no judged answer can be used.
    """
    left_out, chosen = Counter[str](), dict[str, tuple[Answer, dict[str, int]]]()
    for judgement in judgements:
        try:
            answer = client.result(judgement.job_id)
        except RamifyError:
            left_out["without an answer that can be read"] += 1
            continue
        graded = grades(judgement, answer)
        if any(graded.values()):
            chosen[judgement.job_id] = answer, graded
        else:
            left_out[_SKIPPED] += 1
    if not chosen:
        raise InputError("--as-eval", str(folder), "no judged answer can be used: `ramify judge ID good` judges one")
    try:
        folder.mkdir()
    except FileExistsError:
        raise InputError("--as-eval", str(folder), "it is there already: name a new folder") from None
    documents = _write_corpus(client, chosen.values(), folder)
    judged = _write_questions(chosen, documents, folder)
    return ExportedSet(
        path=str(folder), questions=len(chosen), documents=len(documents), judgements=judged, left_out=dict(left_out)
    )


def _write_corpus(client: Ramify, answers: Iterable[tuple[Answer, Mapping[str, int]]], folder: Path) -> frozenset[str]:
    titles = {hit.doc_id: hit.title for answer, _ in answers for hit in answer.results}
    written = set[str]()
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for doc_id, title in titles.items():
            try:
                body = client.corpus.text(doc_id)
            except NotFoundError:  # it was removed since
                continue
            _line(file, {"id": doc_id, "title": title, "text": body})
            written.add(doc_id)
    return frozenset(written)


def _write_questions(
    chosen: Mapping[str, tuple[Answer, Mapping[str, int]]], documents: frozenset[str], folder: Path
) -> int:
    judged = 0
    with (
        (folder / "queries.jsonl").open("w", encoding="utf-8") as queries,
        (folder / "qrels.tsv").open("w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for job_id, (answer, graded) in chosen.items():
            _line(queries, {"id": job_id, "text": answer.question})
            for doc_id, grade in graded.items():
                if doc_id in documents:
                    qrels.write(f"{job_id}\t{doc_id}\t{grade}\n")
                    judged += 1
    return judged


def _line(file: IO[str], value: object) -> None:
    file.write(f"{json.dumps(value, ensure_ascii=False)}\n")
