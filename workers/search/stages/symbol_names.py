"""The names by which code in other files reaches a definition: where it is imported from, and through subclasses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from qdrant_client import models

from shared.language.page_keys import is_page_key
from shared.models import Hit
from shared.store import ChunkStore
from shared.store.schema import equals, one_of
from workers.search.stages.edge_keys import places_of

#: Parts of the longest stored key.
_KEY_PARTS = 6
#: Modules that import from each other, or classes that derive from each other, in a row; names in all, chunks read.
_MAX_STEPS, _MAX_NAMES, _MAX_READ = 3, 150, 1000
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+\S+[ \t]+import[ \t]*(?:\([^)]*+\)?|[^\n]*+)|import[ \t]*\([^)]*+\)?"
    r"|(?:import|use|pub use|export)\b[^;\n{]*+(?:\{[^}]*+\}[^;\n]*+)?)",
    re.MULTILINE,
)


def other_names(definition: Hit, namespace: str, store: ChunkStore) -> tuple[str, ...]:
    """Keys that lead to a definition although none of its own does.

    `from pkg.a import f` in `pkg/b.py` makes it `pkg.b.f` as well, and a class that derives from `A` has the methods
    of `A` that it does not define itself. Raises: StoreError, TransientError.
    """
    keys = [key for key in definition.defines if not is_page_key(key)]
    labels = definition.heading.split(" > ")
    method = len(labels) > 1 and labels[-2].startswith(("class ", "struct ", "interface ", "trait "))
    tail = f".{keys[0].rpartition('.')[2]}" if method and keys else ""
    holders = {key.removesuffix(tail) for key in keys}
    known = frontier = {key for key in holders if "." in key}
    for _ in range(_MAX_STEPS):
        if not frontier or len(known) > _MAX_NAMES:
            break
        where = models.Filter(must=[equals("namespace", namespace), one_of("refs", sorted(frontier))])
        found = store.lookup(where, _MAX_READ)
        frontier = {name for hit in found for name in _names_in(hit, frontier, derived=method)} - known
        known = known | frontier
    new = sorted({name + tail for name in known} - set(keys))[:_MAX_NAMES]
    defined = places_of(new, namespace, store) if new else {}
    return tuple(name for name in new if name not in defined)


def _names_in(hit: Hit, holders: Iterable[str], *, derived: bool) -> Iterator[str]:
    """The names under which a chunk passes on those of `holders` that it imports or, if `derived`, derives from."""
    if not hit.symbol:
        return
    for last in {key.rpartition(".")[2] for key in set(hit.refs).intersection(holders)}:
        if not hit.heading:
            yield from (_cut(f"{hit.symbol}.{name}") for name in imported_as(last, hit.text))
        elif derived and _derives(hit.symbol.rpartition(".")[2], last, hit.text):
            yield _cut(hit.symbol)


def _cut(name: str) -> str:
    return ".".join(name.split(".")[-_KEY_PARTS:])


def imported_as(name: str, text: str) -> set[str]:
    """The local names of `name` by the import statements of a text."""
    imports = " ".join(_IMPORT.findall(text))
    if not re.search(rf"\b{re.escape(name)}\b", imports):
        return set()
    return set(re.findall(rf"\b{re.escape(name)}\s+as\s+(\w+)", imports)) or {name}


def without_imports(text: str) -> str:
    """A text without its import statements."""
    return _IMPORT.sub("", text)


def _derives(name: str, base: str, text: str) -> bool:
    return re.search(rf"\bclass\s+{re.escape(name)}\b[^:{{]*\b{re.escape(base)}\b", text) is not None
