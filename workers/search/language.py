"""Whether the dense arm may vote: only on questions in a language that its model reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.text import is_cjk_text

#: What well-known model names say of their languages. First match counts.
_KNOWN = (
    (
        re.compile(r"multilingual|bge-m3|gte-multi|qwen|jina-embeddings-v[345]|text-embedding-3|nomic-embed-text-v2"),
        None,
    ),
    (re.compile(r"[-_]zh\b|chinese|[-_]zh[-_]"), ("zh",)),
    (
        re.compile(r"minilm|[-_]en\b|[-_]en[-_]|e5-(?:small|base|large)|gte-(?:small|base|large)\b|mpnet|arctic|nomic"),
        ("en",),
    ),
)


def reads(model: str, declared: Sequence[str], question: str) -> bool:
    """True when the model reads the question's language, or when nobody knows what it reads.

    `declared` are language codes from the settings; they win over what the model's name says.
    """
    languages = declared or _by_name(model)
    if not languages:
        return True
    wanted = "zh" if is_cjk_text(question) else "en"
    return wanted in {language[:2].lower() for language in languages} or "multi" in languages


def _by_name(model: str) -> Sequence[str]:
    name = model.lower()
    return next((languages or () for pattern, languages in _KNOWN if pattern.search(name)), ())
