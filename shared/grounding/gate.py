"""The gate: a claim is supported by a passage that no check objects to. Pure, no model."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from shared.grounding.alignment import Alignment, align
from shared.grounding.checks import CHECKS, content_units
from shared.grounding.tokens import TokenText, tokens_of
from shared.models.base import Model


class Verdict(StrEnum):
    """What a passage says of a claim."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ClaimVerdict(Model):
    """`kind`: the check that objected, "quote" where the passage has the claim's own words, else "" when supported.

    `passage`: the number, from 0, of the passage that supports the claim, or comes nearest to it; None without any.
    """

    verdict: Verdict
    reason: str = ""
    kind: str = ""
    passage: int | None = None


def judge(claim: str, passages: Sequence[str]) -> ClaimVerdict:
    """Whether one of the `passages` says what `claim` says. A claim that states nothing is supported by anything."""
    said = tokens_of(claim)
    if not content_units(said.tokens):
        return ClaimVerdict(verdict=Verdict.SUPPORTED, kind="", reason="it states nothing")
    worst: tuple[float, ClaimVerdict] | None = None
    for number, text in enumerate(passages):
        found = align(said, tokens_of(text))
        objection = next(((kind, wrong) for kind, check in CHECKS.items() if (wrong := check(found))), None)
        if objection is None:
            return ClaimVerdict(verdict=Verdict.SUPPORTED, kind=_support(found), passage=number)
        refused = ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind=objection[0], reason=objection[1], passage=number)
        if worst is None or found.share > worst[0]:
            worst = (found.share, refused)
    if worst is None:
        return ClaimVerdict(verdict=Verdict.UNSUPPORTED, kind="coverage", reason="there is no passage")
    return worst[1]


def _support(found: Alignment) -> str:
    return "quote" if not found.differences else "words"


def passage_tokens(text: str) -> TokenText:
    """The tokens of a passage, read once for all claims."""
    return tokens_of(text)
