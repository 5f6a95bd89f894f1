"""Gates before the servers that Ramify calls: one rate limit, one pause and one circuit breaker for all workers.

A provider is a kind of server at one host, as "llm:api.example.com". Gates know no protocol and send nothing.
"""

from shared.providers.gates.gate import BusyError, Gate, GateError, UnreachableError, UnsureError, share

__all__ = ["BusyError", "Gate", "GateError", "UnreachableError", "UnsureError", "share"]
