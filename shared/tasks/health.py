"""`python -P -m shared.tasks.health POOL`: asks the worker of this machine whether it answers; for health checks.

Exit code 0 when it does. It asks by remote control, so that a process that lives and takes no messages is not healthy.
"""

from __future__ import annotations

import socket
import sys

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.errors import RamifyError
from shared.settings import load_settings
from shared.tasks.app import make_app

_ANSWER_S = 5.0


def answers(node: str) -> bool:
    """Whether the worker of this name answers within five seconds. Raises: what Redis and the broker raise."""
    with make_app(load_settings()) as app, app.connection_for_write() as broker:
        replies = app.control.broadcast(
            "ping", reply=True, destination=[node], timeout=_ANSWER_S, limit=1, connection=broker
        )
    return any(node in reply for reply in replies or ())


def main(pool: str) -> int:
    """The exit code; a sentence on stderr where it is not 0."""
    node = pool if "@" in pool else f"{pool}@{socket.gethostname()}"
    try:
        if answers(node):
            return 0
        said = f"{node} does not answer within {_ANSWER_S:g} s"
    except (RamifyError, RedisError, OperationalError, OSError) as error:
        said = f"{node} cannot be asked: {error}"
    sys.stderr.write(f"{said}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
