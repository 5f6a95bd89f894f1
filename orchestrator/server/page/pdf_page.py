"""A page of a PDF as a picture, with a box drawn: `python -P -m orchestrator.server.page.pdf_page FILE PAGE [BOX]`.

PDFs come from anybody, so each is drawn by a process of its own, bounded in memory and time.
"""

from __future__ import annotations

import math
import os
import resource
import struct
import subprocess
import sys
import threading
import zlib
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from shared.models.place import Box

_WIDTH, _TALLEST = 900, 2400
_MEMORY_BYTES, _CPU_S, _WALL_S = 1 << 30, 10, 15.0
#: Pages that are kept, and processes that draw at a time.
_KEPT, _AT_ONCE = 16, 2
#: Points around the passage that its frame leaves free, and the frame's own colour and width in pixels.
_AIR, _COLOUR, _FRAME = 3, (214, 40, 40), 2
_HEAD = struct.Struct(">II")
_kept: OrderedDict[tuple[object, ...], PageImage] = OrderedDict()
_lock, _places = threading.Lock(), threading.BoundedSemaphore(_AT_ONCE)


class PageImage(NamedTuple):
    """A picture: PNG, and its width and height in pixels."""

    png: bytes
    size: tuple[int, int]


def page_image(file: Path, page: int, box: Box | None) -> PageImage | None:
    """The page (from 1) of a file, its box framed. None without pypdfium2, and where it cannot be drawn."""
    if find_spec("pypdfium2") is None:
        return None
    try:
        key = (str(file), file.stat().st_mtime_ns, page, box)
    except OSError:
        return None
    with _lock:
        if (found := _kept.get(key)) is not None:
            return found
    made = _drawn(file, page, box)
    if made is not None:
        with _lock:
            _kept[key] = made
            while len(_kept) > _KEPT:
                _kept.popitem(last=False)
    return made


def _drawn(file: Path, page: int, box: Box | None) -> PageImage | None:
    module = "orchestrator.server.page.pdf_page"
    command = [sys.executable, "-P", "-m", module, str(file), str(page), *map(str, box or ())]
    search_path = os.pathsep.join(path for path in sys.path if path)
    environment = {"PATH": os.defpath, "PYTHONPATH": search_path, "OMP_NUM_THREADS": "1"}
    with _places:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_WALL_S,
                check=True, env=environment,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
    if not done.stdout.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    width, height = _HEAD.unpack_from(done.stdout, 16)
    return PageImage(done.stdout, (width, height))


def main(argv: list[str]) -> None:
    """Draw one page to stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    numbers = [int(given) for given in argv[1:]]
    sys.stdout.buffer.write(draw(argv[0], numbers[0], numbers[1:]))


def draw(file: str, number: int, box: list[int]) -> bytes:
    """The page as PNG."""
    import pypdfium2  # noqa: PLC0415 - in the drawing process alone

    document = pypdfium2.PdfDocument(file)
    page = document[number - 1]
    width, height = page.get_size()
    scale = min(_WIDTH / width, _TALLEST / height)
    pixels = page.render(scale=scale, rev_byteorder=True, no_smoothtext=False).to_numpy()[:, :, :3].copy()
    if box:
        left, bottom, right, top = box
        corners = (left - _AIR, height - top - _AIR, right + _AIR, height - bottom + _AIR)
        _frame(pixels, *(math.floor(corner * scale) for corner in corners))
    return _png(pixels)


def _frame(pixels: Any, left: int, top: int, right: int, bottom: int) -> None:
    tall, wide = pixels.shape[:2]
    left, right = sorted((min(max(left, 0), wide - 1), min(max(right, 0), wide - 1)))
    top, bottom = sorted((min(max(top, 0), tall - 1), min(max(bottom, 0), tall - 1)))
    for rows, columns in (
        (slice(top, top + _FRAME), slice(left, right)),
        (slice(bottom - _FRAME, bottom), slice(left, right)),
        (slice(top, bottom), slice(left, left + _FRAME)),
        (slice(top, bottom), slice(right - _FRAME, right)),
    ):
        pixels[rows, columns] = _COLOUR


def _png(pixels: Any) -> bytes:
    """Rows of red, green and blue as PNG: a byte 0 (no filter) stands before each row."""
    tall, wide = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = _HEAD.pack(wide, tall) + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows, 6)) + part(b"IEND", b"")


if __name__ == "__main__":
    main(sys.argv[1:])
