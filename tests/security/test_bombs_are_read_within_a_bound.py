"""What unpacks or never ends is read within a bound, and refused in one sentence."""

from __future__ import annotations

import gzip
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.evaluation import dataset
from orchestrator.sessions import MAX_BYTES, read_session
from shared.errors import InputError

ROOM = 300_000_000


@contextmanager
def little_memory() -> Iterator[None]:
    """Room for 300 MB more than there is now: what reads without a bound fails with MemoryError."""
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def packed(folder: Path, write: Callable[[gzip.GzipFile], object]) -> Path:
    path = folder / "corpus.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        write(file)
    return path


def test_a_line_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, lambda file: file.write(b" " * 21_000_000))
    with pytest.raises(InputError, match=r"line 1: .*more than 20,000,000 bytes"):
        list(dataset.lines(path))


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "_ALWAYS_BYTES", 1_000_000)
    path = packed(tmp_path, lambda file: file.write(b'{"id": "a"}\n' * 500_000))
    with pytest.raises(InputError, match=r"unpacks to more than \d,\d{3},\d{3} bytes"):
        list(dataset.lines(path))
    honest = packed(tmp_path, lambda file: file.write(b"".join(b'{"id": "%d"}\n' % n for n in range(50_000))))
    assert len(list(dataset.lines(honest))) == 50_000


def test_a_session_from_a_pipe_that_never_ends_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "session.json"
    os.mkfifo(pipe)

    def flood() -> None:
        with pipe.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b" " * 1_000_000)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=flood, daemon=True)
    writer.start()
    with pytest.raises(InputError, match=f"larger than {MAX_BYTES:,} bytes"), little_memory():
        read_session(pipe)
    writer.join(timeout=10)
    assert not writer.is_alive()
