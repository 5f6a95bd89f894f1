"""Entries of a job's event stream as events."""

from __future__ import annotations

import json
from collections.abc import Mapping

from shared.jobs.codec import text


def events_of(entry: Mapping[bytes, bytes]) -> list[dict[str, str]]:
    """The events of one entry: the first nodes of a tree stand together in one, and are told one by one."""
    data = {text(name): text(value) for name, value in entry.items()}
    if data.get("type") != "nodes":
        return [data]
    try:
        nodes = json.loads(data.get("nodes", ""))
    except ValueError:
        nodes = []
    if not isinstance(nodes, list):
        nodes = []
    return [{"type": "node", "node": json.dumps(node, ensure_ascii=False)} for node in nodes]
