"""Plots as inline SVG, drawn by hand. Pure; every text is escaped here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from shared.errors import shown

_LABEL, _PLOT, _ROW, _TOP, _FOOT = 190, 470, 24, 8, 26
_WIDTH = _LABEL + _PLOT + 90
_COLOURS = 6


class Whisker(NamedTuple):
    """A value with its interval; `colour` counts the arms from 0."""

    label: str
    value: float
    low: float
    high: float
    colour: int = 0


def whiskers(title: str, rows: Sequence[Whisker], *, zero: bool = False) -> str:
    """Points with intervals, one a row, in points of 100. With `zero`: around a line at 0, else from the least on."""
    least, most = min(r.low for r in rows), max(r.high for r in rows)
    if zero:
        least, most = min(least, 0.0), max(most, 0.0)
    room = max((most - least) * 0.08, 0.005)
    least, most = least - room, most + room
    bottom = _TOP + _ROW * len(rows)

    def x(value: float) -> float:
        return _LABEL + _PLOT * (value - least) / (most - least)

    parts = [_axis(x(tick), bottom, f"{100 * tick:g}") for tick in ticks(least, most)]
    if zero:
        parts.append(f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{_TOP}" y2="{bottom}"/>')
    for place, row in enumerate(rows):
        y = _TOP + _ROW * (place + 0.5)
        figure = f"{100 * row.value:+.1f}" if zero else f"{100 * row.value:.1f}"
        parts.append(
            f'<g class="c{row.colour % _COLOURS}"><text x="{_LABEL - 8}" y="{y + 4}" text-anchor="end">'
            f"{text(row.label)}</text>"
            f'<line x1="{x(row.low):.1f}" x2="{x(row.high):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle cx="{x(row.value):.1f}" cy="{y}" r="4"/>'
            f'<text x="{_LABEL + _PLOT + 8}" y="{y + 4}">{figure}</text></g>'
        )
    return _svg(title, bottom + _FOOT, parts)


def curves(title: str, arms: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Share of questions (upwards) answered within so many milliseconds (to the right): one line an arm."""
    height, slowest = 200, max((max(values) for _, values in arms if values), default=1.0) or 1.0
    bottom = _TOP + height

    def point(ms: float, share: float) -> str:
        return f"{_LABEL + _PLOT * ms / slowest:.1f},{bottom - height * share:.1f}"

    parts = [_axis(_LABEL + _PLOT * tick / slowest, bottom, f"{tick:g} ms") for tick in ticks(0, slowest)]
    for share in (0.5, 0.95):
        y = bottom - height * share
        parts.append(f'<line class="grid" x1="{_LABEL}" x2="{_LABEL + _PLOT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LABEL - 8}" y="{y + 4:.1f}" text-anchor="end">p{share * 100:.0f}</text>')
    for place, (name, values) in enumerate(arms):
        ordered = sorted(values)
        line = " ".join(point(ms, number / len(ordered)) for number, ms in enumerate(ordered, 1))
        parts.append(
            f'<g class="c{place % _COLOURS}"><polyline points="{line}"/>'
            f'<text x="{_LABEL + _PLOT + 8}" y="{_TOP + 16 * (place + 1)}">{text(name, 12)}</text></g>'
        )
    return _svg(title, bottom + _FOOT, parts)


def ticks(low: float, high: float) -> list[float]:
    """About five round values from `low` to `high`."""
    if not low < high:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [round(step * n, 10) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def text(value: str, most: int = 26) -> str:
    """Safe for HTML, and short; control characters are escaped."""
    line = shown(value)[1:-1] if not value.isprintable() else value
    return escape(line if len(line) <= most else f"{line[: most - 1]}…")


def _axis(x: float, bottom: float, label: str) -> str:
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{label}</text>'
    )


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"<title>{text(title, 200)}</title>{''.join(parts)}</svg>"
    )
