"""Counts how many documents of a list have each value of what it is counted by. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from shared.language.text import value_key
from shared.models.enumeration import ListGroup


class GroupCounts:
    """A value that is stored with its parts too is either a name ("Cove & Sons") or several ("Ada and Bo").

    It is several where each of its parts is the whole value of some document.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._alone: Counter[str] = Counter()
        self._spelt: dict[str, str] = {}
        self._parts: dict[str, set[str]] = {}
        self._sums: dict[str, float] = {}
        self._numbers: Counter[str] = Counter()

    def add(self, values: Sequence[str], amount: float | None = None) -> None:
        """One document, with its number; without values it is one that has none."""
        spelt = {value_key(value): value for value in values or ("",)}
        for key, value in spelt.items():
            self._spelt.setdefault(key, value)
            self._counts[key] += 1
            self._sums[key] = self._sums.get(key, 0.0) + (amount or 0.0)
            self._numbers[key] += amount is not None
            wholes = [other for other in spelt if other != key and key in other]
            for whole in wholes:
                self._parts.setdefault(whole, set()).add(key)
            self._alone[key] += not wholes

    def groups(self, total: Literal["", "sum", "mean"] = "") -> tuple[ListGroup, ...]:
        """Each value with its documents and what their numbers are together, those of the most documents first."""
        several = {whole for whole, parts in self._parts.items() if all(self._alone[part] for part in parts)}
        named = {part for whole in several for part in self._parts[whole]}
        kept = [(key, count) for key, count in self._counts.items() if key not in several]
        kept = [(key, count) for key, count in kept if self._alone[key] or key in named]
        ordered = sorted(kept, key=lambda item: (-item[1], item[0]))
        return tuple(
            ListGroup(value=self._spelt[key], documents=count, amount=self._amount(key, total))
            for key, count in ordered
        )

    def _amount(self, key: str, total: Literal["", "sum", "mean"]) -> float | None:
        if not (total and self._numbers[key]):
            return None
        return round(self._sums[key] / (self._numbers[key] if total == "mean" else 1), 2)
