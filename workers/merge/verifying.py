"""Asks the verifier about sentences that the words leave undecided; where it fails the words decide."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.errors import RamifyError
from shared.models import Cost
from shared.models.degraded import Degradation
from shared.providers.fallbacks import note_reason
from shared.providers.time_shares import seconds_for
from shared.providers.verifiers import Pair, Verified
from workers.merge.findings import Findings
from workers.merge.grounded import Opinions


class Verification:
    """One summary's questions to the verifier: what they have cost, and why some have no answer."""

    def __init__(self, found: Findings) -> None:
        self._found, self._until = found, time.monotonic() + found.timeout_s
        self.cost, self.warning = Cost(), ""

    def ask(self, pairs: Sequence[Pair]) -> Opinions:
        """Whether each passage says its claim, for those that could be told."""
        verifier, seconds = self._found.verifier, self._seconds()
        if verifier is None:
            return {}
        if not seconds:
            return self._failed("no time was left for it", {})
        told = Verified()
        try:
            verifier.verify(pairs[: self._found.verifier_limit], seconds, told)
        except RamifyError as error:
            self._failed(str(error).strip().rstrip("."), told.says)
        self.cost = told.cost
        return told.says

    def _seconds(self) -> float:
        return min(self._found.verifier_s, seconds_for("verifying", self._until - time.monotonic()))

    def _failed(self, reason: str, says: Opinions) -> Opinions:
        note_reason(Degradation.VERIFIER_UNAVAILABLE)
        self.warning = f"The verifier failed, so its sentences were held against their sources by words: {reason}."
        return says
