"""Finds the plan that a labelled set gives with its questions. Pure; makes no plans of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.evaluation.dataset import LabelledQuestion
from shared.errors import InputError

#: As many as a job takes (JobRequest.subqueries).
_MOST = 63
Plans = dict[str, tuple[str, ...]]


def plans_of(questions: Sequence[LabelledQuestion], field: str) -> tuple[Plans, tuple[str, ...]]:
    """Question id -> its subquestions in order, and warnings (one for questions without a plan).

    `field` is a path with dots: `decomposition.filled` reads `filled` of each object in the list `decomposition`;
    `plan` reads a plain list of texts. Raises: InputError when no question has it, or it is no list of texts.
    """
    plans = {question.id: _plan(question, field) for question in questions}
    given = {name: plan for name, plan in plans.items() if plan}
    if not given:
        raise InputError("--plan", field, f"no question has it; their fields: {_fields(questions) or 'none'}")
    missing = len(plans) - len(given)
    warning = f"{missing} of {len(plans)} questions have no {field}: they are searched without a plan."
    return given, (warning,) if missing else ()


def _plan(question: LabelledQuestion, field: str) -> tuple[str, ...]:
    found: Any = question.labels
    for part in field.split("."):
        found = _step(found, part)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(item, str) and item.strip() for item in found):
        raise InputError("--plan", field, f"question {question.id} has no list of texts there{_inner(found)}")
    if len(found) > _MOST:
        raise InputError("--plan", field, f"question {question.id} has {len(found)} subquestions, {_MOST} are the most")
    return tuple(item.strip() for item in found)


def _step(found: Any, name: str) -> Any:
    """One step of the path; a list of objects gives the list of their values."""
    if isinstance(found, Mapping):
        return found.get(name)
    if isinstance(found, list):
        return [item.get(name) if isinstance(item, Mapping) else None for item in found]
    return None


def _inner(found: Any) -> str:
    if isinstance(found, list) and found and isinstance(found[0], Mapping):
        return f": name one of its fields, {', '.join(sorted(map(str, found[0])))}"
    return ""


def _fields(questions: Sequence[LabelledQuestion]) -> str:
    return ", ".join(sorted({name for question in questions for name in question.labels}))
