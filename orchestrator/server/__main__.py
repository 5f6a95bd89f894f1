"""`python -m orchestrator.server [LISTENER]`: the server as a part of the stack, on an open socket that it inherits.

Settings come from the environment, and say where it listens if there is none.
"""

from __future__ import annotations

import sys

from orchestrator.server.serve import serve
from shared.errors import RamifyError
from shared.settings import load_settings


def main() -> int:
    """Serve until a signal; returns the exit code."""
    try:
        serve(load_settings(), listener=int(sys.argv[1]) if sys.argv[1:] else None)
    except RamifyError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
