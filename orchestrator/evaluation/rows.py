"""Reads the rows of a labelled set's files, plain or gzipped. Knows nothing of what the rows mean."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from shared.errors import InputError
from shared.settings.faults import json_fault

_GZIP = b"\x1f\x8b"


def lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """(file name and line number for people, the line with its end) of every line; gzip is seen by its first bytes.

    Raises: InputError for a file that is missing, cannot be read or is a broken gzip.
    """
    try:
        with _opened(path) as handle:
            for number, line in enumerate(handle, 1):
                yield f"{path.name} line {number}", line
    except FileNotFoundError:
        raise InputError(path.name, str(path), "there is no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path.name, str(path), f"it is no whole gzip file ({error}): copy it again") from None
    except OSError as error:
        raise InputError(path.name, str(path), f"it cannot be read ({error.strerror or error})") from None


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as probe:
        packed = probe.read(2) == _GZIP
    return cast("BinaryIO", gzip.open(path, "rb") if packed else path.open("rb"))


def text_of(where: str, line: bytes) -> str:
    """A line as text, without its end. Raises: InputError for what is no UTF-8."""
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(where, f"byte {error.start}", "it is not UTF-8: convert the file with iconv") from None


def as_object(where: str, line: bytes) -> dict[str, Any]:
    """One JSON object. Raises: InputError naming the line."""
    text = text_of(where, line)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(where, text, f"write valid JSON ({json_fault(error)})") from None
    if not isinstance(value, dict):
        raise InputError(where, text, 'write an object, for example {"id": "1", "text": "..."}')
    return value


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) of every JSON line that is not blank. Raises: InputError as `lines` and `as_object`."""
    for where, line in lines(path):
        if line.strip():
            yield where, as_object(where, line)


def identity(where: str, fields: dict[str, Any], *names: str) -> str:
    """The id under the first of `names` that is there: a text without white space at its ends, or a number as text.

    Raises: InputError when there is none.
    """
    value = next((fields[name] for name in names if name in fields), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}, {names[0]}", value, "give a text or a number")
    return value.strip()
