"""Asking a pool: a task may wait for the reply while others of its process wait, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from celery.exceptions import TaskRevokedError
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


def test_given_a_worker_whose_clock_is_ahead_when_it_refuses_a_question_as_too_old_then_it_is_asked_again(
    settings: Settings,
) -> None:
    sent = list[dict[str, Any]]()

    def send_task(*_: object, **options: Any) -> EagerResult:
        sent.append(options)
        ahead = "expires" in options
        return EagerResult("1", TaskRevokedError("expired") if ahead else "reply", "REVOKED" if ahead else "SUCCESS")

    app: Any = SimpleNamespace(send_task=send_task)
    assert call_pool(app, settings, TaskName.SEARCH_VALUES, Asked(), 1.0) == "reply"
    assert [set(options) for options in sent] == [{"args", "queue", "expires"}, {"args", "queue"}]
