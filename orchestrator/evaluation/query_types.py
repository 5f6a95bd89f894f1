"""Which type each question of a labelled set is of: as its label says, else as the rules read it. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from orchestrator.evaluation.dataset import LabelledQuestion
from shared.language.routing import route_by_rules
from shared.models.base import Model
from shared.settings import Settings

#: What a question is called that the rules are not sure of: the routing table has a row of its own for these.
UNSURE = "unsure"
#: Types beyond so many are gathered under this name: a table of a hundred types says nothing.
_MOST, OTHER = 12, "other"
_LONGEST = 40


class Typed(Model):
    """Question id -> type; for people, where the types are from; what a reader must know of them."""

    types: dict[str, str]
    source: str
    warnings: tuple[str, ...] = ()


def type_of(question: str, settings: Settings) -> str:
    """A type by the rules alone, or "unsure"."""
    read = route_by_rules(question, settings.routing.unsure_below)
    return UNSURE if read.unsure else read.type.value


def typed(questions: Sequence[LabelledQuestion], settings: Settings) -> Typed:
    """The label `type` where a question has one, else the rules' reading. A label may be any short word."""
    labels = {question.id: _label(question.labels) for question in questions}
    types = {question.id: labels[question.id] or type_of(question.text, settings) for question in questions}
    kept = {name for name, _ in Counter(types.values()).most_common(_MOST)}
    count, many = sum(label is not None for label in labels.values()), len(set(types.values()))
    said = []
    if 0 < count < len(questions):
        said.append(f"{len(questions) - count} of {len(questions)} questions have no label type: the rules read them.")
    if many > _MOST:
        said.append(f"There are {many} types: all but the {_MOST} largest are shown as {OTHER!r}.")
    return Typed(
        types={name: kind if kind in kept else OTHER for name, kind in types.items()},
        source="the label type" if count == len(questions) else "the rules" if not count else "labels, else the rules",
        warnings=tuple(said),
    )


def _label(labels: Mapping[str, object]) -> str | None:
    """The label, if it is a word that a table can show."""
    given = labels.get("type")
    if not isinstance(given, str) or not given.strip() or len(given) > _LONGEST:
        return None
    return None if any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in given) else given.strip()
