"""`python -P -m shared.tasks.celery_command -A APP worker ...`: Celery's command; no code of the working folder runs.

Celery puts the working folder first on the path whenever it imports by name. Ours may be anybody's, and a `json.py`
in it would run.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

from celery.utils import imports


def leave_out_working_folder() -> None:
    """Let Celery import by the path of this process alone (celery.utils.imports.cwd_in_path, 5.7)."""
    untyped: Any = imports
    untyped.cwd_in_path = nullcontext


def run() -> None:
    """Run what `sys.argv` says. Never returns."""
    from celery.bin.celery import main  # noqa: PLC0415 - 0.2 s of CPU, and every client imports this module

    leave_out_working_folder()
    sys.exit(main())


if __name__ == "__main__":
    run()
