"""What a question in a conversation asks to be looked up: typed queries, or nothing. Never searches itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from shared.errors import shown
from shared.language import derived, languages, query_sentence, question_language
from shared.language.base import TypedPhrases
from shared.language.routing import route_by_rules
from shared.language.text import HAN, fold, is_han, question_key, terms
from shared.models.request import (
    MAX_QUERIES,
    MAX_TYPED_CHARS,
    ChatMessage,
    ContextType,
    Session,
    SessionIntent,
    TypedQuery,
)
from shared.models.route import QueryType
from shared.providers.llm.client import LLM
from shared.providers.llm.dialogue import Dialogue
from shared.providers.llm.prompts import intent_again_prompt, intent_prompt
from shared.providers.llm.replies import parse_plan

# --- Tells messages that need nothing looked up: greetings, thanks, commands. A question that begins with one
# stays.

#: Longer messages are read as questions: nobody greets at such length.
_MAX_TALK_CHARS = 200
_BREAKS = re.compile(r"[^\w\s'/+#&@%$-]+")
_SLASH = re.compile(r"/[a-z]{1,20}")


def needs_nothing(text: str) -> str | None:
    """Why nothing needs to be looked up, a sentence for people; None when something does."""
    if len(text) > _MAX_TALK_CHARS:
        return None
    parts = _parts(fold(text))
    if not any(c.isalnum() for part in parts for c in part):
        return "The message holds no words: nothing needs to be looked up."
    if not all(_is_command(part) or _is_talk(part) for part in parts):
        return None
    if any(map(_is_command, parts)):
        return "The message is a bare command: nothing needs to be looked up."
    return "The message is a greeting, thanks or an acknowledgement: nothing needs to be looked up."


def without_talk(text: str) -> str:
    """`text` without greetings and thanks before and after what is asked; as it stands where nothing else is left."""
    if len(text) > _MAX_TALK_CHARS:
        return text.strip()
    rest, at = text, 0
    while (end := _BREAKS.search(rest, at)) is not None and _is_talk(rest[: end.start()]):
        rest = rest[end.end() :].lstrip()
    return rest.strip() or text.strip()


def _parts(text: str) -> list[str]:
    return [part for part in (" ".join(part.split()) for part in _BREAKS.split(text.replace("’", "'"))) if part]


def _is_talk(part: str) -> bool:
    return any(c.isalnum() for c in part) and route_by_rules(part).type is QueryType.NONE


def _is_command(part: str) -> bool:
    known = part in _commands() or _polite().sub("", part).strip() in _commands()
    return known or _SLASH.fullmatch(part) is not None


@derived
def _commands() -> frozenset[str]:
    return frozenset(phrase for language in languages() for phrase in language.words.commands)


@derived
def _polite() -> re.Pattern[str]:
    return re.compile("|".join(pattern for language in languages() for pattern in language.words.polite) or r"(?!)")


# --- What a conversation is about, in the words that it used, for questions that refer back to it. Pure, linear.

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
    said = [
        message for message in session.recent if question_key(message.content[:_READ_CHARS]) != question_key(question)
    ]
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


def _item(said: list[ChatMessage], question: str) -> list[str]:
    """Words of the item that the question counts out of the assistant's last list ("the second one", 第二个)."""
    counted = _pointers().ordinal.search(fold(question))
    answer = next((message.content for message in reversed(said) if message.role == "assistant"), "")
    if counted is None:
        return []
    items = [match[1] for match in map(_ITEM.match, answer.split("\n")) if match]
    place = _pointers().ordinals[counted[0]]
    return words(items[place])[:_MAX_WORDS] if place < len(items) else []


# --- Typed queries of a question in its conversation: by the LLM, asked twice at most, else by rules in
# microseconds.

_BY_RULES = "The queries were made by rules instead."


