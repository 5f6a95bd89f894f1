"""One slice of the corpus, for a leaf that reads instead of searching."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model


class Shard(Model):
    """The documents whose first chunk has an id from `start` on and before `stop` (both empty: no bound).

    `number` counts from 1 to `of`.
    """

    number: int = Field(ge=1)
    of: int = Field(ge=1)
    start: str = ""
    stop: str = ""
