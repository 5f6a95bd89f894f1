"""Files of a multipart body, one after the other as they come: no more than one is held. Names are not trusted."""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from orchestrator.documents.feeding import PushedDocument
from orchestrator.operations.batch_post import Readable
from orchestrator.operations.push import Offered, too_large
from shared.errors import InputError

#: Files of one body, and bytes of a name.
_MOST_FILES, _MOST_NAME = 10_000, 255


class _Part:
    """What is known of one part so far; of one that is too large its bytes are only counted."""

    def __init__(self) -> None:
        self.headers = dict[bytes, bytes]()
        self.name: str | None = None
        self.content = bytearray()
        self.size = 0


class UploadedFiles:
    """Iterate once. Raises: InputError for a body that is no multipart, or that ends in the middle."""

    def __init__(self, body: Readable, content_type: str, most_bytes: int) -> None:
        _, options = parse_options_header(content_type.encode("latin-1", "replace"))
        boundary = options.get(b"boundary")
        if not boundary:
            raise InputError("Content-Type", content_type, "it names no boundary")
        self._body, self._most_bytes = body, most_bytes
        self._part, self._field, self._value = _Part(), b"", b""
        self._done, self._names, self._ended = deque[Offered](), set[str](), False
        told: Any = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._over,
        }
        try:
            self._parser = MultipartParser(boundary, told)
        except FormParserError as error:
            raise InputError("Content-Type", content_type, f"{error}") from None

    def __iter__(self) -> Iterator[Offered]:
        while part := self._body.read1():
            try:
                self._parser.write(part)
            except FormParserError as error:
                raise InputError("body", "multipart", f"it cannot be read ({error})") from None
            while self._done:
                yield self._done.popleft()
        if not self._ended:
            raise InputError("body", "multipart", "it ends in the middle: send all of it")

    def _begin(self) -> None:
        self._part = _Part()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._part.headers[self._field.lower()] = self._value
        self._field = self._value = b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._part.headers.get(b"content-disposition", b""))
        if (name := options.get(b"filename")) is not None:
            self._part.name = name.decode("utf-8", "replace")

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        part.size += end - start
        if part.name is not None and part.size <= self._most_bytes:
            part.content += data[start:end]
        elif part.content:
            part.content = bytearray()

    def _end(self) -> None:
        if self._part.name is None or (not self._part.name and not self._part.size):
            return  # a field that is no file, and the empty file of a form in which none was chosen
        if len(self._names) >= _MOST_FILES:
            raise InputError("body", "multipart", f"send at most {_MOST_FILES:,} files in one request")
        self._done.append(self._offered(self._part, self._part.name))

    def _over(self) -> None:
        self._ended = True

    def _offered(self, part: _Part, given: str) -> Offered:
        name = file_name(given)
        again = name in self._names
        self._names.add(name or given)
        if not name:
            return Offered(given, fault="it has no name that can be used")
        if again:
            return Offered(name, fault="another file of this request has that name")
        if part.size > self._most_bytes:
            return Offered(name, fault=too_large(part.size, self._most_bytes))
        suffix = PurePosixPath(name).suffix.lower()
        return Offered(name, PushedDocument(id=name, content=bytes(part.content), suffix=suffix, path=name))


def file_name(given: str) -> str:
    """The last part of a name, whatever separates them, without what nobody sees; empty where nothing is left."""
    last = unicodedata.normalize("NFC", given).replace("\\", "/").rpartition("/")[2]
    name = "".join(c for c in last if c.isprintable()).strip(" .")
    return name if name and len(name.encode("utf-8", "replace")) <= _MOST_NAME else ""
