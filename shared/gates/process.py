"""The board of this process: Redis' where it was told of one, else its own."""

from __future__ import annotations

from shared.gates.board import Board
from shared.gates.local_board import LocalBoard
from shared.settings import Settings

#: Redis gets this long to say whether a call may go (s).
_REDIS_S = 1.0

_LOCAL = LocalBoard()
_board: Board = _LOCAL


def board() -> Board:
    """The board of this process."""
    return _board


def share(settings: Settings) -> None:
    """Let the gates of this process be those of all: over the Redis of `settings`, which is asked at the first call.

    Raises: NotRunningError when no URL is known, SettingsError when it is no Redis URL.
    """
    global _board  # noqa: PLW0603 - a process has one
    from shared.gates.fallback_board import FallbackBoard  # noqa: PLC0415 - the command line starts without Redis
    from shared.gates.shared_board import SharedBoard  # noqa: PLC0415
    from shared.job_store.connect import connect  # noqa: PLC0415

    client = connect(settings, retries=1, timeout_s=min(_REDIS_S, settings.redis.timeout_s))
    _board = FallbackBoard(SharedBoard(client), _LOCAL)
