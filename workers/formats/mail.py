"""Mail by the standard library: one message, or a box of them; the text body, or else the HTML one."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from workers.formats.html import whole_text
from workers.formats.parsed import FilePart, FormatError, Parsed, heading, joined, tidy

_FROM_LINE = re.compile(rb"(?:\A|(?:\r?\n){2})(From \S+[^\n]*\d{4}\r?\n)")
_MAX_MESSAGES = 20_000
_HEADERS = ("From", "To", "Cc", "Date")


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file without a message."""
    if name.lower().endswith(".mbox"):
        return _box(content)
    message = _message(content)
    notes = _attachments(message)
    return joined([FilePart(_shown(message, 1))], title=_header(message, "Subject"), date=_date(message), notes=notes)


def _box(content: bytes) -> Parsed:
    starts = [found.start(1) for found in _FROM_LINE.finditer(content)]
    if not starts:
        raise FormatError("has no message: a box of mail begins with a line From")
    if len(starts) > _MAX_MESSAGES:
        raise FormatError(f"has {len(starts):,} messages, more than {_MAX_MESSAGES:,}: split it")
    messages = (
        _message(content[start:end].split(b"\n", 1)[-1]) for start, end in zip(starts, [*starts[1:], None], strict=True)
    )
    notes: list[str] = []
    return joined(_numbered(messages, notes), notes=tuple(notes[:3]))


def _numbered(messages: Iterator[EmailMessage], notes: list[str]) -> Iterator[FilePart]:
    for number, message in enumerate(messages, start=1):
        yield FilePart(_shown(message, 2), f"message {number}")
        notes += _attachments(message)


def _message(content: bytes) -> EmailMessage:
    message = email.message_from_bytes(content, policy=policy.default)
    if not message.keys():
        raise FormatError("has no message: a mail begins with lines such as From and Subject")
    return message


def _shown(message: EmailMessage, level: int) -> str:
    lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    return "\n\n".join(filter(None, (heading(level, _header(message, "Subject")), "\n".join(lines), _body(message))))


def _body(message: EmailMessage) -> str:
    try:
        part = message.get_body(preferencelist=("plain", "html"))
        if part is None:
            return ""
        text = str(part.get_content())
        return whole_text(text) if part.get_content_type() == "text/html" and text.strip() else tidy(text)
    except (LookupError, ValueError, KeyError, FormatError, AttributeError):
        raw = message.get_payload(decode=True)
        return tidy(raw.decode("utf-8", "replace")) if isinstance(raw, bytes) else ""


def _attachments(message: EmailMessage) -> tuple[str, ...]:
    try:
        names = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    except (AttributeError, KeyError, ValueError):
        names = []
    return (f"attachments were left out: {', '.join(str(name)[:80] for name in names[:5])}",) if names else ()


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, IndexError, AttributeError):
        return ""


def _date(message: EmailMessage) -> str:
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except (ValueError, TypeError, IndexError):
        return ""
