"""Counts documents that speak of a field that a list asks for, but of which no such field was read. Bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from shared.language.text import plain, value_key
from shared.models.enumeration import FieldFilter, Scan
from shared.models.plan import Shard
from shared.store import ChunkStore
from workers.enumerate.document import FURTHER, ConditionWords, ListedDocument
from workers.enumerate.selection import documents_of, whole

#: Documents without the field that are looked at, for each shard and field.
_MOST = 400
_BATCH = 100
_FIRST = ("doc_id", "title", "ordinal", "facet", "heading", "text")


def count_unlabelled(store: ChunkStore, scan: Scan, shard: Shard, stopped: Callable[[], bool]) -> int:
    """How many documents that meet all else have the words of the field, or of its value, in their text.

    Where the list asks for documents of every kind, both must stand there: else each page that names Ada would count.
    """
    found: set[str] = set()
    for wanted in scan.fields:
        says = _Says(wanted, both=not (scan.found.kinds or scan.filters.kinds or scan.found.paths))
        found.update(
            document.first["doc_id"] for document in _without(store, scan, wanted, shard, stopped) if says.of(document)
        )
    return len(found)


def _without(
    store: ChunkStore, scan: Scan, wanted: FieldFilter, shard: Shard, stopped: Callable[[], bool]
) -> Iterator[ListedDocument]:
    """The documents that have no field of that name and meet all that is said of others, as far as filters can tell."""
    missing = FieldFilter(names=wanted.names, negated=True)
    others = tuple(missing if one is wanted else one for one in scan.fields)
    under = documents_of(scan.model_copy(update={"fields": others}))
    points = islice(store.read(under, _FIRST, shard.start, shard.stop), _MOST)
    while not stopped() and (batch := [payload for _, payload in islice(points, _BATCH)]):
        yield from whole(store, batch, FURTHER)


class _Says:
    """The words of one field, ready for many documents."""

    def __init__(self, wanted: FieldFilter, *, both: bool) -> None:
        self._names = [ConditionWords(name, exact=False) for name in wanted.names]
        self._values = [ConditionWords(value, exact=False) for value in wanted.values]
        names = "|".join(re.escape(value_key(name)) for name in wanted.names)
        self._alone = re.compile(rf"^\W*(?:{names})\W*$", re.MULTILINE)
        self._both = both and bool(wanted.values)

    def of(self, document: ListedDocument) -> bool:
        """True when the text speaks of it; a name with nothing beside it, as above an empty value, says nothing."""
        text = "\n".join(plain(chunk.text) for chunk in document.in_order())
        value = any(words.stand_in(text) for words in self._values)
        if value != self._both:
            return value
        bare = self._alone.sub("", text)
        return any(words.stand_in(bare) for words in self._names)
