"""What a task leaves with a change that it makes, as one argument of a script: costs, warnings, reasons, its end."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass

from shared.jobs.work import Attempt
from shared.models import Cost

#: Sentences that a job keeps.
MAX_WARNINGS = 100


@dataclass(frozen=True)
class Note:
    """About `item` of a job's work. `reasons`: codes of `Degradation`. `attempt`: the task is at the item no more."""

    item: str = ""
    cost: Cost | None = None
    warnings: Collection[str] = ()
    reasons: Iterable[str] = ()
    attempt: Attempt | None = None

    def wire(self, known: Container[str] = ()) -> str:
        """As `parts/note.lua` reads it, without `known` warnings; empty where there is nothing to tell."""
        spent = {name: value for name, value in (self.cost or Cost()) if value}
        warnings = [warning for warning in dict.fromkeys(self.warnings) if warning not in known]
        reasons = sorted(set(self.reasons))
        if not (spent or warnings or reasons or self.attempt):
            return ""
        ended = {"attempt": str(self.attempt)} if self.attempt else {}
        told = {"item": self.item, "cost": spent, "warnings": warnings, "reasons": reasons, **ended}
        return json.dumps({**told, "most_warnings": MAX_WARNINGS})