class Analyst:
    """Reads one question in its conversation; safe for threads if its LLM is. `llm` None: by rules, no warning."""

    def __init__(self, llm: LLM | None = None) -> None:
        self._llm = llm

    def analyse(self, question: str, session: Session, timeout_s: float) -> SessionIntent:
        """What `question` asks to be looked up, within `timeout_s` seconds for both asks together.

        Never raises for a fault of the LLM: each fallback leaves a warning, and failed asks count in the cost. What
        the rules know to be small talk is not asked about.
        """
        ruled = intent_by_rules(question, session)
        if self._llm is None or not ruled.retrieval:
            return ruled
        asking = Dialogue(
            self._llm, partial(parse_plan, most=MAX_QUERIES), timeout_s, wanted="queries", instead=_BY_RULES
        )
        again = partial(intent_again_prompt, question, session, MAX_QUERIES)
        reply = asking.reply(intent_prompt(question, session, MAX_QUERIES), again)
        if reply is None:
            return ruled.model_copy(update={"warnings": tuple(asking.warnings), "cost": asking.cost})
        if reply.none:
            reason = f"The LLM found that nothing needs to be looked up ({reply.none})."
            return SessionIntent(
                standalone=question, reason=reason, by="llm", warnings=tuple(asking.warnings), cost=asking.cost
            )
        standalone = in_context(question, session)
        queries = chosen(question, standalone, reply.queries)
        return SessionIntent(
            queries=queries,
            standalone=standalone,
            reason="The question is searched as asked and by the LLM's queries.",
            by="llm",
            warnings=(*asking.warnings, *_left_out(reply.queries, queries)),
            cost=asking.cost,
        )


def _left_out(given: tuple[TypedQuery, ...], taken: tuple[TypedQuery, ...]) -> list[str]:
    known = {(question_key(query.query), query.context_type) for query in taken}
    names = [shown(query.query) for query in given if (question_key(query.query), query.context_type) not in known]
    return (
        [f"{len(names)} of the LLM's queries found no room among {MAX_QUERIES}: {'; '.join(names)}."] if names else []
    )


AS_ASKED = "the question as asked"
_IN_CONTEXT = "the question with what it refers to"
_PURPOSES = {
    ContextType.SKILL: "how it is done",
    ContextType.RESOURCE: "what is written about it",
    ContextType.MEMORY: "what the user has noted of it",
}


def intent_by_rules(question: str, session: Session) -> SessionIntent:
    """Up to five queries, the question itself first; none where nothing needs to be looked up."""
    nothing = needs_nothing(question)
    if nothing:
        return SessionIntent(standalone=question, reason=nothing)
    standalone = in_context(question, session)
    phrases = _phrases(question, session, follows=standalone != question)
    return SessionIntent(
        queries=chosen(question, standalone, _typed(phrases)),
        standalone=standalone,
        reason="The question is searched as asked and by kind of document.",
    )


def in_context(question: str, session: Session) -> str:
    """The question; where it refers back, with the topic of the conversation in place of the words that point there."""
    asked = without_talk(question)
    topic = topic_of(session, question) if session and refers_back(asked) else ""
    if not topic:
        return question
    own = pointless(asked)
    if not own:
        return topic
    return query_sentence("in_context", topic, own, topic)


def chosen(question: str, standalone: str, typed: Iterable[TypedQuery]) -> tuple[TypedQuery, ...]:
    """The plan: the question first, then, for one that refers back, the question in context, then `typed` by priority.

    At most five; the same wording for the same type stands once.
    """
    first = [TypedQuery(query=question, intent=AS_ASKED, priority=1)]
    if standalone != question:
        first.append(TypedQuery(query=standalone[:MAX_TYPED_CHARS], intent=_IN_CONTEXT, priority=1))
    plan: dict[tuple[str, ContextType | None], TypedQuery] = {}
    for query in (*first, *sorted(typed, key=lambda query: query.priority)):
        plan.setdefault((question_key(query.query), query.context_type), query)
    return tuple(plan.values())[:MAX_QUERIES]


def _phrases(question: str, session: Session, *, follows: bool) -> TypedPhrases:
    asked = without_talk(question)
    text = f"{pointless(asked)} {topic_of(session, question)}" if follows else asked
    text = " ".join(text.split()).strip(" ?？.。!！")
    language = question_language(text)
    return language.typed_phrases(text) if language else TypedPhrases()


def _typed(phrases: TypedPhrases) -> Iterable[TypedQuery]:
    """A skill first where there is one to be done; what the user noted before what anybody wrote."""
    by_type = {
        ContextType.SKILL: phrases.skill,
        ContextType.MEMORY: phrases.memory,
        ContextType.RESOURCE: phrases.resource,
    }
    for place, (kind, text) in enumerate((kind, text) for kind, text in by_type.items() if text):
        yield TypedQuery(query=text[:MAX_TYPED_CHARS], context_type=kind, intent=_PURPOSES[kind], priority=2 + place)
