"""Which types the keys have that belong to no single job. Pure."""

from __future__ import annotations

from collections.abc import Mapping

#: Type, as Redis names it, of each of these keys; of all that begin so, where `*` is the end.
KEY_TYPES: dict[str, str] = {}


def declare(types: Mapping[str, str]) -> None:
    """Say of which types keys are. Their owner does, when it is loaded.

    A key that gets another type gets another name too: a worker of an older release would set it aside.
    """
    KEY_TYPES.update(types)
