"""The words of a conversation: patterns that point back, and the words of a text that say something. Pure."""

from __future__ import annotations

import re

from shared.language import alternatives, derived, languages
from shared.language.text import HAN, fold, is_han, terms

#: So much of a long message is read for its words.
READ_CHARS = 1000
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}](?:[\w.+#'-]*[\w+#])?")


def content_words(text: str) -> list[str]:
    """The words of `text` that say something, as they are written, in order, without repeats."""
    found = dict[str, str]()
    for token in _TOKEN.findall(text[:READ_CHARS]):
        for word in topic_pattern("function").split(token) if is_han(token[0]) else [token]:
            if (len(word) > 1 or not is_han(word or "x")) and terms(word) and fold(word) not in generic():
                found.setdefault(fold(word), word)
    return list(found.values())


@derived
def topic_pattern(field: str) -> re.Pattern[str]:
    """The patterns of one field of TopicWords, of all languages together."""
    return re.compile(alternatives(lambda language: getattr(language.words.topic, field)))


@derived
def generic() -> frozenset[str]:
    """Words that name nothing."""
    return frozenset(word for language in languages() for word in language.words.topic.generic)
