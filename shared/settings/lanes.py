"""How many jobs may wait, and how many may be under way."""

from __future__ import annotations

from pydantic import Field

from shared.settings.section import Section


class Lanes(Section):
    """Jobs wait in a line per lane and tenant; tenants take turns. What is under way is bounded: queues stay short."""

    max_waiting_interactive: int = Field(default=10_000, ge=1, description="interactive jobs that may wait in all")
    max_waiting_batch: int = Field(default=250_000, ge=1, description="batch jobs that may wait in all")
    tenant_share: float = Field(default=0.9, gt=0, le=1, description="share of these that one tenant may hold")
    under_way: int = Field(
        default=64, ge=2, le=100_000,
        description="jobs of a lane that may be under way; one tenant alone gets half, so that others find room",
    )  # fmt: skip
    max_deaths: int = Field(
        default=3,
        ge=1,
        le=20,
        description="workers that die at one piece of work before it is retired; beside others three times as many",
    )
