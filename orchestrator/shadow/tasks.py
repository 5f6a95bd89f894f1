"""The ops pool's task that looks after shadow runs; its schedule is in `shared.celery_app`."""

from __future__ import annotations

import logging
from functools import cache

from orchestrator.app import app
from orchestrator.shadow.runs import Shadows
from shared.contract import TaskName
from shared.errors import RamifyError
from shared.job_store import JobStore, connect
from shared.settings import Settings
from shared.steps import remote

log = logging.getLogger("ramify.shadow")


@cache
def _shadows() -> Shadows:
    """One a process, made at first use: a look every second opens no connection of its own."""
    settings: Settings = app.conf.ramify
    return Shadows(app, JobStore(connect(settings), settings))


@remote(app, TaskName.OPS_SHADOW)
def look() -> None:
    """Beat's task. A failing look is told, and tried again a second later."""
    try:
        _shadows().run()
    except RamifyError as error:
        log.warning("shadow runs: %s", error)
