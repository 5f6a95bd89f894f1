"""`python -m orchestrator.server`: the server as a part of the stack; settings come from the environment."""

from __future__ import annotations

import sys

from orchestrator.server.serve import serve
from shared.errors import RamifyError
from shared.settings import load_settings


def main() -> int:
    """Serve until a signal; returns the exit code."""
    try:
        serve(load_settings())
    except RamifyError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
