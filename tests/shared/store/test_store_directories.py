"""The filters of directory nodes find the same on every store."""

from __future__ import annotations

import pytest
from qdrant_client import models

from shared.language.page_keys import path_key
from shared.models import Filters, Hit
from shared.models.hits import PagePart
from shared.store import SPARSE, BuiltWith, ChunkStore
from shared.store.directories import documents_in, nodes, root_key, starts, subdirectories
from tests.shared.store.conftest import ENCODER, MakePoint

#: Path -> (parent, subdirectories, kinds).
DIRECTORIES: dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]] = {
    "/": (None, ("n/",), ("memory", "resource")),
    "n/": ("/", ("n/a/", "n/all.jsonl#"), ("memory", "resource")),
    "n/a/": ("n/", (), ("memory",)),
    "n/all.jsonl#": ("n/", (), ("resource",)),
}
DOCUMENTS = {
    "lone.md": "resource",
    "n/x.md": "resource",
    "n/a/y.md": "memory",
    "n/ab.md": "resource",
    "n/all.jsonl#1": "resource",
}


@pytest.fixture
def described(store: ChunkStore, built_with: BuiltWith, make_point: MakePoint) -> ChunkStore:
    store.create(built_with)
    points = [make_point("common words", path, path=path, kind=kind) for path, kind in DOCUMENTS.items()]
    points.append(make_point("common words", "else", path="n/a/else.md", namespace="other"))
    for namespace in ("default", "other"):
        for path, (parent, below, kinds) in DIRECTORIES.items():
            for ordinal, part in enumerate((PagePart.ABSTRACT, PagePart.OVERVIEW)):
                fields = {
                    "path": path, "namespace": f"{namespace}:dirs", "part": part, "tags": kinds,
                    "defines": (path_key(path), *((root_key(), root_key("resource")) if parent is None else ())),
                    "refs": (path_key(parent),) if parent else (), "mentions": tuple(map(path_key, below)),
                }  # fmt: skip
                points.append(make_point("common words", f"{namespace} {path}", ordinal, **fields))
    store.upsert(points)
    return store


def found(store: ChunkStore, flt: models.Filter) -> set[str]:
    vector = ENCODER.encode_query("common words")
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    (hits,) = store.query([models.QueryRequest(query=query, using=SPARSE, filter=flt, limit=99, with_payload=True)])
    looked = store.lookup(flt, 99)
    assert {hit.chunk_id for hit in hits} == {hit.chunk_id for hit in looked}
    return {hit.path for hit in hits}


def node(path: str) -> Hit:
    below = tuple(map(path_key, DIRECTORIES[path][1]))
    return Hit(chunk_id="x", doc_id="x", path=path, title=path, text="", score=0, mentions=below)


def test_given_nodes_when_all_are_asked_then_those_of_the_namespace_alone_come(described: ChunkStore) -> None:
    assert found(described, nodes(Filters())) == set(DIRECTORIES)
    assert found(described, nodes(Filters(namespace="third"))) == set()


def test_given_kinds_and_paths_when_asked_then_only_directories_that_lead_there_come(described: ChunkStore) -> None:
    assert found(described, nodes(Filters(kinds=("memory",)))) == {"/", "n/", "n/a/"}
    assert found(described, nodes(Filters(paths=("n/a/",)))) == {"/", "n/", "n/a/"}
    assert found(described, nodes(Filters(paths=("n/all.jsonl#1",)))) == {"/", "n/", "n/all.jsonl#"}


def test_given_a_directory_when_its_children_are_asked_then_those_right_below_come(described: ChunkStore) -> None:
    assert found(described, subdirectories(Filters(), "/")) == {"n/"}
    assert found(described, subdirectories(Filters(), "n/")) == {"n/a/", "n/all.jsonl#"}
    assert found(described, subdirectories(Filters(), "n/a/")) == set()


@pytest.mark.parametrize(
    ("path", "documents"),
    [("/", {"lone.md"}), ("n/", {"n/x.md", "n/ab.md"}), ("n/a/", {"n/a/y.md"}), ("n/all.jsonl#", {"n/all.jsonl#1"})],
)
def test_given_a_directory_when_its_documents_are_asked_then_neither_those_below_nor_beside_it_come(
    described: ChunkStore, path: str, documents: set[str]
) -> None:
    assert found(described, documents_in(Filters(), node(path))) == documents


def test_given_documents_of_a_directory_when_filtered_then_the_filter_holds(described: ChunkStore) -> None:
    assert found(described, documents_in(Filters(kinds=("memory",)), node("n/"))) == set()
    assert found(described, documents_in(Filters(paths=("n/ab",)), node("n/"))) == {"n/ab.md"}


def test_given_roots_and_names_when_starts_are_asked_then_both_come_as_abstracts(described: ChunkStore) -> None:
    hits = described.lookup(starts(Filters(), ["n/a/", "gone/"]), 99)
    assert {(hit.path, hit.part) for hit in hits} == {("/", PagePart.ABSTRACT), ("n/a/", PagePart.ABSTRACT)}
    assert described.lookup(starts(Filters(kinds=("skill",)), []), 99) == []
