"""A labelled set: corpus, questions and judgements. Reads and checks files, plain or gzipped; searches nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from shared.errors import InputError
from shared.settings.faults import json_fault

CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
QUERIES = ("queries.jsonl", "queries.jsonl.gz")
QRELS = ("qrels.tsv", "qrels.tsv.gz", "qrels.jsonl", "qrels.jsonl.gz")
#: question id -> document id -> grade (0 = not relevant; negative grades of TREC count as 0).
Qrels = dict[str, dict[str, int]]
_FORM = "write query-id, corpus-id and grade, parted by tabs"
_HEADERS = frozenset({"query-id", "query_id", "qid"})
#: From this highest grade on, binary measures count grade 2 as relevant (TREC deep learning, T2Ranking: 0 to 3).
_LONG_SCALE = 3
_GZIP = b"\x1f\x8b"
_MAX_LINE_BYTES = 20_000_000
#: What a packed file may unpack to: this much, or so many times its size. Text packs to a third, much repeated to 1/20.
_ALWAYS_BYTES, _MOST_TIMES = 1_000_000_000, 200


@dataclass(frozen=True)
class LabelledQuestion:
    """One question. `labels` are its other fields (answer, decomposition ...): never searched with."""

    id: str
    text: str
    labels: Mapping[str, Any]


@dataclass(frozen=True)
class LabelledCorpus:
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
    corpus: LabelledCorpus
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


def read_corpus(path: Path) -> LabelledCorpus:
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
    return LabelledCorpus(path=path.resolve(), digest=digest.hexdigest(), ids=frozenset(ids), blank=blank)


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


def read_qrels(path: Path, questions: Collection[str], documents: Collection[str]) -> Qrels:
    """All judgements of a file. Both id collections should be sets.

    Raises: InputError for a broken row, one that names an unknown question or document, a contradiction, or no rows.
    """
    found: Qrels = {}
    for where, line in lines(path):
        if not line.strip():
            continue
        row = _row(where, line)
        if row is None:
            continue
        question, document, grade = row
        if question not in questions:
            raise InputError(where, question, "there is no question of that id: give the questions it was made for")
        if document not in documents:
            raise InputError(where, document, "there is no document of that id: give the corpus it was made for")
        if found.setdefault(question, {}).setdefault(document, grade) != grade:
            raise InputError(where, document, f"it is judged twice for question {question}, with different grades")
    if not found:
        raise InputError(path.name, str(path), f"it holds no judgements: {_FORM}")
    return found


def _row(where: str, line: bytes) -> tuple[str, str, int] | None:
    """One judgement; None for the header."""
    if line.lstrip().startswith(b"{"):
        fields = as_object(where, line)
        grade = fields.get("score", fields.get("grade"))
        return identity(where, fields, "query-id"), identity(where, fields, "corpus-id"), grade_of(where, grade)
    cells = [cell.strip() for cell in text_of(where, line).split("\t")]
    if len(cells) != 3 or not cells[0] or not cells[1]:
        raise InputError(where, "\t".join(cells), _FORM)
    if cells[0].lower() in _HEADERS:
        return None
    return cells[0], cells[1], grade_of(where, cells[2])


def grade_of(where: str, value: object) -> int:
    """A whole number, 0 or more. Raises: InputError."""
    try:
        number = float(value) if isinstance(value, str | float | int) and not isinstance(value, bool) else math.nan
        grade = int(number)
    except (ValueError, OverflowError):
        number, grade = math.nan, 0
    if grade != number:
        raise InputError(f"{where}, grade", value, "give a whole number, 0 for not relevant")
    return max(0, grade)


def relevant_from(qrels: Qrels) -> int:
    """The grade from which binary measures count a document: 1, and 2 on scales that reach 3 (T2Ranking, TREC DL)."""
    highest = max(grade for judged in qrels.values() for grade in judged.values())
    return 2 if highest >= _LONG_SCALE else 1


def lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """(file name and line number for people, the line with its end) of every line; gzip is seen by its first bytes.

    Raises: InputError for a file that is missing, cannot be read, is a broken gzip or unpacks to far too much.
    """
    try:
        with _opened(path) as handle:
            most = max(_ALWAYS_BYTES, _MOST_TIMES * path.stat().st_size)
            total, number = 0, 0
            while line := handle.readline(_MAX_LINE_BYTES + 1):
                total, number = total + len(line), number + 1
                where = f"{path.name} line {number}"
                if len(line) > _MAX_LINE_BYTES:
                    raise InputError(where, f"more than {_MAX_LINE_BYTES:,} bytes", "split the document")
                if total > most and isinstance(handle, gzip.GzipFile):
                    raise InputError(where, f"it unpacks to more than {most:,} bytes", "unpack it if that is right")
                yield where, line
    except FileNotFoundError:
        raise InputError(path.name, str(path), "there is no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path.name, str(path), f"it is no whole gzip file ({error}): copy it again") from None
    except OSError as error:
        raise InputError(path.name, str(path), f"it cannot be read ({error.strerror or error})") from None


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as probe:
        packed = probe.read(2) == _GZIP
    return cast("BinaryIO", gzip.open(path, "rb") if packed else path.open("rb"))


def text_of(where: str, line: bytes) -> str:
    """A line as text, without its end. Raises: InputError for what is no UTF-8."""
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(where, f"byte {error.start}", "it is not UTF-8: convert the file with iconv") from None


def as_object(where: str, line: bytes) -> dict[str, Any]:
    """One JSON object. Raises: InputError naming the line."""
    text = text_of(where, line)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(where, text, f"write valid JSON ({json_fault(error)})") from None
    if not isinstance(value, dict):
        raise InputError(where, text, 'write an object, for example {"id": "1", "text": "..."}')
    return value


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) of every JSON line that is not blank. Raises: InputError as `lines` and `as_object`."""
    for where, line in lines(path):
        if line.strip():
            yield where, as_object(where, line)


def identity(where: str, fields: dict[str, Any], *names: str) -> str:
    """The id under the first of `names` that is there: a text without white space at its ends, or a number as text.

    Raises: InputError when there is none.
    """
    value = next((fields[name] for name in names if name in fields), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}, {names[0]}", value, "give a text or a number")
    return value.strip()
