"""`python -m orchestrator.local`: the supervisor in the background, as `background.start` runs it.

Settings come from the environment; one JSON line on stdout says "ready" or what failed; events go to stderr, its log.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime

from orchestrator.local.stack import Stack
from shared.errors import RamifyError
from shared.settings import load_settings


def main() -> int:
    """Run the stack until a signal; returns the exit code."""
    try:
        stack = Stack(load_settings(), on_event=lambda event: _log(event.kind, f"{event.name} {event.detail}".rstrip()))
        stack.run(lambda state: _answer({"state": state.model_dump(mode="json")}))
    except RamifyError as error:
        _log("error", str(error))
        _answer({"error": str(error), "exit_code": error.exit_code})
        return error.exit_code
    return 0


def _answer(answer: dict[str, object]) -> None:
    """Write the one line to the pipe, then replace it by the log: its reader goes away."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(answer).encode() + b"\n")
    os.dup2(2, 1)


def _log(kind: str, text: str) -> None:
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stderr.write(f"{stamp} {kind}: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
