"""`python -m orchestrator.local`: the supervisor in the background, as `background.start` runs it.

Settings come from the environment; one JSON line on stdout says "ready" or what failed; events go to stderr, its log.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime

from orchestrator.local.stack import Stack, StackEvent
from orchestrator.local.state import StackState
from shared.errors import RamifyError
from shared.settings import load_settings


def main() -> int:
    """Run the stack until a signal; returns the exit code."""
    try:
        Stack(load_settings(), on_event=_log).run(_say_ready)
    except RamifyError as error:
        _write(f"error: {error}")
        _say({"error": str(error), "exit_code": error.exit_code})
        return error.exit_code
    return 0


def _say_ready(state: StackState) -> None:
    _say({"state": state.model_dump(mode="json")})


def _say(answer: dict[str, object]) -> None:
    """Answer once, then let go of the pipe: the reader goes on with its own work."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(answer).encode() + b"\n")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _log(event: StackEvent) -> None:
    _write(f"{event.kind}: {event.name} {event.detail}".rstrip())


def _write(line: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
