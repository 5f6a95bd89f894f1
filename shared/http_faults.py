"""What an HTTP exchange that went wrong means: later, never, or nothing at all. Never repeats a key or a body."""

from __future__ import annotations

import json
import random
import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from shared.errors import PermanentError, RamifyError, TransientError, shown
from shared.gates import BusyError, GateError, UnreachableError

_MAX_FAULT_BYTES = 64_000
_WAIT_FIRST_S, _WAIT_MAX_S = 0.2, 5.0
_TRANSIENT = {408, 409, 425}
_BUSY = 429
_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached"}
_HINTS = {
    400: "check the model name and that this server speaks the OpenAI protocol",
    401: "check the API key",
    403: "check the API key and what it is allowed to use",
    404: "check the base URL (it usually ends in /v1) and the model name",
    413: "the request is too long for it: send fewer or shorter texts",
    422: "check the model name and that this server speaks the OpenAI protocol",
    429: "the account has no credit left: check its plan and billing",
}
#: Unpacked in pieces of some MB. What is packed twice (334 bytes: 1 GB) or by brotli comes out at once, past any bound.
_UNPACKED = {"", "identity", "gzip", "x-gzip", "deflate"}
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,47}")


def refusal(server: str, response: httpx.Response) -> RamifyError:
    """What a status that is no success means. `server` is how sentences call the one that sent it."""
    status = response.status_code
    code, param = _fault_names(response)
    named = " ".join(name for name in (code, param) if name)
    sentence = f"{server} answered {status}{f' ({named})' if named else ''}"
    wait = retry_after(response.headers)
    if status == _BUSY and code not in _NO_CREDIT:
        return BusyError(f"{sentence}: it is busy or failing", wait)
    if status >= 500 and code not in _NO_CREDIT:
        return UnreachableError(f"{sentence}: it is busy or failing", wait)
    if status in _TRANSIENT and code not in _NO_CREDIT:
        return TransientError(f"{sentence}: it is busy or failing", wait)
    fault = PermanentError(f"{sentence}: {_HINTS.get(status, 'check the base URL')}")
    fault.param = param
    return fault


def backoff_s(error: Exception, tries: int, deadline: float) -> bool | float:
    """Seconds to wait before the next try, never less than the server asked for; False when that is out of reach.

    `tries` were made so far, the next one has to begin before `deadline` (on `time.monotonic`).
    """
    if not isinstance(error, TransientError) or isinstance(error, GateError):
        return False
    own = min(_WAIT_MAX_S, _WAIT_FIRST_S * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
    wait = max(own, error.retry_after or 0.0)
    return wait if time.monotonic() + wait < deadline else False


def retry_after(headers: httpx.Headers) -> float | None:
    """Seconds from `Retry-After`, which holds seconds or an HTTP date (RFC 9110); None when it holds neither.

    A date is read by the server's own clock, its `Date`, where it tells that: ours may be wrong.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value):
        return float(value)
    at = _date(value)
    return (
        None if at is None else max(0.0, (at - (_date(headers.get("Date", "")) or datetime.now(UTC))).total_seconds())
    )


def _date(value: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def read_within(response: httpx.Response, most: int) -> bytes | None:
    """The decoded body, or None when it is longer than `most` bytes."""
    raw = bytearray()
    if response.headers.get("Content-Encoding", "").strip().lower() not in _UNPACKED:
        raise httpx.DecodingError("packed twice, or as was not asked for")
    for piece in response.iter_bytes():
        raw += piece
        if len(raw) > most:
            return None
    return bytes(raw)


def reason(error: httpx.TransportError) -> str:
    """Without the counts in brackets: the same fault is then the same warning, and is said once."""
    return shown(str(error).partition(" (")[0]) if str(error) else type(error).__name__


def _fault_names(response: httpx.Response) -> tuple[str, str]:
    """Error code and parameter. Never the message: servers repeat prompts and parts of keys in it."""
    try:
        fault = json.loads(read_within(response, _MAX_FAULT_BYTES) or b"{}")["error"]
        names = (fault.get("code") or fault.get("type"), fault.get("param"))
    except (httpx.HTTPError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", ""  # the status alone says enough
    code, param = (name if isinstance(name, str) and _IDENTIFIER.fullmatch(name) else "" for name in names)
    return code, param
