"""Reads the store for a list: one shard to its end or until its time is up, and what exists under a filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple

from qdrant_client import models

from shared.jobs.tables import Excerpt
from shared.language import document_fields
from shared.language.page_keys import title_key
from shared.models import Filters
from shared.models.enumeration import ListRow, Scan, TitledPage, Values
from shared.models.plan import Shard
from shared.store import ChunkStore, fields
from shared.store.schema import equals, one_of, to_filter
from workers.enumerate.columns import columns_of
from workers.enumerate.definitions import FIRST_OF_CODE, FURTHER_OF_CODE, CodeLister
from workers.enumerate.document import FIRST, FURTHER, ListedDocument, Matcher
from workers.enumerate.selection import CODE, FIRST_CHUNK, documents_of, whole
from workers.enumerate.unlabelled import count_unlabelled

_BATCH = 128
#: Characters of a document that the LLM is shown.
EXCERPT_CHARS = 2000
#: Filters whose values `ValueCache` keeps; all are dropped when there are more.
_MAX_FILTERS = 32
#: Pages that are looked at for titles, and characters of each.
_MOST_TITLED, _TITLED_CHARS = 20, 600


class Scanned(NamedTuple):
    """What a shard holds: rows in order, how many documents were read, texts for the LLM, and whether it was cut."""

    rows: Sequence[ListRow] = ()
    scanned: int = 0
    excerpts: Sequence[Excerpt] = ()
    cut: bool = False
    unparsed: int = 0
    unlabelled: int = 0


def scan_shard(
    store: ChunkStore, scan: Scan, shard: Shard, *, excerpts: int = 0, stopped: Callable[[], bool] = lambda: False
) -> Scanned:
    """Every document of the shard that fits, in the order of the list.

    `excerpts`: of so many rows with missing columns the text is kept for the LLM. `stopped` is asked after each batch.
    """
    if scan.code:
        return _scan_code(store, scan, CodeLister(scan, scan.code), shard, stopped)
    matcher = Matcher(scan)
    rows: dict[str, ListRow] = {}
    texts: dict[str, str] = {}
    scanned, cut = 0, False
    points = iter(store.read(documents_of(scan), FIRST, shard.start, shard.stop))
    while batch := [payload for _, payload in islice(points, _BATCH)]:
        for document in whole(store, batch, FURTHER):
            scanned += 1
            if matcher.fits(document):
                columns = columns_of(document, scan.columns, scan.also_called) if scan.columns else {}
                row = document.row(matcher.sentence(document), columns, matcher.near(document))
                row = row.model_copy(update={"amount": document.amount(scan.by)}) if scan.by else row
                row = row.model_copy(update={"groups": document.groups(scan.per)}) if scan.per else row
                rows[row.doc_id] = row
                if len(columns) < len(scan.columns) and len(texts) < excerpts:
                    texts[row.doc_id] = _excerpt(document)
        if stopped():
            cut = True
            break
    ordered = sorted(rows.values(), key=place_in(scan))
    numbered = [(number, texts[row.doc_id]) for number, row in enumerate(ordered) if row.doc_id in texts]
    unlabelled = 0 if cut else count_unlabelled(store, scan, shard, stopped)
    shown = [Excerpt(number=number, text=text) for number, text in numbered]
    return Scanned(ordered, scanned, shown, cut, unlabelled=unlabelled)


def _scan_code(store: ChunkStore, scan: Scan, lister: CodeLister, shard: Shard, stopped: Callable[[], bool]) -> Scanned:
    """The same for definitions of code: no text is read."""
    rows: dict[str, list[ListRow]] = {}
    points = iter(store.read(documents_of(scan), FIRST_OF_CODE, shard.start, shard.stop))
    cut = False
    while not cut and (batch := [payload for _, payload in islice(points, _BATCH)]):
        rows |= {str(one.first["doc_id"]): lister.rows(one) for one in whole(store, batch, FURTHER_OF_CODE)}
        cut = stopped()
    ordered = sorted((row for own in rows.values() for row in own), key=place_in(scan))
    return Scanned(ordered, len(rows), cut=cut, unparsed=lister.unparsed)


def place_in(scan: Scan) -> Callable[[ListRow], tuple[float, int, str, str, int]]:
    """The order of a list: by date or number where asked for, by words not understood, then by path and line."""
    of_values = scan.per is not None and scan.by is None and scan.order in ("most", "least")  # of these, not of rows
    sign = 0 if of_values else {"newest": -1, "oldest": 1, "most": -1, "least": 1}.get(scan.order, 0)
    number = _amount if scan.by else _day
    return lambda row: (_in_order(number(row), sign), -row.near, row.path, row.doc_id, row.number)


def _in_order(number: float | None, sign: int) -> float:
    """The number in that order; behind all others without one."""
    if not sign:
        return 0
    return math.inf if number is None else sign * number


def _day(row: ListRow) -> float | None:
    return date.fromisoformat(row.date[:10]).toordinal() if row.date else None


def _amount(row: ListRow) -> float | None:
    return row.amount


def _excerpt(document: ListedDocument) -> str:
    kept, left = [document.title], EXCERPT_CHARS
    for chunk in document.in_order():
        kept.append(chunk.text[:left])
        left -= len(kept[-1])
        if left <= 0:
            break
    return "\n".join(kept)


class ValueCache:
    """The values under a tenant's filter, kept until the corpus changes. Safe for threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[tuple[str, str, int], Values] = {}

    def of(self, store: ChunkStore, filters: Filters) -> Values:
        """The values under `filters`, at most `limit` of each field, the most frequent ones."""
        info = store.info()
        version = info.index_version if info else 0
        key = (store.tenant, filters.model_dump_json(), version)
        values = self._known.get(key)
        if values is None:
            values = self._read(store, filters, version) if info else Values()
            if len(self._known) >= _MAX_FILTERS:
                self._known.clear()
            self._known[key] = values
        return values

    def _read(self, store: ChunkStore, filters: Filters, version: int) -> Values:
        under = models.Filter(must=[to_filter(filters), FIRST_CHUNK])
        names = {"kind": "kinds", "tags": "tags", "path": "folders", fields.FIELDS: "fields"}
        found = {name: store.count_values(name, under, self._limit + 2) for name in names}
        found[fields.FIELDS].pop(document_fields.LOOKED_FOR, None)
        kinds, tags, paths, entries = (_most_frequent(values, self._limit) for values in found.values())
        return Values(
            kinds=kinds,
            tags=tags,
            folders=folders(paths),
            fields=document_fields.counted(entries),
            field_names=document_fields.spellings(entries),
            fields_unknown=store.count(models.Filter(must=[under, fields.never_looked_for()])),
            truncated=tuple(names[name] for name, values in found.items() if len(values) > self._limit),
            index_version=version,
            documents=store.count(under),
            code=store.count(models.Filter(must=[under, CODE])),
        )


