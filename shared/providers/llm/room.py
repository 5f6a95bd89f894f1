"""How much of texts from outside a prompt has room for, in tokens as they are estimated. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.language.sentences import sentences
from shared.providers.llm.prompts import escaped
from shared.providers.metering import usual_tokens

#: Tokens of the tag around a text.
TAG = 40
NO_ROOM = "llm_prompt_tokens leaves no room for them"


def written_tokens(text: str) -> int:
    """Tokens of a text as it stands in a prompt."""
    return usual_tokens(escaped(text))


def room_beside(prompt: str, prompt_tokens: int) -> int:
    """Tokens that are left for texts beside a prompt without them."""
    return max(TAG + 1, prompt_tokens - usual_tokens(prompt))


def batches(texts: Sequence[str], room: int, most: int) -> Iterator[list[str]]:
    """Runs of at most `most` texts that have room in one prompt together; one that has none by itself is cut."""
    batch: list[str] = []
    left = room
    for text in texts:
        part = begun(text, room - TAG)
        need = written_tokens(part) + TAG
        if batch and (len(batch) == most or need > left):
            yield batch
            batch, left = [], room
        batch.append(part)
        left -= need
    if batch:
        yield batch


def fair_parts(needs: Sequence[int], room: int) -> list[int]:
    """The part of each: all it needs, or the same as every other that needs more."""
    parts, left = [0] * len(needs), room
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        parts[place] = min(needs[place], left // (len(needs) - done))
        left -= parts[place]
    return parts


def begun(text: str, limit: int) -> str:
    """All of a text, or whole sentences as far as they fit; a first one that does not fit is cut itself."""
    if written_tokens(text) <= limit:
        return text
    end = 0
    for sentence in sentences(text):
        at = text.find(sentence, end)
        if at < 0 or written_tokens(text[: at + len(sentence)]) > limit:
            break
        end = at + len(sentence)
    while not end:
        text = text[: max(1, len(text) * 9 // 10)]
        end = len(text) if written_tokens(text) <= limit or len(text) == 1 else 0
    return text[:end]
