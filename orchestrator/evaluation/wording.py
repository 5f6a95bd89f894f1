"""How figures and their method read, on screen and in the page. Pure."""

from __future__ import annotations

from orchestrator.evaluation.report import Method, Pair

_SURE = 0.05


def percent(value: float) -> str:
    """A fraction of 1 as percent, one decimal."""
    return f"{100 * value:.1f}"


def sure(pair: Pair) -> bool:
    """True when the adjusted p is below 0.05."""
    return pair.p < _SURE


def p_value(pair: Pair) -> str:
    """The adjusted p with three digits."""
    return f"p {pair.p:.3f}" if pair.p >= 0.001 else "p <0.001"


def method_line(method: Method) -> str:
    """One paragraph that says how the figures came to be."""
    plan = f", with the plan in {method.plan}" if method.plan else ""
    types = f"; types: {method.types}" if method.types else ""
    return (
        f"{method.mode}{plan}; nDCG gain {method.gain}, relevant from grade {method.relevant_from}; "
        f"{100 * method.level:.0f} % intervals: {method.interval}; p: {method.test}, {method.correction}; "
        f"{method.resamples} resamples, seed {method.seed}{types}"
    )
