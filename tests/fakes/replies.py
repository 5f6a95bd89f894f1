"""What the fake server can be told to do with one request: good replies, and the faults that real servers show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reply:
    """A good reply. `text` is the chat message; `body` replaces the whole JSON body; neither: the default answer."""

    text: str | None = None
    body: dict[str, Any] | None = None
    tokens_in: int = 11
    tokens_out: int = 7


@dataclass(frozen=True)
class Fault:
    """An error status. `retry_after` goes into the header as it is: seconds or an HTTP date."""

    status: int = 500
    retry_after: float | str | None = None
    code: str = ""
    param: str = ""
    message: str = "scripted fault"


@dataclass(frozen=True)
class Slow:
    """Waits `seconds`, then does `then`."""

    seconds: float
    then: Step = Reply()


@dataclass(frozen=True)
class Drip:
    """Sends a good reply in pieces of `size` bytes with a pause after each, from the headers on if `headers`."""

    pause_s: float = 0.05
    size: int = 1
    headers: bool = False
    then: Reply = Reply()


@dataclass(frozen=True)
class Malformed:
    """A 200 whose body is `raw`."""

    raw: bytes = b'{"choices": [{"message": '


@dataclass(frozen=True)
class CutOff:
    """Promises a whole reply, sends `after` bytes of it and closes the connection."""

    after: int = 20


@dataclass(frozen=True)
class Hang:
    """Says nothing for `seconds`, then closes the connection."""

    seconds: float = 60.0


Step = Reply | Fault | Slow | Drip | Malformed | CutOff | Hang


@dataclass(frozen=True)
class Recorded:
    """A request as it came. Header names are in lower case; `body` is {} when it was no JSON object."""

    endpoint: str
    headers: dict[str, str]
    body: dict[str, Any]
