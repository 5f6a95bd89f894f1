"""Finds the plan that a labelled set gives with its questions. Pure; makes no plans of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from orchestrator.evaluation.dataset import LabelledQuestion
from shared.errors import InputError
from shared.models import Plan
from shared.models.request import MAX_ENTRIES
from shared.settings.faults import request_fault

Plans = dict[str, Plan]
_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


def plans_of(questions: Sequence[LabelledQuestion], field: str) -> tuple[Plans, tuple[str, ...]]:
    """Question id -> its plan, and warnings (one for questions without a plan).

    `field` is a path with dots: `decomposition.filled` reads `filled` of each object in the list `decomposition`;
    `plan` reads a plain list of texts, or of entries (`query`, `depends_on`, `dimension`). A text with `#1` in it waits
    for the first one's answer. Raises: InputError when no question has it, or it is no plan.
    """
    plans = {question.id: _plan(question, field) for question in questions}
    given = {name: plan for name, plan in plans.items() if plan}
    if not given:
        raise InputError("--plan", field, f"no question has it; their fields: {_fields(questions) or 'none'}")
    missing = len(plans) - len(given)
    warning = f"{missing} of {len(plans)} questions have no {field}: they are searched without a plan."
    return given, (warning,) if missing else ()


def _plan(question: LabelledQuestion, field: str) -> Plan:
    found: Any = question.labels
    for part in field.split("."):
        found = _step(found, part)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(map(_is_entry, found)):
        raise InputError("--plan", field, f"question {question.id} has no list of texts there{_inner(found)}")
    if len(found) > MAX_ENTRIES:
        most = f"{MAX_ENTRIES} are the most"
        raise InputError("--plan", field, f"question {question.id} has {len(found)} subquestions, {most}")
    try:
        return _PLAN.validate_python(found)
    except ValidationError as error:
        fault = request_fault(error)
        raise InputError("--plan", field, f"question {question.id}: {fault.fix}") from None


def _is_entry(item: Any) -> bool:
    text = item.get("query") if isinstance(item, Mapping) else item
    return isinstance(text, str) and bool(text.strip())


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
