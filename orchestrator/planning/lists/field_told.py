"""What is said of the fields that a list was asked for by, and of how they were read. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.words import unique
from shared.language import reader_sentence
from shared.models.enumeration import FieldFilter, Values


def field_doubts(named: NamedValues, values: Values, question: str) -> Iterator[str]:
    """What may be meant otherwise, in the question's language."""
    if named.read_as:
        comma = reader_sentence("comma", question)
        told = comma.join(f"\u201c{each}\u201d" for each in unique(named.read_as))
        yield reader_sentence("list_fields_read", question, told)
    for name, value, near in named.unknown:
        spelt = f"{name} = {value}"
        sentence = "list_no_value_near" if near else "list_no_value"
        yield reader_sentence(sentence, question, *filter(None, (spelt, near)))
    if named.fields and values.fields_unknown:
        yield reader_sentence("list_fields_unknown", question, f"{values.fields_unknown:,}")


def field_part(wanted: FieldFilter) -> str:
    """A filter as people read it: `owner = Ada`."""
    name = " or ".join(wanted.names)
    if not wanted.values:
        return f"{'no' if wanted.negated else 'any'} {name}"
    return f"{'not ' if wanted.negated else ''}{name} = {' or '.join(wanted.values)}"
