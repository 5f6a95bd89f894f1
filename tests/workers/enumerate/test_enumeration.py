"""A planted category among noise is listed completely, with nothing invented, whatever its size and language."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import yaml

from orchestrator.planning.lists.planner import list_nodes, shards
from shared.jobs.tables import Tables
from shared.language import languages
from shared.language.document_fields import LOOKED_FOR, entry
from shared.models import Filters, RawDocument
from shared.models.enumeration import ListTotal
from shared.settings import Settings, load_settings
from shared.store import ChunkStore
from tests.fakes.listing import Listing, indexed, noise, point, put
from tests.fakes.stores import open_store
from workers.enumerate.merge_rows import list_warnings, merge_rows
from workers.index.pipeline import Indexer
from workers.merge.aggregators.simple import as_markdown

NOTES = Path(__file__).parents[3] / "examples" / "notes"


@pytest.fixture
def settings(redis_url: str, tmp_path: Path) -> Settings:
    small = {"shard_documents": 200, "page_rows": 50, "rows": 100}
    return load_settings(redis={"url": redis_url}, data_dir=tmp_path, enumeration=small)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with the sample corpus and 300 other documents."""
    settings = load_settings(data_dir=tmp_path_factory.mktemp("prepared"))
    store = open_store(settings)
    indexed(store, settings, NOTES)
    put(store, noise(300))
    store.close()
    return settings.data_dir / "store"


@pytest.fixture
def corpus(prepared: Path, settings: Settings, store: ChunkStore) -> ChunkStore:
    """A store of the test's own, with what is prepared."""
    shutil.copytree(prepared, settings.data_dir / "store")
    return store


@pytest.fixture
def listing(store: ChunkStore, settings: Settings) -> Iterator[Listing]:
    client = redis.Redis.from_url(settings.redis.url.get_secret_value())
    yield Listing(store, Tables(client, settings), settings)
    client.close()


def front_matter(path: Path) -> dict[str, list[str]]:
    """What a file says of itself."""
    parts = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(parts[1]) if len(parts) == 3 else {}


@pytest.mark.parametrize("members", [1, 7, 500, 1500])
def test_given_a_planted_category_when_listed_then_every_member_comes_and_nobody_else(
    corpus: ChunkStore, listing: Listing, members: int
) -> None:
    planted = [f"member{number}" for number in range(members)]
    put(
        corpus,
        (point(name, f"{name} about queues 关于队列", tags=("zebra", "斑马"), kind="decision") for name in planted),
    )
    for question in (
        "List all notes tagged zebra", "列出所有带斑马标签的笔记", "decisions tagged zebra", "标签为斑马的文档有哪些",
    ):  # fmt: skip
        table, rows = listing.ask(question)
        assert sorted(row.title for row in rows) == sorted(planted), question
        assert (table.matched, table.scanned, table.planned) == (members, members, members)
        assert (table.partial, table.changed) == (False, False)
    assert len(table.rows) == min(members, 100), "the answer holds the first rows only"


@pytest.mark.parametrize("members", [1, 7, 500])
def test_given_words_planted_in_texts_when_listed_then_documents_that_contain_them_come_whole_corpus_scanned(
    corpus: ChunkStore, listing: Listing, members: int
) -> None:
    planted = [f"member{number}" for number in range(members)]
    put(corpus, (point(name, f"Intro {name}.", title="an intro", path=f"m/{name}.md") for name in planted))
    put(
        corpus,
        (point(n, f"Later a quokka was seen by {n}. 后来出现了短尾矮袋鼠。", 3, path=f"m/{n}.md") for n in planted),
    )
    whole, everything = listing.ask("List all documents")
    assert whole.scanned == whole.matched == len(everything)
    for question in ("Which notes mention quokkas?", "列出所有提到短尾矮袋鼠的笔记"):
        table, rows = listing.ask(question)
        assert sorted(row.path for row in rows) == sorted(f"m/{name}.md" for name in planted), question
        assert table.scanned == table.planned == whole.matched
        assert all("quokka" in row.sentence or "袋鼠" in row.sentence for row in rows)


