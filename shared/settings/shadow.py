"""A second strategy beside the live one (E7): which, for how many jobs, and how much it may take."""

from __future__ import annotations

from pydantic import Field, model_validator

from shared.settings.section import Section

#: Stands for no strategy at all: the routing table decides, as it does for a job that names none.
ADAPTIVE = "adaptive"


class Shadow(Section):
    """Runs a share of the answered questions again with another strategy, unseen, when nothing else is to be done."""

    strategy: str = Field(
        default="", description=f"strategy that runs unseen beside live jobs, or {ADAPTIVE}; empty: off"
    )
    share: float = Field(default=0.0, ge=0, le=1, description="share of the live jobs that it is tried on, 0..1")
    per_minute: int = Field(default=30, ge=1, le=6000, description="most runs that start in a minute")
    max_open: int = Field(default=1, ge=1, le=64, description="runs that may be open at a time")
    idle_below: int = Field(default=1, ge=1, le=10_000, description="a run starts while fewer live jobs are open")
    quiet_s: float = Field(default=2.0, ge=0, le=3600, description="and so many seconds after the newest live job came")
    deadline_s: float = Field(default=60.0, gt=0, le=3600, description="seconds after which a run is given up")
    keep: int = Field(default=5000, ge=10, le=100_000, description="comparisons that are kept, the newest")

    @property
    def on(self) -> bool:
        """True when jobs are to be tried a second time."""
        return bool(self.strategy) and self.share > 0

    @model_validator(mode="after")
    def _complete(self) -> Shadow:
        if self.share > 0 and not self.strategy:
            raise ValueError("share needs strategy: name the one to try, or leave out share")
        return self
