"""Checks and normalisation that every dense vector goes through. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shared.errors import ReplyError


def unit(values: Sequence[float], dim: int, what: str) -> tuple[float, ...]:
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