@pytest.mark.usefixtures("corpus")
def test_given_the_sample_corpus_when_a_tag_is_listed_then_it_is_what_the_files_say(listing: Listing) -> None:
    _, rows = listing.ask("List all notes tagged rabbitmq")
    said = {
        str(path.relative_to(NOTES))
        for path in NOTES.rglob("*.md")
        if "rabbitmq" in (str(tag).lower() for tag in front_matter(path).get("tags", ()))
    }
    found = {row.path.removeprefix("notes/") for row in rows if "#" not in row.path}
    assert found == said
    assert len(said) > 3


def test_given_rows_when_read_then_they_are_in_the_order_of_paths_with_their_source(
    store: ChunkStore, listing: Listing
) -> None:
    put(store, noise(450, tags=("x1",), date="2026-03-02"))
    table, rows = listing.ask("all notes tagged x1")
    assert [row.path for row in rows] == sorted(row.path for row in rows)
    assert rows[0].uri == "ramify://default/made/noise0.md"
    assert (rows[0].date, rows[0].tags) == ("2026-03-02", ("x1",))
    assert (table.pages, table.page_rows, table.rows) == (9, 50, tuple(rows[:100]))
    assert table.coverage == "scanned 450 of 450 documents"


def test_given_documents_with_the_same_text_when_listed_then_each_stands_and_copies_say_of_what(
    store: ChunkStore, listing: Listing
) -> None:
    texts = ["The same text.", "the  same\ntext.", "Another text.", "The same text."]
    put(store, (point(f"d{number}", text, tags=("t1",)) for number, text in enumerate(texts)))
    table, rows = listing.ask("notes tagged t1")
    assert [(row.doc_id, row.copy_of) for row in rows] == [("d0", None), ("d1", 1), ("d2", None), ("d3", 1)]
    assert (table.matched, table.copies) == (4, 2)


def test_given_another_namespace_when_listed_then_nothing_of_it_is_counted_named_or_shown(
    store: ChunkStore, listing: Listing
) -> None:
    put(store, noise(20, tags=("secret",), namespace="other"))
    put(store, noise(20, start=100))
    assert listing.read("notes tagged secret").warnings == ("No document has the tag 'secret'.",)
    table, rows = listing.ask("notes tagged secret")
    assert (rows, table.planned, table.matched) == ([], 0, 0)
    own, _ = listing.ask("List all documents")
    assert own.matched == 20
    other, rows = listing.ask("notes tagged secret", Filters(namespace="other"))
    assert other.matched == 20
    assert {row.uri.split("/")[2] for row in rows} == {"other"}


def test_given_a_document_added_during_the_scan_when_joined_then_it_is_said_and_nobody_stands_twice(
    store: ChunkStore, listing: Listing
) -> None:
    put(store, noise(400, tags=("t1",)))
    listing.after_shard = lambda number: put(store, [point("late", "late", tags=("t1",))]) if number == 1 else None
    table, rows = listing.ask("notes tagged t1")
    assert table.changed
    assert len({row.doc_id for row in rows}) == len(rows) == table.matched
    assert {row.doc_id for row in rows} >= {f"noise{number}" for number in range(400)}


def test_given_time_that_is_up_when_joined_then_the_list_says_how_much_was_read(
    store: ChunkStore, listing: Listing
) -> None:
    put(store, noise(1000, tags=("t1",)))
    asked = iter([False, False, *[True] * 100])
    listing.stopped = lambda: next(asked)
    table, rows = listing.ask("notes tagged t1")
    assert table.partial
    assert 0 < table.scanned < table.planned == 1000
    assert len(rows) == table.matched == table.scanned
    assert table.coverage == f"scanned {table.scanned} of 1,000 documents"


def test_given_a_filter_of_the_caller_when_listed_then_it_holds_besides_the_question(
    store: ChunkStore, listing: Listing
) -> None:
    put(store, noise(30, tags=("t1", "t2"), kind="memory"))
    put(store, noise(30, start=100, tags=("t1",), kind="resource"))
    table, _ = listing.ask("all notes tagged t1", Filters(kinds=("memory",)))
    assert (table.matched, table.understood) == (30, "kind = memory, tag = t1")
    no_such_kind = listing.read("all resources", Filters(kinds=("memory",)))
    assert no_such_kind.scan is None, "no list of all memories"
    assert "resources" in no_such_kind.warnings[0]


