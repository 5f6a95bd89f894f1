"""All operations, by name. A module of operations that is new is added here."""

from __future__ import annotations

from orchestrator.operations import chat, jobs, streams
from orchestrator.operations.operation import by_name

OPERATIONS = by_name([*jobs.OPERATIONS, *streams.OPERATIONS, *chat.OPERATIONS])
