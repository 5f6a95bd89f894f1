"""What a question that refers back asks: an item of the last list, the last question of something else, or the topic.

Rules of words, in microseconds; they say so where nothing was said that the question could mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shared.errors import shown
from shared.language import alternatives, derived, languages, query_sentence, reader_sentence
from shared.language.names import names_of
from shared.language.routing import asks
from shared.language.subjects import subject_or_all
from shared.language.text import HAN, fold, has_cjk, is_han, question_key, terms
from shared.models.base import Model
from shared.models.request import ChatMessage, Session

#: Words and characters of a topic; a question with more words of its own stands alone.
_MAX_WORDS, _MAX_CHARS, _MAX_OWN = 8, 120, 4
#: Beside "the second one" a question may have so many words of its own, and so many where there is no list to count in.
_MAX_BESIDE, _MAX_LOST = 3, 1
#: So much of a long message is read for its words.
_READ_CHARS = 1000
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}](?:[\w.+#'-]*[\w+#])?")
_LIST_ITEM = re.compile(r"[ \t]{0,8}(?:\d{1,2}[.)、．:]|[-*•])[ \t]{0,4}(\S[^\n]{0,200})")
_NAME = re.compile(r"[A-Za-z][\w.+#-]*", re.ASCII)
#: Things of one kind, of which one takes the place of the other: days, years, versions, tickets of a series.
_LIKE = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)",
        r"(?<![\d.-])(?:19|20)\d\d(?![\d.-])",
        r"(?<![\w.])v?\d+(?:\.\d+)+(?![\w])",
        r"(?<![\w-])[a-z]+-\d+(?![\w-])",
        r"(?<![\w.])\d+(?![\w.])",
    )
)
#: What a word such as "on" stands before, up to the next such word.
_BEHIND = (
    r"\b{} (?:the |an? )?(?P<old>[^\s,?]+(?: [^\s,?]+){{0,3}}?)"
    r"(?= (?:in|on|at|for|to|from|of|with|by|and|or|than)\b|[?,.!]*$)"
)
_PREPOSITION = re.compile(
    r"(?P<word>in|on|at|for|to|from|of|with|by|about) (?:the |an? )?(?P<thing>\S.*)", re.IGNORECASE
)
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
        or _with_topic(question, text, session)
    )


def _picked(question: str, text: str, session: Session) -> FollowUp | None:
    """A question about items of the last list, by their places; None where it counts nothing out of a list."""
    picks = list(_topic("picks").finditer(fold(text)))
    rest = _topic("picks").sub(" ", fold(text))
    own = content_words(_topic("asks").sub(" ", rest))
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
    said = " ".join(_topic("opens").sub("", text, count=1).split()).strip(_EDGES)
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
    back = _topic("from_end").search(pick) is not None
    if many:
        return [] if many > number else list(range(number))[-many:] if back else list(range(many))
    if back:
        place = number - 1 - (_ordinals()[ordinal] if ordinal else 0)
    else:
        place = _ordinals()[ordinal] if ordinal else int(digits[0]) - 1 if digits else -1
    return [place] if 0 <= place < number else []


def _of_something_else(question: str, text: str, session: Session) -> FollowUp | None:
    """The last question asked of something else ("what about Postgres instead", 换成 Postgres 呢)."""
    found = next((match for pattern in _swaps() if (match := pattern.match(text.strip(_EDGES)))), None)
    new = found["new"].strip(_EDGES) if found and session else ""
    if found is None or not new or (not content_words(new) and not _like(new)) or len(content_words(new)) > _MAX_OWN:
        return None
    if any(_topic(field).search(fold(new)) for field in ("picks", "refers", "opens")):
        return None
    before = next((message.content for message in reversed(_said(session, question)) if _stands(message)), "")
    if both := _of_a_kind(before, new):
        return FollowUp(standalone=before.replace(*both))
    if _PREPOSITION.fullmatch(new) or _like(new):
        return FollowUp(standalone=_in_topic(question, text.strip(_EDGES), topic_of(session, question)))
    swapped = _swapped(before, found.groupdict().get("old") or _only_name(before) or _head(before), new)
    return FollowUp(standalone=swapped or _in_topic(question, new, topic_of(session, question)))


def _swapped(before: str, old: str, new: str) -> str:
    """The question before with `new` in place of `old`; "" where it does not say that, or says the new thing."""
    if not old or len(before) > _READ_CHARS or fold(old) not in fold(before):
        return ""
    new = _fitted(before, old, new)
    return "" if fold(new) in fold(before) else re.sub(re.escape(old), lambda _: new, before, flags=re.IGNORECASE)


def _of_a_kind(before: str, new: str) -> tuple[str, str] | None:
    """What of the question before is meant to be another one, and that: a year for a year, "on X" for "on Y"."""
    if found := _like(new) or _numbered(before, new):
        pattern, named = found
        old = {match[0] for match in pattern.finditer(before)} - {named}
        return (old.pop(), named) if len(old) == 1 else None
    placed = _PREPOSITION.fullmatch(new)
    there = list(re.finditer(_BEHIND.format(placed["word"]), before, re.IGNORECASE)) if placed else []
    return (there[0]["old"], placed["thing"]) if placed and len(there) == 1 else None


def _numbered(before: str, new: str) -> tuple[re.Pattern[str], str] | None:
    """The number that `new` is behind a word which the question before has such a number behind: "batch 212"."""
    words, _, number = new.rpartition(" ")
    found = _like(number) if words else None
    held = found and re.search(rf"\b{re.escape(fold(words))} {found[0].pattern}", fold(before))
    return found if held else None


def _like(new: str) -> tuple[re.Pattern[str], str] | None:
    """The day, year, version or ticket that `new` is, as its pattern finds it; None where it says more, or other."""
    for pattern in (*_alike(), *_LIKE):
        named = [match[0] for match in pattern.finditer(new)]
        if named:
            return (pattern, named[0]) if len(named) == 1 and not content_words(pattern.sub(" ", new)) else None
    return None


def _stands(message: ChatMessage) -> bool:
    """A question of the user's that can be understood alone."""
    text = fold(message.content[:_READ_CHARS])
    alone = bool(content_words(_topic("asks").sub(" ", text))) and not refers_back(message.content)
    return message.role == "user" and alone and not _topic("picks").search(text)


