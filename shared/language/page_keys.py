"""The keys that pages are joined by: a page defines them, a link or a mention in another page holds them. Pure."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Sequence
from pathlib import PurePosixPath

TITLE, PATH, LABEL = "title:", "path:", "label:"
#: What the keys of pages begin with.
PAGE_KEYS = (TITLE, PATH, LABEL)
#: Files whose name is as good as a title: a line of a JSONL file has none of its own.
_PAGES = frozenset({".md", ".markdown", ".txt", ".text", ".rst"})


def folded(title: str) -> str:
    """A title as keys write it: compatibility forms unified, no case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", title).casefold().split())


def title_key(title: str) -> str:
    return TITLE + folded(title)


def path_key(path: str) -> str:
    """The key of a document's or a directory's path as it is stored: "notes/queues/redis.md", "notes/queues/"."""
    return PATH + path


def label_key(label: str) -> str:
    """The key of a place in a page, named by the page itself: ".. _queue-routing:" in reStructuredText."""
    return LABEL + folded(label)


def page_keys(title: str, path: str) -> tuple[str, ...]:
    """What every chunk of a page defines: its title and its file's name as titles, and its path."""
    name = PurePosixPath(path)
    titles = [title, name.stem] if name.suffix.lower() in _PAGES else [title]
    return (*dict.fromkeys(title_key(text) for text in titles if folded(text)), path_key(path))


def is_page_key(key: str) -> bool:
    """False for the dotted names of code."""
    return key.startswith(PAGE_KEYS)


def fallbacks(key: str) -> tuple[str, ...]:
    """What a link with this key means where nothing defines the key itself, the likelier first.

    "C# notes" is the part " notes" of "C", "queues/Redis" is "Redis", "redis.html" and "redis" are "redis.md", a folder
    is its index.md or README.md. A label is meant as it stands.
    """
    kind, _, name = key.partition(":")
    if kind == "label":
        return ()
    page = name.partition("#")[0].rstrip() or name
    found = [page]
    if kind == "title":
        last = page.rpartition("/")[2].strip()
        found += [last, last.removesuffix(".md")]
    else:
        stem, suffix = posixpath.splitext(page)
        if suffix in {".html", ".htm"}:
            found += [f"{stem}.md", f"{stem}.rst"]
        elif not suffix:
            found += [f"{page}.md", f"{page}/index.md", f"{page}/README.md"]
    return tuple(f"{kind}:{text}" for text in dict.fromkeys(found) if text and text != name)


def links(refs: Sequence[str]) -> list[tuple[str, ...]]:
    """The links that `refs` are made of: each with its fallbacks behind it. Names of code are left out."""
    found = []
    place = 0
    while place < len(refs):
        key = refs[place]
        place += 1
        if not is_page_key(key):
            continue
        others = fallbacks(key)
        if tuple(refs[place : place + len(others)]) == others:
            found.append((key, *others))
            place += len(others)
        else:
            found.append((key,))
    return found
