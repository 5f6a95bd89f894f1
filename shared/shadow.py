"""Puts a job that has its answer on offer to be tried with a second strategy (E7). Never delays or fails that job."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from shared.job_store.ab import AbStore
from shared.steps import TaskRun

log = logging.getLogger("ramify.shadow")


def offer(run: TaskRun) -> None:
    """After the answer is kept. A Redis that does not take it costs a comparison, nothing else: the log says so."""
    try:
        AbStore(run.jobs.client, run.jobs.settings).offer(run.job.id)
    except RedisError as error:
        log.warning("job %s is not tried with a second strategy: %s", run.job.id, type(error).__name__)
