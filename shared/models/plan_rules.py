"""What holds for any plan of a caller's, in a request or in a file. Pure; knows numbers, not nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class PlanFaultError(ValueError):
    """An entry that cannot stand as it is; its text is `sentence`."""

    def __init__(self, number: int, field: str, value: object, fix: str) -> None:
        self.number, self.field, self.value, self.fix = number, field, value, fix
        super().__init__(f"entry {number}, {field}: {value} cannot be used: {fix}")


@dataclass(frozen=True, slots=True)
class Links:
    """What one entry says of others: those that it waits for, and the one that it refines."""

    depends_on: tuple[int, ...] = ()
    under: int | None = None


def check_links(plan: Mapping[int, Links]) -> None:
    """Every entry, by its number, must lead to entries that are there, beside it, and not back to itself.

    Raises: PlanFaultError.
    """
    branches = {links.under for links in plan.values() if links.under is not None}
    for number, links in plan.items():
        if links.under is not None:
            _check_known(number, "under", links.under, plan)
        for other in links.depends_on:
            _check_known(number, "depends_on", other, plan)
            if plan[other].under != links.under:
                raise PlanFaultError(number, "depends_on", other, "it waits only for entries under the same one")
            if other in branches:
                fix = "that entry is refined and has no answer of its own: wait for one of those under it"
                raise PlanFaultError(number, "depends_on", other, fix)
        if number in branches and links.depends_on:
            fix = "entries under it refine it, so it cannot wait: let these wait, or leave them out"
            raise PlanFaultError(number, "depends_on", links.depends_on[0], fix)
    in_order(plan)


def in_order(plan: Mapping[int, Links]) -> list[int]:
    """The numbers, each behind those that it waits for and the one that it refines, else in the order given.

    Raises: PlanFaultError naming one entry of a circle.
    """
    left, done = list(plan), dict[int, None]()
    while left:
        ready = next((n for n in left if all(other in done for other in _before(plan[n]))), None)
        if ready is None:
            raise _circle(plan, left)
        left.remove(ready)
        done[ready] = None
    return list(done)


def _before(links: Links) -> tuple[int, ...]:
    return links.depends_on if links.under is None else (*links.depends_on, links.under)


def _circle(plan: Mapping[int, Links], left: list[int]) -> PlanFaultError:
    """Walk back from any entry that is left until one comes twice."""
    way = [left[0]]
    while (other := next(n for n in _before(plan[way[-1]]) if n in left)) not in way:
        way.append(other)
    circle = [*way[way.index(other) :], other]
    number = circle[0]
    field = "under" if plan[number].under == circle[1] else "depends_on"
    named = " -> ".join(map(str, circle))
    return PlanFaultError(number, field, circle[1], f"the entries wait in a circle ({named}): break it")


def _check_known(number: int, field: str, other: int, plan: Mapping[int, Links]) -> None:
    if other == number:
        raise PlanFaultError(number, field, other, "an entry cannot stand under itself or wait for itself")
    if other not in plan:
        known = ", ".join(map(str, plan))
        raise PlanFaultError(number, field, other, f"there is no entry of that number: use one of {known}")
