"""An interactive question behind a batch, at a provider with a rate limit: whose calls go before its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import NOTES, ingested, launched
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Reply, Slow, Step
from tests.support.waiting import until

#: Every prompt about the interactive question holds it, and no other prompt does.
MARK = "walrus"


class Calls:
    """Which of the calls of the LLM are those of the interactive question, in their order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.mine: list[bool] = []

    def answer(self, body: dict[str, Any]) -> Step:
        with self._lock:
            self.mine.append(MARK in str(body["messages"]))
        return Slow(0.2, Reply())

    def others_before_each(self, since: int) -> list[int]:
        """For each call of the question since then: how many calls of others went while it waited."""
        waits, before = list[int](), 0
        for is_mine in self.mine[since:]:
            if is_mine:
                waits.append(before)
            before = 0 if is_mine else before + 1
        return waits


def test_a_question_behind_a_batch_waits_for_two_calls_of_others_at_most_for_each_of_its_own(tmp_path: Path) -> None:
    """At 180 requests a minute; the one thread that summarises stands in line with all those that rerank."""
    calls = Calls()
    with FakeOpenAI() as server:
        server.handle("chat", calls.answer)
        options: dict[str, Any] = {
            "llm_base_url": server.url, "llm_model": "fake", "enable_summary": True,
            "rerank": {"provider": "chat"}, "hierarchy": {"writer": "extractive"},
            "providers": {"llm": {"requests_per_minute": 180, "burst": 4}}, "pools": {"merge": 1},
        }  # fmt: skip
        for client in launched(tmp_path / "stack", **options):
            ingested(client, NOTES / "en" / "queues")
            client.submit_many((f"How do queues number {n} keep order?" for n in range(60)), decompose=False)
            until(lambda: len(calls.mine) >= 14, 60)
            for number in range(3):
                since = len(calls.mine)
                job_id = client.submit(f"Which queue does the {MARK} number {number} keep?", decompose=False)
                status = client.wait(job_id, 60)
                assert status.state == "done", status.error
                waits = calls.others_before_each(since)
                assert len(waits) >= 2, "a rerank and a summary"
                assert max(waits) <= 2, f"calls of others before each of its own: {waits}"
                assert client.result(job_id).summary.kind == "llm", "it did not give up waiting either"
