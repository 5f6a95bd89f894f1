"""What is done when a corpus changes: stale answers, standing questions."""

from __future__ import annotations

from pydantic import Field, field_validator

from shared.settings.sections import SettingsSection


class StalenessSettings(SettingsSection):
    """How kept answers are held against changed documents."""

    enabled: bool = Field(default=True, description="mark the kept answers that changed documents touch")
    most_answers: int = Field(default=5_000, ge=1, description="newest kept jobs that are held against a change")
    check_s: float = Field(
        default=20.0, gt=0, description="seconds of one check at the end of an ingest; what is left is checked after it"
    )
    close_s: float = Field(
        default=8.0,
        ge=0,
        description="seconds of every 15 in which answers are made again after a change, to find all that a full run "
        "would give otherwise; 0: never",
    )


class StandingSettings(SettingsSection):
    """Standing questions, which the ops pool asks again."""

    enabled: bool = Field(default=True, description="ask standing questions again; false: they wait")
    most_questions: int = Field(default=100, ge=1, le=10_000, description="standing questions of one tenant")
    at_once: int = Field(default=4, ge=1, le=100, description="jobs of standing questions under way, of all tenants")
    jobs_per_hour: int = Field(
        default=60, ge=1, description="jobs of standing questions that a tenant may have an hour"
    )
    ranks: int = Field(
        default=5, ge=1, le=100, description="a change counts that is among so many first passages of a leaf"
    )
    sample: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="share of changes that seem to touch nothing and are looked at all the same",
    )
    commands: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description='told = ["/usr/bin/tell", "-v"]: programs that a notice may be given to'
    )

    @field_validator("commands")
    @classmethod
    def _programs(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name, words in value.items():
            if not words or not words[0].startswith("/"):
                raise ValueError(
                    f'{name}: write the program\'s whole path and its arguments as a list: ["/usr/bin/tell"]'
                )
        return value
