"""What the cache says of a value beside the value itself, and how often it could say so."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model


class How(StrEnum):
    """Where a value came from. `bypassed`: computed without the cache, because it is off, broken or took too long."""

    HIT = "hit"
    COMPUTED = "computed"
    WAITED = "waited"
    BYPASSED = "bypassed"


class Outcome(Model):
    """How one value came to be; `warning` is one sentence for the user when something went wrong on the way."""

    how: How
    warning: str = ""

    @property
    def reused(self) -> bool:
        """True when nobody computed it for this caller."""
        return self.how in {How.HIT, How.WAITED}


class CacheStats(Model):
    """Counts of one kind, over all processes. `rejected`: stored entries that did not verify and were deleted."""

    hit: int = Field(default=0, ge=0)
    computed: int = Field(default=0, ge=0)
    waited: int = Field(default=0, ge=0)
    bypassed: int = Field(default=0, ge=0)
    rejected: int = Field(default=0, ge=0)

    @property
    def asked(self) -> int:
        """Values that were asked for."""
        return self.hit + self.computed + self.waited + self.bypassed

    @property
    def hit_rate(self) -> float:
        """Values that nobody had to compute for this caller (hit or waited), as a fraction of 1; 0 when none."""
        return (self.hit + self.waited) / self.asked if self.asked else 0.0
