"""`ramify doctor`: what runs, what does not, why, and what to do about it. Changes nothing.

The looks run side by side and each is bounded, so that the list is there in a few seconds with nothing running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from orchestrator.local import checks, checks_broker, checks_redis, checks_stack
from orchestrator.local.checks import Check, failed
from orchestrator.local.state import StackState, connection, running
from shared.errors import InputError, NotRunningError, RamifyError
from shared.settings import Settings

_TOGETHER_S = 12.0
Look = Callable[[], Check | Sequence[Check]]


def examine(settings: Settings) -> list[Check]:
    """All checks, in reading order: the machine, the stack, the services that the settings name. Never raises."""
    state, connected = _found(settings)
    looks: dict[str, Look] = {
        "machine": lambda: checks.machine(settings, runs=connected is not None),
        "stack": lambda: checks_stack.supervisor(settings, state),
        "redis": lambda: checks_redis.redis(connected, own=bool(settings.redis.url.get_secret_value())),
        "broker": lambda: checks_broker.broker(connected),
        "pools": lambda: checks_stack.workers(settings, connected),
        "jobs": lambda: checks_stack.jobs(connected),
        "llm": lambda: checks.llm(settings),
        "embedding": lambda: checks.embedding(settings),
        "rerank": lambda: checks.rerank(settings),
        "gates": lambda: checks_stack.gates(settings, connected),
        "http": lambda: checks.server(settings, state),
        "flower": lambda: checks.flower(settings, state),
    }
    threads = ThreadPoolExecutor(max_workers=len(looks), thread_name_prefix="doctor")
    try:
        futures = [(name, threads.submit(look)) for name, look in looks.items()]
        until = time.monotonic() + _TOGETHER_S
        return [check for name, future in futures for check in _outcome(name, future, until)]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _found(settings: Settings) -> tuple[StackState | None, Settings | None]:
    """The stack that runs here, and the settings with its Redis, if there is one."""
    try:
        state = running(settings)
        return state, connection(settings)
    except InputError:  # the data folder is not the user's own: its state is not believed, a check says why
        return None, settings if settings.redis.url.get_secret_value() else None
    except NotRunningError:
        return state, None


def _outcome(name: str, future: Future[Check | Sequence[Check]], until: float) -> Sequence[Check]:
    """A check that fails or hangs is a finding, not the end of the list."""
    try:
        found = future.result(timeout=max(0.1, until - time.monotonic()))
        return [found] if isinstance(found, Check) else found
    except TimeoutError:
        return [failed(name, f"no answer within {_TOGETHER_S:.0f} s", "see its log")]
    except Exception as error:  # noqa: BLE001 - a fault of one check must not hide the others
        known = isinstance(error, RamifyError)
        return [failed(name, str(error) if known else f"cannot be examined: {type(error).__name__}: {error}")]
