"""One bounded, retrying JSON POST for LLM, embedding and rerank servers. Never logs or repeats a key or a body."""

from __future__ import annotations

import json
import logging
import random
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NoReturn, TypeVar

import httpx
import stamina
from pydantic import Field, SecretStr

from shared.errors import PermanentError, RamifyError, ReplyError, SettingsError, TransientError, shown
from shared.models.base import Model
from shared.providers.called import called, traced_headers
from shared.providers.gates import BusyError, Gate, GateError, UnreachableError, UnsureError
from shared.providers.http_deadline import DeadlineTransport, earliest, proxy_for, until
from shared.tracing.protocols import TraceSpan

_MAX_REPLY_BYTES = 64_000_000  # 1024 vectors of 3072 numbers as JSON text
_MAX_ERROR_BYTES = 64_000
_MAX_FETCHED_BYTES = 4_000_000
_NO_KEY = SecretStr("")
#: A larger count is nonsense, and no counter of the job store could hold it.
_MAX_TOKENS = 1_000_000_000
_LONGEST_S = 86_400.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 5.0
_BUSY = 429
_TRANSIENT = {408, 409, 425}
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
#: Encodings that httpx decodes in pieces of some MB. What is packed twice (334 bytes: 1 GB) or by brotli is decoded at
#: once, however large it becomes.
_STREAMED_ENCODINGS = {"", "identity", "gzip", "x-gzip", "deflate"}
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,47}")
T = TypeVar("T")
_log = logging.getLogger(__name__)


class JsonReply(Model):
    """A decoded reply; `calls` counts the HTTP calls made for it, retries included."""

    body: dict[str, Any]
    calls: int = Field(ge=0)


