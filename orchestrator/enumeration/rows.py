"""All rows of a finished list, for programs and the CLI (E3)."""

from __future__ import annotations

from collections.abc import Iterator

from redis import Redis

from shared.errors import RamifyError
from shared.job_store import JobReader
from shared.job_store.tables import Tables
from shared.models.enumeration import Row
from shared.settings import Settings


def listed_rows(client: Redis, settings: Settings, job_id: str) -> Iterator[Row]:
    """Page by page, so that memory stays flat. Raises: NotFoundError, RamifyError for a job without a list."""
    tables = Tables(client, settings)
    table = tables.table(job_id)
    if table is None:
        state = JobReader(client).status(job_id).state
        raise RamifyError(f'job {job_id} ({state}) has no list: ask for one, as in `ramify ask "List all notes"`')
    yield from tables.rows(job_id, table.pages)
