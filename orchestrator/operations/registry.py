"""All operations, by name. A module of operations that is new is added here."""

from __future__ import annotations

from orchestrator.operations import (
    batches,
    chat,
    documents,
    ingesting,
    jobs,
    keys,
    operating,
    push,
    records,
    search,
    standing,
    streams,
    webhooks,
)
from orchestrator.operations.operation import by_name

OPERATIONS = by_name(
    operation
    for module in (
        jobs, batches, records, streams, chat, push, search, documents, ingesting, operating, standing, keys,
        webhooks,
    )
    for operation in module.OPERATIONS
)  # fmt: skip
