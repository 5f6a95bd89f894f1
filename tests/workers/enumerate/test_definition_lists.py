"""Lists of definitions over planted code: exactly these, once each, or a warning that names what was not understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from shared.jobs.tables import Tables
from shared.models.enumeration import ListRow
from shared.settings import load_settings
from shared.store import ChunkStore
from shared.store.schema import of_documents
from tests.fakes.listing import Listing, point, put, put_code
from tests.fakes.stores import open_store
from workers.enumerate.merge_rows import list_warnings

LONG = "\n".join(f"    total += step_{number}(total, {number})" for number in range(400))
CODE = {
    "app/tasks.py": f'''
"""
@app.task
def not_one(): ...
"""
import asyncio as aio
from celery import app as worker

# @app.task
@app.task(bind=True,
          name="sent")
@traced
def send(self,  # who
         to): run_pipeline(to)

if DEBUG:
    @app.task
    def send(self): ...

@worker.task
async def later(): await aio.sleep(1)

@app.task
def long(total):
    def inner(): return total
{LONG}
    return total
''',
    "app/models.py": """
import pydantic
from .tasks import send
from asyncio.events import Handle

class User(pydantic.BaseModel):
    @property
    def name(self): ...
    @name.setter
    def name(self, value): ...
    class Config: ...

class Store(Generic[T], User, metaclass=Meta):
    async def open(self): send()

class BrokenError(Exception): ...
class Plain: ...
""",
    "tests/test_app.py": """
import pytest
text = "import asyncio"

@pytest.fixture
def store(): ...

def test_send(store): send(1)

class TestStore:
    async def test_open(self): ...
    def helper(self): ...
""",
    "web/client.ts": """
