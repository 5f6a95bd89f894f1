"""`ramify doctor`, what it finds without the stack: this machine, and the servers that the settings name.

Sends API keys only to the servers that they are for, and never shows them.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import httpx
from pydantic import HttpUrl, SecretStr
from redis import Redis

from orchestrator.local import ports, redis_binary
from orchestrator.local.commands import url
from orchestrator.local.state import StackState
from shared.errors import RamifyError, SettingsError, shown
from shared.jobs import connect
from shared.models.base import Model
from shared.providers.http import fetched
from shared.settings import Settings, config_file, data_folder
from shared.settings.server_url import with_login
from shared.settings.strategies import checked_plugins

START = "ramify up -d"
_START_POOLS = (
    "start the pools that use this Redis, as docs/operations.md has it (`ramify up -d` starts all of them here)"
)
NOT_RUNNING = "not running"
TIMEOUT_S = 3.0
_PACKAGES = ("celery", "redis", "qdrant-client", "qdrant-edge-py", "flower")
_LOW_DISK_BYTES = 1_000_000_000


class Check(Model):
    """`ok`: True fine, False a fault, None nothing to judge (not configured, not running). `fix`: what to do next."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def passed(name: str, detail: str) -> Check:
    """A check that found nothing wrong."""
    return Check(name=name, ok=True, detail=detail)


def failed(name: str, detail: str, fix: str = "") -> Check:
    """A fault, and what to do about it."""
    return Check(name=name, ok=False, detail=detail, fix=fix)


def unknown(name: str, detail: str, fix: str = "") -> Check:
    """Nothing to judge: not configured, not running, or not answering."""
    return Check(name=name, ok=None, detail=detail, fix=fix)


def how_to_start(settings: Settings) -> str:
    """The pools of an operator's own Redis may run under a supervisor of his own."""
    return _START_POOLS if settings.redis.url.get_secret_value() else START


def needs_no_folder(settings: Settings) -> bool:
    """Whether stack and store are elsewhere and nothing of them is here, so that nobody can have had a hand in it.

    As in a pod of Kubernetes, whose folders all users of it may write.
    """
    elsewhere = settings.redis.url.get_secret_value() and settings.store.kind == "server"
    return bool(elsewhere) and not os.path.lexists(settings.data_dir)


def size(count: float) -> str:
    """Bytes for people: 1.4 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def quick_client(settings: Settings) -> Redis:
    """A client that never retries and waits at most 3 s for a command: a check reports how things are now."""
    return connect(settings, retries=0, timeout_s=min(settings.redis.timeout_s, TIMEOUT_S))


def machine(settings: Settings, *, runs: bool = False) -> Sequence[Check]:
    """Everything that needs no other process. `runs`: the stack does, and its Redis itself says its version."""
    file = config_file()
    used = passed("settings", str(file.absolute()) if file else "no ramify.toml: defaults are used")
    return (_versions(), used, _plugins(), *_redis_binary(settings, runs=runs), *_data_folder(settings))


def _versions() -> Check:
    versions = {name: _version(name) for name in ("ramify", *_PACKAGES)}
    if missing := [name for name in _PACKAGES if not versions[name]]:
        return failed("versions", f"not installed: {', '.join(missing)}", "make setup")
    versions["ramify"] = versions["ramify"] or "from its source folder"
    found = [f"{name} {version}" for name, version in versions.items()]
    return passed("versions", ", ".join([f"Python {platform.python_version()}", *found]))


def _version(package: str) -> str:
    try:
        return installed(package)
    except PackageNotFoundError:
        return ""


def _plugins() -> Check:
    """What other packages add: all of it is loaded here, so that every fault shows."""
    known = checked_plugins()
    listed: dict[str, list[str]] = {}
    for plugin, _ in (one for group in known.loaded.values() for one in group.values()):
        listed.setdefault(plugin.package, []).append(str(plugin))
    detail = "; ".join(f"{package}: {', '.join(names)}" for package, names in sorted(listed.items()))
    if known.faults:
        faults = ". ".join(str(fault) for fault in known.faults)
        return failed("plugins", f"{detail}. {faults}" if detail else faults, "see docs/plugins.md")
    return passed("plugins", detail) if listed else unknown("plugins", "none installed")


def _redis_binary(settings: Settings, *, runs: bool) -> Iterator[Check]:
    if settings.redis.url.get_secret_value():
        yield unknown("redis binary", "not needed: redis.url names a server")
        return
    try:
        binary = redis_binary.find_binary()
        product, number = redis_binary.version(binary)
    except RamifyError as error:
        yield failed("redis binary", str(error), redis_binary.INSTALL)
        return
    yield passed("redis binary", f"{binary} {'.'.join(map(str, number))}")
    if not runs:
        yield from redis_fixes(product, number)


def redis_fixes(product: str, number: redis_binary.Version, *, own: bool = False) -> Iterator[Check]:
    """A warning for a server without known security fixes; by its number alone, which a distribution may not raise.

    `own`: redis.url names it, and nobody knows how it was installed.
    """
    if missing := redis_binary.missing_fixes(product, number):
        detail = f"{missing}, unless its distributor has added them"
        here = f"{redis_binary.NEWER}, then `ramify down` and `ramify up -d`"
        yield unknown("redis fixes", detail, "upgrade the server that redis.url names" if own else here)


def _data_folder(settings: Settings) -> Sequence[Check]:
    """Whether the stack can write there, and how much room is left."""
    folder = settings.data_dir.absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if needs_no_folder(settings):
        writable = unknown("data folder", f"not needed: Redis and the store run elsewhere (there is no {folder})")
    elif fault := data_folder.fault_of(settings, "run", "logs", "redis"):
        writable = failed("data folder", fault)
    elif existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        writable = passed("data folder", f"{folder}{'' if existing == folder else ' (not created yet)'}")
    else:
        fix = "make it writable, or set data_dir to another folder"
        writable = failed("data folder", f"{existing} cannot be written", fix)
    free = shutil.disk_usage(existing).free
    if free >= _LOW_DISK_BYTES:
        return writable, passed("disk", f"{size(free)} free")
    return writable, failed("disk", f"{size(free)} free", "make room: Redis and the store stop when the disk is full")


def llm(settings: Settings) -> Check:
    """The chat server, if one is configured: without, questions are branched by rules and answered by extracts."""
    if not settings.has_llm:
        detail = "not configured: rules branch the question, the summary is extractive"
        return unknown("llm", detail, "set llm_base_url and llm_model to use one")
    return _model_server("llm", settings.llm_base_url, settings.llm_api_key, settings.llm_model)


def embedding(settings: Settings) -> Check:
    """The dense encoder's server, if one is configured."""
    chosen = settings.embedding
    if chosen.traits.server:
        return _model_server("embedding", chosen.base_url, chosen.api_key, chosen.model)
    if chosen.provider == "none":
        return unknown("embedding", "none: BM25 alone")
    return unknown("embedding", f"{chosen.provider}, {chosen.model}, in the workers")


