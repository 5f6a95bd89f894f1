"""Bytes to text: UTF-8, or UTF-16 with a byte order mark. Another encoding is never guessed, only named as a hint."""

from __future__ import annotations

import codecs

from workers.formats.parsed import FormatError

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Bytes by which the hint is found.
_SAMPLE = 4_000
_FEWEST = 40


def decoded(content: bytes) -> str:
    """Raises: FormatError for another encoding and for binary files, with the command that converts it."""
    encoding, name = ("utf-16", "UTF-16") if content.startswith(_UTF16) else ("utf-8-sig", "UTF-8")
    if encoding != "utf-16" and b"\0" in content:
        raise FormatError(f"holds NUL bytes: {_hint_of_nul(content)}")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"byte 0x{content[error.start]:02X} at position {error.start}"
        fix = f"convert it to UTF-8 with iconv{_hint(content, error.start)}"
        raise FormatError(f"is not {name} ({where}): {fix}") from None


def _hint_of_nul(content: bytes) -> str:
    """Text in UTF-16 has a zero in every second place, where it is written in Latin letters."""
    sample = content[:_SAMPLE]
    for name, zeros in (("UTF-16LE", sample[1::2]), ("UTF-16BE", sample[::2])):
        if len(sample) >= _FEWEST and zeros.count(0) > 0.8 * len(zeros) and sample.count(0) < 0.6 * len(sample):
            return f"if it is {name} without its mark, convert it with iconv -f {name} -t UTF-8"
    return "it is no text file"


def _hint(content: bytes, fault: int) -> str:
    """The encoding that it looks like, where enough of it stands around the fault to tell."""
    try:
        from charset_normalizer import from_bytes  # noqa: PLC0415 - a quarter of a second, for a file that fails
    except ImportError:
        return ""
    begin = max(0, fault - _SAMPLE // 2)
    found = from_bytes(content[begin : begin + _SAMPLE]).best()
    if found is None or len(content) < _FEWEST or found.encoding in {"utf_8", "ascii"}:
        return ""
    return f" -f {codecs.lookup(found.encoding).name.upper()} -t UTF-8, if that is what it is in"
