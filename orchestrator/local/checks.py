"""What `ramify doctor` finds out without the stack: about this machine, and the servers that the settings name.

Sends keys where they belong, shows none.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

import httpx
from pydantic import HttpUrl, SecretStr

from orchestrator.local import redis_server
from orchestrator.local.state import StackState
from shared.errors import RamifyError, shown
from shared.models.base import Model
from shared.settings import Settings, config_file
from shared.settings.strategies import examined

_PACKAGES = ("celery", "redis", "qdrant-client", "qdrant-edge-py", "flower")
_LOW_DISK = 1_000_000_000
_TIMEOUT_S = 3.0


class Check(Model):
    """`ok`: True fine, False a fault, None nothing to judge (not configured, not running). `fix`: what to do next."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def size(count: float) -> str:
    """Bytes for people: 1.4 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


# -- this machine ------------------------------------------------------------------------------------------------------


def machine(settings: Settings) -> Sequence[Check]:
    """What needs no other process."""
    return (_versions(), _settings_file(), _plugins(), _redis_binary(settings), _data_dir(settings), _disk(settings))


def _versions() -> Check:
    found = [f"Python {platform.python_version()}", f"ramify {_own_version()}"]
    missing = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {installed(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(name="versions", ok=False, detail=f"not installed: {', '.join(missing)}", fix="make setup")
    return Check(name="versions", ok=True, detail=", ".join(found))


def _own_version() -> str:
    try:
        return installed("ramify")
    except PackageNotFoundError:
        return "from its source folder"


def _settings_file() -> Check:
    file = config_file()
    return Check(name="settings", ok=True, detail=str(file.absolute()) if file else "no ramify.toml: defaults are used")


def _plugins() -> Check:
    """What other packages add: all of it is loaded here, so that every fault shows."""
    known = examined()
    listed: dict[str, list[str]] = {}
    for found, _ in (one for group in known.loaded.values() for one in group.values()):
        listed.setdefault(found.package, []).append(str(found))
    detail = "; ".join(f"{package}: {', '.join(names)}" for package, names in sorted(listed.items()))
    if not known.faults:
        return Check(name="plugins", ok=True if listed else None, detail=detail or "none installed")
    faults = ". ".join(str(fault) for fault in known.faults)
    return Check(
        name="plugins", ok=False, detail=f"{detail}. {faults}" if detail else faults, fix="see docs/plugins.md"
    )


def _redis_binary(settings: Settings) -> Check:
    if settings.redis.url.get_secret_value():
        return Check(name="redis binary", ok=None, detail="not needed: redis.url names a server")
    try:
        binary = redis_server.find_binary()
        number = ".".join(map(str, redis_server.version(binary)))
    except RamifyError as error:
        return Check(name="redis binary", ok=False, detail=str(error), fix=redis_server.INSTALL)
    return Check(name="redis binary", ok=True, detail=f"{binary} {number}")


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _data_dir(settings: Settings) -> Check:
    folder = settings.data_dir.absolute()
    there = _existing(folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        fix = "make it writable, or set data_dir to another folder"
        return Check(name="data folder", ok=False, detail=f"{there} cannot be written", fix=fix)
    return Check(name="data folder", ok=True, detail=f"{folder}{'' if there == folder else ' (not created yet)'}")


def _disk(settings: Settings) -> Check:
    free = shutil.disk_usage(_existing(settings.data_dir.absolute())).free
    fix = "" if free >= _LOW_DISK else "make room: Redis and the store stop when the disk is full"
    return Check(name="disk", ok=free >= _LOW_DISK, detail=f"{size(free)} free", fix=fix)


# -- servers -----------------------------------------------------------------------------------------------------------


def llm(settings: Settings) -> Sequence[Check]:
    """The chat server, if one is configured: without, questions are branched by rules and answered by extracts."""
    if not settings.has_llm:
        detail = "not configured: rules branch the question, the summary is extractive"
        return (Check(name="llm", ok=None, detail=detail, fix="set llm_base_url and llm_model to use one"),)
    return (_models("llm", settings.llm_base_url, settings.llm_api_key, settings.llm_model),)


def embedding(settings: Settings) -> Sequence[Check]:
    """The dense encoder's server, if one is configured."""
    chosen = settings.embedding
    if chosen.provider != "endpoint":
        detail = {"none": "none: BM25 alone", "fastembed": f"fastembed, {chosen.model}, in the workers"}[
            chosen.provider
        ]
        return (Check(name="embedding", ok=None, detail=detail),)
    return (_models("embedding", chosen.base_url, chosen.api_key, chosen.model),)


