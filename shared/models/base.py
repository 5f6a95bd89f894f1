"""The base of every model: frozen, and strict about unknown fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An immutable value. Unknown fields are refused, so a misspelt option never passes silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")
