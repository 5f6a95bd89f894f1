"""Makes documents of files, a few in this process, many in the parsers' processes: so an ingest takes every core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from shared.models import DocumentOutcome, RawDocument
from shared.settings.sections import ChunkingSettings
from workers.formats.parsed import FormatError
from workers.index.cutting import CutDocument
from workers.index.documents import Document
from workers.index.given_metadata import with_given
from workers.index.keywords import KeywordEncoders, KeywordVectors, unpacked
from workers.index.made import MadeFiles, asked_of, asked_to_encode, made_files
from workers.index.readers import ReadFile, is_parsed, read_all, read_documents
from workers.index.readers.base import failed
from workers.index.readers.formats import parsers

#: Bytes after which the processes make documents: they take half a second to load what is needed for it.
_ALONE_BYTES = 1_000_000
#: Files that a process makes at once at most, and their bytes; what a parser reads comes alone.
_GROUP_FILES, _GROUP_BYTES = 32, 100_000
#: Passages whose vectors a process makes at once.
_PASSAGES = 128


class Maker:
    """Reads files, and cuts and encodes their documents. May be called from many threads."""

    def __init__(self, sizes: ChunkingSettings) -> None:
        self._sizes = sizes
        self._seen = 0

    def read(
        self, batch: Sequence[RawDocument], encoders: KeywordEncoders | None
    ) -> tuple[list[ReadFile], dict[str, CutDocument]]:
        """Of each file its documents, with the metadata that came with it, and failed outcomes.

        And, by document, how it is cut, where a process has done that; such a document comes without its text.
        `encoders` None: the chunks get no vectors.
        """
        self._seen += sum(len(raw.content) for raw in batch)
        if self._seen < _ALONE_BYTES or parsers().size < 2:
            here = read_all(batch, self._sizes.max_document_bytes)
            return [(raw, list(with_given(raw, items))) for raw, items in here], {}
        groups = list(_groups(batch))
        with ThreadPoolExecutor(min(parsers().size, len(groups))) as threads:
            made = list(threads.map(partial(self._make, encoders=encoders), groups))
        of_raw = {
            id(raw): items
            for group, (files, _) in zip(groups, made, strict=True)
            for raw, items in zip(group, files, strict=True)
        }
        return [(raw, of_raw[id(raw)]) for raw in batch], {
            doc_id: one for _, cuts in made for doc_id, one in cuts.items()
        }

    def read_again(self, raw: RawDocument) -> list[Document | DocumentOutcome]:
        """What `read` gives of a file, its documents with their text."""
        return list(with_given(raw, read_documents(raw, self._sizes.max_document_bytes)))

    def vectors(self, texts: Sequence[str], encoders: KeywordEncoders) -> list[KeywordVectors]:
        """The keyword vectors of passages."""
        if self._seen < _ALONE_BYTES or len(texts) <= _PASSAGES or parsers().size < 2:
            return [encoders.vectors(text) for text in texts]
        slices = [texts[start : start + _PASSAGES] for start in range(0, len(texts), _PASSAGES)]
        with ThreadPoolExecutor(parsers().size) as threads:
            return [one for found in threads.map(partial(_encoded, encoders=encoders), slices) for one in found]

    def _make(self, group: Sequence[RawDocument], encoders: KeywordEncoders | None) -> MadeFiles:
        asked, content = asked_of(group, sum(map(is_parsed, group)), self._sizes, encoders)
        try:
            return parsers().ask("make", asked, content, partial(made_files, group))
        except FormatError as error:
            if len(group) == 1:
                return [[failed(group[0], str(error))]], {}
        every = [self._make([raw], encoders) for raw in group]
        cuts = {doc_id: one for _, found in every for doc_id, one in found.items()}
        return [items for files, _ in every for items in files], cuts


def _groups(batch: Sequence[RawDocument]) -> Iterator[list[RawDocument]]:
    waiting, size = list[RawDocument](), 0
    for raw in batch:
        if is_parsed(raw):
            yield [raw]
            continue
        if waiting and (len(waiting) >= _GROUP_FILES or size + len(raw.content) > _GROUP_BYTES):
            yield waiting
            waiting, size = [], 0
        waiting.append(raw)
        size += len(raw.content)
    if waiting:
        yield waiting


def _encoded(texts: Sequence[str], encoders: KeywordEncoders) -> list[KeywordVectors]:
    try:
        found = parsers().ask("encode", *asked_to_encode(texts, encoders), unpacked)
    except FormatError:  # a process that was ended: nothing in a text is to blame
        found = []
    return found if len(found) == len(texts) else [encoders.vectors(text) for text in texts]
