"""Reserves budget before each paid call and settles it afterwards. Holds no connection: accounts are handed in.

The meter of the running task is a context variable, so that no call can bypass it: every client of a server calls it
inside `paid`. Outside a job (ingest, find) there is no meter and nothing is counted.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from threading import Lock
from typing import Literal, NamedTuple, Protocol, TypeVar

from shared.errors import PermanentError
from shared.models import Cost
from shared.providers.context import set_within
from shared.settings import Settings
from shared.settings.services import Prices

#: Tokens that a tokenizer makes of one character at most, as a rule.
MOST_TOKENS_PER_CHAR = 1.5
#: Money is counted in billionths, as whole numbers: a token may cost less than a millionth.
NANO = 1_000_000_000
T = TypeVar("T")
Kind = Literal["llm", "embedding", "rerank"]


class BudgetError(PermanentError):
    """A call would go beyond a budget, so it was not made."""


class PaidUse(NamedTuple):
    """What a call takes of a budget; `nano` is money in billionths."""

    calls: int = 0
    tokens: int = 0
    nano: int = 0


class Refusal(NamedTuple):
    """The limit that a call would exceed: its name and value, and what is left of it (for money, in billionths)."""

    limit: str
    value: float
    left: int


class Account(Protocol):
    """One budget: of the job, or of its batch.

    `of` begins sentences about it ("the batch's ", or nothing). With `counts_money` every model needs a price.
    """

    of: str
    counts_money: bool

    def reserve(self, hold: str, use: PaidUse) -> Refusal | None:
        """Reserve `use` under the name `hold`, at once or not at all. Repeating it changes nothing."""

    def settle(self, hold: str, use: PaidUse) -> None:
        """Put the real `use` in the place of what is reserved."""


def token_range(text: str) -> tuple[int, int]:
    """Fewest and most tokens that a tokenizer is likely to make of `text`; of odd text it may make more."""
    ascii_chars = len(text) if text.isascii() else sum(map(str.isascii, text))
    other = len(text) - ascii_chars
    return ascii_chars // 12 + other // 3, math.ceil(ascii_chars / 2 + MOST_TOKENS_PER_CHAR * other)


def usual_tokens(text: str) -> int:
    """Tokens that a tokenizer usually makes of `text`, rather too many: 3 ASCII characters a token, others one each."""
    ascii_chars = len(text) if text.isascii() else sum(map(str.isascii, text))
    return math.ceil(ascii_chars / 3) + len(text) - ascii_chars


def price(prices: Prices, kind: Kind, model: str, use: tuple[int, int, int]) -> int | None:
    """Billionths of money for (calls, tokens in, tokens out) of a model; None when its price is not known."""
    calls, tokens_in, tokens_out = use
    if kind == "llm":
        if model not in prices.llm_input or model not in prices.llm_output:
            return None
        return math.ceil(1000 * (prices.llm_input[model] * tokens_in + prices.llm_output[model] * tokens_out))
    table, amount = (prices.embedding, 1000 * tokens_in) if kind == "embedding" else (prices.rerank, 1_000_000 * calls)
    return math.ceil(table[model] * amount) if model in table else None


def money_of(cost: Cost, settings: Settings) -> float | None:
    """What these calls and tokens cost, None when a price is not known. Models of our own are free."""
    used: tuple[tuple[Kind, str, tuple[int, int, int]], ...] = (
        ("llm", settings.llm_model, (cost.llm_calls, cost.llm_tokens_in, cost.llm_tokens_out)),
        ("embedding", settings.embedding.model, (cost.embed_calls, cost.embed_tokens, 0)),
        ("rerank", settings.rerank.model, (cost.rerank_calls, 0, 0)),
    )
    servers = {"llm": True, "embedding": settings.embedding.traits.server, "rerank": settings.rerank.traits.server}
    nano = [price(settings.prices, kind, model, use) for kind, model, use in used if servers[kind] and any(use)]
    return None if None in nano else sum(filter(None, nano)) / NANO


def no_price(kind: Kind, model: str) -> str:
    """What to do about a model without a price."""
    names = "prices.llm_input and prices.llm_output" if kind == "llm" else f"prices.{kind}"
    return f"the model {model!r} has no price: set {names} for it (0 if it is free), or leave out max_cost"


class Meter:
    """The budgets of one task: its job's and its batch's. Safe for threads if its accounts are."""

    def __init__(self, accounts: Sequence[Account], prices: Prices) -> None:
        self._accounts, self._prices = accounts, prices

    def use(self, kind: Kind, model: str, tokens_in: int, tokens_out: int) -> PaidUse:
        """What one call takes. Raises: BudgetError when money is limited and the model has no price."""
        nano = price(self._prices, kind, model, (1, tokens_in, tokens_out))
        if nano is None and any(account.counts_money for account in self._accounts):
            raise BudgetError(no_price(kind, model))
        return PaidUse(1 if kind == "llm" else 0, tokens_in + tokens_out, nano or 0)

    def reserve(self, use: PaidUse) -> str:
        """The name of the reservation. Raises: BudgetError, and then nothing is reserved."""
        hold = secrets.token_hex(8)
        for place, account in enumerate(self._accounts):
            if (refusal := account.reserve(hold, use)) is not None:
                for granted in self._accounts[:place]:
                    granted.settle(hold, PaidUse())
                raise BudgetError(_sentence(account.of, refusal, use))
        return hold

    def settle(self, hold: str, use: PaidUse) -> None:
        """Put the real use in the place of a reservation."""
        for account in self._accounts:
            account.settle(hold, use)


class Tally:
    """What one task has called, whether or not a budget holds for it. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.total = Cost()

    def add(self, kind: Kind, calls: int, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """Tries begun, and the tokens of one that has ended."""
        match kind:
            case "llm":
                more = Cost(llm_calls=calls, llm_tokens_in=tokens_in, llm_tokens_out=tokens_out)
            case "embedding":
                more = Cost(embed_calls=calls, embed_tokens=tokens_in)
            case _:
                more = Cost(rerank_calls=calls)
        with self._lock:
            self.total += more


_METER: ContextVar[Meter | None] = ContextVar("ramify_meter", default=None)
_TALLY: ContextVar[Tally | None] = ContextVar("ramify_tally", default=None)


def tallied(tally: Tally) -> AbstractContextManager[None]:
    """Calls inside are counted in `tally`."""
    return set_within(_TALLY, tally)


def metered(meter: Meter | None) -> AbstractContextManager[None]:
    """Paid calls inside go on `meter`."""
    return set_within(_METER, meter)


def carried(function: Callable[..., T]) -> Callable[..., T]:
    """`function` for a pool's threads, which do not inherit the context variables of the task that they work for."""
    context = copy_context()

    def run(*args: object) -> T:
        return context.copy().run(function, *args)

    return run


class Call:
    """One logical call: each HTTP try of it has a reservation of its own."""

    def __init__(self, meter: Meter | None, kind: Kind, model: str, most: tuple[int, int]) -> None:
        self._meter, self._kind, self._model, self._most = meter, kind, model, most
        self._tally = _TALLY.get()
        self._hold = ""

    def next_try(self) -> None:
        """Call it right before each try; a try before it failed and counts without tokens. Raises: BudgetError."""
        if self._meter is not None:
            self.settle(0, 0)
            self._hold = self._meter.reserve(self._meter.use(self._kind, self._model, *self._most))
        if self._tally is not None:
            self._tally.add(self._kind, calls=1)

    def settle(self, tokens_in: int, tokens_out: int) -> None:
        """The try under way has ended and has really taken so many tokens."""
        if self._tally is not None and (tokens_in or tokens_out):
            self._tally.add(self._kind, 0, tokens_in, tokens_out)
        if self._meter is not None and self._hold:
            hold, self._hold = self._hold, ""
            self._meter.settle(hold, self._meter.use(self._kind, self._model, tokens_in, tokens_out))


@contextmanager
def paid(kind: Kind, model: str, tokens_in: int = 0, tokens_out: int = 0) -> Iterator[Call]:
    """A call of at most so many tokens. What is not settled inside counts as a call that failed."""
    call = Call(_METER.get(), kind, model, (tokens_in, tokens_out))
    try:
        yield call
    finally:
        call.settle(0, 0)


def _sentence(of: str, refusal: Refusal, use: PaidUse) -> str:
    name, value, left = refusal
    head = f"{of}budget {name} = {value:g}"
    if value == 0:
        return f"{head} allows none"
    if name == "max_seconds":
        return f"{head} is over"
    if left <= 0:
        return f"{head} is used up"
    wanted = {"max_calls": str(use.calls), "max_tokens": str(use.tokens), "max_cost": f"{use.nano / NANO:.6g}"}[name]
    rest = f"{left / NANO:.6g}" if name == "max_cost" else str(left)
    return f"{head} has {rest} left, and this call may take {wanted}"
