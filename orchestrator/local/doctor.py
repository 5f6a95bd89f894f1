"""`ramify doctor`: what runs, what does not, why, and what to do about it. Looks only; changes nothing.

Every look is bounded and they go side by side, so that the whole list is there in a few seconds with nothing running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from orchestrator.local import checks, checks_redis, checks_stack
from orchestrator.local.checks import Check
from orchestrator.local.state import connection, running
from shared.errors import NotRunningError, RamifyError
from shared.settings import Settings

__all__ = ["Check", "examine"]

_TOGETHER_S = 12.0


def examine(settings: Settings) -> list[Check]:
    """All checks, in reading order: the machine, the stack, the services that the settings name. Never raises."""
    state = running(settings)
    try:
        connected: Settings | None = connection(settings)
    except NotRunningError:
        connected = None
    looks: list[tuple[str, Callable[[], Sequence[Check]]]] = [
        ("machine", partial(checks.machine, settings)),
        ("stack", partial(checks_stack.supervisor, settings, state)),
        ("redis", partial(checks_redis.redis, connected)),
        ("pools", partial(checks_stack.workers, settings, connected)),
        ("jobs", partial(checks_stack.jobs, connected)),
        ("llm", partial(checks.llm, settings)),
        ("embedding", partial(checks.embedding, settings)),
        ("rerank", partial(checks.rerank, settings)),
        ("gates", partial(checks_stack.gates, settings, connected)),
        ("flower", partial(checks.flower, settings, state)),
    ]
    threads = ThreadPoolExecutor(max_workers=len(looks), thread_name_prefix="doctor")
    try:
        futures = [(name, threads.submit(look)) for name, look in looks]
        until = time.monotonic() + _TOGETHER_S
        return [check for name, future in futures for check in _outcome(name, future, until)]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _outcome(name: str, future: Future[Sequence[Check]], until: float) -> Sequence[Check]:
    """A look that fails or hangs is a finding, not the end of the list."""
    try:
        return future.result(timeout=max(0.1, until - time.monotonic()))
    except TimeoutError:
        return [Check(name=name, ok=False, detail=f"no answer within {_TOGETHER_S:.0f} s", fix="see its log")]
    except RamifyError as error:
        return [Check(name=name, ok=False, detail=str(error))]
    except Exception as error:  # noqa: BLE001 - a fault of one look must not hide the others
        return [Check(name=name, ok=False, detail=f"cannot be examined: {type(error).__name__}: {error}")]
