"""`python -P -m shared.tasks.health [--live] POOL`: asks the worker of this machine whether it answers.

Exit code 0 when it does. It asks by remote control, so that a process that lives and takes no messages is not healthy.
`--live`: also 0 where the broker cannot be reached, for checks that end a worker, which reconnects by itself.
"""

from __future__ import annotations

import socket
import sys

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.errors import RamifyError
from shared.settings import load_settings
from shared.tasks.app import make_app
from shared.tasks.broker import reached

_ANSWER_S = 5.0


def answers(node: str) -> bool:
    """Whether the worker of this name answers within five seconds. Raises: what Redis and the broker raise."""
    settings = load_settings()
    with make_app(settings) as app, reached(settings), app.connection_for_write() as broker:
        replies = app.control.broadcast(
            "ping", reply=True, destination=[node], timeout=_ANSWER_S, limit=1, connection=broker
        )
    return any(node in reply for reply in replies or ())


def main(pool: str, *, live: bool = False) -> int:
    """The exit code; a sentence on stderr where the worker does not answer."""
    node = pool if "@" in pool else f"{pool}@{socket.gethostname()}"
    try:
        if answers(node):
            return 0
        said, failed = f"{node} does not answer within {_ANSWER_S:g} s", True
    except (RedisError, OperationalError, OSError) as error:
        said, failed = f"{node} cannot be asked: {error}", not live or getattr(error, "final", False)
    except RamifyError as error:
        said, failed = f"{node} cannot be asked: {error}", True
    sys.stderr.write(f"{said}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1], live="--live" in sys.argv[1:-1]))