def rerank(settings: Settings) -> Sequence[Check]:
    """The reranker's server, if one is configured."""
    chosen = settings.rerank
    if chosen.provider != "endpoint":
        return (
            Check(
                name="rerank", ok=None, detail=f"{chosen.provider} {chosen.model}, in the workers".replace(" ,", ",")
            ),
        )
    return (_models("rerank", chosen.base_url, chosen.api_key, chosen.model),)


def flower(settings: Settings, state: StackState | None) -> Sequence[Check]:
    """Whether the pool monitor answers (its health page needs no login)."""
    if not settings.flower.enabled:
        return (Check(name="flower", ok=None, detail="switched off (flower.enabled)"),)
    if state is None or not state.flower_url:
        return (Check(name="flower", ok=None, detail="not running", fix="ramify up -d"),)
    try:
        reply = httpx.get(f"{state.flower_url}/healthcheck", timeout=_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError as error:
        return (
            Check(name="flower", ok=False, detail=f"{state.flower_url}: {_reason(error)}", fix="see logs/flower.log"),
        )
    fine = reply.is_success
    return (Check(name="flower", ok=fine, detail=f"{state.flower_url}{'' if fine else f': {reply.status_code}'}"),)


def _models(name: str, base: HttpUrl | None, key: SecretStr, model: str) -> Check:
    """GET base/models: is the server there, does it take the key, does it know the model?"""
    setting = "llm_base_url" if name == "llm" else f"{name}.base_url"
    where = f"{base}".rstrip("/")
    safe = str(httpx.URL(where).copy_with(username=None, password=None))
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key.get_secret_value() else {}
    try:
        reply = httpx.get(f"{where}/models", headers=headers, timeout=_TIMEOUT_S)
    except httpx.HTTPError as error:
        return Check(name=name, ok=False, detail=f"{safe}: {_reason(error)}", fix=f"start it, or correct {setting}")
    if reply.status_code in {401, 403}:
        fix = f"correct {'llm_api_key' if name == 'llm' else f'{name}.api_key'}"
        return Check(name=name, ok=False, detail=f"{safe} refuses the key ({reply.status_code})", fix=fix)
    # Some servers have no list of models; any other answer is not that of an OpenAI-compatible one.
    if not reply.is_success and reply.status_code not in {404, 405}:
        fix = f"see that server's log, or correct {setting}"
        return Check(name=name, ok=False, detail=f"{safe}/models answers {reply.status_code}", fix=fix)
    known = _model_names(reply)
    if known and model not in known:
        some = ", ".join(shown(one) for one in sorted(known)[:5])
        return Check(
            name=name, ok=None, detail=f"{safe} does not list {shown(model)}, but {some}", fix="check the name"
        )
    note = "" if known else " (it lists no models, so the name is not checked)"
    return Check(name=name, ok=True, detail=f"{safe}, model {shown(model)}{note}")


def _model_names(reply: httpx.Response) -> set[str]:
    """Ids of an OpenAI-style list; empty when the reply is something else."""
    try:
        entries = reply.json()["data"] if reply.is_success else []
        return {str(entry["id"]) for entry in entries}
    except (ValueError, KeyError, TypeError):
        return set()


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {_TIMEOUT_S:.0f} s"
    return str(error) or type(error).__name__
