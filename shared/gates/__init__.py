"""Gates before the servers that Ramify calls: one rate limit, one pause and one circuit breaker for all workers (A9).

A provider is a kind of server at one host, as "llm:api.example.com". Gates know no protocol and send nothing.
"""

from shared.gates.faults import BusyError, GateError, UnreachableError, UnsureError
from shared.gates.gate import Gate, Ungated, host_of
from shared.gates.process import share

__all__ = ["BusyError", "Gate", "GateError", "Ungated", "UnreachableError", "UnsureError", "host_of", "share"]
