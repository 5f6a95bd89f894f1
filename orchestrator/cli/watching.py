"""`ingest --watch`: says what became of each round of changes, until ctrl-C."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from orchestrator.cli import streams
from orchestrator.cli.text import counted

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.documents.watching import FolderWatch, Kept


def watch_folder(client: Ramify, watched: FolderWatch, *, namespace: str, as_json: bool) -> int:
    """Keep a folder fresh; returns the exit code."""
    from orchestrator.documents.watching import keep_fresh

    streams.note(f"watching {watched.folder}: ctrl-C ends that")
    rounds = 0
    try:
        for kept in keep_fresh(client, watched, namespace=namespace):
            rounds += not kept.waits
            _say(kept, as_json=as_json)
    except KeyboardInterrupt:
        streams.note(f"watched {watched.folder}: {counted(rounds, 'ingest')}")
    return streams.INTERRUPTED


def _say(kept: Kept, *, as_json: bool) -> None:
    if kept.waits:
        streams.warn(f"{counted(kept.paths, 'change')} not taken yet: {kept.waits}")
        return
    outcomes = [outcome for step in kept.steps for outcome in step.outcomes]
    counts = Counter(outcome.status.value for outcome in outcomes)
    if as_json:
        streams.line({"job_id": kept.job_id, "paths": kept.paths, **counts, "documents": outcomes})
        return
    said = ", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "no documents"
    streams.note(f"{time.strftime('%H:%M:%S')} {counted(kept.paths, 'path')} changed: {said} (job {kept.job_id})")
    for outcome in outcomes:
        if outcome.reason:
            streams.warn(f"{outcome.path}: {outcome.reason}")
