"""Mentions and backlinks at the end of an ingest: of what changed alone, and the same as a scan of everything."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from shared.errors import StoreError
from shared.models import RawDocument
from shared.settings import Settings
from shared.store import ChunkStore
from tests.fakes.stores import open_store
from workers.index import edges
from workers.index import mentions as mention_pass
from workers.index.pipeline import Indexer

ROOT = "/notes"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"data_dir": tmp_path, "hierarchy": {"enabled": False}})


def raw(name: str, text: str, namespace: str = "default") -> RawDocument:
    path = f"notes/{name}.md"
    return RawDocument(
        source=ROOT, path=path, identity=f"{ROOT}/{name}.md", suffix=".md", content=text.encode(), namespace=namespace
    )


def ingest(indexer: Indexer, pages: dict[str, str], namespace: str = "default") -> None:
    outcomes, _ = indexer.index([raw(name, text, namespace) for name, text in pages.items()])
    assert not [outcome.reason for outcome in outcomes if outcome.status == "failed"]


def prune(indexer: Indexer, pages: dict[str, str]) -> None:
    outcomes, _ = indexer.index([raw(name, text) for name, text in pages.items()])
    indexer.finish({ROOT: {outcome.doc_id for outcome in outcomes}})


def joined(store: ChunkStore, namespace: str = "default") -> dict[str, tuple[tuple[str, ...], int]]:
    """Page -> the mentions of all its chunks, and its backlinks."""
    found: dict[str, tuple[tuple[str, ...], int]] = {}
    for page in store.scroll(None):
        for hit in page:
            if hit.namespace == namespace:
                name = hit.path.removeprefix("notes/").removesuffix(".md")
                found[name] = ((*found.get(name, ((), 0))[0], *hit.mentions), hit.backlinks)
    return found


def mentions(store: ChunkStore) -> dict[str, tuple[str, ...]]:
    return {name: keys for name, (keys, _) in joined(store).items() if keys}


def pending(store: ChunkStore) -> int:
    return sum(payload["pending"] > 0 for _, payload in store.read(None, ("pending",)))


def test_given_names_in_prose_when_finished_then_chunks_mention_pages_in_both_languages(
    indexer: Indexer, store: ChunkStore
) -> None:
    ingest(indexer, {
        "a": "# Query planner\n\nWhy the query planner is slow: 缓存雪崩。", "b": "# 缓存雪崩\n\n同时过期",
        "c": "# Other\n\nsee Query planner",
    })  # fmt: skip
    ingest(indexer, {"d": "# D\n\nthe query planner"}, namespace="team")
    assert mentions(store) == {}
    indexer.finish()
    assert mentions(store) == {"a": ("title:缓存雪崩",), "c": ("title:query planner",)}
    assert joined(store, "team") == {"d": ((), 0)}
    assert pending(store) == 0


def test_given_a_new_page_when_finished_then_old_chunks_mention_it_and_a_link_is_no_mention(
    indexer: Indexer, store: ChunkStore
) -> None:
    ingest(indexer, {"a": "uses the query planner", "b": "uses the [[query planner]]"})
    indexer.finish()
    ingest(indexer, {"p": "# Query planner\n\ntext"})
    indexer.finish()
    assert joined(store) == {"a": (("title:query planner",), 0), "b": ((), 0), "p": ((), 1)}


def test_given_one_changed_page_when_finished_then_only_its_chunks_are_scanned(
    indexer: Indexer, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(indexer, {"p": "# Query planner\n\ntext", **{f"n{n}": f"page {n}: the query planner" for n in range(9)}})
    indexer.finish()
    scanned = []
    found = mention_pass.Scanner.found
    monkeypatch.setattr(
        mention_pass.Scanner, "found", lambda self, text, doc_id: scanned.append(text) or found(self, text, doc_id)
    )
    ingest(indexer, {"n3": "the query planner again"})
    indexer.finish()
    ingest(indexer, {"p": "# Query planner\n\nother text"})
    indexer.finish()
    assert scanned == ["the query planner again", "other text"]
    assert len(mentions(store)) == 9


def test_given_a_title_that_a_second_page_takes_when_finished_then_neither_is_mentioned_until_one_goes(
    indexer: Indexer, store: ChunkStore
) -> None:
    pages = {"a": "the query planner, [[query planner]]", "c": "the query planner", "p": "# Query planner\n\none"}
    ingest(indexer, pages)
    indexer.finish()
    assert joined(store) == {"a": ((), 0), "c": (("title:query planner",), 0), "p": ((), 1)}
    ingest(indexer, {"q": "# Query  Planner\n\ntwo"})
    indexer.finish()
    assert joined(store) == {"a": ((), 0), "c": ((), 0), "p": ((), 0), "q": ((), 0)}
    prune(indexer, pages)
    assert joined(store) == {"a": ((), 0), "c": (("title:query planner",), 0), "p": ((), 1)}


def test_given_a_name_in_very_many_chunks_when_finished_then_it_leads_nowhere_even_from_later_pages(
    indexer: Indexer, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mention_pass, "MAX_CHUNKS", 3)
    monkeypatch.setattr(mention_pass, "MAX_SHARE", 0.0)
    ingest(indexer, {"p": "# 数据库\n\n说明", **{f"n{n}": f"第{n}页的数据库" for n in range(4)}})
    indexer.finish()
    assert mentions(store) == {}
    ingest(indexer, {"later": "又是数据库", "p": "# 数据库\n\n别的说明"})
    indexer.finish()
    assert mentions(store) == {}
    prune(indexer, {"p": "# 数据库\n\n说明", **{f"n{n}": f"第{n}页的数据库" for n in range(3)}})
    assert sorted(mentions(store)) == ["n0", "n1", "n2"], "it is not common any more"


def test_given_a_title_that_grows_common_when_pages_come_one_by_one_then_it_becomes_no_hub(
    indexer: Indexer, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mention_pass, "MAX_CHUNKS", 3)
    monkeypatch.setattr(mention_pass, "MAX_SHARE", 0.9)
    monkeypatch.setattr(mention_pass, "MOST_CHUNKS", 5)
    ingest(indexer, {"p": "# 数据库\n\n说明"})
    sizes = []
    for number in range(8):
        ingest(indexer, {f"n{number}": f"第{number}页的数据库"})
        indexer.finish()
        sizes.append(len(mentions(store)))
    assert sizes == [1, 2, 3, 4, 5, 0, 0, 0]


def test_given_many_names_in_a_chunk_when_finished_then_the_longest_are_kept(
    indexer: Indexer, store: ChunkStore
) -> None:
    titles = [f"Part {'long ' * n}name" for n in range(mention_pass.MAX_MENTIONS + 4)]
    ingest(indexer, {f"t{n}": f"# {title}\n\nx" for n, title in enumerate(titles)} | {"a": ", ".join(titles)})
    indexer.finish()
    kept = mentions(store)["a"]
    assert kept == tuple(f"title:{title.lower()}" for title in reversed(titles[4:]))


def test_given_a_page_that_stops_linking_when_finished_then_only_its_targets_are_counted_again(
    indexer: Indexer, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(indexer, {"a": "[[c]]", "b": "[x](c.md)", "c": "text", "d": "[[a]]"})
    indexer.finish()
    assert {name: count for name, (_, count) in joined(store).items()} == {"a": 1, "b": 0, "c": 2, "d": 0}
    counted = []
    set_backlinks = type(store).set_backlinks
    monkeypatch.setattr(
        type(store), "set_backlinks", lambda self, counts: counted.append(len(counts)) or set_backlinks(self, counts)
    )
    ingest(indexer, {"b": "no link"})
    indexer.finish()
    assert {name: count for name, (_, count) in joined(store).items()} == {"a": 1, "b": 0, "c": 1, "d": 0}
    assert counted == [2]


def test_given_a_link_to_a_source_file_when_finished_then_it_leads_to_its_first_chunk(
    indexer: Indexer, store: ChunkStore
) -> None:
    ingest(indexer, {"a": "see [the code](src/run.py)"})
    code = "def first():\n    return 1\n\n\ndef second():\n    return first()\n"
    indexer.index([
        RawDocument(source=ROOT, path="notes/src/run.py", identity="/run.py", suffix=".py", content=code.encode())
    ])  # fmt: skip
    indexer.finish()
    defining = {hit.ordinal for page in store.scroll(None) for hit in page if "path:notes/src/run.py" in hit.defines}
    assert defining == {0}
    assert joined(store)["src/run.py"][1] == 1


def test_given_a_likelier_meaning_that_comes_and_goes_when_finished_then_the_link_counts_for_the_right_page(
    indexer: Indexer, store: ChunkStore
) -> None:
    pages = {"a": "[[C# notes]]", "c": "# C\n\ntext"}
    ingest(indexer, pages)
    indexer.finish()
    assert joined(store)["c"][1] == 1
    ingest(indexer, {"s": "# C# notes\n\ntext"})
    indexer.finish()
    assert (joined(store)["c"][1], joined(store)["s"][1]) == (0, 1)
    prune(indexer, pages)
    assert joined(store)["c"][1] == 1


_TITLES = (
    "Query planner", "Write-ahead log", "缓存雪崩", "Log compaction", "Vector index", "Query planner hints",
    "Vector index (2024 film)", "Vector index (2025 book, a film of it)",
)  # fmt: skip


def _page(chance: random.Random) -> str:
    """A page under one of few titles, so that titles clash, with names and links to others in its text."""
    said = [chance.choice(_TITLES) for _ in range(chance.randint(0, 3))]
    linked = [f"[[{chance.choice(_TITLES)}#part]]" for _ in range(chance.randint(0, 2))]
    links = [f"[x](p{chance.randint(0, 7)}.md)" for _ in range(chance.randint(0, 2))]
    return f"# {chance.choice(_TITLES)} {chance.choice(['', '', 'two'])}\n\n" + ", ".join(
        [*said, *linked, *links, "end"]
    )


@pytest.mark.parametrize("seed", range(6))
def test_given_any_history_when_finished_then_edges_are_those_of_one_fresh_ingest(
    settings: Settings, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(mention_pass, "MAX_CHUNKS", 2)
    monkeypatch.setattr(mention_pass, "MAX_SHARE", 0.0 if seed % 2 else 0.3)
    pages: dict[str, str] = {}
    grown = open_store(settings.model_copy(update={"data_dir": tmp_path / "grown"}))
    fresh = open_store(settings.model_copy(update={"data_dir": tmp_path / "fresh"}))
    try:
        indexer = Indexer(grown, None, settings)
        for _ in range(4):
            for name in [f"p{n}" for n in range(8) if chance.random() < 0.4]:
                pages[name] = _page(chance)
            for name in [name for name in pages if chance.random() < 0.15]:
                del pages[name]
            prune(indexer, pages)
        once = Indexer(fresh, None, settings)
        for name in chance.sample(sorted(pages), len(pages)) if seed % 3 else ():
            ingest(once, {name: pages[name]})
            once.finish()
        prune(once, pages)
        assert joined(grown) == joined(fresh), f"seed {seed}"
    finally:
        grown.close()
        fresh.close()


class Killed(BaseException):
    """What no handler catches: the process is gone."""


@pytest.mark.parametrize("step", range(8))
def test_given_an_ingest_killed_at_any_write_when_run_again_then_edges_are_those_of_an_undisturbed_one(
    indexer: Indexer, store: ChunkStore, settings: Settings, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    first = {"a": "the query planner [[b]]", "b": "# B\n\nthe log compaction", "c": "# Log compaction\n\n[[b]] [[a]]"}
    second = {"a": "no more", "c": "# Query planner\n\n[[a]]", "d": "# Log compaction\n\nthe query planner [[b]]"}
    ingest(indexer, first)
    indexer.finish()
    ingest(indexer, first | second)
    indexer.finish()
    undisturbed = joined(store)
    prune(indexer, first)
    before = joined(store)

    writes = iter(range(100))
    with monkeypatch.context() as patched:
        for name in ("upsert", "set_payloads", "set_backlinks", "delete_documents", "delete_chunks"):

            def dying(self: ChunkStore, *given: object, real: object = getattr(type(store), name)) -> object:
                if next(writes) == step:
                    raise Killed
                return real(self, *given)

            patched.setattr(type(store), name, dying)
        again = Indexer(store, None, settings)
        with suppress(Killed):
            ingest(again, first | second)
            again.finish()
        assert next(writes) > step, "the ingest was over before it was killed: lower the range of steps"
    ingest(indexer, first | second)
    indexer.finish()
    assert joined(store) == undisturbed != before
    assert pending(store) == 0


def test_given_a_store_that_refuses_when_finished_then_the_work_stays_pending(
    indexer: Indexer, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(indexer, {"a": "[[b]]", "b": "text"})

    def refusing(*_: object) -> None:
        raise StoreError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "set_backlinks", refusing)
        with pytest.raises(StoreError):
            edges.update_edges(store)
    assert pending(store) == 2
    edges.update_edges(store)
    assert (pending(store), joined(store)["b"][1]) == (0, 1)