def test_given_a_merge_that_is_delivered_again_when_joined_then_the_list_stays_as_it_was(
    store: ChunkStore, listing: Listing, settings: Settings
) -> None:
    put(store, noise(30, tags=("t1",)))
    table, _ = listing.ask("notes tagged t1")
    tree = {node.id: node for node in list_nodes("q", "tag = t1", shards(30, 200, 64))}
    assert merge_rows(listing.tables, listing.job_id, tree, settings.enumeration) == table


def test_given_columns_when_listed_then_they_are_read_off_the_documents_lines(
    store: ChunkStore, listing: Listing
) -> None:
    put(store, [
        point("a", "**Owner:** Ada\n- Severity: high\nText.", tags=("t1",)),
        point("b", "| Owner | Bob |\n\nNothing else.", tags=("t1",)),
        point("c", "The owner is unknown.", tags=("t1",)),
        point("d", "负责人：张三\n其余略。", tags=("t1",)),
    ])  # fmt: skip
    table, rows = listing.ask("List all notes tagged t1 with their owner and severity")
    assert table.columns == ("owner", "severity")
    expected = [{"owner": "Ada", "severity": "high"}, {"owner": "Bob"}, {}, {"owner": "张三"}]
    assert [row.fields for row in rows] == expected
    _, rows = listing.ask("列出所有标签为 t1 的笔记及其负责人")
    assert [row.fields.get("负责人") for row in rows] == ["Ada", "Bob", None, "张三"]


def test_given_fields_of_front_matter_when_listed_then_they_are_filters_and_columns(
    store: ChunkStore, listing: Listing, settings: Settings
) -> None:
    indexer = Indexer(store, None, settings)
    for name, owner in (("a", "[Ada, Bo]"), ("b", "Bo"), ("c", "[]")):
        text = f"---\nowner: {owner}\nteam: Search and Ranking\n---\nNothing else."
        raw = RawDocument(source="/x", path=f"{name}.md", identity=name, suffix=".md", content=text.encode())
        indexer.index([raw])
    put(store, noise(3, fields=()))
    _, rows = listing.ask("documents owned by Bo with their owner and team")
    assert [row.fields for row in rows] == [
        {"owner": "Ada, Bo", "team": "Search and Ranking"}, {"owner": "Bo", "team": "Search and Ranking"},
    ]  # fmt: skip
    reading = listing.read("documents without an owner")
    assert reading.warnings == (
        "3 documents were ingested before fields were read and count as without any: ingest them again.",
    )
    _, rows = listing.ask("documents of the search team without an owner")
    assert [row.path for row in rows] == ["c.md"]


def test_given_documents_that_speak_of_a_field_without_having_it_when_listed_then_they_are_counted(
    store: ChunkStore, listing: Listing
) -> None:
    stored = (LOOKED_FOR, entry("Owner", "Bo"))
    put(store, [
        point("a", "Text.", kind="note", fields=stored),
        point("b", "It is Bo who looks after this.", kind="note", fields=(LOOKED_FOR,)),
        point("c", "The owner is someone else.", kind="note", fields=(LOOKED_FOR,)),
        point("d", "Owner:\n\nNothing of it.", kind="note", fields=(LOOKED_FOR,)),
        point("e", "It is Bo who looks after this.", kind="task", fields=(LOOKED_FOR,)),
        point("f", "Bo is here.", kind="note", fields=(LOOKED_FOR, entry("Owner", "Ada"))),
    ])  # fmt: skip
    table, rows = listing.ask("notes owned by Bo")
    assert ([row.path for row in rows], table.unlabelled) == (["made/a.md"], 2)
    assert any(warning.startswith("2 more document(s)") for warning in list_warnings(table, "which notes?"))
    assert any(warning.startswith("另有2篇文档") for warning in list_warnings(table, "哪些笔记？"))
    assert listing.ask("all documents owned by Bo")[0].unlabelled == 0
    assert listing.ask("all notes")[0].unlabelled == 0


