"""How many places a key may mean: the pages and definitions that go by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from qdrant_client import models

from shared.page_keys import LABEL
from shared.store import ChunkStore
from shared.store.filters import equals, one_of

#: Chunks that are read for it. Reading a few hundred costs a hundredth of a count over all values of a field, which
#: looks at every name of the collection (embedded store, 18,000 chunks, 75,000 names: 0.4 ms against 600).
_READ = 2000
#: Values that such a count returns: the frequent ones come first, what is left out is rare.
_COUNTED = 5000


def places_of(keys: Sequence[str], namespace: str, store: ChunkStore) -> Mapping[str, int]:
    """Key -> the places in the namespace that go by it: pages by their first chunk, labels and code by definition.

    Overloads of one symbol in one file are one place. Keys that nothing goes by are left out.
    Raises: StoreError, TransientError.
    """
    definition = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="symbol"))])
    first = equals("ordinal", 0)
    where = equals("namespace", namespace)
    among = one_of("defines", keys)
    counted: list[models.Condition] = [definition, first]
    if labels := [key for key in keys if key.startswith(LABEL)]:
        counted.append(one_of("defines", labels))
    flt = models.Filter(must=[where, among], should=counted)
    wanted = frozenset(keys)
    found = list(islice(store.read(flt, ("defines", "doc_id", "symbol")), _READ + 1))
    if len(found) > _READ:
        return store.count_values("defines", flt, _COUNTED)
    places = {
        (key, fields["doc_id"], fields.get("symbol"))
        for _, fields in found
        for key in wanted.intersection(fields["defines"])
    }
    return Counter(key for key, _, _ in places)
