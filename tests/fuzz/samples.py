"""Good inputs to begin with: the sample corpus, the questions of the tests, and those of samples.toml."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SUMMARIES = (
    "<think>hm\n</think>\n```markdown\nThe queue was full [1]. 队列积压了 [2]。\n- a\n- b\n```",
    "One. Two! 三。\n\n```python\nprint(1)\n```\nFour? " * 20,
)
#: Lines of a corpus in JSON Lines.
JSONL: tuple[dict[str, Any], ...] = (
    {"id": "a-1", "title": "Redis", "text": "# One\n\nIn order.\n\n- a\n- b", "date": "2026-03-04", "tags": ["a"]},
    {"_id": 7, "text": "缓存雪崩是指大量缓存同时失效。", "kind": "memory", "path": "notes/zh/a.md", "facet": "insight"},
    {"id": "c", "title": "x", "text": "[[Redis]] [y](../b.md#z) `code`", "url": "https://a.example/b", "tags": "a, b"},
)
_STEPS = [{"query": "Who?"}, {"query": "What of #1?", "depends_on": [1], "dimension": "how"}]
#: Lines of a batch.
REQUESTS: tuple[dict[str, Any], ...] = (
    {"question": "Which incidents were caused by retries?", "mode": "hybrid", "top_n": 10, "summary": True,
     "filters": {"after": "2026-01-01", "tags": ["incident"], "paths": ["notes/en/"]}, "idempotency_key": "q-17"},
    {"question": "列出所有 #redis 笔记", "strategy": "default", "explain": True, "deadline_s": 9.5, "tenant": "a",
     "max_calls": 3, "max_tokens": 1000, "near_symbol": "a.b::c()", "depth": 2},
    {"question": "x", "plan": {"subqueries": _STEPS}},
    {"question": "y", "subqueries": [{"query": "a"}, {"query": "b", "under": 1}], "lane": "batch", "decompose": False},
)  # fmt: skip
#: Tokens too long to be written down.
_LONG = {
    "json": ("9" * 5000, "[" * 3000, '{"a":' * 3000),
    "http": ("Retry-After: " + "9" * 400 + "\r\n", "Set-Cookie: a=b\r\n" * 200, "X: " + "y" * 9000 + "\r\n"),
    "cli": ("--top=" + "9" * 5000, "x" * 300, "中" * 5000, "\udcff"),
}


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


def forms(name: str) -> tuple[str, ...]:
    """Good inputs of one form, from samples.toml."""
    return tuple(_read("samples.toml")[name])


def code() -> dict[str, str]:
    """A file of each language, by its suffix."""
    return dict(_read("samples.toml")["code"])


@cache
def tokens(name: str) -> tuple[str, ...]:
    """The words of a format, from tokens.toml."""
    return (*_read("tokens.toml")[name], *_LONG.get(name, ()))


@cache
def notes() -> tuple[str, ...]:
    """The sample notes."""
    files = sorted((ROOT / "examples" / "notes").rglob("*"))
    return tuple(file.read_text(encoding="utf-8") for file in files if file.suffix in {".md", ".txt"})


@cache
def questions() -> tuple[str, ...]:
    """The questions that the tests of rules and routes know, English and Chinese."""
    found = []
    for name, field in (("rules_questions.jsonl", "question"), ("routes.jsonl", "text")):
        lines = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8").splitlines()
        found += [json.loads(line)[field] for line in lines if line.strip()]
    return tuple(found)
