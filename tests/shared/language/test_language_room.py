"""What a language knows stands in its folder: no word list and no branch for one language anywhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.language import languages
from shared.language.tables import PlanningTable, toml

ROOT = Path(__file__).parents[3]
ROOM = ROOT / "shared" / "language"
PRODUCT = [path for room in ("shared", "orchestrator", "workers", "ramify") for path in (ROOT / room).rglob("*.py")]
OUTSIDE = [path for path in PRODUCT if ROOM not in path.parents]
NEUTRAL = sorted(ROOM.glob("*.py"))
HAN = re.compile("[\u3400-\u9fff]")
NAMED = re.compile(r"(?:^|_)(?:english|chinese|en|zh)(?:_|$)", re.IGNORECASE)
CODES = frozenset(["en", "zh", "english", "chinese"])
#: File -> why a language's code stands in it.
ALLOWED = {"workers/search/language.py": "says which languages a model of a known name reads"}


def docstrings(tree: ast.AST) -> set[ast.AST]:
    bodies = [getattr(node, "body", []) for node in ast.walk(tree) if hasattr(node, "body")]
    first = [body[0] for body in bodies if isinstance(body, list) and body and isinstance(body[0], ast.Expr)]
    return {node.value for node in first}


def han_literals(source: str, tree: ast.AST) -> Iterator[str]:
    """Han characters in strings, as they are written: the ends of a range of characters are escapes."""
    told = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and HAN.search(node.value):
            yield from HAN.findall("" if node in told else ast.get_source_segment(source, node) or node.value)


def branches(tree: ast.AST) -> Iterator[str]:
    """Codes of languages that something is compared with or looked up by, and names that speak of one language."""
    for node in ast.walk(tree):
        given = ()
        if isinstance(node, ast.Compare):
            given = (node.left, *node.comparators)
        elif isinstance(node, ast.Subscript):
            given = (node.slice,)
        for each in (part for one in given for part in ast.walk(one)):
            if isinstance(each, ast.Constant) and each.value in CODES:
                yield str(each.value)
        name = getattr(node, "id", None) or getattr(node, "arg", None) or getattr(node, "name", None)
        if isinstance(name, str) and NAMED.search(name):
            yield name


@pytest.mark.parametrize("path", OUTSIDE + NEUTRAL, ids=lambda path: str(path.relative_to(ROOT)))
def test_given_a_module_outside_the_folders_of_languages_when_read_then_it_holds_no_language(path):
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    assert list(han_literals(source, tree)) == []
    if str(path.relative_to(ROOT)) not in ALLOWED:
        assert list(branches(tree)) == []


def test_given_the_tables_when_sought_then_those_of_a_language_lie_in_its_folder():
    tables = [path for room in ("shared", "orchestrator", "workers") for path in (ROOT / room).rglob("*.toml")]
    assert [path for path in tables if ROOM not in path.parents and HAN.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOM)))
def test_given_the_room_when_its_imports_are_read_then_it_knows_only_models_and_errors(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            room, _, rest = (node.module or "").partition(".")
            assert room not in {"orchestrator", "workers", "ramify"}
            assert room != "shared" or rest.split(".")[0] in {"language", "models", "errors", "byte_cache"}


def test_given_two_languages_when_their_folders_are_listed_then_they_hold_the_same_files():
    english, chinese = ({path.name for path in (ROOM / code).iterdir() if path.is_file()} for code in ("en", "zh"))
    # The server's own sentences are English; said.toml says them in another language.
    assert english | {"said.toml"} == chinese


def test_given_two_languages_when_their_sentences_are_compared_then_both_say_everything():
    first, *others = (language.words.says for language in languages())
    places = {name: sentence.count("{}") for name, sentence in first.items()}
    for says in others:
        assert {name: sentence.count("{}") for name, sentence in says.items()} == places


@pytest.mark.parametrize("code", ["en", "zh"])
def test_given_a_planning_table_when_loaded_then_every_pattern_compiles(code):
    table = PlanningTable.model_validate(toml(code, "planning"))
    assert table.compiled
    assert table.frame("?") is None
    assert table.comparison("?") is None