class JsonClient(AbstractContextManager["JsonClient"]):
    """POSTs JSON to the server behind `gate`, over reused connections. Thread-safe; build it after a fork.

    `attempts` are the tries of one post on transient faults. `attempt_s` bounds one try in seconds, `max_reply_bytes`
    the decoded reply. A reply that is a list is an object with it as `list_as`. Proxy variables of the environment are
    obeyed, redirects are not followed: they would carry the key elsewhere. Cookies are not kept.

    Raises: SettingsError for a key that no header can hold.
    """

    def __init__(  # noqa: PLR0913 - the last two are named options
        self,
        base_url: str,
        api_key: SecretStr,
        gate: Gate,
        attempts: int,
        *,
        attempt_s: float = _LONGEST_S,
        max_reply_bytes: int = _MAX_REPLY_BYTES,
        list_as: str = "",
    ) -> None:
        self._list_as = list_as
        self._attempts, self._attempt_s = attempts, attempt_s
        self._max_reply_bytes = max_reply_bytes
        self._gate, self._server = gate, gate.server
        self._url, self._client = _client(base_url, api_key, gate.server_kind)
        if "Authorization" in self._client.headers:
            name_destination(gate.server)

    def post(  # noqa: PLR0913 - the last two are named options
        self,
        path: str,
        body: dict[str, Any],
        timeout_s: float,
        before: Callable[[], None] = lambda: None,
        *,
        patient: bool = False,
        most_bytes: int | None = None,
    ) -> JsonReply:
        """POST `body` to base URL + `path` and return the decoded object. `timeout_s` bounds everything, waits too.

        `most_bytes` bounds the decoded reply where what was asked for takes less than `max_reply_bytes`.

        `Retry-After` is obeyed when it fits into the time left. Half surrogates are sent as "?". `before` runs before
        each try that the gate admits; what it raises ends the post. A `patient` one waits while the breaker is open.

        Raises (each carries its number of HTTP calls as `calls`):
            TransientError: unreachable, timed out, cut off, 408, 409, 425, 429 or 5xx, after all tries.
            GateError: the same, and no call was made, since others just failed or the rate limit is used up.
            PermanentError: any other status; names host, status and what to check.
            ReplyError: the reply is too large or no JSON object.
        """
        deadline = earliest(time.monotonic() + min(timeout_s, _LONGEST_S))
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        calls = 0

        def call() -> JsonReply:
            nonlocal calls
            calls += 1
            most = min(most_bytes or self._max_reply_bytes, self._max_reply_bytes)
            with called(self._gate, "POST", path) as asked:
                return JsonReply(body=self._once(path, content, deadline, most, asked), calls=calls)

        try:
            if time.monotonic() >= deadline:
                raise TransientError(f"{self._server}: no time is left to ask it")
            return retried(
                call,
                lambda: self._gate.admit(deadline, self._attempt_s, before, patient_until=deadline if patient else 0.0),
                deadline,
                lambda tries: tries < self._attempts,
            )
        except RamifyError as error:
            error.calls = calls
            raise

    def close(self) -> None:
        self._client.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _once(self, path: str, content: bytes, deadline: float, most: int, asked: TraceSpan) -> dict[str, Any]:
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        seconds = max(0.001, min(self._attempt_s, deadline - time.monotonic()))
        try:
            with until(time.monotonic() + seconds):
                timeout, headers = httpx.Timeout(seconds), traced_headers()
                with self._client.stream("POST", url, content=content, timeout=timeout, headers=headers) as response:
                    asked.set(http__response__status_code=response.status_code)
                    if not response.is_success:
                        raise _status_error(self._server, response)
                    return self._decoded(_read_within(response, most), most)
        except httpx.TimeoutException as error:
            whole = seconds > 0.99 * self._attempt_s
            within = f"within {self._attempt_s:.3g} s" if whole else "in the time that was left"
            message = f"{self._server} did not answer {within}"
            raise timeout_error(error, message, self._gate, seconds, self._attempt_s) from None
        except httpx.DecodingError:
            raise ReplyError(f"{self._server} sent a reply that cannot be decompressed") from None
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise PermanentError(f"{self._server} cannot be asked: {shown(str(error))}") from None
        except httpx.TransportError as error:
            failed = "cannot be reached" if isinstance(error, httpx.ConnectError | httpx.ProxyError) else "broke off"
            raise UnreachableError(f"{self._server} {failed}: {transport_reason(error)}") from None

    def _decoded(self, raw: bytes | None, most: int) -> dict[str, Any]:
        if raw is None:
            raise ReplyError(f"{self._server} sent a reply of more than {most:,} bytes")
        try:
            body = json.loads(raw, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise ReplyError(f"{self._server} sent a reply that is no JSON") from None
        if self._list_as and isinstance(body, list):
            body = {self._list_as: body}
        if not isinstance(body, dict):
            raise ReplyError(f"{self._server} sent JSON that is no object")
        return body


def _client(base_url: str, api_key: SecretStr, server: str) -> tuple[httpx.URL, httpx.Client]:
    """The URL less its login, and a client that sends that or the key. Raises: SettingsError for no key of a header."""
    url = httpx.URL(base_url)
    # Basic credentials leave the URL: httpx writes the URL of each request to its log.
    auth = (url.username, url.password) if url.userinfo else None
    url = url.copy_with(userinfo=b"", fragment=None)
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    if key := _checked_key(api_key, server):
        headers["Authorization"] = f"Bearer {key}"
    limits = httpx.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=30.0)
    return url, httpx.Client(
        transport=DeadlineTransport(proxy=proxy_for(url), limits=limits),
        headers=headers,
        auth=None if "Authorization" in headers else auth,
        # No cookie is kept: one that no header can hold would fail every later call.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def fetched(base_url: str, path: str, timeout_s: float, api_key: SecretStr = _NO_KEY) -> tuple[int, bytes | None]:
    """Status and decoded body (None: more than 4 MB) of one GET, all of it within `timeout_s`. Follows no redirect.

    For `ramify doctor`: no gate, no retry. Raises: httpx.HTTPError; SettingsError for a key that no header can hold.
    """
    url, client = _client(base_url, api_key, "server")
    with client, until(time.monotonic() + timeout_s):
        url = url.copy_with(path=url.path.rstrip("/") + path)
        with client.stream("GET", url, timeout=timeout_s) as response:
            return response.status_code, _read_within(response, _MAX_FETCHED_BYTES)


@cache
def name_destination(server: str) -> None:
    """Log where a key goes: once a server in each process."""
    _log.info("the API key of the %s is sent there", server)


def retried(
    call: Callable[[], T],
    admitted: Callable[[], AbstractContextManager[None]],
    deadline: float,
    may_retry: Callable[[int], bool],
) -> T:
    """`call` inside `admitted` (a gate's turn), again after a TransientError while `may_retry(tries so far)`.

    Refusals of the gate are not tried again: it has waited as long as it may. Raises: what the last try raised.
    """
    tries = 0
    faults: list[Exception] = []

    def backoff(error: Exception) -> bool | float:
        faults.append(error)
        return backoff_s(error, tries, deadline) if may_retry(tries) else False

    for attempt in stamina.retry_context(on=backoff, attempts=None, timeout=None):
        with attempt:
            if faults and time.monotonic() >= deadline:
                raise faults[-1]  # what was wrong says more than that the time is up
            with admitted():
                tries += 1
                return call()
    raise AssertionError("unreachable")


def backoff_s(error: Exception, tries: int, deadline: float) -> bool | float:
    """Seconds to wait after `tries` tries, never less than the server asked for; False: do not try again.

    The next try has to begin before `deadline` (on `time.monotonic`).
    """
    if not isinstance(error, TransientError) or isinstance(error, GateError):
        return False
    jittered = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)  # noqa: S311
    wait = max(jittered, error.retry_after or 0.0)
    return wait if time.monotonic() + wait < deadline else False


