"""Why an answer is less than the settings asked for, as codes for programs. The warnings say the same in sentences."""

from __future__ import annotations

from enum import StrEnum


class Degradation(StrEnum):
    """What a part of an answer was made without."""

    LLM_UNAVAILABLE = "llm_unavailable"
    LLM_REPLY_UNUSABLE = "llm_reply_unusable"
    EMBEDDING_UNAVAILABLE = "embedding_unavailable"
    RERANK_UNAVAILABLE = "rerank_unavailable"
    STORE_UNAVAILABLE = "store_unavailable"
    OVER_BUDGET = "over_budget"
    OUT_OF_TIME = "out_of_time"
    NOT_CONFIGURED = "not_configured"
    VERIFIER_UNAVAILABLE = "verifier_unavailable"
    PLUGIN_FAILED = "plugin_failed"


class OnOutage(StrEnum):
    """What a job does while a server that it can do without does not answer."""

    WAIT = "wait"
    DEGRADE = "degrade"


def codes(reasons: str) -> tuple[str, ...]:
    """The codes of a field as it is stored, separated by commas; also those that only a newer release knows."""
    return tuple(code for code in reasons.split(",") if code)
