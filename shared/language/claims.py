"""claims.toml: by what a sentence says another thing than its source. Data; the code holds no words."""

from __future__ import annotations

import re
from functools import cached_property

from pydantic import Field

from shared.models.base import Model

_NEVER = "(?!)"


class ClaimTable(Model):
    """claims.toml. Patterns see folded, normalised text; the defaults know no word."""

    negations: str = _NEVER
    contrasts: str = _NEVER
    withdrawals: str = _NEVER
    conditions: str = _NEVER
    hedges: str = _NEVER
    passive: str = Field(default=_NEVER, description="between two names where the second one acts")
    absences: str = Field(default=_NEVER, description="says of all sources that they do not say something")
    plain: str = Field(default="", description="words, or characters where there are no spaces, that say nothing")
    same: tuple[tuple[str, ...], ...] = Field(default=(), description="ways to say one thing")
    opposed: tuple[tuple[tuple[str, ...], ...], ...] = Field(
        default=(), description="groups of cells: words of two cells of a group cannot both be true of one thing"
    )
    scales: dict[str, int] = Field(default={}, description="a word behind a number -> what it multiplies it by")
    numbers: dict[str, int] = Field(default={}, description="a word, or a digit of another script -> its number")

    @cached_property
    def negation(self) -> re.Pattern[str]:
        """`negations`, compiled."""
        return re.compile(self.negations)

    @cached_property
    def withdrawal(self) -> re.Pattern[str]:
        """`withdrawals`, compiled."""
        return re.compile(self.withdrawals)

    @cached_property
    def condition(self) -> re.Pattern[str]:
        """`conditions`, compiled."""
        return re.compile(self.conditions)
