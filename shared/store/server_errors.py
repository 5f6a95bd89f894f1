"""Errors of the Qdrant client as sentences: what may pass and what is for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.errors import RamifyError, StoreError, TransientError, shown
from shared.providers.gates import GateError

_AUTH = {401, 403}
_NOT_FOUND = 404
#: The top-level fields of every answer of Qdrant.
_ENVELOPE = {"result", "status", "time", "usage"}


@contextmanager
def server_errors(doing: str) -> Iterator[None]:
    """Raises TransientError for what may pass, StoreError for the rest; both say what was being done.

    What may pass was found and tried again by the transport: no connection, 408, 429, 5xx, half an answer.
    """
    try:
        yield
    except UnexpectedResponse as error:
        raise _refused(error, doing) from error
    except ResponseHandlingException as error:
        raise _failed(error.source, doing) from error
    except json.JSONDecodeError as error:
        if error.doc.lstrip().startswith("{"):
            raise TransientError(f"Qdrant sent half an answer while {doing}") from error
        raise _not_qdrant(doing) from error
    except AssertionError as error:
        if "returned None" not in str(error):  # qdrant-client raises this when an answer holds no result
            raise
        raise _malformed(doing, "it holds no result") from error
    except ValueError as error:  # the client's own checks
        raise StoreError(f"Qdrant cannot do this ({doing}): {shown(str(error))}") from error


def is_missing(error: Exception) -> bool:
    """Whether a call failed since its collection is not there; the client's local mode says so by a ValueError."""
    if isinstance(error, UnexpectedResponse):
        return error.status_code == _NOT_FOUND
    return isinstance(error, ValueError) and "not found" in str(error)


def _failed(source: Exception, doing: str) -> RamifyError:
    if isinstance(source, GateError):
        return source
    if isinstance(source, RamifyError):  # a sentence with a colon gets what was being done before that
        sentence, colon, rest = str(source).partition(": ")
        source.args = (f"{sentence} while {doing}{colon}{rest}",)
        return source
    if isinstance(source, ValidationError):
        first = source.errors(include_url=False, include_input=False)[0]
        place = [str(part) for part in first["loc"][1:]]
        if place and place[0] in _ENVELOPE:
            return _malformed(doing, shown(f"{'.'.join(place)}: {first['msg']}"))
        return _not_qdrant(doing)
    return StoreError(f"Qdrant cannot be asked ({doing}): {shown(str(source))}")


def _malformed(doing: str, what: str) -> StoreError:
    return StoreError(
        f"Qdrant's answer while {doing} is not of the shape that this client knows ({what}): "
        "check that store.url leads to a Qdrant server, and its version"
    )


def _not_qdrant(doing: str) -> StoreError:
    return StoreError(f"what answers at store.url is no Qdrant server this client knows ({doing}): check the URL")


def _refused(error: UnexpectedResponse, doing: str) -> RamifyError:
    status = error.status_code or 0
    if status in _AUTH:
        return StoreError(f"Qdrant refuses the API key ({status}): set store.api_key")
    reason = shown(error.content.decode("utf-8", "replace"))
    return StoreError(f"Qdrant refused the request ({status}) while {doing}: {reason}")
