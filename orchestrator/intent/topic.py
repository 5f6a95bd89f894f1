"""What a conversation is about, in the words that it used, for questions that refer back to it. Pure, linear."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.intent.smalltalk import needs_nothing
from orchestrator.planning.same import folded
from shared.language import derived, languages
from shared.language.text import HAN, fold, is_han, terms
from shared.models.session import Message, Session

_MAX_WORDS, _MAX_CHARS, _MAX_OWN = 8, 120, 4
#: So much of a long message is read for its words.
_READ_CHARS = 1000
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}](?:[\w.+#'-]*[\w+#])?")
_ITEM = re.compile(r"[ \t]{0,8}(?:\d{1,2}[.)、．:]|[-*•])[ \t]{0,4}(\S[^\n]{0,200})")


@dataclass(frozen=True, slots=True)
class _Pointers:
    """How questions point back, in all languages."""

    function: re.Pattern[str]
    generic: frozenset[str]
    opens: re.Pattern[str]
    refers: re.Pattern[str]
    dummy: re.Pattern[str]
    ordinal: re.Pattern[str]
    ordinals: Mapping[str, int]


@derived
def _pointers() -> _Pointers:
    tables = [language.words.topic for language in languages()]

    def any_of(field: str) -> re.Pattern[str]:
        return re.compile("|".join(pattern for table in tables for pattern in getattr(table, field)) or r"(?!)")

    return _Pointers(
        function=any_of("function"),
        generic=frozenset(word for table in tables for word in table.generic),
        opens=any_of("opens"),
        refers=any_of("refers"),
        dummy=any_of("dummy"),
        ordinal=any_of("ordinal"),
        ordinals={name: place for table in tables for name, place in table.ordinals.items()},
    )


def words(text: str) -> list[str]:
    """The words of `text` that say something, as they are written, in order, without repeats."""
    pointers, found = _pointers(), dict[str, str]()
    for token in _TOKEN.findall(text[:_READ_CHARS]):
        for word in pointers.function.split(token) if is_han(token[0]) else [token]:
            if (len(word) > 1 or not is_han(word or "x")) and terms(word) and fold(word) not in pointers.generic:
                found.setdefault(fold(word), word)
    return list(found.values())


def refers_back(text: str) -> bool:
    """True when a question cannot be understood alone: it says nothing itself, or points at what was said."""
    asked, own = fold(text).strip(), words(text)
    if not own:
        return True
    if len(own) > _MAX_OWN:
        return False
    pointers = _pointers()
    return bool(pointers.opens.match(asked) or pointers.refers.search(pointers.dummy.sub("", asked)))


def topic_of(session: Session, question: str) -> str:
    """What `question` refers back to: the item that it counts out of the last list, words of the last user messages.

    "" when the conversation says nothing. At most 120 characters.
    """
    said = [message for message in session.recent if folded(message.content[:_READ_CHARS]) != folded(question)]
    found = [*_item(said, question)]
    for message in reversed(said):
        if message.role == "user" and not needs_nothing(message.content):
            found += words(message.content)
            if not refers_back(message.content):
                break
    found = found or words(session.summary)
    own = {fold(word) for word in words(question)}
    chosen = [word for word in dict.fromkeys(found) if fold(word) not in own][:_MAX_WORDS]
    return " ".join(chosen)[:_MAX_CHARS].strip()


def pointless(text: str) -> str:
    """`text` without the words that point back, to be read together with the topic; "" when no others say anything."""
    rest = " ".join(_pointers().refers.sub(" ", _pointers().opens.sub("", text, count=1)).split()).strip(" ?？.。,，")
    return rest if words(rest) else ""


def _item(said: list[Message], question: str) -> list[str]:
    """Words of the item that the question counts out of the assistant's last list ("the second one", 第二个)."""
    counted = _pointers().ordinal.search(fold(question))
    answer = next((message.content for message in reversed(said) if message.role == "assistant"), "")
    if counted is None:
        return []
    items = [match[1] for match in map(_ITEM.match, answer.split("\n")) if match]
    place = _pointers().ordinals[counted[0]]
    return words(items[place])[:_MAX_WORDS] if place < len(items) else []
