"""A complete list in Redis, while its shards are read and afterwards: in pages, never in one blob."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from redis import Redis

from shared.errors import DamagedError, shown
from shared.jobs.codec import M, pack, unpack_or_none
from shared.jobs.keys import JobKeys
from shared.models.base import Model
from shared.models.enumeration import ListRow, ListTable, RowPage, Scan, ShardReport
from shared.settings import Settings


class Excerpt(Model):
    """The text of one row for the model that reads its columns. `number` is the row's place in its shard, from 0."""

    number: int
    text: str


class Excerpts(Model):
    """The rows of a shard that a model is to read."""

    rows: tuple[Excerpt, ...] = ()


class TableKeys:
    """The keys of one job's list."""

    def __init__(self, job_id: str) -> None:
        tag = JobKeys(job_id).job.removesuffix(":job")
        self.scan = f"{tag}:scan"  # blob: what the list is of
        self.shards = f"{tag}:shards"  # hash: "<node id>:report|excerpts|<page>" -> blob
        self.rows = f"{tag}:rows"  # hash: page number -> blob of rows, the whole list in its order
        self.table = f"{tag}:table"  # blob: counts and the first rows


class Tables:
    """Reads and writes lists. Every key carries the TTL of jobs. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._ttl = client, settings.jobs.ttl_s

    def put_scan(self, job_id: str, scan: Scan) -> None:
        """What the leaves of the job are to read."""
        self._client.set(TableKeys(job_id).scan, pack(scan), ex=self._ttl)

    def scan(self, job_id: str) -> Scan | None:
        """None for a job that lists nothing."""
        return _read(self._client.get(TableKeys(job_id).scan), Scan, "scan")

    def put_page(self, job_id: str, node_id: str, number: int, rows: Sequence[ListRow]) -> None:
        """One page of a shard's rows; writing it again changes nothing."""
        self._put(TableKeys(job_id).shards, f"{node_id}:{number}", RowPage(rows=tuple(rows)))

    def page(self, job_id: str, node_id: str, number: int) -> tuple[ListRow, ...]:
        """Page `number` (from 0) of a shard; empty when it is gone."""
        page = _read(self._client.hget(TableKeys(job_id).shards, f"{node_id}:{number}"), RowPage, "shards")
        return page.rows if page else ()

    def put_report(self, job_id: str, node_id: str, report: ShardReport) -> None:
        """The counts of a shard; its pages are written before."""
        self._put(TableKeys(job_id).shards, f"{node_id}:report", report)

    def report(self, job_id: str, node_id: str) -> ShardReport | None:
        """None for a shard that was not read."""
        return _read(self._client.hget(TableKeys(job_id).shards, f"{node_id}:report"), ShardReport, "shards")

    def put_excerpts(self, job_id: str, node_id: str, excerpts: Excerpts) -> None:
        """The texts whose columns an LLM is to read (task `rerank.columns`)."""
        self._put(TableKeys(job_id).shards, f"{node_id}:excerpts", excerpts)

    def excerpts(self, job_id: str, node_id: str) -> Excerpts:
        """Empty when there is nothing to read."""
        blob = self._client.hget(TableKeys(job_id).shards, f"{node_id}:excerpts")
        return _read(blob, Excerpts, "shards") or Excerpts()

    def drop_excerpts(self, job_id: str, node_id: str) -> None:
        """Delete excerpts that have been read."""
        self._client.hdel(TableKeys(job_id).shards, f"{node_id}:excerpts")

    def put_rows(self, job_id: str, number: int, rows: Sequence[ListRow]) -> None:
        """One page of the whole list."""
        self._put(TableKeys(job_id).rows, str(number), RowPage(rows=tuple(rows)))

    def put_table(self, job_id: str, table: ListTable) -> None:
        """The list is complete: deletes what its shards have left."""
        keys = TableKeys(job_id)
        self._client.set(keys.table, pack(table), ex=self._ttl)
        self._client.delete(keys.shards)

    def table(self, job_id: str) -> ListTable | None:
        """The counts and the first rows; None for a job without a list."""
        return _read(self._client.get(TableKeys(job_id).table), ListTable, "table")

    def rows(self, job_id: str, pages: int) -> Iterator[ListRow]:
        """All rows of a list of `pages` pages, one page in memory at a time. Raises: DamagedError when one is gone."""
        for number in range(pages):
            page = _read(self._client.hget(TableKeys(job_id).rows, str(number)), RowPage, "rows")
            if page is None:
                raise DamagedError(f"page {number + 1} of the {shown(pages)} of its list is gone")
            yield from page.rows

    def _put(self, key: str, field: str, value: BaseModel) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(key, field, pack(value))
            pipe.expire(key, self._ttl)
            pipe.execute()


def _read(blob: object, kind: type[M], key: str) -> M | None:
    """What a key of the job holds, None where it is not there. Raises: DamagedError."""
    try:
        return unpack_or_none(blob, kind)
    except (ValueError, TypeError) as error:
        raise DamagedError(f"its key {key} holds no {kind.__name__} ({type(error).__name__})") from None
