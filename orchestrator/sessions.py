"""Conversations: kept in Redis (a bounded list of messages and a summary, with a TTL), or read from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from redis import Redis

from shared.connections.connect import reachable
from shared.errors import InputError
from shared.jobs.codec import text
from shared.jobs.keys import SessionKeys
from shared.models.find import SessionResult
from shared.models.request import MAX_MESSAGE_CHARS, MAX_MESSAGES, ChatMessage, Session
from shared.settings import Settings
from shared.settings.faults import request_fault
from shared.tenants import checked_name

MAX_BYTES = 10_000_000
_FORM = 'write {"summary": "...", "messages": [{"role": "user", "content": "..."}]}, or one message a line'


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
            message = ChatMessage(role=role, content=content)
        except ValidationError as error:
            raise request_fault(error) from None
        with self._update() as pipe:
            pipe.rpush(self._keys.messages, message.model_dump_json())
            pipe.ltrim(self._keys.messages, -MAX_MESSAGES, -1)

    def summarise(self, summary: str) -> None:
        """Keep a summary of what was said. Raises: InputError when it is longer than a message may be."""
        if len(summary) > MAX_MESSAGE_CHARS:
            raise InputError("summary", f"{len(summary)} characters", f"write at most {MAX_MESSAGE_CHARS}")
        with self._update() as pipe:
            pipe.set(self._keys.summary, summary.encode("utf-8", "replace"))

    def remember(self, question: str, found: SessionResult) -> None:
        """Add a question and, as the answer, the list of what was found for it: a follow-up may count in it."""
        self.append("user", question)
        if listed := [f"{number}. {hit.symbol or hit.title}" for number, hit in enumerate(found.hits, 1)]:
            self.append("assistant", "\n".join(listed)[:MAX_MESSAGE_CHARS])

    def load(self) -> Session:
        """The conversation; an empty one when there is none, or it has expired."""
        with reachable(self._settings), self._client.pipeline(transaction=True) as pipe:
            pipe.lrange(self._keys.messages, 0, -1)
            pipe.get(self._keys.summary)
            raw_messages, summary = pipe.execute()
        messages = tuple(ChatMessage.of_record(raw) for raw in raw_messages)
        return Session(summary=text(summary) if summary is not None else "", messages=messages)

    def drop(self) -> bool:
        """Forget it. False when there was none."""
        with reachable(self._settings):
            return bool(self._client.delete(self._keys.messages, self._keys.summary))

    @contextmanager
    def _update(self) -> Iterator[Redis]:
        """A transaction that renews the TTL of both keys: the summary lives exactly as long as its conversation."""
        with reachable(self._settings), self._client.pipeline(transaction=True) as pipe:
            yield pipe
            for key in (self._keys.messages, self._keys.summary):
                pipe.expire(key, self._settings.jobs.ttl_s)
            pipe.execute()


def read_session(path: Path) -> Session:
    """The conversation in a file; fields of a message other than role and content are left out.

    Raises: InputError for a file that cannot be read, is no JSON, or whose messages cannot be taken.
    """
    try:
        with path.open("rb") as handle:
            content = handle.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError("--session", str(path), f"it is larger than {MAX_BYTES:,} bytes: keep the last messages")
        raw = content.decode("utf-8-sig")
    except OSError as error:
        raise InputError("--session", str(path), f"it cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError("--session", str(path), f"byte {error.start} is no UTF-8") from None
    return as_session(_parsed(raw, str(path)), f"--session {path}, ")


def as_session(given: Session | Mapping[str, Any], where: str = "") -> Session:
    """A checked conversation from an object of that form. Raises: InputError naming the field, `where` before it."""
    if isinstance(given, Session):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"{where}session", given, _FORM)
    fields = dict(given)
    messages = fields.get("messages", [])
    if isinstance(messages, list | tuple):
        fields["messages"] = [_message(message) for message in messages]
    try:
        return Session.model_validate(fields)
    except ValidationError as error:
        raise request_fault(error, where) from None


def _message(given: Any) -> Any:
    return {name: given[name] for name in ("role", "content") if name in given} if isinstance(given, dict) else given


def _parsed(raw: str, name: str) -> Mapping[str, Any]:
    """A JSON object with `messages`, a list of messages, or one message a line."""
    try:
        whole = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        lines = enumerate(raw.split("\n"), 1)
        return {"messages": [_line(line, number, name) for number, line in lines if line.strip()]}
    if isinstance(whole, list):
        return {"messages": whole}
    if not isinstance(whole, dict):
        raise InputError("--session", name, _FORM)
    return {"messages": [whole]} if "role" in whole else whole


def _line(line: str, number: int, name: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("--session", name, f"line {number} is no JSON: {_FORM}") from None
