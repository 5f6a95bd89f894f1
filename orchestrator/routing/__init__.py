from orchestrator.routing.rules import route_by_rules

__all__ = ["route_by_rules"]
