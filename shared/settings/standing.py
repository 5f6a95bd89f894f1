"""What is done when a corpus changes: stale answers, standing questions."""

from __future__ import annotations

from pydantic import Field

from shared.settings.sections import SettingsSection


class StalenessSettings(SettingsSection):
    """How kept answers are held against changed documents."""

    enabled: bool = Field(default=True, description="mark the kept answers that changed documents touch")
    most_answers: int = Field(default=10_000, ge=1, description="newest kept jobs that are held against a change")
    check_s: float = Field(
        default=20.0, gt=0, description="seconds that leaves may be searched again at the end of an ingest"
    )
