"""What a Qdrant server's failures mean: try again, or not. Never repeats the API key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.errors import RamifyError, StoreError, TransientError, shown

_AUTH = {401, 403}
_LATER = {408, 429}


@contextmanager
def server_errors(doing: str) -> Iterator[None]:
    """Raises TransientError for what may pass (no connection, 408, 429, 5xx), StoreError for the rest."""
    try:
        yield
    except ResourceExhaustedResponse as error:
        raise TransientError(f"Qdrant is overloaded while {doing}", float(error.retry_after_s)) from error
    except UnexpectedResponse as error:
        raise _meaning(error, doing) from error
    except ResponseHandlingException as error:
        if isinstance(error.source, httpx.TransportError):
            raise TransientError(f"Qdrant does not answer while {doing}: {shown(str(error.source))}") from error
        raise _stranger(doing) from error
    except json.JSONDecodeError as error:
        raise _stranger(doing) from error
    except ValueError as error:  # the client's own checks
        raise StoreError(f"Qdrant cannot do this ({doing}): {shown(str(error))}") from error


def _stranger(doing: str) -> StoreError:
    return StoreError(f"what answers at store.url is no Qdrant server this client knows ({doing}): check the URL")


def _meaning(error: UnexpectedResponse, doing: str) -> RamifyError:
    status = error.status_code or 0
    if status in _AUTH:
        return StoreError(f"Qdrant refuses the API key ({status}): set store.api_key")
    if status in _LATER or status >= 500:
        return TransientError(f"Qdrant failed with {status} while {doing}")
    reason = shown(error.content.decode("utf-8", "replace"))
    return StoreError(f"Qdrant refused the request ({status}) while {doing}: {reason}")
