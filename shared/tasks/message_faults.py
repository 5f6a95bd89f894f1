"""Why something in the broker is no task message of ours. Pure; looks at it before Celery does.

A worker that decodes a bad message raises out of its event loop and ends; the next one takes the same message.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

from shared.contract import TaskName

#: A longer message was not sent by us: ours carry ids, never texts (bytes).
MAX_MESSAGE_BYTES = 1_000_000
_ADDRESS = ("exchange", "routing_key")
#: How half of a surrogate pair begins, which may be written in JSON and not sent to Redis.
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_IDS, _IDS_IN_HEADERS = ("correlation_id", "reply_to"), ("root_id", "parent_id", "group")
#: Types of the arguments of each task; one mapping where it is not here.
_ARGUMENTS: dict[str, list[type]] = {TaskName.SEARCH_INFO: []}
#: What there is to a task that follows.
_SIGNATURE: dict[str, type | tuple[type, ...]] = {"task": str, "args": (list, tuple), "kwargs": dict, "options": dict}
#: Commands that ask workers something, and those of events and revoked tasks. All others change a pool for good: what
#: it consumes, how fast, with how many threads. The settings say that, and nothing would change it back.
COMMANDS = frozenset({
    "ping", "heartbeat", "active", "active_queues", "clock", "conf", "query_task", "registered", "report", "reserved",
    "revoked", "scheduled", "stats", "hello", "enable_events", "disable_events", "revoke", "shutdown", "pool_restart",
})  # fmt: skip
_CONTENT = {"content-type": "application/json", "content-encoding": "utf-8"}


def read_message(raw: bytes) -> tuple[dict[str, Any], str]:
    """A message as kombu wrote it, and why it is none of ours (empty: it is one)."""
    message, fault = _decoded(raw)
    fault = fault or message_fault(message)
    return ({} if fault else message), fault


def _decoded(raw: bytes) -> tuple[Any, str]:
    """The value, and why it cannot be read."""
    if len(raw) > MAX_MESSAGE_BYTES:
        return None, f"longer than {MAX_MESSAGE_BYTES:,} bytes"
    try:
        value = json.loads(raw)
        if _HALF_PAIR.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None, "no JSON in UTF-8"
    return value, ""


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
        "without an address": isinstance(info, dict) and {type(info.get(name)) for name in _ADDRESS} == {str},
        "with ids that are no text": all(isinstance(properties.get(name) or "", str) for name in _IDS)
        and all(isinstance(headers.get(name) or "", str) for name in _IDS_IN_HEADERS),
        "of another content type than JSON": [message.get(name) for name in _CONTENT] == list(_CONTENT.values()),
        "compressed": not headers.get("compression"),
        "with a body that is no base64": properties.get("body_encoding") == "base64" and _is_base64(body),
    }
    return next((fault for fault, fine in checks.items() if not fine), "")


def control_fault(raw: bytes) -> str:
    """Why a broadcast is no command for workers, as Celery's remote control sends them; empty: it is one."""
    message, fault = read_message(raw)
    if fault:
        return fault
    command, fault = _decoded(base64.b64decode(message["body"]))
    if fault or not isinstance(command, dict):
        return "with a body that is no command"
    back = command.get("reply_to")
    checks = {
        "without a method": isinstance(command.get("method"), str),
        "with a command that pools do not take": command.get("method") in COMMANDS,
        "with arguments that are no mapping": isinstance(command.get("arguments") or {}, dict),
        "with destinations that are no list": isinstance(command.get("destination") or [], list),
        "with a pattern": not command.get("pattern"),  # it may be one that takes for ever
        "with an address that is none": back is None
        or (isinstance(back, dict) and [type(back.get(name)) for name in _ADDRESS] == [str, str]),
        "with a clock that is no number": isinstance(message["headers"].get("clock") or 0, int),
    }
    return next((fault for fault, fine in checks.items() if not fine), "")


def _is_base64(body: object) -> bool:
    try:
        return isinstance(body, str) and base64.b64decode(body, validate=True) is not None
    except ValueError:
        return False


def read_task(headers: Mapping[str, Any], body: bytes) -> tuple[Any, str]:
    """The body of a message, and why that is no task in Celery's protocol 2, or none of ours (empty: it is one)."""
    name = headers.get("task")
    if not isinstance(name, str) or not isinstance(headers.get("id"), str):
        return None, "without the name or the id of a task"
    if name.startswith("celery."):  # they run any other task any number of times, or wait for a chord without end
        return None, "a task of Celery's own"
    content, fault = _decoded(body)
    return content, f"with a body that is {fault}" if fault else _body_fault(name, content)


def _body_fault(name: str, content: object) -> str:
    if not isinstance(content, list) or [type(part) for part in content] != [list, dict, dict]:
        return "with a body that is not arguments, named arguments and options"
    args, named, options = content
    if name in set(TaskName) and (named or [type(arg) for arg in args] != _ARGUMENTS.get(name, [dict])):
        return "with other arguments than its task has"
    return _options_fault(options)


def _options_fault(options: Mapping[str, Any]) -> str:
    """Why what is to follow a task are no signatures; empty: they are, or nothing follows."""
    follow = [options.get(name) or [] for name in ("callbacks", "errbacks", "chain")]
    if not all(isinstance(some, list) for some in follow):
        return "with something to follow that is no list"
    body = [options["chord"]] if options.get("chord") else []
    return "" if all(map(_is_signature, [*chain(*follow), *body])) else "with something to follow that is no task"


def _is_signature(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in _SIGNATURE.items())
