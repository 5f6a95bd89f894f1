"""What a question that refers back asks: an item of the last list, the last question of something else, or the topic.

Rules of words, in microseconds; they say so where nothing was said that the question could mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from orchestrator.planning.swaps import head, is_placed, kinds, like, of_a_kind, only_name, swapped
from orchestrator.planning.topic_words import READ_CHARS, content_words, topic_pattern
from shared.errors import shown
from shared.language import derived, languages, query_sentence, reader_sentence
from shared.language.routing import asks
from shared.language.subjects import subject_or_all
from shared.language.text import fold, question_key
from shared.models.base import Model
from shared.models.request import ChatMessage, Session

#: Words and characters of a topic; a question with more words of its own stands alone.
_MAX_WORDS, _MAX_CHARS, _MAX_OWN = 8, 120, 4
#: Beside "the second one" a question may have so many words of its own, and so many where there is no list to count in.
_MAX_BESIDE, _MAX_LOST = 3, 1
_LIST_ITEM = re.compile(r"[ \t]{0,8}(?:\d{1,2}[.)、．:]|[-*•])[ \t]{0,4}(\S[^\n]{0,200})")
_EDGES = " ?？.。,，!！"


class FollowUp(Model):
    """`standalone`: the question with what it refers to, else as it stands. `fault`: why that cannot be known."""

    standalone: str
    fault: str = ""


def follow_up(question: str, asked: str, session: Session) -> FollowUp:
    """What `question` asks in its conversation. `asked` is the same without greetings and thanks."""
    text = asked if len(fold(asked)) == len(asked) else fold(asked)
    return (
        _picked(question, text, session)
        or _of_something_else(question, text, session)
        or _withtopic_pattern(question, text, session)
    )


def _picked(question: str, text: str, session: Session) -> FollowUp | None:
    """A question about items of the last list, by their places; None where it counts nothing out of a list."""
    picks = list(topic_pattern("picks").finditer(fold(text)))
    rest = topic_pattern("picks").sub(" ", fold(text))
    own = content_words(topic_pattern("asks").sub(" ", rest))
    if not picks or len(own) > _MAX_BESIDE:
        return None
    items = _last_list(_said(session, question))
    words = reader_sentence("comma", question).join(shown(pick[0].strip()) for pick in picks)
    chosen = [_places(pick[0], len(items)) for pick in picks]
    if not items or not all(chosen):
        if len(own) > _MAX_LOST:
            return None
        name = "follow_up_beyond" if items else "follow_up_no_list"
        values = (words, len(items)) if items else (words,)
        return FollowUp(standalone=question, fault=reader_sentence(name, question, *values))
    names = [[items[place] for place in places] for places in chosen]
    if not own:
        everything = list(dict.fromkeys(name for each in names for name in each))
        return FollowUp(standalone=_beside(everything, topic_of(session, question)))
    for pick, each in zip(reversed(picks), reversed(names), strict=True):
        text = f"{text[: pick.start()]} {_and(question).join(each)} {text[pick.end() :]}"
    said = " ".join(topic_pattern("opens").sub("", text, count=1).split()).strip(_EDGES)
    return FollowUp(standalone=_in_topic(question, said, topic_of(session, question)))


def _and(question: str) -> str:
    return query_sentence("and_items", question)


def _beside(names: Sequence[str], topic: str) -> str:
    """The names, then the words of the topic that they do not say."""
    said = {fold(word) for name in names for word in content_words(name)}
    return " ".join([*names, *(word for word in topic.split() if fold(word) not in said)])


def _in_topic(question: str, said: str, topic: str) -> str:
    known = {fold(word) for word in content_words(said)}
    left = " ".join(word for word in topic.split() if fold(word) not in known)
    return query_sentence("in_context", question, said, left) if left else said


def _last_list(messages: Sequence[ChatMessage]) -> list[str]:
    """The items of the assistant's last message that lists any, each as short text."""
    for message in reversed(messages):
        found = [match[1] for match in map(_LIST_ITEM.match, message.content.split("\n")) if match]
        if message.role == "assistant" and found:
            return [" ".join(item.split())[:_MAX_CHARS].strip(_EDGES) for item in found]
    return []


def _places(pick: str, number: int) -> list[int]:
    """Which of `number` items the words count out: "the second", "the last two", "#3"; none where one is not there."""
    ordinal = next((word for word in _ordinals() if word in pick), "")
    rest = pick.replace(ordinal, " ") if ordinal else pick
    many = next((count for word, count in _counts().items() if re.search(rf"(?<![a-z]){word}", rest)), 0)
    digits = re.search(r"\d+", rest)
    back = topic_pattern("from_end").search(pick) is not None
    if many:
        return [] if many > number else list(range(number))[-many:] if back else list(range(many))
    if back:
        place = number - 1 - (_ordinals()[ordinal] if ordinal else 0)
    else:
        place = _ordinals()[ordinal] if ordinal else int(digits[0]) - 1 if digits else -1
    return [place] if 0 <= place < number else []


