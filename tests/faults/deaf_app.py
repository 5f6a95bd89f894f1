"""The workers' app, of which the worker goes deaf as soon as it is ready: it lives, answers, and takes no message."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_ready

from workers.app import app

__all__ = ["app"]


@worker_ready.connect
def go_deaf(sender: Any, **_: object) -> None:
    """What a lost count of messages under way does to kombu (celery/celery#8030, #10302)."""
    sender.task_consumer.channel.qos.can_consume = lambda: False
