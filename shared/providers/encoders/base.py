"""What an encoder gives and how it is called. Holds no model and opens no connection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from operator import ge
from typing import Protocol

from pydantic import Field, model_validator

from shared.errors import ReplyError
from shared.models.base import Model


class SparseVector(Model):
    """Token ids and their weights. `indices` ascend and are unique; an empty text gives an empty vector."""

    indices: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _paired(self) -> SparseVector:
        if len(self.indices) != len(self.values):
            raise ValueError(f"{len(self.indices)} indices but {len(self.values)} values")
        if any(map(ge, self.indices, islice(self.indices, 1, None))):
            raise ValueError("indices must ascend and be unique")
        return self

    def __bool__(self) -> bool:
        return bool(self.indices)


class Embedded(Model):
    """One L2-normalised vector per text, in the order of the texts, and what they cost.

    `calls` counts HTTP calls with retries, or runs of a local model; `tokens` is the server's or the model's own count.
    """

    vectors: tuple[tuple[float, ...], ...]
    calls: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)


class DenseEncoder(Protocol):
    """Text to vectors of `dim` floats. Called from many threads.

    `name` is what a collection records of it, provider and model: "fastembed:BAAI/bge-small-en-v1.5".
    """

    name: str

    @property
    def dim(self) -> int:
        """Vector size; may ask the model the first time."""

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        """Vectors of questions. Raises: TransientError (try again), PermanentError or ReplyError (will not work)."""

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of what is searched. Raises as `embed_queries`."""


def unit_vector(values: Sequence[float], dim: int, what: str) -> tuple[float, ...]:
    """`values` scaled to length 1. `dim` 0 takes any size; `what` names the model in the error.

    Raises: ReplyError when the size is wrong, a value is not a finite number, or all are zero.
    """
    if dim and len(values) != dim:
        raise ReplyError(f"{what} gave a vector of {len(values)} numbers where {dim} were expected: set embedding.dim")
    try:
        norm = math.hypot(*values)
    except (TypeError, OverflowError):
        raise ReplyError(f"{what} gave a vector that does not hold numbers only") from None
    if not math.isfinite(norm):
        raise ReplyError(f"{what} gave a vector with NaN or infinite numbers")
    if norm == 0:
        raise ReplyError(f"{what} gave a vector of zeros")
    return tuple(value / norm for value in values)
