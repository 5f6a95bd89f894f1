"""What an act in no task goes on without."""

from __future__ import annotations

from collections.abc import Callable

from shared.models.degraded import Reason
from shared.providers.fallbacks import Fallbacks, noting


def reasons_of(act: Callable[[], object]) -> set[Reason]:
    """The reasons that `act` notes."""
    with noting(fallbacks := Fallbacks()):
        act()
    return set(fallbacks.take())
