"""Files of a corpus, from their bytes to chunks and links. A bad one is an outcome; nothing at all may come out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from shared.language.sentences import sentences
from shared.language.text import shingles, terms
from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import CODE_SUFFIXES
from shared.settings.sections import ChunkingSettings
from tests.fuzz import samples
from tests.fuzz.guard import MOST_SENTENCE
from tests.fuzz.mutate import Mutator, as_json
from tests.fuzz.target import Target, always
from tests.support.offsets import assert_whole
from workers.index.code import occurrences
from workers.index.cutting import chunks_of
from workers.index.metadata import read_metadata
from workers.index.readers import READERS, UnreadableError, read_documents
from workers.index.readers.base import clean
from workers.index.readers.markdown import split_front_matter

_SIZES = ChunkingSettings()


def _ingest(suffix: str, content: bytes) -> None:
    """As the index worker does, without a store."""
    raw = RawDocument(
        source="/root", path=f"root/a/b{suffix}", identity=f"/root/a/b{suffix}", suffix=suffix, content=content
    )
    for item in read_documents(raw, _SIZES.max_document_bytes):
        if isinstance(item, DocumentOutcome):
            _one_line(item.reason)
            continue
        for note in item.notes:
            _one_line(note)
        chunks, fault = chunks_of(item, _SIZES)
        assert bool(chunks) != bool(fault)
        for chunk in chunks:
            chunk.model_dump_json().encode()
            assert chunk.text.strip()
            assert "\n" not in chunk.title
        assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
        assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
        if chunks:
            assert_whole(item, chunks)


def _one_line(sentence: str) -> None:
    assert sentence.strip()
    assert len(sentence) <= MOST_SENTENCE, len(sentence)
    assert "\n" not in sentence
    assert "\x1b" not in sentence
    sentence.encode()


def _front_matter(text: str) -> None:
    fields, _ = split_front_matter(clean(text))
    for note in read_metadata(fields).notes:
        _one_line(note)


def _prose(text: str) -> None:
    """What every passage goes through in search, rerank and summary."""
    for sentence in sentences(text):
        assert sentence in text
    terms(text)
    shingles(text, 5)


def _documents(
    suffix: str, given: Sequence[str], tokens: Sequence[str], short: int = 60, full: int = 100_000
) -> Target:
    assert suffix in READERS
    return Target(
        name=f"document_{PurePath('a' + suffix).suffix[1:]}",
        make=lambda mutator: mutator.raw(given),
        opened=always(lambda content: _ingest(suffix, content)),
        tokens=tokens,
        short=short,
        # Nonsense that a grammar recovers from slowly is given up at the parser's own deadline.
        most_cpu_s=1.0 if suffix not in CODE_SUFFIXES else 1.0 + occurrences.DEADLINE_S,
    )


def _json_lines(mutator: Mutator) -> bytes:
    """A few lines, one of them changed as a tree; or the whole as bytes."""
    lines = [as_json(line, ascii_only=False) for line in samples.JSONL]
    if mutator.rng.random() < 0.6:
        lines[mutator.rng.randrange(len(lines))] = mutator.json(samples.JSONL)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    return mutator.raw(["\n".join(lines)])


_TABLE = "\n".join(["| a | b |", "|---|---|", *(f"| {n} | `x` |" for n in range(200))])
_MARKDOWN = (*samples.notes(), *samples.forms("front"), "> - a\n>   ```\n>   b\n>   ```\n" * 9, _TABLE)

TARGETS = (
    Target(
        name="front_matter",
        make=lambda mutator: mutator.text(samples.forms("front")),
        opened=always(_front_matter),
        allowed=(UnreadableError,),
        tokens=samples.tokens("yaml"),
        short=600,
    ),
    Target(
        name="document_jsonl",
        make=_json_lines,
        opened=always(lambda content: _ingest(".jsonl", content)),
        tokens=(*samples.tokens("json"), "id", "text", "path", "tags", "date", "kind", "facet"),
    ),
    _documents(".md", _MARKDOWN, samples.tokens("markdown"), short=150),
    _documents(".txt", samples.notes(), samples.tokens("markdown")),
    _documents(".rst", samples.forms("rst"), samples.tokens("rst"), short=150),
    *(_documents(suffix, (text,), samples.tokens("code")) for suffix, text in samples.code().items()),
    Target(
        name="prose",
        make=lambda mutator: mutator.text(samples.notes()),
        opened=always(_prose),
        tokens=samples.tokens("markdown"),
        short=150,
    ),
)
