"""What the server says, on a page: in the visitor's language, without commands for what the page has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import orchestrator
import shared
import workers
from orchestrator.operations.registry import OPERATIONS
from orchestrator.server.page.sayings import templates, told, translated
from orchestrator.server.page.words import Words, catalogue
from shared.language.tables import toml

_VALUE = re.compile(r"\{\w+\}")
_JOINED = re.compile(r'"\s*\n\s*f?"')


@pytest.mark.parametrize(
    ("said", "chinese"),
    [
        (
            "job id: 'x' cannot be used: there is no such job, or it has expired; `ramify jobs` lists them",
            "job id：'x' 不能用：没有这个任务，或它已过期删除",
        ),
        (
            "The collection is empty: ingest documents with `ramify ingest PATH`.",
            "文档库是空的：请先用 “文档库”页的上传表单 入库。",
        ),
        ("It is done: 7 of 8 leaves answered within 3.2 s.", "已完成：8 个叶子中有 7 个回答，用时 3.2 s。"),
        (
            "It ended failed after 1 s: none of the 2 leaves answered; the first said: no. Nothing had been searched.",
            "用时 1 s 后以 失败 结束：2 个叶子都没有回答；第一个说：no。没有检索任何内容。",
        ),
        ("What nobody has foreseen stays: 1.5 of it.", "What nobody has foreseen stays: 1.5 of it."),
        ("The cause is the corpus: a.md changed.", "原因是文档库：a.md changed。"),
        ("Unforeseen. It is tried again as a7.", "Unforeseen. 已作为 a7 重试。"),
    ],
)  # fmt: skip
def test_sentences_are_told_in_chinese_and_unknown_ones_as_they_are(said: str, chinese: str) -> None:
    assert told(Words("zh"), said) == chinese


def test_in_english_only_the_commands_change() -> None:
    said = "The collection is empty: ingest documents with `ramify ingest PATH`."
    assert told(Words("en"), said) == "The collection is empty: ingest documents with the form on the page Corpus."
    assert told(Words("en"), "start it with `ramify up -d`") == "start it with `ramify up -d`"


def test_a_text_that_is_made_to_take_long_does_not() -> None:
    assert translated("zh", "It is done: " * 5_000)
    assert translated("zh", ": cannot be used: `" * 5_000)


def test_every_template_is_of_a_sentence_that_the_code_says() -> None:
    rooms = [Path(room.__file__ or "").parent for room in (orchestrator, shared, workers)]
    code = "".join(_JOINED.sub("", file.read_text()) for room in rooms for file in room.rglob("*.py"))
    for section in toml("zh", "said").values():
        for said, chinese in section.items():
            assert sorted(_VALUE.findall(said)) == sorted(_VALUE.findall(chinese)), said
            own = [part.strip(" :;,.()").replace('"', '\\"').split() for part in _VALUE.split(said)]
            pieces = [" ".join(words[at : at + 3]) for words in own for at in range(max(1, len(words) - 2))]
            long = [piece for piece in pieces if len(piece) >= 5]
            assert not long or any(piece in code for piece in long), said
    assert len(templates("zh")) > 100
    assert templates("en") == ()


def test_places_are_those_of_commands() -> None:
    commands = {operation.command.partition(" ")[0] for operation in OPERATIONS.values() if operation.command}
    assert {key.partition(".")[2] for key in catalogue("en") if key.startswith("place.")} <= commands
