"""Celery's Redis result backend without results: the job store counts a chord's header, and nobody reads it.

For Celery 5.7. Replies that somebody waits for (`orchestrator.remote`) are kept and announced as Celery does it.

Celery's own chord keeps the result of every member, counts them in six keys, and has whoever sends a chord subscribe to
the results of its header: a worker that sends chords held a subscription to each for ever. No upstream issue is known.
"""

from __future__ import annotations

from typing import Any

from celery.backends.redis import RedisBackend, SentinelBackend
from celery.canvas import maybe_signature

#: In the result of a task of a job: with it the last node of the tree has ended.
LAST = "last"


class _CountedInStore:
    """A member of a chord says itself whether it was the last one: the job store has counted the nodes of its tree."""

    app: Any

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        """The store knows how many nodes are open."""

    def add_to_chord(self, group_id: str, result: object) -> None:
        """The node was claimed in the store before its task was added."""

    def on_chord_part_return(self, request: Any, state: str, result: Any, **_: Any) -> None:  # noqa: ARG002 - Celery's signature
        """Send the body behind the last member. Raises: OperationalError; the reaper sends it again."""
        if isinstance(result, dict) and LAST in result:
            body: Any = maybe_signature(request.chord, app=self.app)
            body.apply_async()

    def add_pending_result(self, result: Any, weak: bool = False, start_drainer: bool = True) -> Any:  # noqa: ARG002 - Celery's signature
        """Subscribe to nothing: the barriers of a group ask for it, before anybody waits."""
        return result

    def wait_for_pending(self, result: Any, **options: Any) -> Any:
        """Subscribe to the result that somebody waits for. Raises: TimeoutError, and what the task raised."""
        celery: Any = super()
        celery.add_pending_result(result)
        return celery.wait_for_pending(result, **options)

    def on_result_fulfilled(self, result: Any) -> None:
        """Unsubscribe from a result that was subscribed to."""
        own: Any = self
        celery: Any = super()
        if own.get_key_for_task(result.id) in own.result_consumer.subscribed_to:
            celery.on_result_fulfilled(result)


class Backend(_CountedInStore, RedisBackend):  # type: ignore[misc]  # Celery's types name every option
    """redis:// and rediss://."""


class BehindSentinel(_CountedInStore, SentinelBackend):  # type: ignore[misc]
    """sentinel://."""


#: By the scheme of their URLs, for `override_backends`.
BACKENDS = {
    **dict.fromkeys(("redis", "rediss"), f"{__name__}:{Backend.__name__}"),
    "sentinel": f"{__name__}:{BehindSentinel.__name__}",
}
