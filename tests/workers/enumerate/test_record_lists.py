"""Lists over records of several domains, whose fields stand in front matter, lists, tables, lines or only prose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.planning.lists.closely import read_closely
from orchestrator.planning.lists.possible import names_list
from orchestrator.planning.lists.reading import Reading
from shared.models import Filters, RawDocument
from shared.models.enumeration import ListRow
from shared.models.plan import Shard
from shared.settings import load_settings
from shared.store import ChunkStore
from tests.fakes.listing import TODAY
from tests.fakes.records import Record, paths_of, records
from tests.fakes.stores import open_store
from workers.enumerate.counts import GroupCounts
from workers.enumerate.scan import ValueCache, scan_shard, titled
from workers.index.pipeline import Indexer

CORPUS = [one for one in records() if one.kind in {"film", "part", "案件", "馆藏"}]
ALL = Shard(number=1, of=1, start="", stop="")
Fits = Callable[[Record], bool]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    settings = load_settings(data_dir=tmp_path_factory.mktemp("records"))
    opened = open_store(settings)
    raws = [
        RawDocument(
            source="/m", path=one.path, identity=one.path, suffix=Path(one.path).suffix, content=one.text.encode()
        )
        for one in CORPUS
    ]
    Indexer(opened, None, settings).index(raws)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def known() -> ValueCache:
    return ValueCache(1000)


def listed(corpus: ChunkStore, known: ValueCache, question: str) -> tuple[Reading, list[ListRow]]:
    """How the question is read, and the rows of its list, in order."""
    reading, values = read_closely(question, Filters(), lambda filters: known.of(corpus, filters), TODAY)
    assert reading.scan is not None, reading.warnings
    assert names_list(question, values, reading.scan)
    return reading, list(scan_shard(corpus, reading.scan, ALL).rows)


def of(kind: str, fits: Fits = lambda _: True) -> Fits:
    return lambda one: one.kind == kind and fits(one)


def number(one: Record, name: str) -> float:
    return one.numbers[name]


EXACT: list[tuple[str, Fits]] = [
    ("films longer than two hours", of("film", lambda one: number(one, "Runtime") > 120)),
    ("movies shot in Riga", of("film", lambda one: one.says("Location", "Riga"))),
    ("parts with 200 or more in stock", of("part", lambda one: number(one, "Stock") >= 200)),
    (
        "films that are released or shot in Riga",
        of("film", lambda one: one.says("Stage", "released") or one.says("Location", "Riga")),
    ),
    ("films shorter than an hour and a half", of("film", lambda one: number(one, "Runtime") < 90)),
    ("parts lighter than 0.2 kg", of("part", lambda one: number(one, "Weight") < 200)),
    ("parts over 600 grams", of("part", lambda one: number(one, "Weight") > 600)),
    ("which parts have more than 200 in stock", of("part", lambda one: number(one, "Stock") > 200)),
    ("Films released in 2026", of("film", lambda one: one.fields["Release"].startswith("2026"))),
    ("films being released after May 2026", of("film", lambda one: one.fields["Release"] > "2026-05-31")),
    ("uninsured films", of("film", lambda one: "Insurer" not in one.fields)),
    ("films insured by nobody", of("film", lambda one: "Insurer" not in one.fields)),
    ("告海岳建材的案件有哪些", of("案件", lambda one: one.says("被告", "海岳建材"))),
    ("没有承办法官的案件", of("案件", lambda one: "承办法官" not in one.fields)),
    (
        "曹立峰手上有多少案子没结？",
        of("案件", lambda one: one.says("承办法官", "曹立峰") and not one.says("审理状态", "已结案")),
    ),
    ("既涉外又走简易程序的案件", of("案件", lambda one: {"涉外", "简易程序"} <= {*one.tags})),
    ("哪些案件没走简易程序", of("案件", lambda one: "简易程序" not in one.tags)),
    ("parts that are not active any more", of("part", lambda one: not one.says("Condition", "active"))),
    (
        "documentaries shot in Riga",
        of("film", lambda one: "documentary" in one.tags and one.says("Location", "Riga")),
    ),
    ("哪些案件附有录音证据", of("案件", lambda one: "录音证据" in one.body)),
    (
        "袁静仪捐过哪些民国铅印本",
        of("馆藏", lambda one: one.says("捐赠人", "袁静仪") and one.says("版本", "民国铅印本")),
    ),
    ("正在修复的馆藏有哪些", of("馆藏", lambda one: one.says("借阅状态", "修复中"))),
]


@pytest.mark.parametrize(("question", "fits"), EXACT, ids=[question for question, _ in EXACT])
def test_given_records_when_listed_then_those_that_fit_and_nobody_else(
    corpus: ChunkStore, known: ValueCache, question: str, fits: Fits
) -> None:
    reading, rows = listed(corpus, known, question)
    expected = paths_of(CORPUS, fits)
    assert 0 < len(expected) < len(CORPUS)
    assert {row.path for row in rows} == expected, reading
    assert reading.unread == ()


#: The question, which documents it is of, the field, whether the largest come first, and how many are asked for.
ORDERED: list[tuple[str, Fits, str, bool, int]] = [
    ("the five longest films", of("film"), "Runtime", True, 5),
    ("What is the most expensive film?", of("film"), "Budget", True, 1),
    ("films with the tag stunts, longest first", of("film", lambda one: "stunts" in one.tags), "Runtime", True, 0),
    ("what are the top 3 films by budget?", of("film"), "Budget", True, 3),
    ("the two cheapest nylon parts", of("part", lambda one: one.says("Material", "nylon")), "Price", False, 2),
    ("the lightest part", of("part"), "Weight", False, 1),
    ("the parts sorted by stock, highest first", of("part"), "Stock", True, 0),
    ("前五个标的额最高的案件", of("案件"), "标的额", True, 5),
    ("哪个案件的标的额最小？", of("案件"), "标的额", False, 1),
    ("走调解的案件，按标的额从高到低", of("案件", lambda one: "调解" in one.tags), "标的额", True, 0),
    ("册数最少的三种馆藏", of("馆藏"), "册数", False, 3),
    ("古籍库中册数最多的是哪种", of("馆藏", lambda one: one.says("书库", "古籍库")), "册数", True, 1),
]


@pytest.mark.parametrize("asked", ORDERED, ids=[item[0] for item in ORDERED])
def test_given_a_superlative_when_listed_then_the_field_of_numbers_orders_and_only_so_many_are_asked_for(
    corpus: ChunkStore, known: ValueCache, asked: tuple[str, Fits, str, bool, int]
) -> None:
    question, fits, name, most, limit = asked
    reading, rows = listed(corpus, known, question)
    numbers = {one.path: number(one, name) for one in CORPUS if fits(one)}
    assert {row.path for row in rows} == numbers.keys()
    assert [numbers[row.path] for row in rows] == sorted(numbers.values(), reverse=most)
    assert (reading.scan.limit if reading.scan else None, reading.unread) == (limit, ())


#: The question, which documents it is of, the field, and whether its average is asked for.
TOTALS: list[tuple[str, Fits, str, bool]] = [
    (
        "What is the total stock of the brass parts?",
        of("part", lambda one: one.says("Material", "brass")),
        "Stock",
        False,
    ),
    ("average price of the nylon parts", of("part", lambda one: one.says("Material", "nylon")), "Price", True),
    (
        "the total runtime of the released films",
        of("film", lambda one: one.says("Stage", "released")),
        "Runtime",
        False,
    ),
    ("古籍库的馆藏册数合计多少", of("馆藏", lambda one: one.says("书库", "古籍库")), "册数", False),
    ("馆藏的平均册数是多少", of("馆藏"), "册数", True),
]


@pytest.mark.parametrize("asked", TOTALS, ids=[item[0] for item in TOTALS])
def test_given_a_sum_or_an_average_when_listed_then_the_numbers_of_the_field_are_those_that_count(
    corpus: ChunkStore, known: ValueCache, asked: tuple[str, Fits, str, bool]
) -> None:
    question, fits, name, mean = asked
    reading, rows = listed(corpus, known, question)
    scan = reading.scan
    assert scan is not None
    assert (scan.total, reading.unread) == ("mean" if mean else "sum", ())
    assert scan.by
    assert scan.by.unit == {"Price": "EUR"}.get(name, scan.by.unit), "a currency as its code is written"
    assert sum(row.amount or 0 for row in rows) == pytest.approx(sum(number(one, name) for one in CORPUS if fits(one)))


#: The question, which documents it is of, the field that they are counted by, and the one whose average is asked for.
EACH = [
    ("average price of the parts per supplier", "part", "Supplier", "Price"),
    ("各版本馆藏的平均册数是多少", "馆藏", "版本", "册数"),
]


@pytest.mark.parametrize("asked", EACH, ids=[item[0] for item in EACH])
def test_given_an_average_for_each_value_when_listed_then_every_value_has_its_own(
    corpus: ChunkStore, known: ValueCache, asked: tuple[str, str, str, str]
) -> None:
    question, kind, by, name = asked
    reading, rows = listed(corpus, known, question)
    counts = GroupCounts()
    for row in rows:
        counts.add(row.groups, row.amount)
    assert reading.scan is not None
    assert (reading.scan.total, reading.unread) == ("mean", ())
    expected: dict[str, list[float]] = {}
    for one in filter(of(kind), CORPUS):
        expected.setdefault(one.fields[by], []).append(number(one, name))
    found = {group.value: group.amount for group in counts.groups("mean")}
    assert found == {value: pytest.approx(sum(each) / len(each), abs=0.01) for value, each in expected.items()}


#: The question, which documents it is of, and the field whose values are asked for or counted by.
GROUPED: list[tuple[str, Fits, str]] = [
    ("how many films per stage", of("film"), "Stage"),
    ("Number of parts by condition", of("part"), "Condition"),
    ("Which suppliers deliver brass parts?", of("part", lambda one: one.says("Material", "brass")), "Supplier"),
    ("How many different insurers are there?", of("film", lambda one: "Insurer" in one.fields), "Insurer"),
    ("Who directs the films shot in Riga?", of("film", lambda one: one.says("Location", "Riga")), "Director"),
    ("每个法庭有多少案件", of("案件"), "法庭"),
    ("馆藏都有哪些版本", of("馆藏"), "版本"),
    (
        "哪些承办法官有涉外的案件",
        of("案件", lambda one: "涉外" in one.tags and "承办法官" in one.fields),
        "承办法官",
    ),
]


@pytest.mark.parametrize(("question", "fits", "name"), GROUPED, ids=[item[0] for item in GROUPED])
def test_given_a_question_for_values_when_listed_then_the_documents_of_each_are_counted(
    corpus: ChunkStore, known: ValueCache, question: str, fits: Fits, name: str
) -> None:
    reading, rows = listed(corpus, known, question)
    counts = GroupCounts()
    for row in rows:
        counts.add(row.groups)
    expected = Counter(one.fields[name] for one in CORPUS if fits(one))
    assert {group.value: group.documents for group in counts.groups()} == expected
    assert {row.path for row in rows} == paths_of(CORPUS, fits)
    assert reading.unread == ()


def test_given_values_that_are_stored_with_their_parts_when_counted_then_names_stay_whole_and_lists_do_not() -> None:
    counts = GroupCounts()
    for values in (("Cove & Sons", "Cove", "Sons"), ("Ada and Bo", "Ada", "Bo"), ("ada",), ("Bo",), ()):
        counts.add(values)
    found = {group.value: group.documents for group in counts.groups()}
    assert found == {"Ada": 2, "Bo": 2, "Cove & Sons": 1, "": 1}


@pytest.mark.parametrize("question", ["Which suppliers have no brass parts?", "哪些承办法官没有涉外的案件"])
def test_given_values_that_are_denied_documents_when_read_then_they_are_not_those_of_the_others(
    corpus: ChunkStore, known: ValueCache, question: str
) -> None:
    reading, values = read_closely(question, Filters(), lambda filters: known.of(corpus, filters), TODAY)
    assert reading.scan is None or reading.scan.per is None
    assert reading.scan is None or reading.unread or not names_list(question, values, reading.scan)


@pytest.mark.parametrize("question", ["Who is Nadia Frost?"])
def test_given_one_document_or_person_when_asked_for_then_it_is_no_list(
    corpus: ChunkStore, known: ValueCache, question: str
) -> None:
    reading, values = read_closely(question, Filters(), lambda filters: known.of(corpus, filters), TODAY)
    assert reading.scan is None or not names_list(question, values, reading.scan)


@pytest.mark.parametrize(
    ("question", "unread"),
    [("the most beautiful films", "beautiful"), ("parts over 600 bananas", "600 bananas"), ("the best film", "best")],
)
def test_given_what_no_field_measures_when_read_then_it_is_named_and_orders_nothing(
    corpus: ChunkStore, known: ValueCache, question: str, unread: str
) -> None:
    reading, _ = read_closely(question, Filters(), lambda filters: known.of(corpus, filters), TODAY)
    assert unread in " ".join(reading.unread)
    assert reading.scan is None or not reading.scan.by


def test_given_a_denied_value_when_some_documents_have_no_such_field_then_that_is_said(
    corpus: ChunkStore, known: ValueCache
) -> None:
    question = "films not insured by Nordlys Mutual"
    reading, rows = listed(corpus, known, question)
    assert {row.path for row in rows} == paths_of(
        CORPUS, of("film", lambda one: not one.says("Insurer", "Nordlys Mutual"))
    )
    assert "Documents without any insurer are in the list, too." in reading.warnings


def test_given_titles_when_their_pages_are_asked_for_then_only_those_that_one_page_has_are_known(
    corpus: ChunkStore,
) -> None:
    page = next(corpus.scroll(None))[0]
    title = page.title.casefold()
    found = titled(corpus, Filters(paths=("elsewhere/",)), (title, "no such page")).titled
    assert {name: one.path for name, one in found.items()} == {title: page.path}
    assert titled(corpus, Filters(namespace="other"), (title,)).titled == {}