def _most_frequent(values: dict[str, int], limit: int) -> dict[str, int]:
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))[:limit])


def counted(store: ChunkStore, scan: Scan) -> Values:
    """How many documents the scan will read, exactly, and the state of the index that was counted."""
    info = store.info()
    if info is None:
        return Values()
    return Values(documents=store.count(documents_of(scan)), index_version=info.index_version)


def defined(store: ChunkStore, filters: Filters, symbol: str) -> Values:
    """In how many pieces of code under `filters` a definition goes by that name, exactly."""
    info = store.info()
    if info is None:
        return Values()
    under = models.Filter(must=[to_filter(filters), equals("defines", symbol)])
    return Values(documents=store.count(under), index_version=info.index_version)


def titled(store: ChunkStore, filters: Filters, titles: Sequence[str]) -> Values:
    """The pages of the namespace with one of these titles; none for a title that several have."""
    info = store.info()
    if info is None or not titles:
        return Values()
    keys = {title_key(title): title for title in titles}
    within = to_filter(Filters(namespace=filters.namespace))
    under = models.Filter(must=[within, FIRST_CHUNK, one_of("defines", keys)])
    found: dict[str, list[TitledPage]] = {}
    for hit in store.lookup(under, _MOST_TITLED):
        page = TitledPage(title=hit.title, path=hit.path, date=hit.date, text=hit.text[:_TITLED_CHARS])
        for key in {*hit.defines} & {*keys}:
            found.setdefault(keys[key], []).append(page)
    only = {title: pages[0] for title, pages in found.items() if len(pages) == 1}
    return Values(titled=only, index_version=info.index_version)


def folders(paths: Iterable[str]) -> tuple[str, ...]:
    """Every folder above the paths, with a slash at its end."""
    found: set[str] = set()
    for path in paths:
        parts = path.partition("#")[0].split("/")[:-1]
        found.update("/".join(parts[: depth + 1]) + "/" for depth in range(len(parts)))
    return tuple(sorted(found))
