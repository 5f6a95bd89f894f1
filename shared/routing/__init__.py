"""Reads a question before anything is searched: its type, its intent, how sure that is and why. Never searches."""

from shared.routing.reading import asks
from shared.routing.router import Router, as_requested
from shared.routing.rules import route_by_rules

__all__ = ["Router", "as_requested", "asks", "route_by_rules"]
