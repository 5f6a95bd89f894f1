"""Sends every request of the Qdrant client through its gate, and again while that may help.

It knows HTTP and what an answer of Qdrant ends with; `shared.store.server` turns the other errors into sentences.
"""

from __future__ import annotations

import math
import re
import time

import httpx

from shared.errors import RamifyError, TransientError
from shared.providers.called import called
from shared.providers.gates import BusyError, Gate, UnreachableError, UnsureError
from shared.providers.http import retried, retry_after, timeout_error, transport_reason
from shared.providers.http_deadline import DeadlineTransport, earliest, proxy_for, time_left, until
from shared.settings.services import ProviderSettings
from shared.settings.store import StoreSettings

#: Never retried: a second try would find the collection that the first has made.
_CREATES = re.compile(r"/collections/[^/]+$")
#: Endings of what only reads, beside every GET; the last one is how points are fetched by their ids.
_READS = re.compile(r"/(query|query/batch|scroll|count|facet|points)$")
_TRANSIENT = {408, 425}
#: The part of a leaf's time that one request may wait for a Qdrant that restarts: the rest of the leaf needs time too.
_SHARE_OF_LEAF = 1 / 7


class ServerTransport(httpx.BaseTransport):
    """Sends each request up to `attempts` times, each within `attempt_s` seconds, on any failure that may pass.

    All of it takes no longer than the block `until` around the caller allows; without one `attempts * attempt_s`. In
    such a block, a leaf's, a request goes on trying for `patience_s`, or a seventh of the time that is left.
    Raises: RamifyError; the Qdrant client hands it on inside its own ResponseHandlingException.
    """

    def __init__(
        self, inner: DeadlineTransport, gate: Gate, attempts: int, attempt_s: float, patience_s: float = 0.0
    ) -> None:
        self._inner, self._gate = inner, gate
        self._attempts, self._attempt_s, self._patience_s = attempts, attempt_s, patience_s

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The whole response, read to its end."""
        began, in_leaf = time.monotonic(), math.isfinite(time_left())
        deadline = earliest(math.inf if in_leaf else began + self._attempts * self._attempt_s)
        method, path = request.method, request.url.path
        once = method == "PUT" and _CREATES.search(path)
        reads = method == "GET" or (method == "POST" and _READS.search(path))
        patience_s = min(self._patience_s, _SHARE_OF_LEAF * time_left()) if in_leaf else 0.0
        # No question waits for a write, and a document that fails has to be ingested again.
        patient_until = began + patience_s if reads else deadline
        return retried(
            lambda: self._traced(request, deadline),
            lambda: self._gate.admit(deadline, self._attempt_s, patient_until=patient_until),
            deadline,
            lambda tries: not once and (tries < self._attempts or time.monotonic() < patient_until),
        )

    def close(self) -> None:
        self._inner.close()

    def _traced(self, request: httpx.Request, deadline: float) -> httpx.Response:
        with called(self._gate, request.method, request.url.path) as asked:
            response = self._once(request, deadline)
            asked.set(http__response__status_code=response.status_code)
            return response

    def _once(self, request: httpx.Request, deadline: float) -> httpx.Response:
        seconds = min(self._attempt_s, deadline - time.monotonic())
        if seconds <= 0:
            raise UnsureError("Qdrant was not asked: no time is left")
        try:
            with until(time.monotonic() + seconds):
                response = self._inner.handle_request(request)
                response.read()
        except httpx.TimeoutException as error:
            message = f"Qdrant does not answer: nothing came within {seconds:.3g} s"
            raise timeout_error(error, message, self._gate, seconds, self._attempt_s) from None
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL):
            raise  # no try will be better
        except (httpx.TransportError, httpx.DecodingError) as error:
            reason = "its answer cannot be decompressed"
            if isinstance(error, httpx.TransportError):
                reason = transport_reason(error)
            raise UnreachableError(f"Qdrant does not answer: {reason}") from None
        if fault := _fault(response):
            raise fault
        return response


def transport(store: StoreSettings, providers: ProviderSettings) -> ServerTransport:
    """The transport of the client of `store.url`."""
    url = httpx.URL(str(store.url))
    # As the Qdrant client has it: connections to this machine are not kept.
    local = url.host in {"localhost", "127.0.0.1"}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0) if local else httpx.Limits()
    inner = DeadlineTransport(proxy=proxy_for(url), limits=limits)
    gate = Gate("qdrant", str(url), providers)
    return ServerTransport(inner, gate, providers.qdrant_attempts, store.timeout_s, providers.qdrant_patience_s)


def _fault(response: httpx.Response) -> RamifyError | None:
    """The error of an answer that may be better later: busy, failing, or half an answer."""
    status, wait = response.status_code, retry_after(response.headers)
    if status == 429:
        return BusyError("Qdrant is overloaded (429)", wait)
    if status >= 500 or status in _TRANSIENT:
        kind = UnreachableError if status >= 500 else TransientError
        return kind(f"Qdrant failed with {status}", wait)
    half = response.is_success and is_cut_off(response.content)
    return UnreachableError("Qdrant sent half an answer") if half else None


def is_cut_off(content: bytes) -> bool:
    """True for nothing at all and for a JSON object without its end; a web page or a whole object is neither."""
    text = content.strip()
    return not text or (text.startswith(b"{") and not text.endswith(b"}"))