def timeout_error(
    error: httpx.TimeoutException, message: str, gate: Gate, had_s: float, attempt_s: float
) -> TransientError:
    """What a call that was not answered within `had_s` seconds says of its server; see `Gate.too_slow`."""
    if isinstance(error, httpx.PoolTimeout):
        return UnsureError(message)  # our own connections were all in use
    return gate.too_slow(message, had_s, attempt_s, connecting=isinstance(error, httpx.ConnectTimeout))


def tokens_reported(body: dict[str, Any], name: str) -> int:
    """The token count `name` of a reply's `usage`; 0 for what is missing or nonsense."""
    usage = body.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else 0
    return count if type(count) is int and 0 <= count <= _MAX_TOKENS else 0


def retry_after(headers: httpx.Headers) -> float | None:
    """Seconds from `Retry-After`, which holds seconds or an HTTP date (RFC 9110); None when it holds neither.

    A date is compared with the server's own clock, its `Date`, where it sends one: ours may be wrong.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value):
        return float(value)
    if (at := _http_date(value)) is None:
        return None
    return max(0.0, (at - (_http_date(headers.get("Date", "")) or datetime.now(UTC))).total_seconds())


def transport_reason(error: httpx.TransportError) -> str:
    """Without the counts in brackets: the same fault is then the same warning, and is said once."""
    return shown(str(error).partition(" (")[0]) if str(error) else type(error).__name__


def _status_error(server: str, response: httpx.Response) -> RamifyError:
    """What a status that is no success means."""
    status = response.status_code
    code, param = _error_names(response)
    named = " ".join(name for name in (code, param) if name)
    sentence = f"{server} answered {status}{f' ({named})' if named else ''}"
    if code not in _NO_CREDIT and (status == _BUSY or status >= 500 or status in _TRANSIENT):
        kind = BusyError if status == _BUSY else UnreachableError if status >= 500 else TransientError
        return kind(f"{sentence}: it is busy or failing", retry_after(response.headers))
    error = PermanentError(f"{sentence}: {_HINTS.get(status, 'check the base URL')}")
    error.param = param
    return error


def _error_names(response: httpx.Response) -> tuple[str, str]:
    """Error code and parameter. Never the message: servers repeat prompts and parts of keys in it."""
    try:
        fault = json.loads(_read_within(response, _MAX_ERROR_BYTES) or b"{}")["error"]
        names = (fault.get("code") or fault.get("type"), fault.get("param"))
    except (httpx.HTTPError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", ""  # the status alone says enough
    code, param = (name if isinstance(name, str) and _IDENTIFIER.fullmatch(name) else "" for name in names)
    return code, param


def _read_within(response: httpx.Response, most: int) -> bytes | None:
    """The decoded body, or None when it is longer than `most` bytes."""
    raw = bytearray()
    if response.headers.get("Content-Encoding", "").strip().lower() not in _STREAMED_ENCODINGS:
        raise httpx.DecodingError("packed twice, or as was not asked for")
    for piece in response.iter_bytes():
        raw += piece
        if len(raw) > most:
            return None
    return bytes(raw)


def _http_date(value: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _checked_key(api_key: SecretStr, server: str) -> str:
    key = api_key.get_secret_value().strip()  # a secret's file often ends in a newline
    if not key.isascii() or not all(c.isprintable() and c != " " for c in key):
        raise SettingsError(f"API key of the {server}", "***", "it holds white space or characters beyond ASCII")
    return key
