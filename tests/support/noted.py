"""What an act in no task goes on without."""

from __future__ import annotations

from collections.abc import Callable

from shared.models.degraded import Degradation
from shared.providers.fallbacks import Fallbacks, noting


def reasons_of(act: Callable[[], object]) -> set[Degradation]:
    """The reasons that `act` notes."""
    with noting(fallbacks := Fallbacks()):
        act()
    return set(fallbacks.take())
