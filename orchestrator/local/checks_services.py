"""Doctor's look at servers over HTTP: LLM, embedding, rerank, Flower. Sends keys where they belong, shows none."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
from pydantic import HttpUrl, SecretStr

from orchestrator.local.checks import Check
from orchestrator.local.state import StackState
from shared.errors import shown
from shared.settings import Settings

_TIMEOUT_S = 3.0


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
