"""What a labelled set says of its questions besides their text: their types, and plans made for them. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from orchestrator.evaluation.dataset import LabelledQuestion
from shared.errors import InputError
from shared.language.routing import route_by_rules
from shared.models import Plan
from shared.models.base import Model
from shared.models.request import MAX_ENTRIES
from shared.settings import Settings
from shared.settings.faults import request_fault

#: What a question is called that the rules are not sure of: the routing table has a row of its own for these.
UNSURE = "unsure"
#: Types beyond so many are gathered under this name: a table of a hundred types says nothing.
_MOST, OTHER = 12, "other"
_LONGEST = 40
_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


class QuestionTypes(Model):
    """Question id -> type; for people, where the types are from; what a reader must know of them."""

    types: dict[str, str]
    source: str
    warnings: tuple[str, ...] = ()


def question_types(questions: Sequence[LabelledQuestion], settings: Settings) -> QuestionTypes:
    """The label `type` where a question has one, else what the rules say. A label may be any short word."""
    labels = {question.id: _label(question.labels) for question in questions}
    types = {question.id: labels[question.id] or _by_rules(question.text, settings) for question in questions}
    kept = {name for name, _ in Counter(types.values()).most_common(_MOST)}
    count, many = sum(label is not None for label in labels.values()), len(set(types.values()))
    warnings = []
    if 0 < count < len(questions):
        warnings.append(
            f"{len(questions) - count} of {len(questions)} questions have no label type: the rules read them."
        )
    if many > _MOST:
        warnings.append(f"There are {many} types: all but the {_MOST} largest are shown as {OTHER!r}.")
    return QuestionTypes(
        types={name: kind if kind in kept else OTHER for name, kind in types.items()},
        source="the label type" if count == len(questions) else "the rules" if not count else "labels, else the rules",
        warnings=tuple(warnings),
    )


def _by_rules(question: str, settings: Settings) -> str:
    read = route_by_rules(question, settings.routing.unsure_below)
    return UNSURE if read.unsure else read.type.value


def _label(labels: Mapping[str, object]) -> str | None:
    """The label, if it is a word that a table can show."""
    given = labels.get("type")
    if not isinstance(given, str) or not given.strip() or len(given) > _LONGEST:
        return None
    return None if any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in given) else given.strip()


def plans_of(questions: Sequence[LabelledQuestion], field: str) -> tuple[dict[str, Plan], tuple[str, ...]]:
    """Question id -> its plan, and warnings (one for questions without a plan).

    `field` is a path with dots: `decomposition.filled` reads `filled` of each object in the list `decomposition`;
    `plan` reads a plain list of texts, or of entries (`query`, `depends_on`, `dimension`). A text with `#1` in it waits
    for the first one's answer. Raises: InputError when no question has it, or it is no plan.
    """
    plans = {question.id: _plan(question, field) for question in questions}
    given = {name: plan for name, plan in plans.items() if plan}
    if not given:
        fields = ", ".join(sorted({name for question in questions for name in question.labels}))
        raise InputError("--plan", field, f"no question has it; their fields: {fields or 'none'}")
    missing = len(plans) - len(given)
    warning = f"{missing} of {len(plans)} questions have no {field}: they are searched without a plan."
    return given, (warning,) if missing else ()


def _plan(question: LabelledQuestion, field: str) -> Plan:
    found: Any = question.labels
    for part in field.split("."):
        if isinstance(found, list):
            found = [item.get(part) if isinstance(item, Mapping) else None for item in found]
        else:
            found = found.get(part) if isinstance(found, Mapping) else None
    if found is None:
        return ()
    entries = found if isinstance(found, list) else [None]
    texts = [entry.get("query") if isinstance(entry, Mapping) else entry for entry in entries]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        fields = found[0] if isinstance(found, list) and found and isinstance(found[0], Mapping) else ()
        hint = f": name one of its fields, {', '.join(sorted(map(str, fields)))}" if fields != () else ""
        raise InputError("--plan", field, f"question {question.id} has no list of texts there{hint}")
    if len(found) > MAX_ENTRIES:
        count = f"{len(found)} subquestions, {MAX_ENTRIES} are the most"
        raise InputError("--plan", field, f"question {question.id} has {count}")
    try:
        return _PLAN.validate_python(found)
    except ValidationError as error:
        fault = request_fault(error)
        raise InputError("--plan", field, f"question {question.id}: {fault.fix}") from None
