"""A few source files as a tree of chunks, with the edges between them as names: for the tests of code."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from textwrap import dedent

from shared.models import Chunk
from shared.models.hits import PagePart
from shared.settings.sections import ChunkingSettings
from workers.index.code.chunking import chunk_code
from workers.index.code.names import path_parts
from workers.index.documents import Document, Markup


def chunks(path: str, text: str, sizes: ChunkingSettings | None = None) -> list[Chunk]:
    """The chunks of one file."""
    document = Document(
        doc_id="6f1c6a0e-0d53-5c0b-9a5f-2b7f5f0f9a11",
        path=path,
        title=".".join(path_parts(path)),
        text=dedent(text),
        markup=Markup.CODE,
        source="/x",
    )
    found = chunk_code(document, sizes or ChunkingSettings())
    assert all(chunk.part is PagePart.CODE for chunk in found)
    assert [chunk.ordinal for chunk in found] == list(range(len(found)))
    return found


class Tree:
    """The chunks of several files, `path` -> source."""

    def __init__(self, files: dict[str, str]) -> None:
        self.chunks = [chunk for path, text in files.items() for chunk in chunks(path, text)]
        self._defining: defaultdict[str, set[str]] = defaultdict(set)
        for chunk in self.chunks:
            for key in chunk.defines:
                self._defining[key].add(chunk.symbol or "")

    def leads(self, symbol: str) -> set[str]:
        """The symbols that the chunks of a symbol lead to, without the file's own name before them."""
        refs = [ref for chunk in self.chunks if chunk.symbol == symbol for ref in chunk.refs]
        assert any(chunk.symbol == symbol for chunk in self.chunks), [chunk.symbol for chunk in self.chunks]
        return {target for ref in refs for target in self._defining.get(ref, ())}

    def refs(self, symbol: str) -> set[str]:
        """The keys that the chunks of a symbol hold, whether anything defines them or not."""
        return {ref for chunk in self.chunks if chunk.symbol == symbol for ref in chunk.refs}

    def symbols(self, path: str) -> list[str]:
        """The symbols of one file, in its order."""
        return [chunk.symbol or "" for chunk in self.chunks if PurePosixPath(chunk.path) == PurePosixPath(path)]
