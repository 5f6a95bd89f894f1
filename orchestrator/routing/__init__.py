"""Reads a question before anything is searched: its type, its intent, how sure that is and why. Never searches."""

from orchestrator.routing.router import Router
from orchestrator.routing.rules import route_by_rules

__all__ = ["Router", "route_by_rules"]
