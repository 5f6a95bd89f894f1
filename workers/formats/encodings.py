"""Bytes to text: UTF-8, UTF-16 with a byte order mark, or what mails and pages name. None is ever guessed."""

from __future__ import annotations

import codecs
from contextlib import suppress

from workers.formats.parsed import FormatError

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Bytes by which the hint is found.
_SAMPLE = 4_000
_FEWEST = 40
#: Encodings whose names stand for larger ones, as browsers read them (WHATWG Encoding Standard): text that says GB2312
#: holds names that only GB18030 has. UTF-16 is none of text that could say so in ASCII.
_MEANT = {
    "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc_kr": "cp949",
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "utf-16": "utf-8", "utf-16-le": "utf-8", "utf-16-be": "utf-8",
}  # fmt: skip
_UNNAMED, _BEYOND_ASCII = "cp1252", bytes(range(0x80, 0x100))
#: Bytes beyond ASCII that are hardly UTF-8 by chance: four Chinese characters of another encoding are in 1 of 20,000.
_SURE = 8


def meant_by(name: str) -> str:
    """The encoding that text is in which says that it is in `name`; "" where that is none."""
    try:
        found = codecs.lookup(name.strip().lower().removeprefix("x-")).name
    except (LookupError, ValueError):
        return ""
    return _MEANT.get(found, found)


def decoded_as(content: bytes, name: str) -> str:
    """Text that says in which encoding it is; what that does not have is a replacement character, and nothing is lost.

    It is UTF-8 where that can be no chance, or where it names no encoding; else Windows-1252.
    """
    if content.startswith(_UTF16):
        return content.decode("utf-16", "replace")
    meant = meant_by(name)
    beyond = len(content) - len(content.translate(None, _BEYOND_ASCII))
    if beyond >= _SURE or not meant or (beyond and meant == _UNNAMED):
        with suppress(UnicodeDecodeError):
            return content.decode("utf-8-sig")
    try:
        return content.decode(meant or _UNNAMED, "replace").removeprefix("\ufeff")
    except (LookupError, UnicodeError):  # no encoding of text
        return content.decode(_UNNAMED, "replace")


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
