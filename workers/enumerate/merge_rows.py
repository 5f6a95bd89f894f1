"""Joins the rows of all shards to one list. Memory holds one page of each shard and one of the list."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from shared.jobs.tables import Tables
from shared.language import reader_sentence
from shared.models import Node
from shared.models.enumeration import ListRow, ListTable, ListTotal, Scan, ShardReport
from shared.settings.sections import EnumerationSettings
from workers.enumerate.counts import GroupCounts
from workers.enumerate.scan import place_in

#: Values of which it is told how many documents have them.
_MOST_GROUPS = 200


def merge_rows(
    tables: Tables, job_id: str, nodes: Mapping[str, Node], limits: EnumerationSettings, *, keep: bool = True
) -> ListTable | None:
    """The list of a job, written to the job store; None for a job that lists nothing.

    `keep` False: of the shards that were read so far, its first rows only, and nothing is written.

    A document that two shards read (it changed between them) is listed once; one with the text of an earlier row is
    marked as its copy, not left out. Shards without a report were not read.
    """
    shards = [node for node in nodes.values() if node.shard is not None]
    scan = tables.scan(job_id) if shards else None
    if scan is None:
        return None
    if (joined_before := tables.table(job_id)) is not None:
        return joined_before  # a merge that is delivered again: the shards' own pages are gone
    reports = {node.id: tables.report(job_id, node.id) for node in shards}
    known = {node_id: report for node_id, report in reports.items() if report is not None}
    joined = _Joined(partial(tables.put_rows, job_id) if keep else None, limits, scan.limit)
    streams = [
        chain.from_iterable(map(partial(tables.page, job_id, node_id), range(report.pages)))
        for node_id, report in known.items()
    ]
    joined.write(heapq.merge(*streams, key=place_in(scan)))
    table = _table(scan, list(reports.values()), joined, limits)
    if keep:
        tables.put_table(job_id, table)
    return table


class _Joined:
    """The list while it is written. Of earlier rows only ids and digests stay in memory."""

    def __init__(
        self, put: Callable[[int, Sequence[ListRow]], None] | None, limits: EnumerationSettings, most: int = 0
    ) -> None:
        """`put` gets the pages by their numbers; None: they are counted only. `most`: so many rows; 0: all."""
        self._put, self._limits, self._most = put, limits, most
        self._page: list[ListRow] = []
        self._numbers: dict[bytes, int] = {}
        self._listed: set[tuple[str, int]] = set()
        self.kinds: Counter[str] = Counter()
        self.groups = GroupCounts()
        self.first: list[ListRow] = []
        self.matched = self.copies = self.pages = self.numbers = 0
        self.sum = 0.0

    def write(self, rows: Iterator[ListRow]) -> None:
        """Write all rows in their order, each document once: one that changed meanwhile may stand at two places.

        With those that were asked for go those that have the number of the last one.
        """
        last: float | None = None
        for row in rows:
            if (own := (row.doc_id, row.number)) not in self._listed:
                self._listed.add(own)
                if not self._most or self.matched < self._most or (last is not None and row.amount == last):
                    self._add(row)
                    last = row.amount
        self._flush()

    @property
    def fitting(self) -> int:
        """All documents that fit."""
        return len(self._listed)

    def _add(self, row: ListRow) -> None:
        self.matched += 1
        self.kinds[row.kind] += row.number > 0
        self.groups.add(row.groups, row.amount)
        self.numbers += row.amount is not None
        self.sum += row.amount or 0.0
        copied = self._numbers.setdefault(bytes.fromhex(row.digest), self.matched)
        self.copies += copied != self.matched
        row = row.model_copy(update={"copy_of": copied if copied != self.matched else None, "digest": ""})
        if len(self.first) < self._limits.rows:
            self.first.append(row)
        self._page.append(row)
        if len(self._page) >= self._limits.page_rows:
            self._flush()

    def _flush(self) -> None:
        if self._page and self._put:
            self._put(self.pages, self._page)
            self.pages += 1
        self._page = []


def _table(
    scan: Scan, reports: Sequence[ShardReport | None], joined: _Joined, limits: EnumerationSettings
) -> ListTable:
    known = [report for report in reports if report is not None]
    scanned = sum(report.scanned for report in known)
    groups = joined.groups.groups(scan.total) if scan.per else ()
    if scan.order == "least" and not scan.by:
        groups = groups[::-1]
    looked = "file" if scan.code else "document"
    versions = {scan.index_version} | {v for report in known for v in (report.first_version, report.last_version)}
    return ListTable(
        understood=scan.understood,
        unread=scan.unread,
        counting=scan.counting,
        coverage=f"scanned {scanned:,} of {scan.documents:,} {looked}{'' if scan.documents == 1 else 's'}",
        scanned=scanned,
        planned=scan.documents,
        matched=joined.matched,
        fitting=joined.fitting,
        order=scan.order if scan.by or scan.order not in ("most", "least") else "",
        ordered_by=scan.by.label if scan.by and not scan.total else "",
        total=_total(scan, joined),
        grouped_by=scan.per.label if scan.per else "",
        grouped=sum(group.value != "" for group in groups),
        groups=groups[:_MOST_GROUPS],
        unit="document" if scan.code is None else "definition" if scan.code.rows == "definitions" else "file",
        kinds=dict(+joined.kinds) if len(+joined.kinds) > 1 else {},
        unparsed=sum(report.unparsed for report in known),
        unlabelled=sum(report.unlabelled for report in known),
        copies=joined.copies,
        columns=scan.columns,
        rows=tuple(joined.first),
        pages=joined.pages,
        page_rows=limits.page_rows,
        partial=len(known) < len(reports) or any(report.cut for report in known),
        changed=len(versions) > 1,
        by="llm" if any(report.by == "llm" for report in known) else "fields",
        dropped=sum(report.dropped for report in known),
    )


def _total(scan: Scan, joined: _Joined) -> ListTotal | None:
    if not (scan.total and scan.by and joined.numbers):
        return None
    amount = joined.sum if scan.total == "sum" else joined.sum / joined.numbers
    return ListTotal(
        way=scan.total,
        label=scan.by.label,
        amount=round(amount, 2),
        unit=scan.by.unit,
        documents=joined.numbers,
    )


def list_warnings(table: ListTable, question: str) -> tuple[str, ...]:
    """Why the list may be incomplete or wrong, in the question's language."""
    counts = (("unparsed", table.unparsed), ("unlabelled", table.unlabelled), ("dropped", table.dropped))
    warnings = [reader_sentence("list_cut", question, table.coverage)] if table.partial else []
    warnings += [reader_sentence("list_changed", question, table.coverage)] if table.changed else []
    warnings += [reader_sentence(f"list_{name}", question, f"{count:,}") for name, count in counts if count]
    return tuple(warnings)
