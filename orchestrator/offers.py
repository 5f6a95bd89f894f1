"""Asks which files the store has already, some hundred at a time, so that only the others are sent. Sends nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from orchestrator.files import Found, pieces
from shared.job_store.inbox import Offer, Offers

#: Files of one question. One question is on its way while the files of the one before are sent.
GROUP_FILES = 500


@dataclass(frozen=True)
class Group:
    """Files of one root, the offers of those that can be read, and the files that must be sent unasked."""

    files: Sequence[Found]
    offers: Offers
    unasked: frozenset[str]


def groups(files: Sequence[Found], namespace: str, max_bytes: int) -> Iterator[Group]:
    """`files`, grouped by root, each with a hash of every piece of it. Reads them once, a piece at a time."""
    for source, members in groupby(files, key=lambda found: found.source):
        of_source = list(members)
        for start in range(0, len(of_source), GROUP_FILES):
            some = of_source[start : start + GROUP_FILES]
            offered = {str(found.file): _offers(found, max_bytes) for found in some}
            yield Group(
                some,
                Offers(
                    source=str(source),
                    namespace=namespace,
                    offers=tuple(offer for offers in offered.values() for offer in offers),
                ),
                frozenset(identity for identity, offers in offered.items() if not offers),
            )


def _offers(found: Found, max_bytes: int) -> list[Offer]:
    """One for each piece; none for a file with a fault, which is told when the file is read to be sent."""
    offers = []
    try:
        for piece in pieces(found, max_bytes):
            if piece.fault:
                return []
            digest = hashlib.sha256(piece.content).hexdigest()
            offers.append(Offer(identity=str(found.file), digest=digest, line_offset=piece.line_offset))
    except OSError:
        return []
    return offers
