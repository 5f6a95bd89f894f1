"""Two-pass search over a real store: along calls and links, both ways, bounded and without ambiguous names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from shared.models import Chunk, Filters, SearchResult
from shared.providers.encoders import Bm25Encoder
from shared.providers.rerankers import reranker
from shared.settings import load_settings
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint
from tests.fakes.stores import OpenedStore, in_place
from workers.search.engine import continue_search, search
from workers.search.stages.edge_keys import places_of
from workers.search.state import Query, Tools

SPARSE = Bm25Encoder(10.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpenedStore]:
    opened = in_place(tmp_path / "store")
    opened.create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    yield opened
    opened.close()


def chunk_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def chunk(name: str, text: str, **more: Any) -> ChunkPoint:
    fields = {"doc_id": name, "path": f"{name}.md", "title": name, **more}
    made = Chunk(chunk_id=chunk_id(name), text=f"{text} ({name})", **fields)
    return ChunkPoint(chunk=made, document_hash="h", source="s", sparse=SPARSE.encode_passage(made.text))


def code(symbol: str, text: str, *refs: str, **more: Any) -> ChunkPoint:
    parts = symbol.split(".")
    defines = tuple(".".join(parts[at:]) for at in range(len(parts)))
    fields = {"symbol": symbol, "part": "code", "defines": defines, "refs": refs, "path": f"{parts[0]}.py", **more}
    return chunk(symbol, text, **fields)


def page(title: str, text: str, *refs: str, **more: Any) -> ChunkPoint:
    return chunk(title, text, **{"defines": (f"title:{title}", f"path:{title}.md"), "refs": refs, **more})


def find(store: OpenedStore, question: str, *, rerank: bool = False, **more: Any) -> SearchResult:
    options = {key: more.pop(key) for key in ("filters", "near_symbol", "depth") if key in more}
    settings = load_settings(**more)
    first, rest = split(settings.strategies["two_pass"])
    query = Query(question, wanted=10, **{"filters": Filters(), **options})
    found = search(query, "two_pass", first, Tools(settings=settings, store=store, sparse=SPARSE), explain=True)
    if rerank:
        found = continue_search(found, query, rest, Tools(settings=settings, reranker=reranker(settings)), explain=True)
    for hit in found.hits:
        assert sum(effect.effect for effect in hit.explain) == pytest.approx(hit.score)
    return found


def reached(found: SearchResult) -> dict[str, tuple[str, str, int]]:
    """title -> (how, bridge, hop) of everything that was reached from something else."""
    return {hit.title: (hit.via.how, hit.via.bridge, hit.via.hop) for hit in found.hits if hit.via}


def scores(found: SearchResult) -> Mapping[str, float]:
    return {hit.title: hit.score for hit in found.hits}


def note(found: SearchResult) -> str | None:
    return next(trace.note for trace in found.stages if trace.stage == "edges")


def test_given_calls_when_searched_then_what_is_called_and_who_calls_come_along_with_their_way(
    store: OpenedStore,
) -> None:
    store.upsert([
        code("tree.merge", "def merge: joins the leaves", "ranks.order"),
        code("ranks.order", "def order: sorts numbers", "sort.by_key"),
        code("sort.by_key", "def by_key: a comparison"),
        code("jobs.finish", "def finish: the last step", "tree.merge"),
        code("other.thing", "def thing: nothing to see"),
    ])  # fmt: skip

    one = find(store, "which function joins leaves")
    assert reached(one) == {
        "ranks.order": ("call", "ranks.order", 1),
        "jobs.finish": ("called by", "tree.merge", 1),
    }
    two = find(store, "which function joins leaves", depth=2)
    assert reached(two) == {**reached(one), "sort.by_key": ("call", "sort.by_key", 2)}
    top = scores(two)["tree.merge"]
    assert scores(two)["ranks.order"] == pytest.approx(top / 2)
    assert scores(two)["sort.by_key"] == pytest.approx(top / 3)


def test_given_links_and_mentions_in_chinese_when_searched_then_both_directions_lead_on(store: OpenedStore) -> None:
    store.upsert([
        page("缓存策略", "缓存失效的处理办法", "title:淘汰算法"),
        page("淘汰算法", "最近最少使用"),
        page("周报", "本周进展", mentions=("title:缓存策略",)),
        page("引用页", "参见", "path:缓存策略.md"),
    ])  # fmt: skip

    found = find(store, "缓存失效怎么处理")

    assert reached(found) == {
        "淘汰算法": ("link", "title:淘汰算法", 1),
        "周报": ("mentioned by", "title:缓存策略", 1),
        "引用页": ("linked by", "path:缓存策略.md", 1),
    }


def test_given_neighbours_when_some_speak_of_the_question_then_they_stand_first(store: OpenedStore) -> None:
    store.upsert([
        page("Hub", "zebra zebra zebra overview", *(f"title:P{n}" for n in range(6))),
        *(page(f"P{n}", "page about many other animals and a zebra" if n > 2 else "plain") for n in range(6)),
    ])  # fmt: skip
    one_anchor = [stage | ({"anchors": 1} if stage["stage"] == "edges" else {}) for stage in _without("")]

    found = find(store, "zebra overview", strategies={"two_pass": one_anchor})

    by_title = scores(found)
    assert by_title["P0"] == pytest.approx(by_title["Hub"] / 2 * 0.5), "hop 1 halves, the least relevant loses half"
    assert max(by_title[f"P{n}"] for n in range(3)) < min(by_title[f"P{n}"] for n in range(3, 6))
    assert by_title["P3"] <= by_title["Hub"] / 2


def test_given_ambiguous_names_when_searched_then_they_are_not_followed_and_counted(store: OpenedStore) -> None:
    store.upsert([
        code("jobs.start", "def start: begins the work", "run", "a.once", "title:intro"),
        code("a.once", "def once: single"),
        *(code(f"m{n}.run", f"def run: number {n}") for n in range(4)),
        page("one", "first", defines=("title:intro",)),
        page("two", "second", defines=("title:intro",)),
    ])  # fmt: skip

    found = find(store, "what begins the work")
    assert set(reached(found)) == {"a.once"}
    assert note(found) == "ambiguous names not followed: 2"
    store.delete_documents(["m3.run"])
    fewer = find(store, "what begins the work")
    assert set(reached(fewer)) == {"a.once", "m0.run", "m1.run", "m2.run"}
    assert scores(fewer)["a.once"] == pytest.approx(3 * scores(fewer)["m0.run"]), "one of three definitions"


def test_given_a_full_name_beside_the_bare_one_when_searched_then_only_the_full_one_counts(
    store: OpenedStore,
) -> None:
    store.upsert([
        code("jobs.start", "def start: begins the work", "a.B.run", "run"),
        code("a.B.run", "def run: this one"),
        code("c.D.run", "def run: that one"),
    ])  # fmt: skip

    assert reached(find(store, "what begins the work")) == {"a.B.run": ("call", "a.B.run", 1)}


def test_given_a_filter_when_searched_then_it_holds_for_neighbours_too(store: OpenedStore) -> None:
    links = tuple(f"title:{name}" for name in ("near", "far", "old", "foreign"))
    store.upsert([
        page("start", "zebra", *links, path="in/start.md", date="2026-01-02"),
        page("near", "plain", path="in/near.md", date="2026-01-02"),
        page("far", "plain", path="out/far.md", date="2026-01-02"),
        page("old", "plain", path="in/old.md", date="2020-01-02"),
        page("foreign", "plain", path="in/foreign.md", date="2026-01-02", namespace="theirs"),
    ])  # fmt: skip

    filters = Filters.model_validate({"paths": ("in/",), "after": "2026-01-01"})
    assert set(reached(find(store, "zebra", filters=filters))) == {"near"}
    assert set(reached(find(store, "zebra"))) == {"near", "far", "old"}
    excluded = find(store, "zebra", search={"excludes": ["out/"]})
    assert set(reached(excluded)) == {"near", "old"}


def test_given_a_hub_when_searched_then_fifty_neighbours_a_hop_at_most_and_no_anchor_goes_empty(
    store: OpenedStore,
) -> None:
    store.upsert([
        code("hub.call", "def call: zebra zebra"),
        *(code(f"user{n}.use", "def use: plain", "hub.call") for n in range(120)),
        code("quiet.one", "def one: zebra", "quiet.two"),
        code("quiet.two", "def two: plain"),
    ])  # fmt: skip

    found = find(store, "zebra")

    assert len(reached(found)) <= 50
    assert "quiet.two" in reached(found)
    assert sum(how == "called by" for how, _, _ in reached(found).values()) > 20
    assert len(reached(find(store, "zebra", near_symbol="hub.call"))) == 51, "fifty neighbours and the symbol itself"


def test_given_a_page_of_many_chunks_when_a_link_leads_there_then_its_two_best_come(store: OpenedStore) -> None:
    keys = ("title:big",)
    store.upsert([
        page("start", "zebra herds", "title:big"),
        *(chunk(f"big{n}", f"text {n}", doc_id="big", defines=keys, ordinal=n) for n in range(8)),
        chunk("big8", "herds in the north", doc_id="big", defines=keys, ordinal=8),
    ])  # fmt: skip

    found = find(store, "zebra herds")

    assert "big8" in scores(found)
    assert len([title for title in reached(found) if title.startswith("big")]) == 2


def test_given_one_file_when_a_symbol_is_named_then_calls_are_complete_and_later_hops_are_capped(
    store: OpenedStore,
) -> None:
    chain = [
        code(f"f.a{n}", "def x: plain", f"f.a{n + 1}", *(f"f.b{n}{m}" for m in range(6)), doc_id="f") for n in (0, 1)
    ]
    leaves = [code(f"f.b{n}{m}", "def y: plain", doc_id="f") for n in (0, 1) for m in range(6)]
    store.upsert([code("f.start", "def start: zebra", "f.a0", doc_id="f"), *chain, *leaves])

    assert len(find(store, "zebra").hits) == 2
    assert len(find(store, "zebra", near_symbol="f.a0").hits) == 9, "start, a0, a1 and b00 to b05"
    assert len(find(store, "zebra", near_symbol="f.a0", depth=2).hits) == 10, "min(10, 5 x 2) chunks of a document"


def test_given_an_answer_one_call_away_when_reranked_then_it_is_not_buried(store: OpenedStore) -> None:
    words = "how are duplicate results folded together"
    store.upsert([
        code("tree.fold", "def fold: duplicate results are folded together", "hashing.nearness"),
        code("hashing.nearness", "def nearness: minhash over trigram sets"),
        *(page(f"noise{n}", "duplicate results" if n % 2 else "letters folded together") for n in range(12)),
    ])  # fmt: skip

    def place(found: SearchResult, title: str) -> int:
        return [hit.title for hit in found.hits].index(title)

    found = find(store, words, rerank=True)
    plain = find(store, words, rerank=True, strategies={"two_pass": _without("linked")})

    assert [stage.stage for stage in found.stages][-3:] == ["rerank", "linked", "truth"]
    assert place(found, "tree.fold") == 0
    assert place(found, "hashing.nearness") == 1
    assert place(plain, "hashing.nearness") > 1, "the reranker alone does not see why it is here"
    assert scores(found)["hashing.nearness"] == pytest.approx(0.8 * scores(found)["tree.fold"])


def _without(name: str) -> list[dict[str, Any]]:
    stages = load_settings().strategies["two_pass"]
    return [stage.model_dump() for stage in stages if stage.stage != name]


def test_given_a_symbol_when_searched_from_then_it_leads_with_its_callers_and_the_calls_of_its_later_parts(
    store: OpenedStore,
) -> None:
    later = {"doc_id": "tree.merge", "defines": (), "ordinal": 1}
    store.upsert([
        code("pkg.tree.merge", "def merge: first half", "ranks.order", doc_id="tree.merge"),
        chunk("rest", "second half", symbol="pkg.tree.merge", part="code", refs=("limits.cap",), **later),
        code("ranks.order", "def order: plain"),
        code("limits.cap", "def cap: plain"),
        code("jobs.finish", "def finish: plain", "tree.merge"),
        page("zebra", "zebra zebra"),
        page("herd", "zebra"),
    ])  # fmt: skip

    found = find(store, "zebra", near_symbol="tree.merge", rerank=True)

    assert found.hits[0].symbol == "pkg.tree.merge"
    assert not found.warnings or "definition" not in " ".join(found.warnings)
    assert reached(found) == {
        "pkg.tree.merge": ("symbol", "tree.merge", 1),
        "ranks.order": ("call", "ranks.order", 1),
        "limits.cap": ("call", "limits.cap", 1),
        "jobs.finish": ("called by", "tree.merge", 1),
    }
    assert next(hit.via.chunk_id for hit in found.hits if hit.via and hit.title == "limits.cap") == chunk_id("rest")


def test_given_an_unknown_symbol_when_searched_from_then_the_nearest_ones_are_named_and_the_question_is_searched(
    store: OpenedStore,
) -> None:
    store.upsert([code("pkg.tree.merge_tree", "def merge_tree: zebra"), code("pkg.other.thing", "def thing: plain")])

    found = find(store, "zebra", near_symbol="pkg.tree.merge_trees")

    assert [hit.symbol for hit in found.hits] == ["pkg.tree.merge_tree"]
    [warning] = [text for text in found.warnings if "merge_trees" in text]
    assert "did you mean pkg.tree.merge_tree?" in warning
    [other] = [text for text in find(store, "zebra", near_symbol="完全.不同").warnings if "完全.不同" in text]
    assert "did you mean" not in other


def test_given_a_question_that_tells_the_way_when_searched_then_neighbours_that_way_come_first(
    store: OpenedStore,
) -> None:
    store.upsert([
        code("tree.merge", "def merge: zebra", "ranks.order"),
        code("ranks.order", "def order: plain"),
        code("jobs.finish", "def finish: plain", "tree.merge"),
    ])  # fmt: skip

    called = scores(find(store, "what does the zebra call"))
    callers = scores(find(store, "谁调用了 zebra"))

    assert called["ranks.order"] > called["jobs.finish"] > 0
    assert callers["jobs.finish"] > callers["ranks.order"] > 0


def test_given_overloads_when_searched_from_or_called_then_they_are_one_definition(store: OpenedStore) -> None:
    store.upsert([
        *(chunk(f"stub{n}", "stub", **_overload(n, ())) for n in range(4)),
        chunk("body", "def locate: the body itself, longer than its stubs", **_overload(4, ("pkg.cli.best",))),
        code("pkg.cli.best", "def best: plain"),
        code("pkg.app.load", "def load: zebra", "pkg.cli.locate"),
    ])  # fmt: skip

    found = find(store, "zebra", near_symbol="cli.locate")
    called = find(store, "zebra", depth=1)

    assert found.hits[0].title == "body"
    assert not [text for text in found.warnings if "definitions" in text]
    assert reached(found)["pkg.cli.best"] == ("call", "pkg.cli.best", 1)
    assert reached(called)["body"] == ("call", "pkg.cli.locate", 1)
    assert note(called) is None


def _overload(number: int, refs: tuple[str, ...]) -> dict[str, Any]:
    names = ("pkg.cli.locate", "cli.locate", "locate")
    return {"doc_id": "cli", "symbol": names[0], "defines": names, "part": "code", "ordinal": number + 1, "refs": refs}


def test_given_keys_of_very_many_chunks_when_counted_then_the_collection_counts_them(
    store: OpenedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upsert([
        *(code(f"m{n}.A.run", f"def run: {n}") for n in range(4)),
        page("zebra", "zebra"),
        page("other", "x", namespace="b"),
    ])  # fmt: skip
    keys = ["A.run", "title:zebra", "title:other", "title:unknown"]
    read = places_of(keys, "default", store)

    monkeypatch.setattr("workers.search.stages.edge_keys._MAX_READ", 1)

    assert {key: read[key] for key in keys if key in read} == {"A.run": 4, "title:zebra": 1}
    counted = places_of(keys, "default", store)
    assert {key: counted[key] for key in keys if key in counted} == {"A.run": 4, "title:zebra": 1}


def test_given_a_name_of_several_definitions_when_searched_from_then_three_lead_and_a_warning_names_them(
    store: OpenedStore,
) -> None:
    store.upsert([code(f"m{n}.A.run", f"def run: number {n}") for n in range(5)])

    found = find(store, "anything", near_symbol="A.run")

    assert [hit.symbol for hit in found.hits] == ["m0.A.run", "m1.A.run", "m2.A.run"]
    [warning] = [text for text in found.warnings if "A.run" in text]
    assert "names 5 definitions" in warning
    assert "and 2 more" in warning
    exact = find(store, "anything", near_symbol="m4.A.run")
    assert [hit.symbol for hit in exact.hits] == ["m4.A.run"]
    assert not any("definitions" in text for text in exact.warnings)
