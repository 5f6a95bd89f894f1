"""One bounded, retrying JSON POST for LLM, embedding and rerank servers. Never logs or repeats a key or a body."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NoReturn, Self

import httpx
import stamina
from pydantic import Field, SecretStr

from shared.errors import PermanentError, RamifyError, ReplyError, SettingsError, TransientError, shown
from shared.http_deadline import DeadlineTransport, proxy_for, until
from shared.models.base import Model

MAX_REPLY_BYTES = 64_000_000  # 1024 vectors of 3072 numbers as JSON text
_MAX_FAULT_BYTES = 64_000
_LONGEST_S = 86_400.0
_WAIT_FIRST_S, _WAIT_MAX_S = 0.2, 5.0
_TRANSIENT = {408, 409, 425, 429}
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
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,47}")


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
    faults. `attempt_s` bounds one try in seconds, `max_reply_bytes` the decoded reply. Proxy variables of the
    environment are obeyed, redirects are not followed: they would carry the key elsewhere.

    Raises: SettingsError for a key that no header can hold.
    """

    def __init__(  # noqa: PLR0913 - the last two are named options
        self,
        base_url: str,
        api_key: SecretStr,
        what: str,
        attempts: int,
        *,
        attempt_s: float = _LONGEST_S,
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        url = httpx.URL(base_url)
        # Basic credentials leave the URL: httpx writes the URL of each request to its log.
        auth = (url.username, url.password) if url.userinfo else None
        self._url = url.copy_with(userinfo=b"", fragment=None)
        self._what, self._attempts, self._attempt_s = what, attempts, attempt_s
        self._max_reply_bytes = max_reply_bytes
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if key := _checked_key(api_key, what):
            headers["Authorization"] = f"Bearer {key}"
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=30.0)
        transport = DeadlineTransport(proxy=proxy_for(self._url), limits=limits)
        self._client = httpx.Client(
            transport=transport, headers=headers, auth=None if "Authorization" in headers else auth
        )

    @property
    def host(self) -> str:
        """Host and port, the only part of the URL that error sentences show."""
        return self._url.netloc.decode("ascii", "replace")

    def post(
        self, path: str, body: dict[str, Any], timeout_s: float, before: Callable[[], None] = lambda: None
    ) -> JsonReply:
        """POST `body` to base URL + `path` and return the decoded object. `timeout_s` bounds everything, waits too.

        `Retry-After` is obeyed when it fits into the time left. Text that is no valid Unicode is sent with "?".
        `before` runs before each try; what it raises ends the post.

        Raises (each carries its HTTP calls, see `calls_made`):
            TransientError: unreachable, timed out, cut off, 408, 409, 425, 429 or 5xx, after all tries.
            PermanentError: any other status; names host, status and what to check.
            ReplyError: the reply is too large or no JSON object.
        """
        deadline = time.monotonic() + min(timeout_s, _LONGEST_S)
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        calls = 0
        faults: list[Exception] = []

        def backoff(error: Exception) -> bool | float:
            faults.append(error)
            return _backoff(error, calls, deadline)

        try:
            for attempt in stamina.retry_context(on=backoff, attempts=self._attempts, timeout=None):
                with attempt:
                    if time.monotonic() >= deadline:
                        over = TransientError(f"{self._what} at {self.host}: no time is left to ask it")
                        raise faults[-1] if faults else over  # what was wrong says more than that the time is up
                    before()
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
        seconds = min(self._attempt_s, deadline - time.monotonic())
        try:
            with until(time.monotonic() + seconds):
                timeout = httpx.Timeout(max(seconds, 0.001))
                with self._client.stream("POST", url, content=content, timeout=timeout) as response:
                    if not response.is_success:
                        self._refuse(response)
                    return self._decoded(_read(response, self._max_reply_bytes))
        except httpx.TimeoutException:
            within = f"within {seconds:.3g} s" if seconds == self._attempt_s else "in the time that was left"
            raise TransientError(f"{self._what} at {self.host} did not answer {within}") from None
        except httpx.DecodingError:
            raise ReplyError(f"{self._what} at {self.host} sent a reply that cannot be decompressed") from None
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise PermanentError(f"{self._what} at {self.host} cannot be asked: {shown(str(error))}") from None
        except httpx.TransportError as error:
            failed = "cannot be reached" if isinstance(error, httpx.ConnectError | httpx.ProxyError) else "broke off"
            raise TransientError(f"{self._what} at {self.host} {failed}: {_reason(error)}") from None

    def _decoded(self, raw: bytes | None) -> dict[str, Any]:
        if raw is None:
            raise ReplyError(f"{self._what} at {self.host} sent a reply of more than {self._max_reply_bytes:,} bytes")
        try:
            body = json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise ReplyError(f"{self._what} at {self.host} sent a reply that is no JSON") from None
        if not isinstance(body, dict):
            raise ReplyError(f"{self._what} at {self.host} sent JSON that is no object")
        return body

    def _refuse(self, response: httpx.Response) -> NoReturn:
        status = response.status_code
        code, param = _fault_names(response)
        named = " ".join(name for name in (code, param) if name)
        sentence = f"{self._what} at {self.host} answered {status}{f' ({named})' if named else ''}"
        if (status in _TRANSIENT or status >= 500) and code not in _NO_CREDIT:
            raise TransientError(f"{sentence}: it is busy or failing", _retry_after(response.headers))
        fault = PermanentError(f"{sentence}: {_HINTS.get(status, 'check the base URL')}")
        fault.param = param
        raise fault


def refused_option(error: PermanentError) -> str:
    """The option of the request that the server named as the one it does not take, or ""."""
    return str(getattr(error, "param", ""))


def _backoff(error: Exception, calls: int, deadline: float) -> bool | float:
    """Seconds to wait before the next try, never less than the server asked for; False when that is out of reach."""
    if not isinstance(error, TransientError):
        return False
    own = min(_WAIT_MAX_S, _WAIT_FIRST_S * 2 ** (calls - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
    wait = max(own, error.retry_after or 0.0)
    return wait if time.monotonic() + wait < deadline else False


def _read(response: httpx.Response, most: int) -> bytes | None:
    """The decoded body, or None when it is longer than `most`."""
    raw = bytearray()
    for piece in response.iter_bytes():
        raw += piece
        if len(raw) > most:
            return None
    return bytes(raw)


def _fault_names(response: httpx.Response) -> tuple[str, str]:
    """Error code and parameter. Never the message: servers repeat prompts and parts of keys in it."""
    try:
        fault = json.loads(_read(response, _MAX_FAULT_BYTES) or b"{}")["error"]
        names = (fault.get("code") or fault.get("type"), fault.get("param"))
    except (httpx.HTTPError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", ""  # the status alone says enough
    code, param = (name if isinstance(name, str) and _IDENTIFIER.fullmatch(name) else "" for name in names)
    return code, param


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds from `Retry-After`, which holds seconds or an HTTP date (RFC 9110); None when it holds neither."""
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _reason(error: httpx.TransportError) -> str:
    """Without the counts in brackets: the same fault is then the same warning, and is said once."""
    return shown(str(error).partition(" (")[0]) if str(error) else type(error).__name__


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _checked_key(api_key: SecretStr, what: str) -> str:
    key = api_key.get_secret_value().strip()  # a secret's file often ends in a newline
    if not key.isascii() or not all(c.isprintable() and c != " " for c in key):
        raise SettingsError(f"API key of the {what}", "***", "it holds white space or characters beyond ASCII")
    return key
