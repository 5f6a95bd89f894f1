"""Reads the pictures of pages by RapidOCR, where the extra `ocr` is installed. Its models come with its wheel."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from workers.formats.limits import time_left

EXTRA = "pip install 'ramify[ocr]'"
#: Processor seconds for all pictures of one file; a page takes two.
SECONDS = 240.0
#: Pixels of the longer side of a page; more is slower and reads no better.
_PIXELS = 2_000


def installed() -> bool:
    """Whether pictures can be read here."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


def texts_of(document: Any, pages: Sequence[int]) -> dict[int, str]:
    """Page (from 1) of a PDF of pypdfium2 -> what its picture says, as long as the time lasts."""
    time_left(SECONDS)
    found: dict[int, str] = {}
    began = time.process_time()
    for number in pages:
        if time.process_time() - began > SECONDS * 0.9:
            break
        page = document[number - 1]
        try:
            scale = min(3.0, _PIXELS / max(*page.get_size(), 1))
            found[number] = _text(page.render(scale=scale).to_numpy())
        finally:
            page.close()
    return found


def _text(picture: Any) -> str:
    return "\n".join(str(line) for line in (_engine()(picture).txts or ()))


@cache
def _engine() -> Any:
    one_thread = {"EngineConfig.onnxruntime.intra_op_num_threads": 1, "Global.log_level": "critical"}
    return import_module("rapidocr").RapidOCR(params=one_thread)
