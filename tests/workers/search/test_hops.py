"""Multi-hop search over a real store: names lead on, in English and Chinese, and stop where they lead nowhere."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.language.page_keys import page_keys
from shared.models import Chunk, Filters, SearchResult
from shared.providers.encoders import Bm25Encoder
from shared.providers.rerankers import reranker
from shared.settings import load_settings
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint
from tests.fakes.stores import OpenedStore, in_place
from workers.search.engine import continue_search, search
from workers.search.stages.hops import reason_against
from workers.search.state import Query, Tools

SPARSE = Bm25Encoder(20.0)
FILMS = [
    ("Jump for Glory", "Jump for Glory is a 1937 comedy film directed by Raoul Walsh."),
    ("Raoul Walsh", "Raoul Walsh was born in New York City. He married Miriam Cooper."),
    ("Glory Road", "Glory Road is a film about a jump team and its director, who was born late."),
    ("The Jump", "The Jump is a film about a glory that came late."),
    *[(f"Film {n}", f"Film {n} is a film with a director who was born in a town.") for n in range(12)],
]
CHINESE = [
    ("红高粱", "《红高粱》是一部电影，改编自莫言的小说，由张艺谋执导。"),
    ("张艺谋", "张艺谋一九五〇年生于陕西西安，毕业于北京电影学院。"),
    ("高粱酒", "高粱酒是一种白酒，哪里都有，导演也喝。"),
    *[(f"电影{n}", f"电影{n}的导演出生在一个小城。") for n in range(12)],
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpenedStore]:
    opened = in_place(tmp_path / "store")
    opened.create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    yield opened
    opened.close()


def page(title: str, text: str, **more: Any) -> ChunkPoint:
    made = Chunk(
        chunk_id=str(uuid.uuid5(uuid.NAMESPACE_URL, title)),
        doc_id=title,
        path=f"{title}.md",
        title=title,
        text=text,
        defines=page_keys(title, f"{title}.md"),
        **more,
    )
    return ChunkPoint(chunk=made, document_hash="h", source="s", sparse=SPARSE.encode_passage(f"{title}\n{text}"))


def ask(store: OpenedStore, question: str, *, strategy: str = "multihop", **filters: Any) -> SearchResult:
    settings = load_settings()
    first, rest = split(settings.strategies[strategy])
    query = Query(question, Filters(**filters), 10)
    tools = Tools(settings=settings, store=store, sparse=SPARSE, reranker=reranker(settings))
    found = continue_search(search(query, strategy, first, tools, explain=True), query, rest, tools, explain=True)
    for hit in found.hits:
        assert sum(effect.effect for effect in hit.explain) == pytest.approx(hit.score)
    return found


def titles(found: SearchResult) -> list[str]:
    return [hit.title for hit in found.hits]


def skipped(found: SearchResult, stage: str) -> str | None:
    return next(trace.skipped for trace in found.stages if trace.stage == stage)


def test_given_a_nested_question_when_hopped_then_the_page_that_only_the_first_page_names_stands_on_top(
    store: OpenedStore,
) -> None:
    store.upsert([page(*film) for film in FILMS])
    question = "Where was the director of Jump for Glory born?"

    found = ask(store, question)

    assert titles(found)[0] == "Jump for Glory"
    assert "Raoul Walsh" in titles(found)[:3]
    walsh = next(hit for hit in found.hits if hit.title == "Raoul Walsh")
    effect = next(effect for effect in walsh.explain if effect.stage == "hops")
    assert effect.detail["over"] == "Raoul Walsh"
    assert "Raoul Walsh" not in titles(ask(store, question, strategy="bm25_only"))[:3]


def test_given_a_page_that_shares_no_word_with_the_question_when_named_by_a_hit_then_it_is_reached_over_its_key(
    store: OpenedStore,
) -> None:
    store.upsert([page(*film) for film in FILMS])
    store.upsert([page("Douglas Fairbanks", "An actor of silent pictures.")])
    store.upsert([page("Robin Hood", "Robin Hood was played by Douglas Fairbanks in a silent picture.")])

    found = ask(store, "Who was the spouse of the star of Robin Hood?")

    reached = {hit.title: hit.via for hit in found.hits if hit.via}
    assert "Douglas Fairbanks" in reached
    assert (reached["Douglas Fairbanks"].how, reached["Douglas Fairbanks"].hop) == ("name", 1)
    assert reached["Douglas Fairbanks"].bridge == "Douglas Fairbanks"


def test_given_mentions_in_chinese_when_hopped_then_the_named_page_is_found(store: OpenedStore) -> None:
    store.upsert([page(*entry, mentions=("title:张艺谋",) if entry[0] == "红高粱" else ()) for entry in CHINESE])

    found = ask(store, "《红高粱》的导演毕业于哪所学校？")

    assert titles(found)[:2] == ["红高粱", "张艺谋"]


def test_given_a_filter_when_hopped_then_no_name_leads_out_of_it(store: OpenedStore) -> None:
    inside = [page(*FILMS[0], tags=("film",)), page(*FILMS[2], tags=("film",))]
    store.upsert([*inside, *[page(*film) for film in FILMS[1:2]], page("Other", "Raoul Walsh", namespace="b")])

    found = ask(store, "Where was the director of Jump for Glory born?", tags=("film",))

    assert set(titles(found)) == {"Jump for Glory", "Glory Road"}


def test_given_no_names_when_hopped_then_the_stage_says_so_and_the_order_stays(store: OpenedStore) -> None:
    store.upsert([page(f"note {n}", f"the queue was slow on day {n}") for n in range(5)])

    found = ask(store, "Who is the owner of the queue that was slow on day 3?")

    assert skipped(found, "hops") == "no name leads on from the best passages"
    assert skipped(found, "chain") == "no chain"


def test_given_an_empty_result_when_hopped_then_there_is_nothing_to_start_from(store: OpenedStore) -> None:
    store.upsert([page(*FILMS[0])])

    assert skipped(ask(store, "zzz qqq"), "hops") == "nothing to start from"


@pytest.mark.parametrize(
    ("question", "hops"),
    [
        ("Where was the director of Jump for Glory born?", True),
        ("《红高粱》的导演的出生地是哪里？", True),
        ("What is the default port of Redis?", False),
        ("Redis 的默认端口是多少？", False),
        ("Aspirin inhibits the production of PGE2.", False),
    ],
)
def test_given_a_question_when_read_then_it_is_worth_more_hops_or_not(question: str, hops: bool) -> None:
    assert (reason_against(question, "asked") is None) is hops


@pytest.mark.parametrize(
    ("question", "hops"),
    [
        ("What is the default port of Redis?", True),
        ("Redis 的默认端口是多少？", False),
        ("《红高粱》的导演的出生地是哪里？", True),
        ("Aspirin inhibits the production of PGE2.", False),
    ],
)
def test_given_questions_are_wanted_when_read_then_english_lookups_hop_and_claims_do_not(
    question: str, hops: bool
) -> None:
    assert (reason_against(question, "questions") is None) is hops
    assert reason_against(question, "always") is None


def test_given_a_lookup_when_searched_then_the_stage_says_why_it_made_no_hop(store: OpenedStore) -> None:
    store.upsert([page(*film) for film in FILMS])

    found = ask(store, "What is the title of the film?", strategy="default")

    assert skipped(found, "hops") == "the question asks for one thing"
