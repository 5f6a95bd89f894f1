"""The base of every table of settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen table of settings; a misspelt name is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
