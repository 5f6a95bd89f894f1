"""What a file is by its content, where its name says something else. Looks at signatures and names of parts only."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

from workers.formats.parsed import FormatError

_HEAD = 1024
_OLD_OFFICE, _RTF = b"\xd0\xcf\x11\xe0", b"{\\rtf"
#: Streams of an old Office's container that say what it holds.
_STREAMS = {
    "EncryptedPackage": "is encrypted: save a copy without a password",
    "__substg1.0_": "is a message of Outlook: save it as .eml",
}
_HTML = re.compile(rb"\s*+(?:<\?xml[^>]*+>\s*+)?+<(?:!doctype\s++html|html)[\s>]", re.IGNORECASE)
#: Folder of a zip archive -> the format that has it.
_PARTS = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
#: What a person calls them.
NAMES = {
    "pdf": "a PDF", "docx": "a Word document", "pptx": "a presentation", "xlsx": "a workbook", "epub": "an EPUB",
    "odf": "an OpenDocument file", "html": "a web page",
}  # fmt: skip
#: Formats whose files are text: what begins like a web page is one only where binary was to be expected.
_TEXTS = frozenset({"html", "mail", "mbox", "notebook", "structured", "tabular"})
_CONVERT = "convert it, for example with soffice --headless --convert-to"


def format_of(content: bytes, declared: str) -> str:
    """The format to read a file as. Raises: FormatError for one that has to be converted first."""
    head = content[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    if b"%PDF-" in content[:_HEAD] and declared != "mbox":
        return "pdf"
    if content.startswith(b"PK\x03\x04"):
        return _archived(content) or declared
    if head.startswith(_RTF):
        raise FormatError(f"is RTF: {_CONVERT} docx")
    if content.startswith(_OLD_OFFICE):
        if fault := next((fault for stream, fault in _STREAMS.items() if stream.encode("utf-16-le") in content), ""):
            raise FormatError(fault)
        raise FormatError(f"is a file of an old Office, or encrypted: save it without a password, or {_CONVERT} docx")
    return "html" if declared not in _TEXTS and _HTML.match(head) else declared


def _archived(content: bytes) -> str:
    """The format of a zip archive by the parts that it names; "" where they say nothing."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = archive.namelist()[:2000]
            kind = archive.read("mimetype")[:100] if "mimetype" in names[:10] and _short(archive) else b""
    except (zipfile.BadZipFile, ValueError, OSError, KeyError, RuntimeError, NotImplementedError, EOFError):
        return ""
    if kind.startswith(b"application/epub"):
        return "epub"
    if kind.startswith(b"application/vnd.oasis"):
        return "odf"
    return next((found for part, found in _PARTS.items() if any(name.startswith(part) for name in names)), "")


def _short(archive: zipfile.ZipFile) -> bool:
    return archive.getinfo("mimetype").file_size < _HEAD
