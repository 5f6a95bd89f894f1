"""The conditions that ask for documents by their fields (`shared.language.document_fields`). Pure."""

from __future__ import annotations

from qdrant_client import models

from shared.language.document_fields import LOOKED_FOR
from shared.language.text import value_key
from shared.models.enumeration import FieldFilter

#: The payload field.
FIELDS = "fields"


def condition(wanted: FieldFilter) -> models.Filter:
    """Documents that meet it."""
    starts = [
        f"{value_key(name)}\x1f{value_key(value)}\x1f" if value else f"{value_key(name)}\x1f"
        for name in wanted.names
        for value in wanted.values or ("",)
    ]
    ways: list[models.Condition] = [
        models.FieldCondition(key=FIELDS, match=models.MatchPrefix(prefix=start)) for start in starts
    ]
    return models.Filter(must_not=ways) if wanted.negated else models.Filter(should=ways)


def never_looked_for() -> models.Filter:
    """Documents that an older release stored: their fields are not known."""
    known = models.FieldCondition(key=FIELDS, match=models.MatchValue(value=LOOKED_FOR))
    return models.Filter(must_not=[known])