def _only_name(question: str) -> str:
    """The one name of a question: a run of words with a capital inside of a sentence, a name of code; "" for more."""
    runs = [name for name in names_of("", question) if " " in name and content_words(name)]
    if len(runs) == 1 and not has_cjk(question) and not question.startswith(runs[0]):
        return runs[0]
    tokens = [match[0] for match in _NAME.finditer(question)]
    inside = tokens if has_cjk(question) else tokens[1:]
    names = dict.fromkeys(word for word in inside if _is_name(word) and content_words(word))
    return next(iter(names)) if len(names) == 1 else ""


def _is_name(word: str) -> bool:
    return "_" in word or any(char.isupper() for char in word)


def _head(question: str) -> str:
    """What a question begins with and asks about, as languages without spaces and capitals show it."""
    patterns = (re.compile(one) for language in languages() for one in language.words.topic.heads)
    found = next((match for pattern in patterns if (match := pattern.match(question))), None)
    return found["old"] if found and content_words(found["old"]) else ""


def _fitted(before: str, old: str, new: str) -> str:
    """`new` without the words that stand around `old` already: the article before it, and the noun behind it."""
    place = fold(before).find(fold(old))
    ahead, behind = before[:place].split(), re.findall(r"\w+", before[place + len(old) :])
    words = new.split()
    if len(words) > 1 and ahead and fold(ahead[-1]) == fold(words[0]):
        words = words[1:]
    if len(words) > 1 and behind and fold(behind[0]) == fold(words[-1]):
        words = words[:-1]
    return " ".join(words)


