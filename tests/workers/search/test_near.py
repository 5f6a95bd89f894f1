"""A named symbol leads to its definition, then its callers, then what it calls, before what words find."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from shared.language.symbols import asked_callers, named_symbol
from shared.models import Chunk, Filters, SearchResult
from shared.providers.encoders import Bm25Encoder
from shared.providers.rerankers import reranker
from shared.settings import load_settings
from shared.settings.sections import ChunkingSettings
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint
from tests.fakes.stores import OpenedStore, in_place
from workers.index.code.chunking import chunk_code
from workers.index.documents import Document, Markup
from workers.search.engine import continue_search, search
from workers.search.state import Query, Tools

SPARSE = Bm25Encoder(20.0)
SETTINGS = load_settings()
CODE = {
    "lib/config.py": """
        import re
        from .text import strip

        def parse_config(text):
            return normalise(strip(text))

        def normalise(text):
            return text

        class Loader:
            def load(self, path):
                return self.decode(path)

            def decode(self, path):
                return path
        """,
    "lib/text.py": "def strip(text):\n    return text\n",
    "lib/__init__.py": "from .config import parse_config, Loader\n",
    "lib/facade.py": "from lib.config import parse_config as read_config\n",
    "app/direct.py": "from lib.config import parse_config\n\ndef direct(path):\n    return parse_config(path)\n",
    "app/reexported.py": "from lib import parse_config\n\ndef reexported(path):\n    return parse_config(path)\n",
    "app/renamed.py": "from lib.facade import read_config as rc\n\ndef renamed(path):\n    return rc(path)\n",
    "app/module.py": "import lib.config as cfg\n\ndef by_module(path):\n    return cfg.parse_config(path)\n",
    "app/mapped.py": "from lib.config import parse_config\n\ndef mapped(paths):\n    return map(parse_config, paths)\n",
    "app/thread.py": """
        from threading import Thread
        from lib.config import parse_config

        def started():
            return Thread(target=parse_config).start()
        """,
    "app/decorated.py": "from lib.config import parse_config\n\n@parse_config\ndef decorated():\n    pass\n",
    "app/derived.py": """
        from lib import Loader
        from lib.text import Plain

        class Deep(Plain, Loader):
            def read(self, path):
                return self.decode(path)
        """,
    "app/deeper.py": """
        from app.derived import Deep

        class Deeper(Deep):
            def again(self, path):
                return super().decode(path)
        """,
    "tests/test_config.py": """
        from lib.config import parse_config

        def test_parse_config():
            assert parse_config("parse config change breaks what calls") == ""
        """,
}
ALIASES = {
    "alias/local.py": """
        def in_function(path):
            from lib.config import parse_config as z
            k = z
            return k(path)
        """,
    "alias/module.py": """
        import lib.config
        from lib.config import parse_config

        cfg = lib.config
        h = parse_config

        def by_module_alias(path):
            return cfg.parse_config(path)

        def by_name(path):
            return h(path)

        def by_default(path, read=parse_config):
            return read(path)

        def by_fallback(path, read=None):
            read = read or parse_config
            return read(path)
        """,
    "alias/fields.py": """
        from lib.config import parse_config

        class Held:
            of_class = parse_config

            def __init__(self):
                self.x = parse_config

            def by_field(self, path):
                return self.x(path)

            def by_class(self, path):
                return self.of_class(path)

        class Stranger:
            def __init__(self, x):
                self.x = x

            def no_caller(self, path):
                return self.x(path)
        """,
}
CALLERS = {"direct", "reexported", "renamed", "by_module", "mapped", "started", "decorated"}


def points(path: str, text: str) -> list[ChunkPoint]:
    document = Document(
        doc_id=str(uuid.uuid5(uuid.NAMESPACE_URL, path)), path=path, title=path, text=dedent(text),
        markup=Markup.CODE, source="/x",
    )  # fmt: skip
    return [point(chunk) for chunk in chunk_code(document, ChunkingSettings(target_chars=200, max_chars=400))]


def point(chunk: Chunk) -> ChunkPoint:
    return ChunkPoint(chunk=chunk, document_hash="h", source="s", sparse=SPARSE.encode_passage(chunk.full_text))


def prose(number: int) -> ChunkPoint:
    text = f"Change {number}: what breaks if parse_config changes, and what calls parse_config; parse_config decode."
    name = f"changes{number}"
    chunk_id = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
    return point(Chunk(chunk_id=chunk_id, doc_id=name, path=f"{name}.md", title="parse_config changes", text=text))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpenedStore]:
    opened = in_place(tmp_path / "store")
    opened.create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    opened.upsert([one for path, text in CODE.items() for one in points(path, text)])
    opened.upsert([prose(number) for number in range(30)])
    yield opened
    opened.close()


def ask(store: OpenedStore, question: str, *, shown: int = 20, **more: object) -> SearchResult:
    first, rest = split(SETTINGS.strategies["two_pass"])
    fields = {"wanted": 50, "filters": Filters(), "read_symbol": named_symbol(question), "shown": shown, **more}
    query = Query(question, **fields)  # type: ignore[arg-type]
    found = search(query, "two_pass", first, Tools(settings=SETTINGS, store=store, sparse=SPARSE))
    return continue_search(found, query, rest, Tools(settings=SETTINGS, reranker=reranker(SETTINGS)))


def names(found: SearchResult) -> list[str]:
    """The last part of every hit's symbol, or its path."""
    return [(hit.symbol or hit.path).rpartition(".")[2] if hit.symbol else hit.path for hit in found.hits]


