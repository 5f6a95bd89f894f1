"""A box of mail: each message is a document of its own. A long box comes in pieces of whole messages."""

from __future__ import annotations

import re
from dataclasses import replace

from shared.files.pieces import FROM_LINE
from workers.formats.mail import message_of
from workers.formats.parsed import FormatError, Parsed

_FROM_LINE = re.compile(rb"(?:\A|(?:\r?\n){2})(" + FROM_LINE.pattern + rb"[^\n]*\r?\n)")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


def parse(content: bytes, name: str) -> list[Parsed]:
    """Raises: FormatError for a file without a message."""
    del name
    starts = [found.start(1) for found in _FROM_LINE.finditer(content)]
    if not starts:
        raise FormatError("has no message: a box of mail begins with a line From")
    documents: list[Parsed] = []
    broken = 0
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        try:
            documents.append(message_of(_QUOTED_FROM.sub(rb"\1", content[start:end].split(b"\n", 1)[-1])))
        except FormatError:
            broken += 1
    if not documents:
        raise FormatError("has no message that can be read: save it anew")
    named = _named_apart(documents)
    return [*named, Parsed("", unread=f"{broken} of its {len(starts)} messages cannot be read")] if broken else named


def _named_apart(documents: list[Parsed]) -> list[Parsed]:
    """Two messages of one id, such as copies to two lists, are one document each."""
    seen: dict[str, int] = {}
    found = []
    for document in documents:
        seen[document.part] = seen.get(document.part, 0) + 1
        count = seen[document.part]
        found.append(document if count == 1 else replace(document, part=f"{document.part} ({count})"))
    return found
