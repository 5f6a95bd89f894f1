"""The ops pool's task that looks after shadow runs; its schedule is in `shared.celery_app`."""

from __future__ import annotations

import logging

from orchestrator.app import app
from orchestrator.shadow.runs import Shadows
from shared.contract import TaskName
from shared.errors import RamifyError
from shared.job_store import JobStore, connect
from shared.settings import Settings
from shared.steps import remote

log = logging.getLogger("ramify.shadow")


@remote(app, TaskName.OPS_SHADOW)
def look() -> None:
    """Beat's task. A failing look is told, and tried again a second later."""
    settings: Settings = app.conf.ramify
    try:
        Shadows(app, JobStore(connect(settings), settings)).run()
    except RamifyError as error:
        log.warning("shadow runs: %s", error)
