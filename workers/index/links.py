"""Which documents a text links to, and how many link to each (F6). Pure; never follows a link out of the corpus."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple
from urllib.parse import unquote

from shared.models import Chunk


class Key(NamedTuple):
    """One way to name a document: its folded title, or its path."""

    kind: Literal["title", "path"]
    name: str


#: What one link may mean, the likelier first: "C# notes" may be a title, or the part " notes" of "C".
Link = tuple[Key, ...]

# Quantifiers are possessive and classes leave out what begins the next match: linear on any text. Bounds keep what is
# normalised short, since Unicode's reordering of combining marks is not linear.
_WIKI = re.compile(r"\[\[([^\[\]|\n]{1,500}+)(?:\|[^\[\]\n]*+)?\]\]")
_INLINE = re.compile(
    r"\]\([ \t]*+(?:<([^<>\n]{1,1000}+)>|((?:[^\s()<>]|\([^\s()]*+\)){1,1000}+))"  # its target
    r"(?:\s++(?:\"[^\"]*+\"|'[^']*+'))?+\s*+\)"  # a title
)
_IMAGE = re.compile(r"!\[[^\[\]]*+\]\([^()]*+\)")
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+:|[/#]")
_FENCE = re.compile(r"[ \t>*+-]*+(?:\d{1,9}+[.)][ \t]++)?(`{3,}+|~{3,}+)(.*+)")
_TICKS = re.compile(r"`++")


def links_of(text: str, path: str) -> set[Link]:
    """The links in a chunk of the document at `path`: `[[Title]]`, `[[Title#part|shown]]`, `[x](../a.md#part)`.

    Paths are resolved against `path` and stay below its first folder, the root's name. Code, images, anchors and
    addresses (http, mailto) are no links.
    """
    found: set[Link] = set()
    for prose in _paragraphs(text):
        plain = _IMAGE.sub("", _without_code(prose))
        found.update(_titles(match[1]) for match in _WIKI.finditer(plain))
        found.update(_paths(match[1] or match[2], path) for match in _INLINE.finditer(plain))
    return found - {()}


def link_counts(chunks: Iterable[Chunk]) -> dict[str, int]:
    """doc_id -> number of other documents of its namespace that link to it, for every document of `chunks`.

    A title or path that several documents share is ambiguous and counts for none of them.
    """
    owners: defaultdict[tuple[str, Key], set[str]] = defaultdict(set)
    linking: defaultdict[tuple[str, Link], set[str]] = defaultdict(set)
    backlinks: dict[str, set[str]] = {}
    for chunk in chunks:
        if chunk.doc_id not in backlinks:
            backlinks[chunk.doc_id] = set()
            for key in (Key("title", _folded(chunk.title)), Key("path", chunk.path)):
                owners[chunk.namespace, key].add(chunk.doc_id)
        for link in links_of(chunk.text, chunk.path):
            linking[chunk.namespace, link].add(chunk.doc_id)
    for (namespace, link), sources in linking.items():
        named = next((owners[namespace, key] for key in link if (namespace, key) in owners), set())
        if len(named) == 1:
            backlinks[next(iter(named))] |= sources - named
    return {doc_id: len(sources) for doc_id, sources in backlinks.items()}


def _titles(target: str) -> Link:
    # In a table, the bar of [[Title|shown]] is written \|.
    target = target.removesuffix("\\")
    names = (target, target.partition("#")[0])
    return tuple(Key("title", name) for name in dict.fromkeys(map(_folded, names)) if name)


def _paths(target: str, path: str) -> Link:
    root = path.partition("/")[0] + "/"
    if _ELSEWHERE.match(target):
        return ()
    names = (posixpath.join(posixpath.dirname(path), unquote(part)) for part in (target, target.partition("#")[0]))
    inside = (name for name in map(posixpath.normpath, names) if name.startswith(root))
    return tuple(Key("path", name) for name in dict.fromkeys(inside))


def _folded(title: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", title).casefold().split())


def _paragraphs(text: str) -> Iterator[str]:
    """What stands outside code fences, cut at empty lines: inline code never reaches over one."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
            continue
        # Backticks behind the opening ones make it inline code.
        if found and not ("`" in found[1] and "`" in found[2]):
            fence = found[1]
        elif line.strip():
            lines.append(line)
            continue
        yield "\n".join(lines)
        lines = []
    yield "\n".join(lines)


def _without_code(prose: str) -> str:
    """`prose` with one backtick for each code span: a run of backticks up to the next run of the same length."""
    runs = list(_TICKS.finditer(prose))
    later: dict[int, int] = {}
    closed: dict[int, int] = {}
    for run in reversed(runs):
        if len(run[0]) in later:
            closed[run.start()] = later[len(run[0])]
        later[len(run[0])] = run.end()
    kept, end = [], 0
    for run in runs:
        if run.start() >= end and run.start() in closed:
            kept.append(prose[end : run.start()])
            end = closed[run.start()]
    return "`".join([*kept, prose[end:]])
