"""Addresses of documents and chunks as resources: `ramify://document/ID`, `ramify://chunk/DOCUMENT/ID`. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from shared.errors import InputError, NotFoundError
from shared.models import Hit
from shared.uri import SCHEME, is_directory, read_target, uri_of

DOCUMENT_TEMPLATE = f"{SCHEME}document/{{document}}{{?start}}"
CHUNK_TEMPLATE = f"{SCHEME}chunk/{{document}}/{{chunk}}"
_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OF_DOCUMENT = re.compile(rf"{SCHEME}document/({_ID})(\?start=\d{{1,12}})?")
_OF_CHUNK = re.compile(rf"{SCHEME}chunk/({_ID})/({_ID})")
_OWN = re.compile(rf"{SCHEME}(?:document|chunk)/{_ID}")
#: Longest address that is looked at.
_LONGEST = 2_000


@dataclass(frozen=True)
class Addressed:
    """What an address names: a document by id or path, from the character `start` on, or one of its chunks."""

    name: str
    namespace: str | None = None
    chunk_id: str | None = None
    start: int = 0


def document_address(doc_id: str, start: int = 0) -> str:
    """Where the text of a document can be read, from a character on."""
    return f"{SCHEME}document/{doc_id}{f'?start={start}' if start else ''}"


def chunk_address(hit: Hit) -> str:
    """Where a passage can be read with the text around it; of a folder's abstract, the folder's address."""
    return uri_of(hit) if is_directory(hit) else chunk_address_of(hit.doc_id, hit.chunk_id)


def chunk_address_of(doc_id: str, chunk_id: str) -> str:
    """The same of a passage of a document, by their ids."""
    return f"{SCHEME}chunk/{doc_id}/{chunk_id}"


def read_address(address: str) -> Addressed:
    """What `address` names; `ramify://NAMESPACE/PATH`, as other faces write it, is a document too.

    Raises: NotFoundError for what is no address of a document.
    """
    if len(address) <= _LONGEST:
        if found := _OF_CHUNK.fullmatch(address):
            return Addressed(name=found[1], chunk_id=found[2])
        if found := _OF_DOCUMENT.fullmatch(address):
            (start,) = parse_qs(urlsplit(address).query).get("start", ["0"])
            return Addressed(name=found[1], start=int(start))
        if address.startswith(SCHEME) and not _OWN.match(address):
            with suppress(InputError):
                namespace, path = read_target(address)
                if path and not path.endswith("/"):
                    return Addressed(name=path, namespace=namespace)
    fix = "read an address that a tool or the list of resources has given, as ramify://document/ID"
    raise NotFoundError("resource", address, fix)