@pytest.mark.parametrize(
    ("question", "near"),
    [
        ("what breaks if this changes", "parse_config"),
        ("What calls `parse_config`?", None),
        ("谁调用了 parse_config", None),
        ("what breaks if I change lib.config.parse_config", None),
    ],
)
def test_given_a_symbol_when_asked_then_its_callers_stand_behind_it_and_before_all_text(
    store: OpenedStore, question: str, near: str | None
) -> None:
    found = names(ask(store, question, near_symbol=near))

    assert found[0] == "parse_config"
    assert set(found[1:8]) == CALLERS, "production code, however they reach it"
    assert found[8] == "test_parse_config"
    assert {"normalise", "strip"} <= set(found[9 : found.index(next(n for n in found if n.endswith(".md")))])
    assert not any(name.endswith(".md") for name in found[:12])
    assert any(name.endswith(".md") for name in found), "text follows"


def test_given_a_method_when_asked_then_it_is_found_through_classes_of_other_files(store: OpenedStore) -> None:
    found = ask(store, "who calls Loader.decode?")

    assert names(found)[0] == "decode"
    assert set(names(found)[1:4]) == {"load", "read", "again"}
    assert all(hit.via and hit.via.how == "called by" for hit in found.hits[1:4])


def test_given_what_a_symbol_calls_when_asked_then_that_stands_before_its_callers(store: OpenedStore) -> None:
    found = names(ask(store, "What does parse_config call?"))

    assert set(found[1:3]) == {"normalise", "strip"}
    assert set(found[3:10]) == CALLERS


def test_given_more_callers_than_results_when_asked_then_none_is_cut_and_their_number_is_said(
    store: OpenedStore,
) -> None:
    body = "\n".join(f"    value = steps({n}, 'a long line of this function')" for n in range(20))
    calls = "".join(
        f"def use{n}():\n    parse_config({n})\n{body}\n    parse_config({n})\n\n" for n in range(70)
    )  # two chunks at least, both of which call
    store.upsert(points("app/many.py", f"from lib.config import parse_config\n\n{calls}"))

    few, all_of_them = ask(store, "who calls parse_config?"), ask(store, "who calls parse_config?", shown=90)

    callers = [name for name in names(all_of_them) if name.startswith("use")]
    assert len(callers) == len(set(callers)) == 70, "all of one file, each once"
    assert "parse_config is called in 78 places, of which the first 19 are shown: ask for 79 results for all." in (
        few.warnings
    )
    assert not any("is called in" in warning for warning in all_of_them.warnings)


def test_given_a_name_that_nothing_defines_when_only_the_question_has_it_then_words_are_searched_without_warning(
    store: OpenedStore,
) -> None:
    found = ask(store, "who calls parse_confg?")

    assert found.hits
    assert all(hit.precedence > 1 for hit in found.hits)
    assert not any("parse_confg" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("question", "symbol"),
    [
        ("what calls `parse_config`", "parse_config"),
        ("who calls broadcast?", "broadcast"),
        ("Which functions call kombu.utils.uuid.uuid()?", "kombu.utils.uuid.uuid"),
        ("what breaks if I change Engine.search", "Engine.search"),
        ("If we renamed Engine::search, what would break?", "Engine.search"),
        ("Is it safe to remove the class BaseClient?", "BaseClient"),
        ("where is handle_options used?", "handle_options"),
        ("What does Celery.send_task call?", "Celery.send_task"),
        ("which classes inherit from BaseClient?", "BaseClient"),
        ("谁调用了parse_config？", "parse_config"),
        ("parse_config 被哪些函数调用？", "parse_config"),
        ("修改 Engine.search 会影响什么？", "Engine.search"),
        ("Engine.search 调用了哪些函数？", "Engine.search"),
        ("Name every function that calls parse_config.", "parse_config"),
        ("In which methods is parse_config called?", "parse_config"),
        ("列出所有调用 parse_config 的函数", "parse_config"),
        ("What breaks if this changes", None),
        ("Who uses PostgreSQL?", None),
        ("who calls customers in winter", None),
        ("What happens when the reader fails?", None),
        ("怎么修改密码", None),
    ],
)
def test_given_a_question_when_read_then_a_symbol_is_what_code_writes_behind_words_of_calls(
    question: str, symbol: str | None
) -> None:
    assert named_symbol(question) == symbol


@pytest.mark.parametrize(
    ("question", "symbol"),
    [
        ("Which functions call parse_config?", "parse_config"),
        ("List all functions and methods that call Engine.search.", "Engine.search"),
        ("show me all callers of `flush`", "flush"),
        ("What are the call sites of parse_config?", "parse_config"),
        ("哪些函数调用了 parse_config？", "parse_config"),
        ("parse_config 被哪些方法调用？", "parse_config"),
        ("调用 Engine.search 的函数有哪些？", "Engine.search"),
        ("Which functions in lib/ call parse_config?", None),
        ("Which functions call parse_config but not strip?", None),
        ("Which async functions call parse_config?", None),
        ("How many functions call parse_config?", None),
        ("What does parse_config call?", None),
        ("lib 目录里哪些函数调用了 parse_config？", None),
        ("parse_config 调用了哪些函数？", None),
    ],
)
def test_given_a_question_when_it_asks_for_callers_and_nothing_else_then_their_symbol_is_read(
    question: str, symbol: str | None
) -> None:
    assert asked_callers(question) == symbol


def test_given_a_function_under_other_local_names_when_its_callers_are_asked_for_then_these_are_followed(
    store: OpenedStore,
) -> None:
    store.upsert([one for path, text in ALIASES.items() for one in points(path, text)])

    found = ask(store, "who calls parse_config?", shown=50)

    calling = {hit.symbol.rpartition(".")[2] for hit in found.hits if hit.symbol and hit.precedence == 1}
    by_names = {"in_function", "by_module_alias", "by_name", "by_default", "by_fallback", "by_field", "by_class"}
    assert calling >= CALLERS | by_names
    assert "no_caller" not in calling