def _with_topic(question: str, text: str, session: Session) -> FollowUp:
    """The question with the topic in place of the words that point back to it."""
    more = not content_words(_topic("asks").sub(" ", fold(text)))
    if not more and not refers_back(text):
        return FollowUp(standalone=question)
    topic = topic_of(session, question) if session else ""
    own = without_references(text) if not more else _left(text) if topic and asks(_left(text)) else ""
    for pattern in (*_alike(), *_LIKE):
        topic = " ".join(pattern.sub(" ", topic).split()) if pattern.search(own) else topic
    if topic:
        return FollowUp(standalone=query_sentence("in_context", topic, own, topic) if own else topic)
    marked = text.rstrip().endswith(("?", "？"))
    points = marked or any(_topic(field).search(fold(text)) for field in ("opens", "refers", "asks"))
    named = any(len(token) > 1 and token.isascii() and token.isupper() for token in text.split())
    lost = points and not named and not own and not _own_words(text)
    return FollowUp(standalone=question, fault=reader_sentence("follow_up_nothing", question) if lost else "")


def _own_words(text: str) -> list[str]:
    """Its words without those that ask for more, and those that point back."""
    return content_words(_left(text))


def _left(text: str) -> str:
    """What is left of it without the words that ask for more, and those that point back: "why" of "and why that?"."""
    left = _topic("refers").sub(" ", _topic("asks").sub(" ", _topic("opens").sub("", fold(text))))
    return " ".join(left.split()).strip(_EDGES)


def refers_back(text: str) -> bool:
    """True when a question cannot be understood alone: it says nothing itself, or points at what was said."""
    asked, own = fold(text).strip(), content_words(text)
    if not own:
        return True
    if len(own) > _MAX_OWN:
        return False
    return bool(_topic("opens").match(asked) or _topic("refers").search(_topic("dummy").sub("", asked)))


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
    return [message for message in session.recent if question_key(message.content[:_READ_CHARS]) != asked]


def without_references(text: str) -> str:
    """`text` without the words that point back, to be read together with the topic; "" when no others say anything."""
    rest = _topic("refers").sub(" ", _topic("opens").sub("", text, count=1))
    rest = " ".join(rest.split()).strip(" ?？.。,，")
    return rest if content_words(rest) else ""


def content_words(text: str) -> list[str]:
    """The words of `text` that say something, as they are written, in order, without repeats."""
    found = dict[str, str]()
    for token in _TOKEN.findall(text[:_READ_CHARS]):
        for word in _topic("function").split(token) if is_han(token[0]) else [token]:
            if (len(word) > 1 or not is_han(word or "x")) and terms(word) and fold(word) not in _generic():
                found.setdefault(fold(word), word)
    return list(found.values())


@derived
def _topic(field: str) -> re.Pattern[str]:
    """The patterns of one field of TopicWords, of all languages together."""
    return re.compile(alternatives(lambda language: getattr(language.words.topic, field)))


@derived
def _swaps() -> tuple[re.Pattern[str], ...]:
    """Each with a group `new`, what is asked of instead, and maybe `old`, in place of what."""
    swaps = (pattern for language in languages() for pattern in language.words.topic.swaps)
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in swaps)


@derived
def _alike() -> tuple[re.Pattern[str], ...]:
    """Things of one kind as the languages name them, such as months."""
    kinds = (pattern for language in languages() for pattern in language.words.topic.alike)
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in kinds)


@derived
def _counts() -> Mapping[str, int]:
    return {name: many for language in languages() for name, many in language.words.topic.counts.items()}


@derived
def _generic() -> frozenset[str]:
    return frozenset(word for language in languages() for word in language.words.topic.generic)


@derived
def _ordinals() -> Mapping[str, int]:
    return {name: place for language in languages() for name, place in language.words.topic.ordinals.items()}
