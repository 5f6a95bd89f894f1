"""What a document says of being out of date: in a field, or in a line at its head."""

from __future__ import annotations

import pytest

from shared.models import RawDocument
from shared.settings.sections import ChunkingSettings
from workers.index.chunking import chunk_document
from workers.index.readers import read_documents


def chunk(text: str):
    raw = RawDocument(path="n.md", identity="n", content=text.encode(), source="s", suffix=".md")
    (document,) = read_documents(raw, 100_000)
    return chunk_document(document, ChunkingSettings())[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nstatus: deprecated\n---\n# A\n\nText.", "status: deprecated"),
        ("---\nsuperseded_by: KR-011\n---\n# A\n\nText.", "superseded_by: KR-011"),
        ("# A\n\nStatus: superseded by KR-011\n\nText.", "Status: superseded by KR-011"),
        ("# A\n\n**Status:** superseded by [[B]] on 2025-06-03.\n", "Status: superseded by B on 2025-06-03"),
        ("# A\n\n> This policy has been replaced by [B](b.md).\n\nText.", "This policy has been replaced by B"),
        ("# 甲\n\n状态：已被 QY-009 取代\n\n正文。", "状态: 已被 QY-009 取代"),
        ("# 甲\n\n本规范已废止。\n\n正文。", "本规范已废止"),
        ("# 甲\n\n本规定已被《甲（2025）》取代。\n\n正文。", "本规定已被《甲（2025）》取代"),
        ("---\n状态: 已归档\n---\n# 甲\n\n正文。", "状态: 已归档"),
    ],
)
def test_given_a_page_that_says_so_then_each_of_its_chunks_knows_it(text: str, said: str) -> None:
    assert chunk(text).superseded == said


@pytest.mark.parametrize(
    "text",
    [
        "---\nstatus: accepted\n---\n# A\n\nKR-004 was superseded by this.",
        "# A\n\nThe old relay was replaced by a new one in 2019.",
        "# A\n\nStatus: done\n\nExpired keys are deleted by Redis.",
        "# 甲\n\n取代：QY-003\n\n旧规范已废止。",
    ],
)
def test_given_a_page_that_speaks_of_another_one_then_it_is_not_out_of_date(text: str) -> None:
    assert not chunk(text).superseded


def test_given_an_end_then_it_is_a_day() -> None:
    assert chunk("---\nvalid_until: 2025-12-31\n---\n# A\n\nText.").valid_until == "2025-12-31"
    assert chunk("# 甲\n\n有效期至：2025年12月31日\n\n正文。").valid_until == "2025-12-31"
    assert chunk("# A\n\nText.").valid_until is None
