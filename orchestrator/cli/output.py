"""The two streams: data on stdout (JSON or tables), everything else on stderr. Knows no command."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.cli.wording import clean

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: JSON leaves these as they are, but a terminal may obey them.
_RAW = re.compile("[\x7f-\x9f\ud800-\udfff]")


def data_console() -> Console:
    """Tables on stdout. Reads no markup and no emoji codes: what it prints is not ours."""
    from rich.console import Console  # noqa: PLC0415 - `--json` and `--version` do without rich

    return Console(markup=False, highlight=False, emoji=False)


def progress_console() -> Console:
    """Progress on stderr; ask `is_terminal` before drawing anything that moves."""
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def show(renderable: RenderableType) -> None:
    """Print for people, on stdout."""
    data_console().print(renderable)


def document(value: Any) -> None:
    """The one JSON document of a command, on stdout. `value` is a model, or plain data that may hold models."""
    _write(json.dumps(value, ensure_ascii=not _is_utf8(), indent=2, default=_as_json))


def line(value: Any) -> None:
    """One line of a JSON stream, on stdout, at once."""
    _write(encoded(value, ascii_only=not _is_utf8()))


def encoded(value: Any, *, ascii_only: bool = False) -> str:
    """`value` as one line of JSON without control characters."""
    return _escaped(json.dumps(value, ensure_ascii=ascii_only, default=_as_json))


def note(sentence: str) -> None:
    """A plain line on stderr."""
    sys.stderr.write(f"{clean(sentence)}\n")
    sys.stderr.flush()


def warn(sentence: str) -> None:
    """A warning on stderr."""
    note(f"warning: {sentence}")


def fail(sentence: str) -> None:
    """An error on stderr."""
    note(f"error: {sentence}")


def stop_writing() -> None:
    """After a reader has gone (`ramify jobs | head`): nothing more is written, and no complaint at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _write(text: str) -> None:
    sys.stdout.write(f"{_escaped(text)}\n")
    sys.stdout.flush()


def _escaped(text: str) -> str:
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _as_json(value: Any) -> Any:
    """What json does not know: models, and read-only mappings."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
