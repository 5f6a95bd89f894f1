"""Addresses of what is found: `ramify://<namespace>/<path>#<ordinal>`. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

from shared.errors import InputError
from shared.models import Chunk, PagePart

SCHEME = "ramify://"
#: Suffix of the namespace of a corpus's directories.
DIRECTORIES = ":dirs"
_FIX = "write ramify://NAMESPACE/FOLDER/, or the beginning of a path"
_ESCAPED = frozenset("#?%")
_PLAIN = re.compile(r"[^\s#?%]*")


def uri_of(chunk: Chunk) -> str:
    """The address of a chunk; of a directory for its abstract, without an ordinal."""
    return page_uri(chunk) if is_directory(chunk) else f"{page_uri(chunk)}#{chunk.ordinal}"


def page_uri(chunk: Chunk) -> str:
    """The address of the document that a chunk is of."""
    return f"{SCHEME}{chunk.namespace.removesuffix(DIRECTORIES)}/{quoted(chunk.path)}"


def is_directory(chunk: Chunk) -> bool:
    """True for a directory's abstract or overview, False for a piece of a document."""
    return chunk.part in {PagePart.ABSTRACT, PagePart.OVERVIEW}


def read_target(text: str) -> tuple[str | None, str]:
    """(namespace or None, prefix of a path or "") of `ramify://ns/dir/`, of a chunk's address, or of a plain path.

    Raises: InputError for another scheme, and for an address without a namespace.
    """
    target = text.strip()
    if not target.startswith(SCHEME):
        if "://" in target or not target or target.startswith("/"):
            raise InputError("target_uri", text, _FIX)
        return None, target
    namespace, _, rest = target.removeprefix(SCHEME).partition("/")
    if not namespace:
        raise InputError("target_uri", text, _FIX)
    return unquote(namespace), unquote(rest.partition("#")[0])


def quoted(path: str) -> str:
    """A path as part of an address: letters of all languages stay; reserved, blank and unprintable ones are escaped."""
    if path.isprintable() and _PLAIN.fullmatch(path):
        return path
    return "".join(
        "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "replace"))
        if c in _ESCAPED or c.isspace() or not c.isprintable()
        else c
        for c in path
    )
