"""The pools as copies of one process, without a supervisor that would start one again, and jobs that pass them."""

from __future__ import annotations

import ctypes
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import psutil

from orchestrator.client import Ramify
from orchestrator.local import commands
from orchestrator.local.child_process import AdoptedProcess, Program
from orchestrator.local.copies import Template
from orchestrator.local.stack import answering_pools
from orchestrator.outage import Outage
from shared.errors import NotRunningError
from shared.settings import Settings
from tests.support.waiting import until

PATIENCE_S = 60.0


_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def pools(
    settings: Settings, names: tuple[str, ...] = (), copies: Mapping[str, int] | None = None
) -> Iterator[dict[str, psutil.Process]]:
    """The pools of `ramify up` with its command lines, but nobody who would start one anew.

    `copies`: of how many processes a pool is, if not of one; all but the first have a number behind their name.
    """
    pools, env = commands.pools(settings), commands.environment(settings)
    chosen = {
        f"{name}{number or ''}": pool
        for name, pool in pools.items()
        if name in names or not names
        for number in range((copies or {}).get(name, 1))
    }
    programs = [commands.worker(name, pool, settings, env) for name, pool in chosen.items()]
    with ExitStack() as stack:
        template = stack.enter_context(_template([pool.app for pool in chosen.values()], programs, settings))
        started: dict[str, psutil.Process] = {}
        for program in programs:
            process = template.copy(program, settings.data_dir / f"{program.name}.log")
            assert process, f"{program.name} was not started"
            stack.callback(_end, process)
            started[program.name] = psutil.Process(process.pid)
        workers = set(started)
        try:
            until(lambda: answering_pools(settings, len(workers)) >= workers, 2 * PATIENCE_S, "every pool answers")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{tails(settings)}") from None
        yield started


@contextmanager
def _template(apps: Sequence[str], programs: Sequence[Program], settings: Settings) -> Iterator[Template]:
    """Loads the code once; its copies are children of this process."""
    template = Template(apps, programs, settings.data_dir / "template.log")
    template.start()
    try:
        until(template.ready, PATIENCE_S, "the code of the pools is loaded")
        yield template
    finally:
        template.give_up()
        until(lambda: template.exit_code() is not None, 10, "the template has ended")
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _end(process: AdoptedProcess) -> None:
    psutil.Process(process.pid).send_signal(signal.SIGKILL)
    process.wait(10)


def log_of(settings: Settings, name: str) -> str:
    return (settings.data_dir / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def come_back(settings: Settings, client: Ramify, seconds: float = PATIENCE_S) -> float:
    """Seconds until a new job passes through all pools; it is asked anew when one has not ended after 3 s."""
    began, number, last = time.monotonic(), 0, ""
    while True:
        number += 1
        try:
            job_id = client.submit(f"How does a queue keep its order, asked {began} {number}?", deadline_s=seconds)
            if (status := client.wait(job_id, 3.0)).state == "done":
                return time.monotonic() - began
            last = str(status)
        except NotRunningError as error:
            last = str(error)
        assert time.monotonic() - began < seconds, f"no job passes after {seconds:.0f} s: {last}\n{tails(settings)}"
        time.sleep(0.1)


def states(client: Ramify, job_ids: Iterable[str], seconds: float = PATIENCE_S) -> dict[str, str]:
    """The state of each job once all have ended, or as they are when time is up."""
    until, outage, found = time.monotonic() + seconds, Outage(), dict[str, str]()
    for job_id in job_ids:
        while not (status := outage.retry(lambda job_id=job_id: client.status(job_id))).terminal:  # type: ignore[misc]
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        found[job_id] = str(status.state)
    return found


def tails(settings: Settings) -> str:
    return "\n".join(f"--- {log.name}\n{log.read_text()[-1500:]}" for log in sorted(settings.data_dir.glob("*.log")))
