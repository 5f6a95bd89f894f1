"""Mail by the standard library: the text body, or else the HTML one, and below it what the attachments say."""

from __future__ import annotations

import email
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from email import policy
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import PurePath
from typing import cast

from shared.models.ingest import CODE_SUFFIXES, FORMATS, TEXT_SUFFIXES
from workers.formats.encodings import decoded_as, meant_by
from workers.formats.html import whole_text
from workers.formats.parsed import FilePart, FormatError, Parsed, heading, joined, tidy
from workers.formats.sniffing import format_of

_HEADERS = ("From", "To", "Cc", "Date")
#: Messages within each other, and attachments of one message.
_MAX_DEPTH, _MAX_ATTACHMENTS = 3, 50
_MAX_ID = 200
_TEXTS = TEXT_SUFFIXES | CODE_SUFFIXES
_MOST_NAMED = 5
_PLAIN = frozenset({"text/plain", "text/rfc822-headers"})
_ENCODED_WORD = re.compile(rb"=\?([a-z\d_.:-]{2,40}+)\?(?=[bq]\?)", re.IGNORECASE)


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a file without a message."""
    del name
    return message_of(content)


def message_of(content: bytes) -> Parsed:
    """One message with its attachments, named by its id. Raises: FormatError for what is none."""
    message = email.message_from_bytes(_ENCODED_WORD.sub(_widened, content), policy=policy.default)
    if not message.keys():
        raise FormatError("has no message: a mail begins with lines such as From and Subject")
    notes: list[str] = []
    parts = list(_parts(message, 1, "", notes))
    subject = _header(message, "Subject")
    fields = {"from": _header(message, "From"), "to": _header(message, "To"), "thread": subject}
    return replace(
        joined(parts, title=subject, date=_date(message), notes=tuple(notes)),
        fields={name: value[:300] for name, value in fields.items() if value},
        part=_header(message, "Message-ID").strip("<>")[:_MAX_ID] or hashlib.sha256(content).hexdigest()[:16],
    )


def _widened(word: re.Match[bytes]) -> bytes:
    """The beginning of an encoded word, with the encoding that its name stands for."""
    return f"=?{meant_by(word[1].decode()) or 'utf-8'}?".encode()


def _parts(message: EmailMessage, level: int, place: str, notes: list[str]) -> Iterator[FilePart]:
    lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    title = heading(level, _header(message, "Subject"))
    yield FilePart("\n\n".join(filter(None, (title, "\n".join(lines), _body(message)))), place)
    left_out = []
    attachments = _attachments(message)
    if len(attachments) > _MAX_ATTACHMENTS:
        notes.append(f"attachments after the first {_MAX_ATTACHMENTS} were left out")
    for attachment in attachments[:_MAX_ATTACHMENTS]:
        name = _name_of(attachment)
        try:
            yield from _attached(attachment, name, level + 1, place, notes)
        except FormatError as error:
            left_out.append(f"{name} ({str(error).partition(':')[0]})")
    if left_out:
        more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        notes.append(f"attachments were left out: {', '.join(left_out[:_MOST_NAMED])}{more}")


def _attached(attachment: Message, name: str, level: int, place: str, notes: list[str]) -> Iterator[FilePart]:
    """What an attachment says, below its name. Raises: FormatError for one that cannot be read."""
    where = f"{place}, attachment {name}" if place else f"attachment {name}"
    inner = attachment.get_payload(0) if attachment.get_content_type() == "message/rfc822" else None
    if isinstance(inner, EmailMessage):
        if level > _MAX_DEPTH:
            raise FormatError("is nested too deeply")
        yield from _parts(inner, level, where, notes)
        return
    if attachment.get_content_type() == "multipart/digest" and attachment.is_multipart():
        if level > _MAX_DEPTH:
            raise FormatError("is nested too deeply")
        for number, part in enumerate(cast("list[Message]", attachment.get_payload())[:_MAX_ATTACHMENTS], 1):
            yield from _attached(part, f"{name} {number}", level + 1, place, notes)
        return
    content = attachment.get_payload(decode=True)
    report = attachment.get_content_maintype() == "message" and attachment.is_multipart()
    if report:  # of delivery: groups of headers
        content = b"\n".join(part.as_bytes() for part in cast("list[Message]", attachment.get_payload()))
    if not isinstance(content, bytes) or not content.strip():
        raise FormatError("is empty")
    suffix = PurePath(name).suffix.lower()
    suffix = "" if " " in suffix else suffix
    if suffix in FORMATS:
        parts = list(_read(content, name, FORMATS[suffix], where, notes))
    elif b"\0" not in content and (report or suffix in _TEXTS or attachment.get_content_type() in _PLAIN):
        parts = [FilePart(decoded_as(content, attachment.get_content_charset("")), where)]
    else:
        raise FormatError(f"there is no reader for {suffix or 'it'}")
    yield FilePart(heading(level, f"Attachment {name}"), where)
    yield from parts


def _read(content: bytes, name: str, declared: str, where: str, notes: list[str]) -> Iterator[FilePart]:
    format_name = format_of(content, declared)
    if format_name in {"mail", "mbox"}:
        raise FormatError("is a box of mail in a mail")
    try:
        found = import_module(f"workers.formats.{format_name}").parse(content, name)
    except (FormatError, MemoryError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001 - a parser's fault on a broken attachment costs that attachment
        raise FormatError(f"cannot be read, {type(error).__name__}") from None
    notes += [f"{name}: {note}" for note in found.notes]
    places = found.places or ((0, ""),)
    ends = [*(start for start, _ in places[1:]), len(found.text)]
    for (start, place), end in zip(places, ends, strict=True):
        yield FilePart(found.text[start:end], f"{where}, {place}" if place else where)


def _attachments(message: EmailMessage) -> list[Message]:
    try:
        return list(message.iter_attachments())
    except (AttributeError, KeyError, ValueError):
        return []


def _name_of(part: Message) -> str:
    try:
        name = part.get_filename()
    except (ValueError, LookupError, AttributeError):
        name = None
    name = PurePath(" ".join(str(name).split())).name if name else part.get_content_type()
    return name[:80]


def _body(message: EmailMessage) -> str:
    try:
        part = message.get_body(preferencelist=("plain", "html"))
        if part is None:
            return ""
        content = part.get_payload(decode=True)
        text = decoded_as(content, part.get_content_charset("")) if isinstance(content, bytes) else ""
        return whole_text(text) if part.get_content_type() == "text/html" and text.strip() else tidy(text)
    except (LookupError, ValueError, KeyError, FormatError, AttributeError):
        raw = message.get_payload(decode=True)
        return tidy(raw.decode("utf-8", "replace")) if isinstance(raw, bytes) else ""


def _header(message: Message, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, IndexError, AttributeError):
        return ""


def _date(message: Message) -> str:
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except (ValueError, TypeError, IndexError):
        return ""
