"""Judgements for questions that were asked live: `ramify ab --labels`. Reads and checks a file; searches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.evaluation.qrels import grade_of
from orchestrator.evaluation.rows import objects
from orchestrator.shadow.trial import digest
from shared.errors import InputError
from shared.models.base import Model

_FORM = 'give relevant documents: ["notes/a.md"], or {"notes/a.md": 2} with grades'


class Labels(Model):
    """Digest of a question -> document -> grade. A document is a path, or what stands behind its last "#"."""

    grades: dict[str, dict[str, int]]

    def of(self, question: str, documents: Sequence[str]) -> tuple[dict[str, int], list[str]] | None:
        """The grades for a question's digest, and `documents` under the names that the labels use; None: not judged."""
        judged = self.grades.get(question)
        if judged is None:
            return None
        return judged, [name if name in judged else name.rpartition("#")[2] or name for name in documents]


def read_labels(path: Path) -> Labels:
    """`{"question", "relevant"}` a line; `text` stands for question too, so a file of queries can be extended.

    Raises: InputError naming the line, for a question judged twice or without a relevant document, an empty file.
    """
    found: dict[str, dict[str, int]] = {}
    for where, fields in objects(path):
        text = fields.get("question", fields.get("text"))
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where}, question", text, "give the question as a text")
        name = digest(text)
        if name in found:
            raise InputError(where, text, "it is judged twice: give each question one line")
        found[name] = _grades(f"{where}, relevant", fields.get("relevant"))
    if not found:
        raise InputError(path.name, str(path), f"it holds no judgements: {_FORM}")
    return Labels(grades=found)


def _grades(where: str, given: Any) -> dict[str, int]:
    rows: Mapping[Any, Any] = dict.fromkeys(given, 1) if _is_names(given) else given
    if not isinstance(rows, Mapping) or not rows:
        raise InputError(where, given, _FORM)
    grades = {name: grade_of(where, grade) for name, grade in rows.items()}
    if not any(grades.values()):
        raise InputError(where, given, "give at least one document a grade above 0")
    return grades


def _is_names(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(name, str) and name.strip() for name in given)
