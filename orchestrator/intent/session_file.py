"""Reads a conversation from a file: one JSON object, or JSON Lines of messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shared.errors import InputError
from shared.models.session import Session
from shared.settings.faults import request_fault

MAX_BYTES = 10_000_000
_FORM = 'write {"summary": "...", "messages": [{"role": "user", "content": "..."}]}, or one message a line'


def read_session(path: Path) -> Session:
    """The conversation in a file; fields of a message other than role and content are left out.

    Raises: InputError for a file that cannot be read, is no JSON, or whose messages cannot be taken.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError("--session", str(path), f"it is larger than {MAX_BYTES} bytes: keep the last messages")
        raw = path.read_bytes().decode("utf-8-sig")
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
    try:
        whole = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        return {
            "messages": [_line(line, number, name) for number, line in enumerate(raw.split("\n"), 1) if line.strip()]
        }
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
