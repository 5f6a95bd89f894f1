"""The ops pool's task that looks after all jobs; its schedule is in `shared.celery_app`."""

from __future__ import annotations

from functools import cache

from orchestrator.app import app
from orchestrator.reaper.reaper import Reaper
from shared.contract import TaskName
from shared.job_store import JobStore, connect
from shared.settings import Settings
from shared.steps import remote


@cache
def _reaper() -> Reaper:
    """One a process: a look opens no connections of its own."""
    settings: Settings = app.conf.ramify
    return Reaper(app, JobStore(connect(settings), settings))


@remote(app, TaskName.OPS_REAP)
def reap() -> None:
    """Beat's task."""
    _reaper().run()