def _of_something_else(question: str, text: str, session: Session) -> FollowUp | None:
    """The last question asked of something else ("what about Postgres instead", 换成 Postgres 呢)."""
    asked = text.strip(_EDGES)
    before = next((message.content for message in reversed(_said(session, question)) if _stands(message)), "")
    for pattern in _swaps("swaps_alike") if before else ():
        if (match := pattern.fullmatch(asked)) and (both := of_a_kind(before, match["new"].strip(_EDGES))):
            return FollowUp(standalone=before.replace(*both))
    found = next((match for pattern in _swaps("swaps") if (match := pattern.match(asked))), None)
    new = found["new"].strip(_EDGES) if found and session else ""
    if found is None or not new or (not content_words(new) and not like(new)) or len(content_words(new)) > _MAX_OWN:
        return None
    if any(topic_pattern(field).search(fold(new)) for field in ("picks", "refers", "opens")):
        return None
    if both := of_a_kind(before, new):
        return FollowUp(standalone=before.replace(*both))
    if is_placed(new) or like(new):
        return FollowUp(standalone=_in_topic(question, asked, topic_of(session, question)))
    other = swapped(before, found.groupdict().get("old") or only_name(before) or head(before), new)
    return FollowUp(standalone=other or _in_topic(question, new, topic_of(session, question)))


def _stands(message: ChatMessage) -> bool:
    """A question of the user's that can be understood alone."""
    text = fold(message.content[:READ_CHARS])
    alone = bool(content_words(topic_pattern("asks").sub(" ", text))) and not refers_back(message.content)
    return message.role == "user" and alone and not topic_pattern("picks").search(text)


def _withtopic_pattern(question: str, text: str, session: Session) -> FollowUp:
    """The question with the topic in place of the words that point back to it."""
    more = not content_words(topic_pattern("asks").sub(" ", fold(text)))
    if not more and not refers_back(text):
        return FollowUp(standalone=question)
    topic = topic_of(session, question) if session else ""
    if topic and (afterwards := topic_pattern("afterwards").search(fold(text).strip(_EDGES))):
        return FollowUp(standalone=query_sentence("in_context", topic, afterwards[0], topic))
    own = without_references(text) if not more else _left(text) if topic and asks(_left(text)) else ""
    for pattern in kinds():
        topic = " ".join(pattern.sub(" ", topic).split()) if pattern.search(own) else topic
    if topic:
        return FollowUp(standalone=query_sentence("in_context", topic, own, topic) if own else topic)
    marked = text.rstrip().endswith(("?", "？"))
    points = marked or any(topic_pattern(field).search(fold(text)) for field in ("opens", "refers", "asks"))
    named = any(len(token) > 1 and token.isascii() and token.isupper() for token in text.split())
    lost = points and not named and not own and not _own_words(text)
    return FollowUp(standalone=question, fault=reader_sentence("follow_up_nothing", question) if lost else "")


def _own_words(text: str) -> list[str]:
    """Its words without those that ask for more, and those that point back."""
    return content_words(_left(text))


def _left(text: str) -> str:
    """What is left of it without the words that ask for more, and those that point back: "why" of "and why that?"."""
    left = topic_pattern("refers").sub(" ", topic_pattern("asks").sub(" ", topic_pattern("opens").sub("", fold(text))))
    return " ".join(left.split()).strip(_EDGES)


def refers_back(text: str) -> bool:
    """True when a question cannot be understood alone: it says nothing itself, or points at what was said."""
    asked, own = fold(text).strip(), content_words(text)
    if not own:
        return True
    if len(own) > _MAX_OWN:
        return False
    return bool(
        topic_pattern("opens").match(asked) or topic_pattern("refers").search(topic_pattern("dummy").sub("", asked))
    )


def topic_of(session: Session, question: str) -> str:
    """What `question` refers back to: words of the last user messages, up to one that stands alone.

    "" when the conversation says nothing. At most 120 characters.
    """
    found: list[str] = []
    for message in reversed(_said(session, question)):
        if message.role == "user":
            found += content_words(subject_or_all(message.content))
            if _stands(message):
                break
    found = found or content_words(session.summary)
    own = {fold(word) for word in content_words(question)}
    chosen = [word for word in dict.fromkeys(found) if fold(word) not in own][:_MAX_WORDS]
    return " ".join(chosen)[:_MAX_CHARS].strip()


def _said(session: Session, question: str) -> list[ChatMessage]:
    """The messages that are read, without the question itself."""
    asked = question_key(question)
    return [message for message in session.recent if question_key(message.content[:READ_CHARS]) != asked]


def without_references(text: str) -> str:
    """`text` without the words that point back, to be read together with the topic; "" when no others say anything."""
    rest = topic_pattern("refers").sub(" ", topic_pattern("opens").sub("", text, count=1))
    rest = " ".join(rest.split()).strip(" ?？.。,，")
    return rest if content_words(rest) else ""


@derived
def _swaps(field: str) -> tuple[re.Pattern[str], ...]:
    """Each with a group `new`, what is asked of instead, and maybe `old`, in place of what."""
    swaps = (pattern for language in languages() for pattern in getattr(language.words.topic, field))
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in swaps)


@derived
def _counts() -> Mapping[str, int]:
    return {name: many for language in languages() for name, many in language.words.topic.counts.items()}


@derived
def _ordinals() -> Mapping[str, int]:
    return {name: place for language in languages() for name, place in language.words.topic.ordinals.items()}
