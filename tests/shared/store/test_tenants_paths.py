"""The whole collection is held in one place; whoever else works with chunks cannot but have a tenant's view."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from shared.errors import InputError, TransientError
from shared.models import Filters, RawDocument
from shared.models.enumeration import ValuesRequest
from shared.models.find import RelatedRequest
from shared.models.ingest import IngestItem
from shared.settings import load_settings
from shared.store import ChunkStore, TenantStores
from shared.store.collection import Collection
from shared.store.embedded import EmbeddedStore
from shared.tenants import tenant_name
from tests.fakes.stores import open_store
from workers.index.documents import chunk_id, document_id
from workers.index.pipeline import Indexer
from workers.search.leaf import LeafQuery

ROOT = Path(__file__).parents[3]
#: What sees or makes the whole collection -> who may name it.
WHOLE = {
    "Collection": ("shared/store/",),
    "EmbeddedStore": ("shared/store/",),
    "ServerStore": ("shared/store/",),
    "qdrant_edge": ("shared/store/", "shared/providers/encoders/sparse.py"),
    "QdrantClient": ("shared/store/",),
    "ChunkStore()": ("shared/store/",),
    "TenantStores": ("shared/store/", "workers/search/resources.py"),
    "open_stores": ("shared/store/", "workers/search/resources.py"),
    "EmbeddedPoints": ("shared/store/", "orchestrator/storing.py"),
    "ServerPoints": ("shared/store/",),
    "Generations": ("shared/store/", "orchestrator/storing.py"),
    "server_client": ("shared/store/", "orchestrator/storing.py"),
    "_collection": ("shared/store/",),
    "_stores": ("workers/search/resources.py",),
}

#: Every way into a tenant's store, with its parameters; test_store_tenants.py tells that each is scoped.
WAYS = {
    "count": ["self", "flt"],
    "count_values": ["self", "field", "flt", "limit"],
    "create": ["self", "built_with"],
    "delete_chunks": ["self", "doc_id", "keep"],
    "delete_documents": ["self", "doc_ids"],
    "document_hashes": ["self", "doc_ids"],
    "documents": ["self", "source"],
    "flush": ["self"],
    "info": ["self"],
    "lookup": ["self", "flt", "limit", "vectors"],
    "mark_finished": ["self", "state"],
    "optimize": ["self"],
    "origins": ["self", "doc_ids"],
    "parts_of": ["self", "file_ids"],
    "query": ["self", "requests"],
    "read": ["self", "flt", "fields", "start", "stop"],
    "scroll": ["self", "flt", "batch"],
    "set_backlinks": ["self", "counts"],
    "set_payloads": ["self", "changes"],
    "set_sparse": ["self", "vectors", "avg_len"],
    "tenant": [],
    "upsert": ["self", "points"],
}


def _sources() -> Iterator[tuple[str, ast.Module]]:
    """Modules whose text holds one of the names at all."""
    names = [name.removesuffix("()") for name in WHOLE]
    for room in ("shared", "orchestrator", "workers"):
        for file in sorted((ROOT / room).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if any(name in text for name in names):
                yield file.relative_to(ROOT).as_posix(), ast.parse(text)


def _names(tree: ast.Module) -> Iterator[str]:
    """Every name that a module imports, uses or reads off something, and texts: a name may hide in getattr."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            yield from (alias.name.rpartition(".")[2] for alias in node.names)
        elif isinstance(node, ast.Name):
            yield node.id
            if node.id == "ChunkStore":
                yield from _calls(tree)
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _calls(tree: ast.Module) -> Iterator[str]:
    """ "NAME()" for every call of a plain name: a store is made in one place only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield f"{node.func.id}()"


def _whole(path: str, tree: ast.Module) -> list[str]:
    named = set(_names(tree)) & WHOLE.keys()
    return [name for name in sorted(named) if not path.startswith(WHOLE[name])]


def test_given_all_sources_when_read_then_only_the_store_and_the_corpus_name_the_whole_collection() -> None:
    # `Collection` of collections.abc is another one, which many import.
    found = {
        path: whole
        for path, tree in _sources()
        if (
            whole := [
                name for name in _whole(path, tree) if name != "Collection" or "shared.store.collection" in _bases(tree)
            ]
        )
    }
    assert found == {}


def _bases(tree: ast.Module) -> set[str]:
    """The modules that `Collection` is imported from."""
    return {
        node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "Collection" for alias in node.names)
    }


@pytest.mark.parametrize(
    "source",
    [
        "from shared.store import open_stores",
        "import qdrant_edge as edge",
        "from shared.store.embedded import EmbeddedStore as E",
        "def f(store):\n    return store._collection.read(None, ())",
        "def f(store):\n    return getattr(store, '_collection')",
        "def f(corpus):\n    return corpus._stores",
        "from shared.store.collection import Collection",
        "from shared.store import ChunkStore\nstore = ChunkStore(other, 'a')",
    ],
)
def test_given_a_module_that_reaches_for_the_whole_when_read_then_it_is_seen(source: str) -> None:
    assert _whole("workers/search/stages/new.py", ast.parse(source))


def _methods(kind: type) -> dict[str, list[str]]:
    found = inspect.getmembers(kind, lambda member: inspect.isfunction(member) or isinstance(member, property))
    return {
        name: list(inspect.signature(member).parameters) if inspect.isfunction(member) else []
        for name, member in found
        if not name.startswith("_")
    }


def test_given_the_view_when_compared_then_it_has_each_way_of_a_store_and_none_of_the_whole_collections_own() -> None:
    view, whole = _methods(ChunkStore), _methods(Collection)
    assert view == WAYS, "a new way into the store is scoped, or it is not there"
    assert not {"delete", "remember", "close"} & view.keys()
    assert whole["upsert"] != view["upsert"], "the collection cannot be taken for a view: it wants to know for whom"


@pytest.mark.parametrize("model", [IngestItem, ValuesRequest, RelatedRequest, LeafQuery])
def test_given_a_message_between_pools_when_it_names_no_tenant_then_it_is_refused(model: type) -> None:
    of_leaf = {"text": "q", "strategy": "default", "filters": Filters(), "wanted": 1}
    others = {LeafQuery: of_leaf, IngestItem: {"source": "/n"}}.get(model, {})
    model(**others, tenant="a")
    with pytest.raises(ValidationError, match="tenant"):
        model(**others)


def test_given_documents_of_another_tenant_when_indexed_then_the_batch_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.index.encoding.Bm25Encoder", lambda _: pytest.fail("nothing is encoded"))
    settings = load_settings(data_dir=tmp_path)
    store = open_store(settings, "a")
    raw = RawDocument(source="/n", path="n.md", identity="/n.md", suffix=".md", content=b"# N\n\ntext", tenant="b")
    indexer = Indexer(store, None, settings)
    with pytest.raises(InputError, match="store of a"):
        indexer.index([raw])
    assert store.info() is None
    store.close()


def test_given_older_chunks_that_are_being_given_away_when_asked_meanwhile_then_the_wait_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.store.chunk_store._ADOPTION_WAIT_S", 0.01)
    stores = TenantStores(EmbeddedStore(tmp_path / "store"))
    with stores._adopting, pytest.raises(TransientError, match="older release"):
        stores.of("a")
    assert stores.of("a").info() is None
    stores.close()


def test_given_the_same_file_when_two_tenants_have_it_then_no_id_is_shared_and_the_defaults_stay_as_they_were() -> None:
    ids = {tenant: document_id("/notes/a.md", "default", tenant) for tenant in ("default", "a", "b", "A", "甲")}
    assert len(set(ids.values())) == len(ids)
    assert ids["default"] == "eaa23209-863d-5fa2-baa5-420e32cd05ed"
    assert len({chunk_id(doc_id, 0, "text") for doc_id in ids.values()}) == len(ids)
    spelt = [document_id("/x", "a\ndefault", "default"), document_id("default\n/x", "a", "default")]
    assert document_id("/x", "default", "a") not in spelt


@pytest.mark.parametrize("name", ["", " ", "a b", "a:b", "a{b}", "a/..", "a\n", "\u200b", "a" * 65, None, 0, b"a"])
def test_given_what_is_no_name_when_read_as_a_tenant_then_it_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="tenant"):
        tenant_name(name)
