"""Why something in the broker is no task message of ours. Pure; looks at it before Celery does.

A worker that decodes a bad message raises out of its event loop and ends; the next one takes the same message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

#: A longer message was not sent by us: ours carry ids, never texts (bytes).
MAX_MESSAGE_BYTES = 1_000_000
_ADDRESS = ("exchange", "routing_key")
#: Parts of an entry of unacknowledged messages.
_UNACKED = ("message", *_ADDRESS)
_CONTENT = {"content-type": "application/json", "content-encoding": "utf-8"}


def read_message(raw: bytes) -> tuple[dict[str, Any], str]:
    """A message as kombu wrote it, and why it is none of ours (empty: it is one)."""
    message, fault = _decoded(raw)
    fault = fault or message_fault(message)
    return ({} if fault else message), fault


def read_unacked(raw: bytes) -> str:
    """Why an entry of kombu's hash of unacknowledged messages cannot be restored; empty: it can."""
    entry, fault = _decoded(raw)
    if fault:
        return fault
    if not isinstance(entry, list) or len(entry) != len(_UNACKED):
        return "no unacknowledged message"
    message, *address = entry
    if not all(isinstance(part, str) for part in address):
        return "an unacknowledged message without an address"
    return message_fault(message)


def _decoded(raw: bytes) -> tuple[Any, str]:
    """The value, and why it cannot be read."""
    if len(raw) > MAX_MESSAGE_BYTES:
        return None, f"longer than {MAX_MESSAGE_BYTES:,} bytes"
    try:
        return json.loads(raw), ""
    except (ValueError, RecursionError):
        return None, "no JSON"


def message_fault(message: object) -> str:
    """Why kombu cannot make a message of it; empty: it has an address, a tag and an uncompressed body in base64."""
    if not isinstance(message, dict):
        return "no message"
    properties, headers = message.get("properties"), message.get("headers")
    if not isinstance(properties, dict) or not isinstance(headers, dict):
        return "without properties or headers"
    info, body = properties.get("delivery_info"), message.get("body")
    checks = {
        "without a delivery tag": isinstance(properties.get("delivery_tag"), str) and isinstance(info, dict),
        "without an address": isinstance(info, dict) and {type(info.get(name, "")) for name in _ADDRESS} == {str},
        "of another content type than JSON": [message.get(name) for name in _CONTENT] == list(_CONTENT.values()),
        "compressed": not headers.get("compression"),
        "with a body that is no base64": properties.get("body_encoding") == "base64" and _is_base64(body),
    }
    return next((fault for fault, fine in checks.items() if not fine), "")


def _is_base64(body: object) -> bool:
    try:
        return isinstance(body, str) and base64.b64decode(body, validate=True) is not None
    except ValueError:
        return False


def task_fault(headers: Mapping[str, Any], body: bytes) -> str:
    """Why a message is no task in Celery's protocol 2; empty: it is one."""
    if not isinstance(headers.get("task"), str) or not isinstance(headers.get("id"), str):
        return "without the name or the id of a task"
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return "with a body that is no JSON"
    if not isinstance(content, list) or [type(part) for part in content] != [list, dict, dict]:
        return "with a body that is not arguments, named arguments and options"
    return ""
