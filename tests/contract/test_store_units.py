"""Both stores tell which units they hold whole, and remember the state that an ingest left."""

from __future__ import annotations

from shared.store import BuiltWith, ChunkStore
from shared.store.units import Held, whole_units
from tests.contract.conftest import MakePoint


def test_given_units_when_asked_then_only_the_whole_ones_are_known(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    assert whole_units(store, ["u1"]) == {}
    store.create(built_with)
    two = [make_point("zero", "a", 0, unit="u1"), make_point("one", "a", 1, unit="u1")]
    lines = [make_point("x", "b", unit="u2", unit_size=2), make_point("y", "c", unit="u2", unit_size=2)]
    short = [make_point("z", "d", unit="u3", unit_size=2)]
    headless = [make_point("one", "e", 1, unit="u4")]
    plain = [make_point("none", "f")]
    store.upsert([*two, *lines, *short, *headless, *plain])

    known = whole_units(store, ["u1", "u2", "u3", "u4", "", "else", "u1"])

    assert known == {
        "u1": [Held("a", "/notes", "notes/a.md")],
        "u2": [Held("b", "/notes", "notes/b.md"), Held("c", "/notes", "notes/c.md")],
    }


def test_given_a_stale_chunk_beside_a_new_form_when_asked_then_the_unit_is_not_whole(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    store.create(built_with)
    stale = make_point("one", "a", 1, unit="old", document_hash="old")
    store.upsert([make_point("zero", "a", 0, unit="new", document_hash="new"), stale])
    assert whole_units(store, ["new", "old"]) == {}
    store.delete_chunks("a", [make_point("zero", "a", 0).chunk.chunk_id])
    assert list(whole_units(store, ["new", "old"])) == ["new"]


def test_given_more_units_than_one_look_takes_when_asked_then_all_are_known(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint, monkeypatch
) -> None:
    monkeypatch.setattr("shared.store.units._LOOK", 3)
    store.create(built_with)
    store.upsert([make_point("text", f"d{n}", unit=f"u{n}") for n in range(8)])
    assert set(whole_units(store, [f"u{n}" for n in range(10)])) == {f"u{n}" for n in range(8)}


def test_given_the_end_of_an_ingest_when_recorded_then_it_is_remembered_and_is_no_write(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    store.create(built_with)
    store.upsert([make_point("text")])
    before = store.info()
    assert before is not None
    assert before.finished == ""
    store.mark_finished("3:17")
    after = store.info()
    assert after == before.model_copy(update={"finished": "3:17"})
    store.upsert([make_point("more", "d2")])
    later = store.info()
    assert later is not None
    assert later.finished == "3:17"
    assert later.index_version > after.index_version
