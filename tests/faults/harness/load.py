"""The load of the fault suite. What is asked is the same for every seed, so that answers can be compared; the seed says
in which order, on which lane, in batches or alone, with which keys, and what is cancelled."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.faults.harness import words
from tests.faults.harness.words import Service

TENANTS = ("default", "north", "south")
_BATCH = 6


@dataclass(frozen=True)
class Ask:
    """One question and its plan, by number. `leaves`: how many it has, None where the rules decide."""

    number: int
    tenant: str
    question: str
    subqueries: tuple[Any, ...]
    leaves: int | None

    def request(self, **options: Any) -> dict[str, Any]:
        """As a client takes it."""
        return {"question": self.question, "subqueries": self.subqueries, "tenant": self.tenant, **options}


@dataclass(frozen=True)
class Order:
    """One submit of the load, `at` seconds after its beginning. `key`: sent a second time `again` seconds later."""

    ask: Ask
    at: float
    lane: str = "batch"
    batch: int | None = None
    key: str | None = None
    again: float | None = None
    cancel_after: float | None = None


def asks(count: int) -> list[Ask]:
    """The first `count` questions: 8 leaves each, every fifth with leaves that wait, every ninth split by the rules."""
    return [_ask(number) for number in range(count)]


def _ask(number: int) -> Ask:
    dice = random.Random(1000 + number)
    chinese = number % 2 == 1
    services = words.CHINESE if chinese else words.ENGLISH
    first, other = dice.sample(services, 2)
    fields = {**first._asdict(), "other": other.name, "n": number}
    tenant = TENANTS[number % 3]
    if number % 9 == 4:
        split = words.CHINESE_SPLIT if chinese else words.ENGLISH_SPLIT
        return Ask(number, tenant, split.format(**fields), (), None)
    question = (
        f"案例{number}：{first.name}发生了什么？" if chinese else f"Case {number}: what happened to {first.name}?"
    )
    plan = _plan(number, chinese=chinese, services=services, dice=dice)
    return Ask(number, tenant, question, tuple(plan), len(plan) + 1)


def _plan(number: int, *, chinese: bool, services: tuple[Service, ...], dice: random.Random) -> list[str]:
    chain = words.CHINESE_CHAIN if chinese else words.ENGLISH_CHAIN
    about = words.CHINESE_ASKS if chinese else words.ENGLISH_ASKS
    plan = [step.format(**dice.choice(services)._asdict(), n=number) for step in chain] if number % 5 == 0 else []
    texts = dice.sample(about, 7 - len(plan))
    return plan + [text.format(**dice.choice(services)._asdict(), n=number) for text in texts]


def orders(asked: list[Ask], seed: int, seconds: float, name: str) -> list[Order]:
    """Every question once, over `seconds`, in the seed's order and with its options; keys hold for this `name` only."""
    dice = random.Random(seed)
    shuffled = dice.sample(asked, len(asked))
    made: list[Order] = []
    batch = 0
    while shuffled:
        at = dice.uniform(0.0, seconds)
        if dice.random() < 0.1 and len(shuffled) >= _BATCH:
            batch += 1
            made += [Order(shuffled.pop(), at, batch=batch, key=_key(dice, name)) for _ in range(_BATCH)]
            continue
        ask, key = shuffled.pop(), _key(dice, name)
        lane = "interactive" if dice.random() < 0.4 else "batch"
        cancel = dice.uniform(0.0, 4.0) if dice.random() < 0.06 else None
        again = dice.uniform(0.0, 3.0) if key else None
        made.append(Order(ask, at, lane=lane, key=key, again=again, cancel_after=cancel))
    return sorted(made, key=lambda order: (order.at, order.batch or 0))


def _key(dice: random.Random, name: str) -> str | None:
    return f"{name} 键 {dice.getrandbits(32)}" if dice.random() < 0.2 else None
