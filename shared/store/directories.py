"""Directory nodes: their names, their place in the store, and the filters that find them. Pure.

A node is two chunks, its abstract and its overview, in a namespace of its own beside the documents'. Its `path` is a
prefix of the path of everything in it: "root/sub/", "root/corpus.jsonl#" for the lines of a JSONL file, "/" for all.
Its `refs` lead to its parent, its `mentions` to its subdirectories, its `tags` are the kinds of documents below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from qdrant_client import models

from shared.language.page_keys import PATH, path_key
from shared.models import Filters, Hit
from shared.models.hits import PagePart
from shared.store.schema import equals, one_of, to_filter

TOP = "/"
#: Subdirectories whose documents are kept apart from the directory's own. In a directory with more, the documents of
#: the others count as its own.
MOST_NAMED = 64
#: Levels that have a node of their own; what lies deeper belongs to the last of them.
DEEPEST = 32
_SUFFIX = ":dirs"
_LINES = re.compile(r"\.(?:jsonl|ndjson|mbox)#", re.IGNORECASE)


def dirs_namespace(namespace: str) -> str:
    """Where the directory nodes of `namespace` stand. No user can name it: names hold no colon."""
    return f"{namespace}{_SUFFIX}"


def in_dirs(chunk: Hit) -> bool:
    """True for a chunk of a directory node."""
    return chunk.namespace.endswith(_SUFFIX)


def dirs_source(namespace: str) -> str:
    """The source of the directory nodes of `namespace`: no root is called so, and so no prune reaches them."""
    return f"{_SUFFIX}:{namespace}"


def root_key(kind: str = "") -> str:
    """The key that every root directory of a kind of documents defines; "": of any kind."""
    return f"root:{kind}"


def directory_of(path: str) -> str:
    """The directory of the document at `path`: "a/b/c.md" -> "a/b/", "a/x.jsonl#7" -> "a/x.jsonl#", "c.md" -> "/"."""
    if lines := _LINES.search(path):
        return path[: lines.end()]
    folders = path.split("/")[:-1][:DEEPEST]
    return f"{'/'.join(folders)}/" if folders else TOP


def parent_of(directory: str) -> str | None:
    """The directory above, None above "/"."""
    above = directory.rstrip("/").rpartition("/")[0]
    return None if directory == TOP else f"{above}/" if above else TOP


def lineage(directory: str) -> Iterator[str]:
    """`directory` and all above it, "/" last."""
    yield directory
    if (above := parent_of(directory)) is not None:
        yield from lineage(above)


def nodes(filters: Filters) -> models.Filter:
    """The directories in which documents that pass `filters` may be found: those of its namespace, kinds and paths.

    Dates and tags are left to the documents.
    """
    must: list[models.Condition] = [equals("namespace", dirs_namespace(filters.namespace))]
    if filters.kinds:
        must.append(one_of("tags", filters.kinds))
    if filters.paths:
        below = [models.FieldCondition(key="path", match=models.MatchPrefix(prefix=path)) for path in filters.paths]
        above = sorted({at for path in filters.paths for at in lineage(directory_of(path))})
        must.append(models.Filter(should=[*below, one_of("path", above)]))
    return models.Filter(must=must)


def subdirectories(filters: Filters, directory: str) -> models.Filter:
    """The directories right below `directory`."""
    return _and(nodes(filters), equals("refs", path_key(directory)))


def starts(filters: Filters, directories: Iterable[str]) -> models.Filter:
    """The abstracts of the root directories of the kinds that are asked for, and of `directories`."""
    keys = [root_key(kind) for kind in filters.kinds or ("",)] + [path_key(path) for path in directories]
    return _and(nodes(filters), equals("part", PagePart.ABSTRACT.value), one_of("defines", keys))


def documents_in(filters: Filters, node: Hit) -> models.Filter:
    """The chunks of the documents right below the directory `node`."""
    own = to_filter(filters) if node.path == TOP else _and(to_filter(filters), _below(node.path))
    others = [_below(key.removeprefix(PATH)) for key in node.mentions[:MOST_NAMED]]
    return own.model_copy(update={"must_not": others or None})


def _and(flt: models.Filter, *more: models.Condition) -> models.Filter:
    return models.Filter(must=[*(flt.must if isinstance(flt.must, list) else ()), *more])


def _below(prefix: str) -> models.FieldCondition:
    return models.FieldCondition(key="path", match=models.MatchPrefix(prefix=prefix))
