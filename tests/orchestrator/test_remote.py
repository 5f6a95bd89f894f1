"""Asking a pool: a task may wait for the reply while others of its process wait, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from celery.result import EagerResult

from orchestrator.remote import call_pool
from shared.contract import TaskName
from shared.models.base import Model
from shared.settings import Settings


class Asked(Model):
    """A request."""


def test_given_a_task_that_may_not_wait_for_tasks_when_it_asks_another_pool_then_it_is_answered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Celery's flag is the process': another thread that has its answer sets it back."""
    monkeypatch.setattr("celery._state._task_join_will_block", True)
    app: Any = SimpleNamespace(send_task=lambda *_, **__: EagerResult("1", "reply", "SUCCESS"))
    assert call_pool(app, settings, TaskName.SEARCH_VALUES, Asked(), 1.0) == "reply"
