"""What a gate asks of the place that holds the state of all providers, in Redis or in this process. No rule is here."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from shared.settings.providers import Providers, RateLimit

#: How long a provider's failures and pauses are remembered after the last of them (ms).
REMEMBERED_MS = 120_000


class Terms(NamedTuple):
    """The settings of one provider, times in ms. `interval` between requests is 0 without a limit."""

    interval: float
    burst: int
    failures: int
    first_open: float
    longest_open: float
    first_pause: float
    longest_pause: float


class Ask(NamedTuple):
    """A call that wants to go. `lease` of a probe and the time `left` to wait, in ms; `turn`: it has one already."""

    token: str
    lease: float
    left: float
    turn: bool = False


class Verdict(StrEnum):
    """The answer to an ask."""

    GO = "go"
    OPEN = "open"
    PROBING = "probing"
    PAUSED = "paused"
    TURN = "turn"
    FULL = "full"


class Answer(NamedTuple):
    """`wait` until it is worth while to ask again (ms).

    GO: `probe`, `watched` (the board wants to know of a success too). OPEN: `span` of the whole opening (ms), `until`
    (Unix ms), `failures` in a row and `why`, the last of them; PROBING the last two. PAUSED: `until`.
    """

    verdict: Verdict
    wait: float = 0
    probe: bool = False
    watched: bool = False
    span: float = 0
    until: float = 0
    failures: int = 0
    why: str = ""


class Outcome(StrEnum):
    """How a call ended, as seen from the provider's health."""

    ANSWERED = "answered"
    BUSY = "busy"
    FAILED = "failed"
    UNSURE = "unsure"


class Report(NamedTuple):
    """`pause` that the provider asked for (ms; 0 none). `why`: what failed, a sentence."""

    outcome: Outcome
    token: str
    pause: float = 0
    why: str = ""


class Board(Protocol):
    """Holds the state of providers. Called from many threads."""

    def enter(self, name: str, terms: Terms, ask: Ask) -> Answer:
        """May this call go to the provider `name` now?"""
        ...

    def leave(self, name: str, terms: Terms, report: Report) -> str:
        """A call has ended. Returns "opened" or "closed" when that is what it did to the breaker, else ""."""
        ...


def terms_of(providers: Providers, limit: RateLimit) -> Terms:
    """The settings as a board takes them."""
    breaker = providers.breaker
    return Terms(
        interval=60_000 / limit.requests_per_minute if limit.requests_per_minute else 0,
        burst=limit.burst,
        failures=breaker.failures,
        first_open=breaker.open_s * 1000,
        longest_open=breaker.longest_open_s * 1000,
        first_pause=providers.pause_s * 1000,
        longest_pause=providers.longest_pause_s * 1000,
    )
