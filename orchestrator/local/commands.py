"""The command lines and environment of the stack's Celery programs. Pure: starts nothing, reads no files."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from pydantic import BaseModel, HttpUrl, SecretStr
from pydantic_core import to_json

from orchestrator.local.child_process import Program
from shared.contract import POOL_APPS, POOL_QUEUES
from shared.models.base import Model
from shared.settings import Settings
from shared.settings.server_url import with_login

#: Seconds between two heartbeats of Celery. Flower calls a worker offline after two; the default of 2 s costs more.
_HEARTBEAT_S = 5
#: Tasks that Flower keeps, 5 KB each; its own default is 100,000.
_FLOWER_TASKS = 2000


class Pool(Model):
    """One worker process: its Celery app (a module), queues and threads."""

    app: str
    queues: tuple[str, ...]
    threads: int


def pools(settings: Settings) -> dict[str, Pool]:
    """The pools of the contract, with the threads of the settings; the ops pool runs no tasks."""
    return {
        name: Pool(app=POOL_APPS[name], queues=tuple(map(str, queues)), threads=settings.threads(name))
        for name, queues in POOL_QUEUES.items()
    }


def environment(settings: Settings) -> dict[str, str]:
    """`settings` as RAMIFY_ variables, which win over a settings file: children see what the supervisor saw.

    Empty values are left out (they mean "not set"); secrets travel here and never in a command line.
    """
    return _variables("RAMIFY_", settings) | {"RAMIFY_DATA_DIR": str(settings.data_dir.absolute())}


def _variables(prefix: str, model: BaseModel) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in type(model).model_fields:
        name = f"{prefix}{field.upper()}"
        match getattr(model, field):
            case BaseModel() as section:
                found |= _variables(f"{name}__", section)
            case SecretStr() as secret:
                found[name] = secret.get_secret_value()
            case HttpUrl() as url:
                found[name] = with_login(url)
            case Mapping() | list() | tuple() as values:
                found[name] = to_json(values).decode()
            case value:
                found[name] = "" if value is None else str(value)
    return {name: value for name, value in found.items() if value}


def worker(name: str, pool: Pool, settings: Settings, env: Mapping[str, str]) -> Program:
    """One worker process: threads wait for I/O, so one process a pool is enough."""
    options = ["-Q", ",".join(pool.queues), "-P", "threads", "-c", str(pool.threads), "-n", f"{name}@%h"]
    # Gossip and mingle are not used, and cost a third of the tasks a second; Flower needs the heartbeat.
    options += ["--without-gossip", "--without-mingle", "--heartbeat-interval", str(_HEARTBEAT_S), "-l", "INFO"]
    events = ["-E"] if settings.pools.task_events else []
    return Program(name, (*_celery(pool.app), "worker", *options, *events), env, copied=True)


def flower(app: str, port: int, settings: Settings, env: Mapping[str, str], login: str) -> Program:
    """The pool monitor; `login` is user:password."""
    options = [app, f"--address={settings.flower.host}", f"--port={port}", f"--max_tasks={_FLOWER_TASKS}"]
    if not settings.pools.task_events:
        options.append("--enable_events=False")  # else Flower switches them on again every five seconds
    return Program(
        "flower", (sys.executable, "-m", "orchestrator.monitor", *options), {**env, "FLOWER_BASIC_AUTH": login}
    )


def server(listener: int, env: Mapping[str, str]) -> Program:
    """Ramify over HTTP, on a socket that listens already: it outlives the process that answers."""
    return Program("server", (sys.executable, "-m", "orchestrator.server", str(listener)), env, pass_fds=(listener,))


def url(host: str, port: int) -> str:
    """Where a person finds a server; a wildcard address is shown as this machine."""
    return bound_url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)  # noqa: S104 - shown


def bound_url(host: str, port: int) -> str:
    """What a server listens on."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _celery(app: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "shared.tasks.celery_command", "-A", app)
