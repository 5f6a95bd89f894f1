"""One bounded, retrying JSON POST for LLM, embedding and rerank servers. Never logs or repeats a key or a body."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, NoReturn, Self

import httpx
import stamina
from pydantic import Field, SecretStr

from shared.errors import PermanentError, RamifyError, ReplyError, SettingsError, TransientError, shown
from shared.models.base import Model
from shared.providers.gates import BusyError, Gate, GateError, Ungated, UnreachableError, UnsureError, host_of
from shared.providers.http_deadline import DeadlineTransport, earliest, proxy_for, until

# --- What an HTTP exchange that went wrong means: later, never, or nothing at all. Never repeats a key or a body.

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


MAX_REPLY_BYTES = 64_000_000  # 1024 vectors of 3072 numbers as JSON text
_LONGEST_S = 86_400.0


class JsonReply(Model):
    """A decoded reply; `calls` counts the HTTP calls made for it, retries included."""

    body: dict[str, Any]
    calls: int = Field(ge=0)


def calls_made(error: BaseException) -> int:
    """HTTP calls made before `error` was raised, retries included; 0 for errors that came from elsewhere."""
    return int(getattr(error, "calls", 0))


class JsonClient:
    """POSTs JSON to one server over reused connections. Thread-safe; build it after a fork, close it at the end.

    `what` names the server in error sentences ("LLM server"). `attempts` are the tries of one post on transient
    faults. `attempt_s` bounds one try in seconds, `max_reply_bytes` the decoded reply. Every try goes through `gate`.
    Proxy variables of the environment are obeyed, redirects are not followed: they would carry the key elsewhere.
    Cookies are not kept.

    Raises: SettingsError for a key that no header can hold.
    """

    def __init__(  # noqa: PLR0913 - the last three are named options
        self,
        base_url: str,
        api_key: SecretStr,
        what: str,
        attempts: int,
        *,
        attempt_s: float = _LONGEST_S,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        gate: Gate | None = None,
    ) -> None:
        url = httpx.URL(base_url)
        # Basic credentials leave the URL: httpx writes the URL of each request to its log.
        auth = (url.username, url.password) if url.userinfo else None
        self._url = url.copy_with(userinfo=b"", fragment=None)
        self._attempts, self._attempt_s = attempts, attempt_s
        self._max_reply_bytes = max_reply_bytes
        self._gate = gate or Ungated()
        self._server = f"{what} at {host_of(str(self._url))}"
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if key := _checked_key(api_key, what):
            headers["Authorization"] = f"Bearer {key}"
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=30.0)
        transport = DeadlineTransport(proxy=proxy_for(self._url), limits=limits)
        self._client = httpx.Client(
            transport=transport,
            headers=headers,
            auth=None if "Authorization" in headers else auth,
            # No cookie is kept: one that no header can hold would fail every later call.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    def post(
        self,
        path: str,
        body: dict[str, Any],
        timeout_s: float,
        before: Callable[[], None] = lambda: None,
        *,
        patient: bool = False,
    ) -> JsonReply:
        """POST `body` to base URL + `path` and return the decoded object. `timeout_s` bounds everything, waits too.

        `Retry-After` is obeyed when it fits into the time left. Text that is no valid Unicode is sent with "?".
        `before` runs before each try that its gate lets go; what it raises ends the post. A `patient` post waits for a
        server that its gate leaves alone.

        Raises (each carries its HTTP calls, see `calls_made`):
            TransientError: unreachable, timed out, cut off, 408, 409, 425, 429 or 5xx, after all tries.
            GateError: the same, and no call was made, since others just failed or the rate limit is used up.
            PermanentError: any other status; names host, status and what to check.
            ReplyError: the reply is too large or no JSON object.
        """
        deadline = earliest(time.monotonic() + min(timeout_s, _LONGEST_S))
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        calls = 0
        faults: list[Exception] = []

        def backoff(error: Exception) -> bool | float:
            faults.append(error)
            return backoff_s(error, calls, deadline)

        try:
            for attempt in stamina.retry_context(on=backoff, attempts=self._attempts, timeout=None):
                with attempt:
                    if time.monotonic() >= deadline:
                        over = TransientError(f"{self._server}: no time is left to ask it")
                        raise faults[-1] if faults else over  # what was wrong says more than that the time is up
                    patient_until = deadline if patient else 0.0
                    with self._gate.passed(deadline, self._attempt_s, before, patient_until=patient_until):
                        calls += 1
                        return JsonReply(body=self._once(url, content, deadline), calls=calls)
        except RamifyError as error:
            error.calls = calls
            raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _once(self, url: httpx.URL, content: bytes, deadline: float) -> dict[str, Any]:
        seconds = max(0.001, min(self._attempt_s, deadline - time.monotonic()))
        try:
            with until(time.monotonic() + seconds):
                timeout = httpx.Timeout(seconds)
                with self._client.stream("POST", url, content=content, timeout=timeout) as response:
                    if not response.is_success:
                        raise refusal(self._server, response)
                    return self._decoded(read_within(response, self._max_reply_bytes))
        except httpx.TimeoutException as error:
            raise self._too_slow(error, seconds) from None
        except httpx.DecodingError:
            raise ReplyError(f"{self._server} sent a reply that cannot be decompressed") from None
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise PermanentError(f"{self._server} cannot be asked: {shown(str(error))}") from None
        except httpx.TransportError as error:
            failed = "cannot be reached" if isinstance(error, httpx.ConnectError | httpx.ProxyError) else "broke off"
            raise UnreachableError(f"{self._server} {failed}: {reason(error)}") from None

    def _too_slow(self, error: httpx.TimeoutException, seconds: float) -> TransientError:
        whole = seconds > 0.99 * self._attempt_s
        within = f"within {self._attempt_s:.3g} s" if whole else "in the time that was left"
        message = f"{self._server} did not answer {within}"
        if isinstance(error, httpx.PoolTimeout):
            return UnsureError(message)  # our own connections were all in use
        connecting = isinstance(error, httpx.ConnectTimeout)
        return self._gate.too_slow(message, seconds, self._attempt_s, connecting=connecting)

    def _decoded(self, raw: bytes | None) -> dict[str, Any]:
        if raw is None:
            raise ReplyError(f"{self._server} sent a reply of more than {self._max_reply_bytes:,} bytes")
        try:
            body = json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise ReplyError(f"{self._server} sent a reply that is no JSON") from None
        if not isinstance(body, dict):
            raise ReplyError(f"{self._server} sent JSON that is no object")
        return body


def refused_option(error: PermanentError) -> str:
    """The option of the request that the server named as the one it does not take, or ""."""
    return str(getattr(error, "param", ""))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _checked_key(api_key: SecretStr, what: str) -> str:
    key = api_key.get_secret_value().strip()  # a secret's file often ends in a newline
    if not key.isascii() or not all(c.isprintable() and c != " " for c in key):
        raise SettingsError(f"API key of the {what}", "***", "it holds white space or characters beyond ASCII")
    return key
