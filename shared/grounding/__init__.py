"""Whether a passage says what a claim says: by its words, numbers, names and negations, without a model."""

from shared.grounding.alignment import NEAR
from shared.grounding.judging import ClaimVerdict, Verdict, judge

__all__ = ["NEAR", "ClaimVerdict", "Verdict", "judge"]
