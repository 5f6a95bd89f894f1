"""What a question in a conversation asks to be looked up: typed queries, or nothing. Never searches itself.

Typed queries come from the LLM, asked twice at most, else from rules in microseconds. The rules know messages that need
nothing looked up (small talk, bare commands), and what a question refers back to: words that the conversation used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

from shared.errors import shown
from shared.language import alternatives, derived, languages, query_sentence, question_language
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

_BY_RULES = "The queries were made by rules instead."
AS_ASKED = "the question as asked"
_IN_CONTEXT = "the question with what it refers to"
_PURPOSES = {
    ContextType.SKILL: "how it is done",
    ContextType.RESOURCE: "what is written about it",
    ContextType.MEMORY: "what the user has noted of it",
}
#: Longer messages are read as questions: nobody greets at such length.
_MAX_SMALL_TALK_CHARS = 200
_BREAKS = re.compile(r"[^\w\s'/+#&@%$-]+")
_SLASH_COMMAND = re.compile(r"/[a-z]{1,20}")
#: Words and characters of a topic; a question with more words of its own stands alone.
_MAX_WORDS, _MAX_CHARS, _MAX_OWN = 8, 120, 4
#: So much of a long message is read for its words.
_READ_CHARS = 1000
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}](?:[\w.+#'-]*[\w+#])?")
_LIST_ITEM = re.compile(r"[ \t]{0,8}(?:\d{1,2}[.)、．:]|[-*•])[ \t]{0,4}(\S[^\n]{0,200})")


def session_intent(question: str, session: Session, llm: LLM | None, timeout_s: float) -> SessionIntent:
    """What `question` asks to be looked up, within `timeout_s` seconds for both asks of the LLM together.

    `llm` None: by rules, without a warning. Never raises for a fault of the LLM: each fallback leaves a warning, and
    failed asks count in the cost. What the rules know to be small talk is not asked about.
    """
    ruled = intent_by_rules(question, session)
    if llm is None or not ruled.retrieval:
        return ruled
    dialogue = Dialogue(llm, partial(parse_plan, most=MAX_QUERIES), timeout_s, wanted="queries", instead=_BY_RULES)
    again = partial(intent_again_prompt, question, session, MAX_QUERIES)
    reply = dialogue.reply(intent_prompt(question, session, MAX_QUERIES), again)
    spent = {"warnings": tuple(dialogue.warnings), "cost": dialogue.cost}
    if reply is None:
        return ruled.model_copy(update=spent)
    if reply.none:
        reason = f"The LLM found that nothing needs to be looked up ({reply.none})."
        return SessionIntent(standalone=question, reason=reason, by="llm").model_copy(update=spent)
    queries = query_plan(question, ruled.standalone, reply.queries)
    reason = "The question is searched as asked and by the LLM's queries."
    found = SessionIntent(queries=queries, standalone=ruled.standalone, reason=reason, by="llm")
    return found.model_copy(update={**spent, "warnings": (*dialogue.warnings, *_left_out(reply.queries, queries))})


def intent_by_rules(question: str, session: Session) -> SessionIntent:
    """Up to five queries, the question itself first; none where nothing needs to be looked up."""
    nothing = no_retrieval_reason(question)
    if nothing:
        return SessionIntent(standalone=question, reason=nothing)
    standalone = in_context(question, session)
    phrases = _typed_phrases(question, session, follows=standalone != question)
    return SessionIntent(
        queries=query_plan(question, standalone, _typed_queries(phrases)),
        standalone=standalone,
        reason="The question is searched as asked and by kind of document.",
    )


def query_plan(question: str, standalone: str, typed: Iterable[TypedQuery]) -> tuple[TypedQuery, ...]:
    """The question first, then, for one that refers back, the question in context, then `typed` by priority.

    At most five; the same wording for the same type stands once.
    """
    first = [TypedQuery(query=question, intent=AS_ASKED, priority=1)]
    if standalone != question:
        first.append(TypedQuery(query=standalone[:MAX_TYPED_CHARS], intent=_IN_CONTEXT, priority=1))
    plan: dict[tuple[str, ContextType | None], TypedQuery] = {}
    for query in (*first, *sorted(typed, key=lambda query: query.priority)):
        plan.setdefault(_key(query), query)
    return tuple(plan.values())[:MAX_QUERIES]


def _left_out(given: tuple[TypedQuery, ...], taken: tuple[TypedQuery, ...]) -> list[str]:
    known = set(map(_key, taken))
    names = [shown(query.query) for query in given if _key(query) not in known]
    sentence = f"{len(names)} of the LLM's queries found no room among {MAX_QUERIES}: {'; '.join(names)}."
    return [sentence] if names else []


def _key(query: TypedQuery) -> tuple[str, ContextType | None]:
    return question_key(query.query), query.context_type


def in_context(question: str, session: Session) -> str:
    """The question; where it refers back, with the topic of the conversation in place of the words that point there."""
    asked = without_small_talk(question)
    topic = topic_of(session, question) if session and refers_back(asked) else ""
    if not topic:
        return question
    own = without_references(asked)
    return query_sentence("in_context", topic, own, topic) if own else topic


def _typed_phrases(question: str, session: Session, *, follows: bool) -> TypedPhrases:
    text = without_small_talk(question)
    if follows:
        text = f"{without_references(text)} {topic_of(session, question)}"
    text = " ".join(text.split()).strip(" ?？.。!！")
    language = question_language(text)
    return language.typed_phrases(text) if language else TypedPhrases()


def _typed_queries(phrases: TypedPhrases) -> Iterable[TypedQuery]:
    """A skill first where there is one to be done; what the user noted before what anybody wrote."""
    by_type = {
        ContextType.SKILL: phrases.skill,
        ContextType.MEMORY: phrases.memory,
        ContextType.RESOURCE: phrases.resource,
    }
    for place, (kind, text) in enumerate((kind, text) for kind, text in by_type.items() if text):
        yield TypedQuery(query=text[:MAX_TYPED_CHARS], context_type=kind, intent=_PURPOSES[kind], priority=2 + place)


def no_retrieval_reason(text: str) -> str | None:
    """Why nothing needs to be looked up for a message, a sentence for people; None when something does.

    A question that begins with a greeting is a question.
    """
    if len(text) > _MAX_SMALL_TALK_CHARS:
        return None
    parts = [" ".join(part.split()) for part in _BREAKS.split(fold(text).replace("’", "'"))]
    parts = [part for part in parts if part]
    if not any(c.isalnum() for part in parts for c in part):
        return "The message holds no words: nothing needs to be looked up."
    if not all(_is_command(part) or _is_small_talk(part) for part in parts):
        return None
    if any(map(_is_command, parts)):
        return "The message is a bare command: nothing needs to be looked up."
    return "The message is a greeting, thanks or an acknowledgement: nothing needs to be looked up."


def without_small_talk(text: str) -> str:
    """`text` without greetings and thanks before and after what is asked; as it stands where nothing else is left."""
    if len(text) > _MAX_SMALL_TALK_CHARS:
        return text.strip()
    rest = text
    while (end := _BREAKS.search(rest)) is not None and _is_small_talk(rest[: end.start()]):
        rest = rest[end.end() :].lstrip()
    return rest.strip() or text.strip()


def _is_small_talk(part: str) -> bool:
    return any(c.isalnum() for c in part) and route_by_rules(part).type is QueryType.NONE


def _is_command(part: str) -> bool:
    known = part in _commands() or _polite().sub("", part).strip() in _commands()
    return known or _SLASH_COMMAND.fullmatch(part) is not None


@derived
def _commands() -> frozenset[str]:
    return frozenset(phrase for language in languages() for phrase in language.words.commands)


@derived
def _polite() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: language.words.polite))


def refers_back(text: str) -> bool:
    """True when a question cannot be understood alone: it says nothing itself, or points at what was said."""
    asked, own = fold(text).strip(), content_words(text)
    if not own:
        return True
    if len(own) > _MAX_OWN:
        return False
    return bool(_topic("opens").match(asked) or _topic("refers").search(_topic("dummy").sub("", asked)))


def topic_of(session: Session, question: str) -> str:
    """What `question` refers back to: the item that it counts out of the last list, words of the last user messages.

    "" when the conversation says nothing. At most 120 characters.
    """
    asked = question_key(question)
    messages = [message for message in session.recent if question_key(message.content[:_READ_CHARS]) != asked]
    found = [*_counted_item(messages, question)]
    for message in reversed(messages):
        if message.role == "user" and not no_retrieval_reason(message.content):
            found += content_words(message.content)
            if not refers_back(message.content):
                break
    found = found or content_words(session.summary)
    own = {fold(word) for word in content_words(question)}
    chosen = [word for word in dict.fromkeys(found) if fold(word) not in own][:_MAX_WORDS]
    return " ".join(chosen)[:_MAX_CHARS].strip()


def _counted_item(messages: list[ChatMessage], question: str) -> list[str]:
    """Words of the item that the question counts out of the assistant's last list ("the second one", 第二个)."""
    counted = _topic("ordinal").search(fold(question))
    answer = next((message.content for message in reversed(messages) if message.role == "assistant"), "")
    if counted is None:
        return []
    items = [match[1] for match in map(_LIST_ITEM.match, answer.split("\n")) if match]
    place = _ordinals()[counted[0]]
    return content_words(items[place])[:_MAX_WORDS] if place < len(items) else []


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
def _generic() -> frozenset[str]:
    return frozenset(word for language in languages() for word in language.words.topic.generic)


@derived
def _ordinals() -> Mapping[str, int]:
    return {name: place for language in languages() for name, place in language.words.topic.ordinals.items()}
