"""One line of `ramify doctor`."""

from __future__ import annotations

from shared.models.base import Model


class Check(Model):
    """`ok`: True fine, False a fault, None nothing to judge (not configured, not running). `fix`: what to do next."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def size(count: float) -> str:
    """Bytes for people: 1.4 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
