"""How fast work that has waited for a server is sent to it again: few pieces at first, for it may only just be back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.reaper.views import Missing
from shared.providers.gates.state import GateState

#: Pieces that one run of the reaper sends to a server that answers; twice as many in each following run, and at most.
_FIRST, _MOST = 4, 64


class Resumption:
    """Bounds what is sent again to each kind of server in one run."""

    def __init__(self) -> None:
        self._pace: dict[str, int] = {}
        self._left: dict[str, int] = {}

    def begin(self, gates: Iterable[GateState]) -> None:
        """A run begins, and the servers' gates stand so."""
        self._left = {gate.provider: self._room(gate) for gate in gates}

    @property
    def shut(self) -> frozenset[str]:
        """The kinds of servers that nothing may be sent to now."""
        return frozenset(kind for kind, left in self._left.items() if left <= 0)

    def _room(self, gate: GateState) -> int:
        if gate.state == "open" or gate.probing or gate.paused_until:
            self._pace.pop(gate.provider, None)
            return 0
        if gate.state == "half-open":
            return 1
        begins = gate.failures > 0 or gate.provider not in self._pace
        pace = self._pace[gate.provider] = _FIRST if begins else min(_MOST, 2 * self._pace[gate.provider])
        # Behind a rate limit that is used up all the time, one at least stands in line.
        return pace if gate.tokens is None else max(1, min(pace, gate.tokens))

    def in_turn(self, missing: Iterable[Missing]) -> Iterator[Missing]:
        """What is lost, and of what has waited for a server as much as that gets in this run."""
        for one in missing:
            left = self._left.get(one.waited_for, _MOST)
            if one.waited_for and left <= 0:
                continue
            if one.waited_for:
                self._left[one.waited_for] = left - 1
            yield one
