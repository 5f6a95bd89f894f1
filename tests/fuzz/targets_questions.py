"""What questions and names go through: rules, routes, dates, lists, keys, addresses. Mostly regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from orchestrator.intake import as_request
from orchestrator.planning.intent import intent_by_rules
from orchestrator.planning.lists.dates import spans
from orchestrator.planning.lists.reading import read_question
from orchestrator.planning.planner import decompose_by_rules
from shared.errors import InputError
from shared.language.names import names_of
from shared.language.page_keys import fallbacks, links, page_keys, title_key
from shared.language.routing import route_by_rules
from shared.language.text import value_key
from shared.models import Filters
from shared.models.enumeration import Condition, Scan, Values
from shared.models.request import MAX_QUESTION_CHARS, ChatMessage, Session
from shared.uri import quoted, read_target
from tests.fuzz import samples
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Target, always
from workers.enumerate.document import ListedDocument, Matcher
from workers.index.links import refs_of

_TODAY = date(2026, 11, 20)
_VALUES = Values(
    kinds={"incident": 9, "memory": 3, "会议": 2},
    tags={"redis": 5, "redis-streams": 2, "数据库": 4, "c++": 1} | {f"topic-{n}-{n * 7919}": 1 for n in range(200)},
    folders=("notes/", "notes/en/", "notes/zh/"),
    fields={
        "owner": {"Ada Lovelace": 3, "Ada": 2, "张三": 4},
        "status": {"open": 3, "in progress": 2, "已解决": 2},
        "严重程度": {"高": 2},
        "topic": {f"topic {n}": 2 for n in range(100)},
    },
    documents=30,
)
_SESSION = Session(
    summary="Queues and caches.",
    messages=(
        ChatMessage(role="user", content="What is a stream?"),
        ChatMessage(role="assistant", content="1. A log\n2. 队列"),
    ),
)
_KEY_SAMPLES = (
    "notes/en/queues/redis.md#part",
    "C# notes",
    "queues/Redis",
    "ramify://default/notes/zh/缓存.md#3",
    "a%2Fb?c=d",
    "../a.html",
)


def _asked(run: Callable[[str], object]) -> Callable[[str], None]:
    """The rules are given what a request takes: some 4,000 characters of valid Unicode."""

    def of_request(text: str) -> None:
        run(as_request(text).question)

    return of_request


def _rules(question: str) -> None:
    found = decompose_by_rules(question, 5)
    assert len(found.subqueries) <= 5
    for place, subquery in enumerate(found.subqueries, 1):
        assert all(other < place for other in subquery.depends_on)


def _list(question: str) -> None:
    """Read as the question of a list, and tried on a document."""
    spans(question, _TODAY)
    scan = read_question(question, Filters(), _VALUES, _TODAY).scan
    _fits(scan or Scan(conditions=(Condition(words=(question[:300] or "x",)),)), question)


def _fits(scan: Scan, text: str) -> None:
    document = ListedDocument(
        {"doc_id": "d", "path": "a.md", "title": text[:200], "tags": ["redis"], "kind": "incident"}
    )
    document.add({"ordinal": 0, "text": text, "heading": "数据库"})
    matcher = Matcher(scan)
    matcher.fits(document)
    matcher.sentence(document)


def _keys(text: str) -> None:
    page_keys(text, text)
    links(refs_of(text, "notes/a.md"))
    links(refs_of(text, "notes/a.rst"))
    for fallback in fallbacks(title_key(text)):
        assert fallback.startswith("title:")
    value_key(text)


def _uri(text: str) -> None:
    address = quoted(text)
    assert address.isprintable()
    assert " " not in address
    address.encode()
    if text.isprintable() and text.strip():
        assert read_target(f"ramify://ns/{address}")[1] == text
    namespace, _ = read_target(text)
    assert namespace is None or namespace


def _target(name: str, run: Callable[[str], object], short: int = 300) -> Target:
    def make(mutator: Mutator) -> str:
        return mutator.text(samples.questions(), MAX_QUESTION_CHARS)

    return Target(
        name=name,
        make=make,
        opened=always(_asked(run)),
        allowed=(InputError,),
        tokens=samples.tokens("questions"),
        short=short,
    )


TARGETS = (
    _target("route", route_by_rules),
    _target("rules", _rules),
    _target("list", _list, 100),
    _target("intent", lambda question: intent_by_rules(question, _SESSION)),
    _target("names", lambda text: names_of(text[:80], text)),
    Target(name="keys", make=lambda m: m.text(_KEY_SAMPLES), opened=always(_keys), tokens=samples.tokens("keys")),
    Target(
        name="uri",
        make=lambda m: m.text(_KEY_SAMPLES),
        opened=always(_uri),
        allowed=(InputError,),
        tokens=samples.tokens("keys"),
    ),
)
