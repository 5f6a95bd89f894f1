"""What is said of the fields that a list was asked for by, and of how they were read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.words import unique
from shared.language import reader_sentence
from shared.language.text import value_key
from shared.models.enumeration import FieldFilter, Scan, Values

#: Values of one field that are told; of more it is told how many there are.
_MOST_TOLD = 8


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


def without_field(scan: Scan | None, values: Values, question: str) -> Iterator[str]:
    """Fields that a list denies values of, and that some of these documents do not have: "not owned by Ada"."""
    for wanted in scan.fields if scan else ():
        have = sum(_having(values.fields.get(value_key(name), {})) for name in wanted.names)
        if wanted.negated and wanted.values and have < values.documents:
            yield reader_sentence("list_without_field", question, " / ".join(wanted.names))


def _having(counts: Mapping[str, int]) -> int:
    """Documents with one of these values, each at the most once for a value and its parts: "Cove & Sons", "Sons"."""
    return sum(count for value, count in counts.items() if not any(value != one and value in one for one in counts))


def field_part(wanted: FieldFilter) -> str:
    """A filter as people read it: `owner = Ada`."""
    name = " or ".join(wanted.names)
    if not wanted.values:
        return f"{'no' if wanted.negated else 'any'} {name}"
    values, more = wanted.values[:_MOST_TOLD], len(wanted.values) - _MOST_TOLD
    told = [*values, *([f"{more} more"] if more > 0 else [])]
    return f"{'not ' if wanted.negated else ''}{name} = {' or '.join(told)}"
