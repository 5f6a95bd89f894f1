"""Lets waiting jobs in, and sends the message that starts each. Harmless to repeat."""

from __future__ import annotations

import logging

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.contract import Message, TaskName
from shared.job_store import JobStore
from shared.signatures import step

log = logging.getLogger("ramify.dispatch")


class Dispatcher:
    """Serves the lines of one job store. The reaper sends what got lost after a job was let in."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs = app, jobs

    def run(self) -> int:
        """Let in what there is room for; returns how many jobs. Raises: RedisError, OperationalError."""
        sent = 0
        while admitted := dict(self._jobs.lines.admit()):
            for job_id in self._jobs.admitted(list(admitted.items())):
                step(self._app, TaskName.PLAN_JOB, Message(job_id=job_id), admitted[job_id]).apply_async()
                sent += 1
        return sent

    def try_run(self) -> None:
        """The same, where something else has just succeeded that this must not spoil: a failure is logged."""
        try:
            self.run()
        except (RedisError, OperationalError) as error:
            log.warning("waiting jobs could not be let in (%s): the reaper does it", type(error).__name__)
