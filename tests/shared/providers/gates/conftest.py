"""Clients of a fake provider, as those of several workers: each with a gate of its own, over one Redis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis
from pydantic import SecretStr

from shared.providers.gates import Gate
from shared.providers.gates.gate_store import GateStore
from shared.providers.http import JsonClient
from shared.settings.services import ProviderSettings
from tests.fakes.openai_server import FakeOpenAI
from tests.shared.providers.gates.calls import KEY, QUICK, Make


@pytest.fixture
def make(server: FakeOpenAI, client: redis.Redis) -> Iterator[Make]:
    """Clients as those of several workers: each with a gate of its own, over one Redis."""
    with ExitStack() as stack:

        def build(attempts: int = 1, attempt_s: float = 60.0, url: str = server.url, **providers: Any) -> JsonClient:
            store = GateStore(client)
            gate = Gate("llm", url, ProviderSettings.model_validate({**QUICK, **providers}), lambda: store)
            made = JsonClient(url, SecretStr(KEY), gate, attempts, attempt_s=attempt_s)
            return stack.enter_context(made)

        yield build
