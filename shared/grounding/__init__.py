"""Whether a passage says what a claim says: by its words, numbers, names and negations, without a model."""

from shared.grounding.judging import ClaimVerdict, Verdict, judge

__all__ = ["ClaimVerdict", "Verdict", "judge"]
