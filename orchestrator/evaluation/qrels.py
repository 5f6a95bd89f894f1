"""Reads relevance judgements: tab separated or JSON lines. Checks every row, judges nothing."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from orchestrator.evaluation.rows import as_object, identity, lines, text_of
from shared.errors import InputError

#: question id -> document id -> grade (0 = not relevant; negative grades of TREC count as 0).
Qrels = dict[str, dict[str, int]]
_FORM = "write query-id, corpus-id and grade, parted by tabs"
_HEADERS = frozenset({"query-id", "query_id", "qid"})
#: From this highest grade on, binary measures count grade 2 as relevant (TREC deep learning, T2Ranking: 0 to 3).
_LONG_SCALE = 3


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
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    try:
        number = float(value) if isinstance(value, str | float) else None
        grade = int(number) if number is not None else None
    except (ValueError, OverflowError):
        number = grade = None
    if grade is None or grade != number:
        raise InputError(f"{where}, grade", value, "give a whole number, 0 for not relevant")
    return max(0, grade)


def relevant_from(qrels: Qrels) -> int:
    """The grade from which binary measures count a document: 1, and 2 on scales that reach 3 (T2Ranking, TREC DL)."""
    highest = max(grade for judged in qrels.values() for grade in judged.values())
    return 2 if highest >= _LONG_SCALE else 1
