"""What a Qdrant server's failures mean: try again, or not. Never repeats the API key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.errors import RamifyError, StoreError, TransientError, shown
from shared.gates import GateError

_AUTH = {401, 403}
#: What every answer of Qdrant is made of.
_ENVELOPE = {"result", "status", "time", "usage"}


@contextmanager
def server_errors(doing: str) -> Iterator[None]:
    """Raises TransientError for what may pass, StoreError for the rest; both say what was being done.

    What may pass was found and tried again by the transport: no connection, 408, 429, 5xx, half an answer.
    """
    try:
        yield
    except UnexpectedResponse as error:
        raise _meaning(error, doing) from error
    except ResponseHandlingException as error:
        raise _unusable(error.source, doing) from error
    except json.JSONDecodeError as error:
        if error.doc.lstrip().startswith("{"):
            raise TransientError(f"Qdrant sent half an answer while {doing}") from error
        raise _stranger(doing) from error
    except AssertionError as error:
        if "returned None" not in str(error):  # the client's own word for an answer without a result
            raise
        raise _odd(doing, "it holds no result") from error
    except ValueError as error:  # the client's own checks
        raise StoreError(f"Qdrant cannot do this ({doing}): {shown(str(error))}") from error


def _unusable(source: Exception, doing: str) -> RamifyError:
    if isinstance(source, RamifyError):
        return source if isinstance(source, GateError) else _while(source, doing)
    if isinstance(source, ValidationError):
        first = source.errors(include_url=False, include_input=False)[0]
        place = [str(part) for part in first["loc"][1:]]
        if place and place[0] in _ENVELOPE:
            return _odd(doing, shown(f"{'.'.join(place)}: {first['msg']}"))
        return _stranger(doing)
    return StoreError(f"Qdrant cannot be asked ({doing}): {shown(str(source))}")


def _while(error: RamifyError, doing: str) -> RamifyError:
    """The same error, saying what was being done. A sentence with a colon has it before that."""
    said, colon, rest = str(error).partition(": ")
    error.args = (f"{said} while {doing}{colon}{rest}",)
    return error


def _odd(doing: str, what: str) -> StoreError:
    return StoreError(
        f"Qdrant's answer while {doing} is not of the shape that this client knows ({what}): "
        "check that store.url leads to a Qdrant server, and its version"
    )


def _stranger(doing: str) -> StoreError:
    return StoreError(f"what answers at store.url is no Qdrant server this client knows ({doing}): check the URL")


def _meaning(error: UnexpectedResponse, doing: str) -> RamifyError:
    status = error.status_code or 0
    if status in _AUTH:
        return StoreError(f"Qdrant refuses the API key ({status}): set store.api_key")
    reason = shown(error.content.decode("utf-8", "replace"))
    return StoreError(f"Qdrant refused the request ({status}) while {doing}: {reason}")