import { Component } from "@angular/core";
@Component({}) export class Client extends Base { async load() {} }
""",
    "docs/prose.md": "# Prose\n\n```python\nimport asyncio\n@app.task\ndef f(): ...\n```\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    folder: Path = tmp_path_factory.mktemp("definitions")
    settings = load_settings(data_dir=folder)
    opened = open_store(settings)
    put(opened, [point("note", "Notes about classes and functions.", path="notes/a.md")])
    put_code(opened, settings, CODE)
    yield opened
    opened.close()


@pytest.fixture
def tables(redis_url: str) -> Iterator[Tables]:
    client = redis.Redis.from_url(redis_url)
    yield Tables(client, load_settings())
    client.close()


def members(rows: tuple[ListRow, ...] | list[ListRow]) -> list[str]:
    """Names of definitions, or paths of files."""
    return sorted(row.title if row.line else row.path for row in rows)


@pytest.fixture
def ask(corpus: ChunkStore, tables: Tables) -> Callable[[str], list[str]]:
    listing = Listing(corpus, tables, load_settings())

    def asked(question: str) -> list[str]:
        assert listing.read(question).warnings == ()
        table, rows = listing.ask(question)
        assert (table.matched, table.scanned) == (len(rows), table.planned)
        return members(rows)

    return asked


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("list all functions decorated with @app.task", ["long", "send", "send"]),
        ("列出所有用 @app.task 装饰的函数", ["long", "send", "send"]),
        ("functions with the task decorator", ["later", "long", "send", "send"]),
        ("Which functions are decorated with @celery.app.task?", ["later"]),
        ("list all functions in app/tasks.py that are not decorated", ["long.inner"]),
        ("which classes inherit from BaseModel", ["User"]),
        ("哪些类继承自 pydantic.BaseModel？", ["User"]),
        ("Generic 的子类有哪些", ["Store"]),
        ("list all classes without a base class in app/", ["Plain", "User.Config"]),
        ("all tests in tests/test_app.py", ["TestStore.test_open", "test_send"]),
        ("tests 目录下的所有测试函数", ["TestStore.test_open", "test_send"]),
        ("list the functions of module app.tasks", ["later", "long", "long.inner", "send", "send"]),
        ("列出 app.models 模块里的方法", ["Store.open", "User.name", "User.name"]),
        ("all methods of class User", ["User.name", "User.name"]),
        ("Store 类的所有方法", ["Store.open"]),
        ("how many files import asyncio", ["app/models.py", "app/tasks.py"]),
        ("有多少个文件导入了 asyncio", ["app/models.py", "app/tasks.py"]),
        ("which modules import app.tasks", ["app/models.py"]),
        ("哪些文件没有导入 asyncio？", ["tests/test_app.py", "web/client.ts"]),
        ("Which files import asyncio but not pydantic?", ["app/tasks.py"]),
        ("how many classes are there in app/", ["BrokenError", "Plain", "Store", "User", "User.Config"]),
        ("which files define a class named *Error", ["app/models.py"]),
        ("which files define no classes", ["app/tasks.py"]),
        ("Which file defines the class Plain?", ["app/models.py"]),
        ("哪些文件定义了类 Plain", ["app/models.py"]),
        ("list all classes whose name ends in Error", ["BrokenError"]),
        ("名字以 test_ 开头的函数有哪些？", ["TestStore.test_open", "test_send"]),
        ("async functions in app/", ["Store.open", "later"]),
        ("列出所有异步方法", ["Client.load", "Store.open", "TestStore.test_open"]),
        ("functions that call run_pipeline", ["send"]),
        ("哪些函数调用了 send？", ["Store.open", "test_send"]),
        ("list all classes decorated with @Component", ["Client"]),
    ],
)
def test_given_a_question_after_definitions_when_listed_then_it_is_exactly_these(
    ask: Callable[[str], list[str]], question: str, expected: list[str]
) -> None:
    assert ask(question) == expected


def test_given_a_definition_in_the_list_then_it_says_where_it_stands(corpus: ChunkStore, tables: Tables) -> None:
    _, rows = Listing(corpus, tables, load_settings()).ask("list all methods of class Store")
    (row,) = rows
    assert (row.symbol, row.kind, row.place) == ("app.models.Store.open", "method", "app/models.py:14")
    assert row.sentence == "async def open(self)"


def test_given_functions_and_methods_then_the_table_counts_each_kind(corpus: ChunkStore, tables: Tables) -> None:
    table, _ = Listing(corpus, tables, load_settings()).ask("how many functions are in tests/?")
    assert (table.unit, table.kinds) == ("definition", {"function": 2, "method": 2})
    assert table.coverage == "scanned 1 of 1 file"


@pytest.mark.parametrize(
    ("question", "unread"),
    [
        ("list all functions in app/ that are slow", "slow"),
        ("list all nested functions in app/tasks.py", "nested"),
        ("which files define a class named User and a function named send", "function"),
    ],
)
def test_given_what_no_parser_says_when_read_then_it_is_named(
    corpus: ChunkStore, tables: Tables, question: str, unread: str
) -> None:
    reading = Listing(corpus, tables, load_settings()).read(question)
    assert reading.scan is not None
    assert reading.scan.unread == (unread,)
    assert unread in reading.warnings[0]


@pytest.mark.parametrize(
    "question", ["functions that are slow", "哪些函数比较慢？", "list all methods of classes that inherit from User"]
)
def test_given_what_definitions_cannot_tell_when_read_then_it_is_searched_and_said(
    corpus: ChunkStore, tables: Tables, question: str
) -> None:
    reading = Listing(corpus, tables, load_settings()).read(question)
    assert reading.scan is None
    assert reading.warnings


def test_given_documents_as_such_then_no_definitions_are_listed(corpus: ChunkStore, tables: Tables) -> None:
    _, rows = Listing(corpus, tables, load_settings()).ask("list all notes about classes")
    assert "notes/a.md" in {row.path for row in rows}


def test_given_files_of_an_older_release_when_listed_then_they_are_counted_and_said(
    tmp_path: Path, tables: Tables
) -> None:
    settings = load_settings(data_dir=tmp_path)
    store = open_store(settings)
    put(store, [point("old", "def f(): ...", path="old/f.py", part="code")])
    put_code(store, settings, {"new/g.py": "def g(): ...\n"})
    ids = [chunk_id for chunk_id, _ in store.read(of_documents(["old"]), ("doc_id",))]
    assert ids
    table, rows = Listing(store, tables, settings).ask("how many functions are there?")
    assert (members(rows), table.unparsed, table.scanned) == (["g"], 1, 2)
    assert "1 files" in " ".join(list_warnings(table, "which notes?"))
    store.close()
