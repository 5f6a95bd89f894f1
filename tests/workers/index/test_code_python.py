"""Python as definitions and edges."""

from __future__ import annotations

import pytest

from tests.workers.index.code_tree import Tree, chunks

STORE = '''
"""Keeps things."""

from __future__ import annotations
import os, json as js
from .base import Base, connect as dial
from ..log import trace

LIMIT = 10
PATTERN = re.compile("x")


# About the store.
# Two lines.
@trace
class Store(Base):
    """Holds rows."""

    size: int = 3

    def __init__(self, inner: Inner) -> None:
        self._inner = inner
        self.other = Inner(1)

    @property
    def rows(self):
        return self._inner.fetch()

    def open(self, path: str):
        self.check(path)
        self.parent_method()
        conn = dial(path)
        local = Inner()
        local.close_all()
        unknown.frobnicate()
        unknown.append(len(path))
        js.dumps(path)
        os.path.join(path)
        return helper(conn, key=on_error)

    def check(self, path): ...


class Inner:
    def fetch(self): ...
    def close_all(self): ...


def helper(conn, key):
    def nested():
        pass
    nested()
    return PATTERN.match(conn)


def on_error(): ...


def typed(stores: list[Store], one: "Store | None" = None) -> Inner:
    one.open("x")
    for each in stores:
        each.open("y")
'''
BASE = """
class Base:
    def parent_method(self): ...
def connect(path): ...
"""
FILES = {
    "app/db/store.py": STORE,
    "app/db/base.py": BASE,
    "app/db/__init__.py": "from app.db.store import Store, helper\n",
    "app/log.py": "def trace(f):\n    return f\n",
    "app/use.py": """
        import app.db.store as s
        from app.db import Store
        from app.db.store import *

        def run(frobnicate):
            frobnicate()
            return s.helper(1, 2), Store(3).open("z")

        def run_star():
            return on_error()
        """,
}


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(FILES)


def test_given_a_module_when_cut_then_each_definition_is_a_chunk_with_its_comment_and_decorators(tree: Tree) -> None:
    assert tree.symbols("app/db/store.py") == [
        "app.db.store", "app.db.store.Store", "app.db.store.Store.__init__", "app.db.store.Store.rows",
        "app.db.store.Store.open", "app.db.store.Store.check", "app.db.store.Inner", "app.db.store.Inner.fetch",
        "app.db.store.Inner.close_all", "app.db.store.helper", "app.db.store.on_error", "app.db.store.typed",
    ]  # fmt: skip
    found = {chunk.symbol: chunk for chunk in tree.chunks}
    head = found["app.db.store.Store"]
    assert head.text.startswith("# About the store.\n# Two lines.\n@trace\nclass Store(Base):")
    assert head.text.endswith("size: int = 3")
    assert head.heading == "class Store"
    assert head.title == "app.db.store"
    assert found["app.db.store.Store.rows"].text.startswith("    @property\n    def rows")
    assert found["app.db.store.Store.rows"].heading == "class Store > method rows"
    assert "def nested" in found["app.db.store.helper"].text
    assert found["app.db.store"].text.startswith('"""Keeps things."""')
    assert found["app.db"].text == "from app.db.store import Store, helper"


def test_given_a_definition_when_asked_by_any_suffix_or_through_its_package_then_its_keys_hold_it(tree: Tree) -> None:
    found = {chunk.symbol: chunk.defines for chunk in tree.chunks}
    assert {
        "app.db.store.Store.open", "db.store.Store.open", "store.Store.open", "Store.open", "open", "app.db.Store.open",
    } <= set(found["app.db.store.Store.open"])  # fmt: skip
    assert {"app.db.store", "db.store", "app.db.store.LIMIT", "LIMIT", "path:app/db/store.py"} <= set(
        found["app.db.store"]
    )
    assert "size" not in found["app.db.store.Store"]
    assert "rows" not in found["app.db.store"]


def test_given_calls_when_resolved_then_imports_aliases_types_and_bases_lead_to_the_definition(tree: Tree) -> None:
    assert tree.leads("app.db.store") == {
        "app.db.base.Base", "app.db.base.connect", "app.log.trace",
    }  # fmt: skip
    assert tree.leads("app.db.store.Store") == {"app.db.base.Base", "app.log.trace"}
    assert tree.leads("app.db.store.Store.__init__") == {"app.db.store.Inner"}
    assert tree.leads("app.db.store.Store.rows") == {"app.db.store.Inner.fetch"}
    assert tree.leads("app.db.store.Store.open") == {
        "app.db.store.Store.check", "app.db.base.Base.parent_method", "app.db.base.connect", "app.db.store.Inner",
        "app.db.store.Inner.close_all", "app.db.store.helper", "app.db.store.on_error",
    }  # fmt: skip
    assert tree.leads("app.db.store.helper") == {"app.db.store"}, "a constant leads to the module that has it"
    assert tree.leads("app.db.store.typed") == {
        "app.db.store.Store", "app.db.store.Inner", "app.db.store.Store.open",
    }  # fmt: skip
    assert tree.leads("app.use.run") == {"app.db.store.helper", "app.db.store.Store", "app.db.store.Store.open"}
    assert tree.leads("app.use.run_star") == {"app.db.store.on_error"}


def test_given_names_that_no_corpus_defines_when_resolved_then_they_are_left_out(tree: Tree) -> None:
    assert tree.refs("app.db.store.Store.open") >= {"frobnicate"}, "an unknown object's method waits by its name"
    assert not tree.refs("app.db.store.Store.open") & {"append", "len", "json.dumps", "dumps", "os.path.join", "join"}
    assert "frobnicate" not in tree.refs("app.use.run"), "a parameter is called, no method"


def test_given_a_text_that_only_looks_like_a_call_when_resolved_then_it_is_none() -> None:
    (chunk,) = chunks(
        "a/b.py", 'def f():\n    """Calls helper(1) and x.helper2()."""\n    # other(2)\n    return "g(3)"\n'
    )
    assert chunk.refs == ()


def test_given_conditional_and_async_definitions_when_cut_then_they_are_found() -> None:
    text = """
        if TYPE_CHECKING:
            from x.y import Z
        try:
            import fast
        except ImportError:
            def slow(): ...
        async def later(z: Z): await z.go()
        class Outer:
            class Meta:
                def deep(self): ...
            if DEBUG:
                def debug(self): ...
        """
    found = {chunk.symbol: chunk for chunk in chunks("p/m.py", text)}
    assert {"p.m.slow", "p.m.later", "p.m.Outer.Meta.deep", "p.m.Outer.debug"} <= set(found)
    assert found["p.m.later"].refs == ("x.y.Z.go", "x.y.Z")
    assert found["p.m.Outer.Meta.deep"].heading == "class Outer > class Meta > method deep"


def test_given_many_refs_when_kept_then_the_most_specific_come_first_and_are_bounded() -> None:
    calls = "\n".join(f"    x.name{n}()\n    mod.sub.f{n}()" for n in range(100))
    found = chunks("a/b.py", f"import mod.sub\ndef f():\n{calls}\n")
    (function,) = (chunk for chunk in found if chunk.symbol == "a.b.f")
    assert len(function.refs) == 64
    assert all(ref.startswith("mod.sub.f") for ref in function.refs)


def test_given_chinese_names_when_cut_then_they_are_names_like_any() -> None:
    found = Tree({"库/存储.py": "def 打开(路径):\n    return 检查(路径)\n\ndef 检查(路径): ...\n"})
    assert found.leads("库.存储.打开") == {"库.存储.检查"}
