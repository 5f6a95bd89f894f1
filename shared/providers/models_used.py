"""Which models and prompts a run may call, by digests of what decides their replies. Calls none."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from shared.models.manifest import ModelUsed
from shared.providers.llm.prompts import template
from shared.settings import Settings
from shared.settings.fingerprint import digest
from shared.settings.sections import ModelSettings

#: Prompts that can change an answer, without those of an ingest and of a conversation.
_PROMPTS = (
    "route", "decompose", "decompose_again", "expand", "missing", "extract", "read_answer", "summarise",
    "summarise_entity", "summarise_event", "summarise_general", "summarise_long", "summarise_short", "summarise_steps",
    "summarise_temporal", "summarise_tree",
)  # fmt: skip
#: Files of a local model that are told apart by their sizes.
_MODEL_FILES = (".onnx", ".json", ".bin", ".safetensors")


def models_used(settings: Settings) -> dict[str, ModelUsed]:
    """By what they are for. What computes by rules alone, as the lexical reranker, has a provider and no model."""
    found = {
        name: _model(getattr(settings, name))
        for name in ("embedding", "rerank", "verifier")
        if getattr(settings, name).provider != "none"
    }
    if settings.has_llm:
        found["llm"] = ModelUsed(provider="endpoint", model=settings.llm_model, digest=digest([settings.llm_model]))
    return found


def prompts_used(settings: Settings) -> dict[str, str]:
    """The digest of each prompt that an answer may depend on; none without an LLM."""
    if not settings.has_llm:
        return {}
    more = [name for name, one in (("rerank", settings.rerank), ("verify", settings.verifier)) if one.traits.llm]
    return {name: _prompt(name) for name in (*_PROMPTS, *more)}


@lru_cache(maxsize=64)
def _prompt(name: str) -> str:
    return digest(template(name))


def _model(chosen: ModelSettings) -> ModelUsed:
    names = ("provider", "model", "dim", "query_prefix", "passage_prefix")
    parts = [getattr(chosen, name, "") for name in names]
    return ModelUsed(provider=chosen.provider, model=chosen.model, digest=digest([*parts, *_files(chosen.path)]))


@lru_cache(maxsize=8)
def _files(folder: str) -> tuple[tuple[str, int], ...]:
    """Names and sizes of a local model's files: another model in the same folder has others."""
    if not folder:
        return ()
    files = (file for file in sorted(Path(folder).rglob("*")) if file.suffix in _MODEL_FILES)
    return tuple((str(file.relative_to(folder)), file.stat().st_size) for file in files if file.is_file())
