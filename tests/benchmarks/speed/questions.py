"""Questions of one shape over the sample notes, each different, so that no cache answers them."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

from shared.models import JobRequest

NOTES = Path(__file__).parents[3] / "examples" / "notes"
_WORD = re.compile(r"[a-z]{4,12}")
_WORDS_A_LEAF = 6


@cache
def words() -> tuple[str, ...]:
    """What the notes' lines consist of, often used words often."""
    texts = (path.read_text(encoding="utf-8", errors="ignore") for path in sorted(NOTES.rglob("*.md")))
    return tuple(word for text in texts for word in _WORD.findall(text.lower()))


def _asked(rng: random.Random) -> str:
    return f"What about {' '.join(rng.choice(words()) for _ in range(_WORDS_A_LEAF))}?"


def requests(count: int, leaves: int, seed: object) -> list[JobRequest]:
    """`leaves` counts the question's own."""
    rng = random.Random(f"{seed}")  # the same questions in every run
    entries: list[dict[str, Any]] = [
        {"question": _asked(rng), "subqueries": [_asked(rng) for _ in range(leaves - 1)], "decompose": False}
        for _ in range(count)
    ]
    return [JobRequest(**entry) for entry in entries]
