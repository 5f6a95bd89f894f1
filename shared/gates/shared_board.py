"""The board of all workers: one hash a provider in Redis, changed by Lua scripts on Redis' own clock."""

from __future__ import annotations

from importlib import resources
from typing import Any

from redis import Redis

from shared.gates.board import REMEMBERED_MS, Answer, Ask, Report, Terms, Verdict


def key_of(name: str) -> str:
    """The hash of the provider `name`, e.g. "llm:127.0.0.1:8000"."""
    return f"ramify:gate:{{{name}}}"


class SharedBoard:
    """Raises redis.exceptions.RedisError when Redis cannot serve it."""

    def __init__(self, client: Redis) -> None:
        self._enter, self._leave = (client.register_script(_source(name)) for name in ("enter", "leave"))

    def enter(self, name: str, terms: Terms, ask: Ask) -> Answer:
        """One round trip; it writes only where there is a rate limit or a probe."""
        reply: Any = self._enter(
            keys=[key_of(name)],
            args=[
                terms.interval, terms.burst, terms.failures, terms.longest_open, terms.longest_pause, ask.token,
                ask.lease, ask.left, int(ask.turn), REMEMBERED_MS,
            ],
        )  # fmt: skip
        verdict, wait, first, second, failures, why = (part.decode("utf-8", "replace") for part in reply)
        if verdict == Verdict.GO:
            return Answer(Verdict.GO, probe=first == "1", watched=second == "1")
        return Answer(
            Verdict(verdict), float(wait), span=float(first), until=float(second), failures=int(failures), why=why
        )

    def leave(self, name: str, terms: Terms, report: Report) -> str:
        """One round trip."""
        news: Any = self._leave(
            keys=[key_of(name)],
            args=[
                report.outcome.value, report.token, report.pause, report.why, terms.failures, terms.first_open,
                terms.longest_open, terms.first_pause, terms.longest_pause, REMEMBERED_MS,
            ],
        )  # fmt: skip
        return str(news.decode())


def _source(name: str) -> str:
    return resources.files("shared.gates").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