def test_given_shards_that_are_not_all_read_when_joined_early_then_the_list_is_partial_and_nothing_is_written(
    store: ChunkStore, listing: Listing, settings: Settings
) -> None:
    put(store, noise(500))
    table, rows = listing.ask("List all documents")
    tables, job_id, limits = listing.tables, "early-list", settings.enumeration
    scan = listing.read("List all documents").scan
    assert scan is not None
    scan = scan.model_copy(update={"documents": table.planned})
    tables.put_scan(job_id, scan)
    tree = {node.id: node for node in list_nodes("q", "", shards(table.planned, limits.shard_documents, 64))}
    first = next(node for node in tree.values() if node.shard is not None)
    listing._shard(job_id, first.id, scan, first.shard)
    before = set(tables._client.keys())
    early = merge_rows(tables, job_id, tree, limits, keep=False)
    assert set(tables._client.keys()) == before
    assert early is not None
    assert (early.partial, early.pages) == (True, 0)
    assert 0 < early.matched < table.matched == len(rows)
    assert len(early.rows) == min(early.matched, limits.rows)


def test_given_an_order_and_a_number_when_listed_then_the_newest_of_all_shards_come_and_all_are_counted(
    listing: Listing,
) -> None:
    days = {f"d{number}": f"2026-01-{number:02}" for number in range(1, 29)}
    put(listing.store, [point(name, "text", tags=("redis",), date=day) for name, day in days.items()])
    put(listing.store, [point("undated", "text", tags=("redis",))])

    table, rows = listing.ask("the latest 5 notes tagged redis")
    assert [row.date for row in rows] == ["2026-01-28", "2026-01-27", "2026-01-26", "2026-01-25", "2026-01-24"]
    assert (table.matched, table.fitting, table.order) == (5, 29, "newest")
    assert [row.doc_id for row in listing.ask("the two oldest notes tagged redis")[1]] == ["d1", "d2"]
    assert [row.doc_id for row in listing.ask("notes tagged redis, newest first")[1]][-2:] == ["d1", "undated"]


def test_given_spans_apart_and_what_has_no_date_when_listed_then_exactly_these_come(listing: Listing) -> None:
    days = {"a": "2026-03-10", "b": "2026-04-01", "c": "2026-06-30"}
    put(listing.store, [point(name, "text", date=day, tags=("x",)) for name, day in days.items()])
    put(listing.store, [point("d", "text")])

    for question, expected in (
        ("notes from March and June 2026", ["a", "c"]),
        ("notes of 2026 except March and June 2026", ["b"]),
        ("notes without a date", ["d"]),
        ("untagged notes", ["d"]),
    ):
        assert [row.doc_id for row in listing.ask(question)[1]] == expected, question


def test_given_the_heaviest_are_asked_for_when_two_weigh_as_much_as_the_last_then_both_are_listed(
    store: ChunkStore, listing: Listing
) -> None:
    weights = {"ash": "900 g", "oak": "1.5 kg", "elm": "900 g", "fir": "0.2 kg", "yew": "heavy"}
    put(store, [point(name, f"Weight: {weight}", kind="log") for name, weight in weights.items()])
    table, rows = listing.ask("the two heaviest logs")
    assert [row.title for row in rows] == ["oak", "ash", "elm"]
    assert [row.fields["weight"] for row in rows] == ["1.5 kg", "900 g", "900 g"]
    assert (table.matched, table.fitting, table.order, table.ordered_by) == (3, 5, "most", "weight")
    assert "These are the 3 with the highest weight of 5 that fit." in as_markdown(table, 5, languages()[0])
    table, rows = listing.ask("total weight of the logs")
    assert (len(rows), table.total) == (5, ListTotal(way="sum", label="weight", amount=3.5, unit="kg", documents=4))
    assert "weight together: 3.5 kg, of 4 document(s). 1 document(s) of the list" in as_markdown(
        table, 5, languages()[0]
    )
