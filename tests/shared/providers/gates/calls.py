"""What the tests of gates do with a client: one call, a failed one, and a breaker that has just opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import RamifyError
from shared.providers.gates import UnreachableError
from shared.providers.http import JsonClient
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Step

KEY, PROMPT = "sk-secret-0123456789", "the private words of the prompt"
BODY = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}
QUICK = {"breaker": {"failures": 3, "open_s": 1.0, "longest_open_s": 3}, "pause_s": 0.1}
Make = Callable[..., JsonClient]


def post(client: JsonClient, timeout_s: float = 10.0, **more: Any) -> int:
    """One call; how many HTTP calls it took."""
    return client.post("/chat/completions", BODY, timeout_s, **more).calls


def failure(client: JsonClient, timeout_s: float = 10.0, **more: Any) -> RamifyError:
    with pytest.raises(RamifyError) as caught:
        post(client, timeout_s, **more)
    return caught.value


def timed(server: FakeOpenAI, step: Callable[[int], Step]) -> list[float]:
    """When requests arrive; the answer to request n is `step(n)`."""
    times: list[float] = []

    def answer(_: dict[str, Any]) -> Step:
        times.append(time.monotonic())
        return step(len(times))

    server.handle("chat", answer)
    return times


def opened(server: FakeOpenAI, make: Make, step: Step | None = None, **providers: Any) -> JsonClient:
    """A client whose breaker has just opened."""
    server.handle("chat", lambda _: step or Fault(500))
    worker = make(**providers)
    for _ in range(3):
        assert isinstance(failure(worker), UnreachableError)
    return worker
