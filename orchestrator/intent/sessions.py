"""Conversations kept in Redis: a list of messages and a summary, both with bounds and a TTL."""

from __future__ import annotations

from pydantic import ValidationError
from redis import Redis

from shared.errors import InputError
from shared.job_store.codec import text
from shared.job_store.connect import reachable
from shared.job_store.keys import SessionKeys
from shared.models.session import MAX_MESSAGE_CHARS, MAX_MESSAGES, Message, Session
from shared.settings import Settings
from shared.settings.faults import request_fault
from shared.tenants import checked_name


class KeptSession:
    """One conversation of one tenant, kept for `jobs.ttl_s` after its last change.

    Raises: InputError when the id or the tenant is no name; every method NotRunningError when Redis does not answer.
    """

    def __init__(self, client: Redis, settings: Settings, session_id: str, tenant: str = "default") -> None:
        checked_name("session id", session_id)
        checked_name("tenant", tenant)
        self.id, self.tenant = session_id, tenant
        self._client, self._settings, self._keys = client, settings, SessionKeys(tenant, session_id)

    def append(self, role: str, content: str) -> None:
        """Add a message; of more than 100 the oldest goes. Raises: InputError for a role or length not allowed."""
        try:
            message = Message(role=role, content=content)
        except ValidationError as error:
            raise request_fault(error) from None
        with reachable(self._settings), self._client.pipeline(transaction=True) as pipe:
            pipe.rpush(self._keys.messages, message.model_dump_json())
            pipe.ltrim(self._keys.messages, -MAX_MESSAGES, -1)
            self._expire(pipe)
            pipe.execute()

    def summarise(self, summary: str) -> None:
        """Keep a summary of what was said. Raises: InputError when it is longer than a message may be."""
        if len(summary) > MAX_MESSAGE_CHARS:
            raise InputError("summary", f"{len(summary)} characters", f"write at most {MAX_MESSAGE_CHARS}")
        with reachable(self._settings), self._client.pipeline(transaction=True) as pipe:
            pipe.set(self._keys.summary, summary.encode("utf-8", "replace"))
            self._expire(pipe)
            pipe.execute()

    def load(self) -> Session:
        """The conversation; an empty one when there is none, or it has expired."""
        with reachable(self._settings), self._client.pipeline(transaction=True) as pipe:
            pipe.lrange(self._keys.messages, 0, -1)
            pipe.get(self._keys.summary)
            messages, summary = pipe.execute()
        said = tuple(Message.model_validate_json(raw) for raw in messages)
        return Session(summary=text(summary) if summary is not None else "", messages=said)

    def drop(self) -> bool:
        """Forget it. False when there was none."""
        with reachable(self._settings):
            return bool(self._client.delete(self._keys.messages, self._keys.summary))

    def _expire(self, pipe: Redis) -> None:
        """Both keys live as long: a summary must not outlast its conversation, nor go before it."""
        pipe.expire(self._keys.messages, self._settings.jobs.ttl_s)
        pipe.expire(self._keys.summary, self._settings.jobs.ttl_s)