def rerank(settings: Settings) -> Check:
    """The reranker's server, if one is configured."""
    chosen = settings.rerank
    if chosen.traits.server:
        return _model_server("rerank", chosen.base_url, chosen.api_key, chosen.model)
    return unknown("rerank", f"{f'{chosen.provider} {chosen.model}'.rstrip()}, in the workers")


def flower(settings: Settings, state: StackState | None) -> Check:
    """Whether the pool monitor answers; its health page needs no login."""
    own = settings.flower
    if not own.enabled:
        return unknown("flower", "switched off (flower.enabled)")
    if state is None and settings.redis.url.get_secret_value():
        return _elsewhere("flower", url(own.host, own.port or ports.FLOWER_PORT), "/healthcheck")
    if state is None or not state.flower_url:
        return unknown("flower", NOT_RUNNING, START)
    return _asked("flower", state.flower_url, "/healthcheck")


def server(settings: Settings, state: StackState | None) -> Check:
    """Whether HTTP answers, and Redis behind it."""
    own = settings.server
    if not own.enabled:
        return unknown("http", "switched off (server.enabled)")
    if state is None and settings.redis.url.get_secret_value():
        return _elsewhere("http", url(own.host, own.port or ports.SERVER_PORT), "/readyz")
    if state is None:
        return unknown("http", NOT_RUNNING, START)
    if not state.server_url:
        return unknown("http", "not installed", "`pip install 'ramify[server]'`, then `ramify up -d`")
    return _asked("http", state.server_url, "/readyz")


def _elsewhere(name: str, base: str, path: str) -> Check:
    """The same of a process that no `ramify up` of this folder has started: it may be on another machine."""
    found = _asked(name, base, path)
    return (
        found if found.ok else unknown(name, f"does not answer at {base}; whether it runs elsewhere is not known here")
    )


def _asked(name: str, base: str, path: str) -> Check:
    log = f"see logs/{'server' if name == 'http' else name}.log"
    try:
        status, body = fetched(base, path, TIMEOUT_S)
    except httpx.HTTPError as error:
        return failed(name, f"{base}: {_reason(error)}", log)
    if not httpx.codes.is_success(status):
        return failed(name, f"{base}: {status}", log)
    if body is None:
        return failed(name, f"{base}: its answer has no end", log)
    return passed(name, base)


def _model_server(name: str, base: HttpUrl | None, key: SecretStr, model: str) -> Check:
    """GET base/models: is the server there, does it take the key, does it know the model?"""
    prefix = "llm_" if name == "llm" else f"{name}."
    shown_url = str(httpx.URL(str(base)).copy_with(query=None, fragment=None)).rstrip("/")
    try:
        status, body = fetched(with_login(base), "/models", TIMEOUT_S, key)
    except httpx.HTTPError as error:
        return failed(name, f"{shown_url}: {_reason(error)}", f"start it, or correct {prefix}base_url")
    except SettingsError as error:
        return failed(name, str(error), f"correct {prefix}api_key")
    if status in {401, 403}:
        return failed(name, f"{shown_url} refuses the key ({status})", f"correct {prefix}api_key")
    # Some OpenAI-compatible servers have no list of models; any other error is not of such a server.
    success = httpx.codes.is_success(status)
    if (success and body is None) or (not success and status not in {404, 405}):
        what = "answers more than any list: it lists no models" if success else f"answers {status}"
        return failed(name, f"{shown_url}/models {what}", f"see that server's log, or correct {prefix}base_url")
    known = _model_names(body or b"") if success else set()
    if known and model not in known:
        some = ", ".join(shown(one) for one in sorted(known)[:5])
        return unknown(name, f"{shown_url} does not list {shown(model)}, but {some}", "check the name")
    note = "" if known else " (it lists no models, so the name is not checked)"
    return passed(name, f"{shown_url}, model {shown(model)}{note}")


def _model_names(body: bytes) -> set[str]:
    """Ids of an OpenAI-style list; empty when the reply is something else."""
    try:
        return {str(entry["id"]) for entry in json.loads(body)["data"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return set()


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {TIMEOUT_S:.0f} s"
    return str(error) or type(error).__name__
