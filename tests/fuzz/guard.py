"""Watches one input: what comes out of it, the CPU time it takes, and the memory. Knows nothing of what is run."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from shared.errors import RamifyError

#: CPU seconds of one input; a longer one may take more in proportion to this size, in bytes or characters.
MOST_CPU_S, OF_SIZE = 1.0, 64_000
#: An input that takes this long is ended.
ENDED_AFTER_S = 8.0
#: Memory that one input may add at its peak: so much, and so many bytes for each of its own.
MOST_BYTES, BYTES_EACH = 96_000_000, 600
#: Longest sentence of an error.
MOST_SENTENCE = 2000
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class EndlessError(BaseException):
    """An input took ENDED_AFTER_S of CPU time. No `except Exception` on its way may take it."""


@dataclass(frozen=True)
class Finding:
    """What went wrong with an input: `kind` is crash, sentence, slow or memory."""

    kind: str
    detail: str


@contextmanager
def ended_when_endless() -> Iterator[None]:
    """Interrupt what takes too long; Python's regular expressions look for signals, so those too."""

    def end(_: int, __: FrameType | None) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGPROF, end)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def watched(
    run: Callable[[Any], None], given: Any, allowed: tuple[type[BaseException], ...], most_cpu_s: float = MOST_CPU_S
) -> Finding | None:
    """Run one input. Slow ones get two more tries: a busy machine is forgiven, a real hang repeats."""
    finding, seconds = _once(run, given, allowed)
    if finding is not None:
        return finding
    most = most_cpu_s * max(1.0, size_of(given) / OF_SIZE)
    if seconds > most:
        seconds = min(seconds, *(_once(run, given, allowed)[1] for _ in range(2)))
    return Finding("slow", f"{seconds:.2f} s of CPU time, at most {most:.2f} s") if seconds > most else None


def size_of(given: Any) -> int:
    """Bytes or characters of an input; of plain data those of its text."""
    return len(given) if isinstance(given, str | bytes) else len(str(given))


def _once(
    run: Callable[[Any], None], given: Any, allowed: tuple[type[BaseException], ...]
) -> tuple[Finding | None, float]:
    held = _peak(reset=True)
    signal.setitimer(signal.ITIMER_PROF, ENDED_AFTER_S)
    began = time.process_time()
    finding = None
    try:
        run(given)
    except allowed as error:
        finding = _sentence(str(error)) if isinstance(error, RamifyError) else None
    except EndlessError:
        finding = Finding("slow", f"ended after {ENDED_AFTER_S} s of CPU time: {_where()}")
    except Exception:  # noqa: BLE001 - anything else is what is sought
        finding = Finding("crash", _where())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - began
    grown, most = _peak() - held, MOST_BYTES + BYTES_EACH * size_of(given)
    if finding is None and grown > most:
        finding = Finding("memory", f"{grown:,} bytes at its peak, at most {most:,}")
    return finding, seconds


def _where() -> str:
    """The innermost frames, on one line each."""
    return "".join(traceback.format_exc(limit=-6)).strip()[-1500:]


def _sentence(text: str) -> Finding | None:
    """Errors are shown to people and models: one line that can be read."""
    if len(text) > MOST_SENTENCE:
        return Finding("sentence", f"an error of {len(text)} characters: {text[:200]!r}")
    if "\n" in text or "\x1b" in text or not text.strip():
        return Finding("sentence", f"an error that is not one line: {text[:200]!r}")
    return None


def _peak(*, reset: bool = False) -> int:
    """The most memory this process has held since the last reset, in bytes; 0 where Linux does not say."""
    try:
        if reset:
            _CLEAR.write_text("5")
        status = _STATUS.read_bytes()
    except OSError:
        return 0
    place = status.find(b"VmHWM:")
    return int(status[place + 6 : status.find(b"kB", place)]) * 1024 if place >= 0 else 0
