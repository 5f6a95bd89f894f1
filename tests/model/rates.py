"""How often things go wrong in a simulated day, and what is counted of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rates:
    """How often things happen. Chances are per message, per call of Redis or per job; `*_every` are mean seconds."""

    lost: float = 0.01
    repeated: float = 0.01
    delayed: float = 0.02
    reordered: float = 0.1
    death: float = 0.0004
    stall: float = 0.0004
    cut_off: float = 0.5
    poison: float = 0.01
    cancel: float = 0.02
    kill_every: float = 600.0
    restart_every: float = 1800.0
    background_every: float = 240.0
    burst_every: float = 2400.0
    burst: int = 14


@dataclass
class Tally:
    """What happened. Recoveries are simulated seconds from a loss to the next sending of what was lost."""

    faults: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    deliveries: int = 0
    wasted: int = 0
    looks: int = 0
    recoveries: list[float] = field(default_factory=list)
