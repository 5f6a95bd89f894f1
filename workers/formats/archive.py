"""What every format that is a zip archive is checked for before a parser opens it."""

from __future__ import annotations

import zipfile
from io import BytesIO

from workers.formats.parsed import FormatError

_MAX_MEMBERS, _MAX_BYTES, _MOST_TIMES = 20_000, 500_000_000, 200


def checked_archive(content: bytes) -> zipfile.ZipFile:
    """The archive, open. Raises: FormatError for none, for an encrypted one, and for one that unpacks to too much."""
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except (zipfile.BadZipFile, ValueError, OSError):
        old = content.startswith(b"\xd0\xcf\x11\xe0")
        raise FormatError(
            "is a file of an old Office, or encrypted: save it in the format of today, without a password"
            if old
            else "is no archive that can be opened (broken or truncated): save it anew"
        ) from None
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if len(members) > _MAX_MEMBERS or size > max(_MAX_BYTES // 10, _MOST_TIMES * len(content)) or size > _MAX_BYTES:
        raise FormatError(f"unpacks to {len(members):,} parts of {size:,} bytes: split it")
    if any(member.flag_bits & 1 for member in members):
        raise FormatError("is encrypted: save a copy without a password")
    return archive


def member(archive: zipfile.ZipFile, name: str, limit: int = 50_000_000) -> bytes:
    """A part of the archive; b"" where there is none. Raises: FormatError for one that is larger than it says."""
    try:
        with archive.open(name) as opened:
            content = opened.read(limit + 1)
    except KeyError:
        return b""
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise FormatError(f"its part {name[:80]!r} cannot be unpacked ({type(error).__name__}): save it anew") from None
    if len(content) > limit:
        raise FormatError(f"its part {name[:80]!r} has more than {limit:,} bytes: split it")
    return content
