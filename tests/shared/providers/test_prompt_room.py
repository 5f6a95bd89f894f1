"""Texts are shared out over prompts that have room for them."""

from shared.providers.llm.prompts import rerank_prompt
from shared.providers.llm.room import batches, room_beside
from shared.providers.metering import usual_tokens


def test_given_texts_when_shared_out_then_each_prompt_has_room_and_only_a_text_too_long_for_one_is_cut() -> None:
    texts = ["short", "引号" * 150, '"quoted" & <tagged> ' * 20, "long " * 2000, "last"]
    found = list(batches(texts, room_beside(rerank_prompt("query", ()), 1500), 3))
    assert all(usual_tokens(rerank_prompt("query", batch)) <= 1500 for batch in found)
    assert all(len(batch) <= 3 for batch in found)
    parts = [text for batch in found for text in batch]
    assert [part == text for part, text in zip(parts, texts, strict=True)] == [True, True, True, False, True]
    assert texts[3].startswith(parts[3].strip())
