"""The links of a text, as the keys of the pages that they lead to. Pure; never follows a link out of the corpus."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import chain, islice
from urllib.parse import unquote

from shared.language.page_keys import fallbacks, folded, label_key, path_key, title_key
from workers.index.rst import prose_of

#: Links of one chunk; a chunk with more is a list of links.
MAX_LINKS = 64
_RST = ".rst"

# Quantifiers are possessive and classes leave out what begins the next match: linear on any text. Bounds keep what is
# normalised short, since Unicode's reordering of combining marks is not linear.
_WIKI = re.compile(r"\[\[([^\[\]|\n]{1,500}+)(?:\|[^\[\]\n]*+)?\]\]")
_INLINE = re.compile(
    r"\]\([ \t]*+(?:<([^<>\n]{1,1000}+)>|((?:[^\s()<>]|\([^\s()]*+\)){1,1000}+))"  # its target
    r"(?:\s++(?:\"[^\"]*+\"|'[^']*+'))?+\s*+\)"  # a title
)
_DEFINITION = re.compile(
    r"^ {0,3}+\[[^\[\]\n]{1,200}+\]:[ \t]*+(?:<([^<>\n]{1,1000}+)>|([^\s<>]{1,1000}+))", re.MULTILINE
)
# reStructuredText: ``literal``, :doc:`shown <path>`, :ref:`shown <label>`, `shown <path>`_ and ".. _name: path".
_LITERAL = re.compile(r"``(?:[^`]|`(?!`))*+``")
_ROLE = re.compile(r":(doc|ref|numref):`(?:[^`<>]{0,300}+<)?([^`<>]{1,500}+)>?`")
_EMBEDDED = re.compile(
    r"`[^`<>]{0,300}+<([^`<>\s]{1,500}+)>`_|^[ \t]*+\.\. _[^:`\n]{1,200}+: ([^\s`]{1,500}+)$", re.MULTILINE
)
#: Folders that a :doc: path with a leading "/" is relative to (docs/source/ where that exists), else the root.
_SOURCE_FOLDERS = frozenset({"doc", "docs", "documentation"})
#: One of these stands in every link of Markdown.
_LINKING = ("](", "[[", "]:")
_IMAGE = re.compile(r"!\[[^\[\]]*+\]\([^()]*+\)")
_EXTERNAL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+:|[/#]")
_FENCE = re.compile(r"[ \t>*+-]*+(?:\d{1,9}+[.)][ \t]++)?(`{3,}+|~{3,15}+(?!~))(.*+)")
_TICKS = re.compile(r"`++")


def links_of(text: str, path: str) -> list[str]:
    """The keys that a text of the document at `path` links to, each once, in order.

    A link is `[[Title]]`, `[[Title#part|shown]]`, `[x](../a.md#part)`, `[label]: a.md`; in reStructuredText ":doc:`a`",
    ":doc:`/a`" from the folder of the docs on, ":ref:`label`" and "`x <a.rst>`_".
    Paths are resolved against `path` and stay below its first folder, the root's name. Code, images, anchors and
    addresses (http, mailto) are no links.
    """
    if not (path.endswith(_RST) or any(map(text.__contains__, _LINKING))):
        return []
    read = prose_of if path.endswith(_RST) else _paragraphs
    return list(dict.fromkeys(chain.from_iterable(_keys(prose, path) for prose in read(text))))


def refs_of(text: str, path: str) -> tuple[str, ...]:
    """`links_of` up to MAX_LINKS, each followed by its fallbacks: what a chunk stores as `refs`."""
    return tuple(ref for key in islice(links_of(text, path), MAX_LINKS) for ref in (key, *fallbacks(key)))


def _keys(prose: str, path: str) -> Iterator[str]:
    if path.endswith(_RST):
        yield from _rst_keys(_LITERAL.sub("``", prose), path)
    plain = _IMAGE.sub("", _without_code(prose))
    for match in _WIKI.finditer(plain):
        # In a table, the bar of [[Title|shown]] is written \|.
        target = match[1].removesuffix("\\")
        if folded(target.partition("#")[0]):
            yield title_key(target)
    for match in chain(_INLINE.finditer(plain), _DEFINITION.finditer(plain)):
        if key := _page_key(match[1] or match[2], path):
            yield key


def _rst_keys(prose: str, path: str) -> Iterator[str]:
    for role, target in _ROLE.findall(prose):
        if role != "doc":
            if folded(target):
                yield label_key(target)
        elif key := _page_key(_from_sources(f"{target.strip()}.rst", path), path):
            yield key
    for match in _EMBEDDED.finditer(prose):
        target = match[1] or match[2]
        # With "_" behind it, it is the name of another target.
        if not target.endswith("_") and (key := _page_key(target, path)):
            yield key


def _from_sources(target: str, path: str) -> str:
    """A target relative to `path`: a leading "/" is Sphinx's folder of sources."""
    if not target.startswith("/"):
        return target
    folders = path.split("/")[:-1]
    sources = next((place for place, name in enumerate(folders) if name.casefold() in _SOURCE_FOLDERS), 0)
    sources += folders[sources + 1 : sources + 2] == ["source"]
    return "../" * (len(folders) - 1 - sources) + target.lstrip("/")


def _page_key(target: str, path: str) -> str | None:
    """The key of a path below the root, None for everything else."""
    if _EXTERNAL.match(target):
        return None
    page, hash_, part = target.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(page)))
    root = path.partition("/")[0] + "/"
    return path_key(f"{name}{hash_}{unquote(part)}") if name.startswith(root) else None


def _paragraphs(text: str) -> Iterator[str]:
    """The text outside code fences, cut at empty lines: inline code never spans one."""
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
