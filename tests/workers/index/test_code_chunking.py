"""No line of a file is lost, whatever it holds; long definitions are cut at statements; hostile files end in time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import CODE_SUFFIXES
from shared.providers.encoders import Bm25Encoder
from shared.settings.sections import ChunkingSettings
from tests.workers.index.code_tree import Tree, chunks
from tests.workers.index.test_code_languages import TYPESCRIPT
from tests.workers.index.test_code_python import FILES
from workers.index.code import chunking, occurrences
from workers.index.code.languages import LANGUAGES
from workers.index.readers import read_documents

ROOT = Path(__file__).parents[3]
SMALL = ChunkingSettings(target_chars=200, max_chars=400)
#: What real files are made of, and what breaks them, in any order.
LINES = st.sampled_from([
    "", "    ", "}", "{", ")", "class A:", "class A {", "    def f(self):", "        return self.f(x)",
    "    pass", "impl A {", "fn f() {", "  f();", "func (a A) F() {", "export default function f() {",
    "type T struct {", "# a note", "// a note", "/* open", "*/", '"""', "`${", "@decorated",
    "async def g(): ...", "const a = () => {", "interface I {", "public void m() {", "mod tests {",
    "namespace N { function q() {} }", "x = 1; y = 2", "型 = 值(1)", "\\", "'", "if a:", "else:",
    "import a.b as c", "use a::{b, c};", "function a() {} function b() {}", "\u2028x", "\f",
])  # fmt: skip


def lines_of(text: str) -> list[str]:
    return sorted(line.strip() for line in text.split("\n") if line.strip())


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=40), st.sampled_from(sorted(CODE_SUFFIXES)), st.booleans())
def test_given_any_lines_when_cut_then_each_stands_in_exactly_one_chunk(
    lines: list[str], suffix: str, small: bool
) -> None:
    text = "\n".join(lines)
    found = chunks(f"a/b{suffix}", text, SMALL if small else ChunkingSettings())
    assert lines_of("\n".join(chunk.text for chunk in found)) == lines_of(text)


@pytest.mark.parametrize("path", ["workers/index/code/resolve.py", "shared/store/embedded.py", "tests/conftest.py"])
def test_given_a_real_file_when_cut_small_then_no_line_is_lost_and_no_chunk_is_too_wide(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    found = chunks(path, text, SMALL)
    assert lines_of("\n".join(chunk.text for chunk in found)) == lines_of(text)
    assert max(len(chunk.text) for chunk in found) <= SMALL.max_chars


def test_given_a_long_function_when_cut_then_parts_begin_at_statements_and_only_the_first_defines_it() -> None:
    body = "\n".join(f"    if step_{n}:\n        run_{n}(\n            {n},\n        )" for n in range(60))
    found = [chunk for chunk in chunks("a/b.py", f"def long():\n{body}\n", SMALL) if chunk.symbol == "a.b.long"]
    assert len(found) > 5
    assert all(chunk.text.lstrip().startswith(("def long", "if step_")) for chunk in found)
    assert "a.b.long" in found[0].defines
    assert all(chunk.defines == () for chunk in found[1:])
    assert {chunk.heading for chunk in found} == {"function long"}


def test_given_a_line_wider_than_a_chunk_when_cut_then_its_pieces_are_verbatim() -> None:
    text = 'TABLE = "' + "x" * 3000 + '"'
    found = chunks("a/b.py", text, SMALL)
    assert "".join(chunk.text for chunk in found) == text
    assert "TABLE" in found[0].defines


def test_given_a_file_that_does_not_parse_when_cut_then_its_sound_definitions_are_found() -> None:
    text = "def before(): ...\n\ndef broken(:\n    x = (\n\nclass After:\n    def m(self): ...\n"
    found = chunks("a/b.py", text)
    assert "a.b.before" in {chunk.symbol for chunk in found}
    assert lines_of("\n".join(chunk.text for chunk in found)) == lines_of(text)


@pytest.mark.parametrize("suffix", [".py", ".tsx", ".go", ".rs", ".java"])
@pytest.mark.parametrize(
    "bomb", ["(" * 40_000, "{" * 40_000, "x = " + "[" * 20_000 + "]" * 20_000, "a.b().c" * 8_000, "class A { " * 4_000]
)
def test_given_endless_nesting_when_cut_then_it_ends_in_time(suffix: str, bomb: str) -> None:
    text = "\n".join(bomb[start : start + 4000] for start in range(0, len(bomb), 4000))
    started = time.process_time()
    found = chunks(f"a/b{suffix}", text)
    assert time.process_time() - started < 10
    assert lines_of("\n".join(chunk.text for chunk in found)) == lines_of(text)


def test_given_an_impl_block_without_an_end_when_cut_then_its_lines_are_kept() -> None:
    assert [chunk.text for chunk in chunks("a.rs", "impl A {\n  f();")] == ["impl A {\n  f();"]


def test_given_a_parser_out_of_time_when_cut_then_the_lines_are_kept_and_the_heading_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(occurrences, "DEADLINE_S", 0.0)
    monkeypatch.setattr(occurrences, "_SMALL", 1)
    text = "def f(): ...\n" * 20_000
    found = chunks("a/b.py", text)
    assert {chunk.heading for chunk in found} == {"not parsed: it took too long"}
    assert {chunk.symbol for chunk in found} == {"a.b"}
    assert sum(chunk.text.count("def f") for chunk in found) == 20_000


def test_given_more_constants_than_keys_when_cut_then_the_keys_are_bounded() -> None:
    found = chunks("a/b.py", "\n".join(f"C{n} = {n}" for n in range(400)))
    assert all(len(chunk.defines) <= chunking.MAX_DEFINES + 2 for chunk in found)
    assert "C0" in found[0].defines


def test_given_a_minified_file_when_read_then_one_sentence_says_what_to_do_and_an_empty_one_is_nothing() -> None:
    def read(content: bytes) -> list[object]:
        raw = RawDocument(source="/x", path="a/b.js", identity="/x/a/b.js", suffix=".js", content=content)
        return list(read_documents(raw, 10_000_000))

    (outcome,) = read(b"ok();\n" + b"f();" * 2000)
    assert isinstance(outcome, DocumentOutcome)
    assert "line 2 has 8000 characters, more than 5000: it looks minified" in outcome.reason
    (binary,) = read(b"\0\1\2")
    assert isinstance(binary, DocumentOutcome)
    assert read(b" \n") == []


def test_given_the_suffixes_when_looked_up_then_each_has_a_language() -> None:
    assert set(LANGUAGES) == CODE_SUFFIXES


@pytest.mark.parametrize("name", ["parseConfig", "parse_config", "ParseConfig", "PARSE_CONFIG"])
def test_given_a_question_in_words_when_encoded_then_it_meets_the_parts_of_a_name_and_the_whole_name(name: str) -> None:
    (chunk,) = chunks("a/b.js", f"function {name}() {{}}")
    encoder = Bm25Encoder(20.0)
    stored = set(encoder.encode_passage(chunk.full_text).indices)
    assert set(encoder.encode_query("parse config").indices) <= stored
    assert set(encoder.encode_query(name).indices) <= stored
    assert not set(encoder.encode_query("unrelated").indices) & stored


def test_given_all_fixtures_when_resolved_then_no_chunk_leads_to_itself() -> None:
    for files in (FILES, TYPESCRIPT):
        for chunk in Tree(files).chunks:
            assert not set(chunk.refs) & set(chunk.defines)
