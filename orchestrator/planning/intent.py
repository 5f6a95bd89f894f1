"""What a question in a conversation asks to be looked up: typed queries, or nothing. Never searches itself.

Typed queries come from the LLM, asked twice at most, else from rules in microseconds. The rules know messages that need
nothing looked up (small talk, bare commands), and what a question refers back to (`follow_up`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from orchestrator.planning.follow_up import follow_up
from shared.errors import shown
from shared.language import alternatives, derived, languages, question_language
from shared.language.base import TypedPhrases
from shared.language.routing import route_by_rules
from shared.language.text import fold, question_key
from shared.models.request import (
    MAX_QUERIES,
    MAX_TYPED_CHARS,
    ContextType,
    Session,
    SessionIntent,
    TypedQuery,
)
from shared.models.route import QueryType
from shared.providers.llm.client import LLM
from shared.providers.llm.dialogue import Dialogue
from shared.providers.llm.prompts import MAX_SESSION_CHARS, intent_again_prompt, intent_prompt
from shared.providers.llm.replies import parse_plan
from shared.providers.llm.room import NO_ROOM, TAG, begun, fair_parts, room_beside, written_tokens

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


def session_intent(
    question: str, session: Session, llm: LLM | None, timeout_s: float, prompt_tokens: int = 12_000
) -> SessionIntent:
    """What `question` asks to be looked up, within `timeout_s` seconds for both asks of the LLM together.

    `llm` None: by rules, without a warning. Never raises for a fault of the LLM: each fallback leaves a warning, and
    failed asks count in the cost. What the rules know to be small talk is not asked about.
    """
    ruled = intent_by_rules(question, session)
    if llm is None or no_retrieval_reason(question):
        return ruled
    dialogue = Dialogue(llm, partial(parse_plan, most=MAX_QUERIES), timeout_s, wanted="queries", instead=_BY_RULES)
    read, left_out = _with_room(question, session, prompt_tokens)
    again = partial(intent_again_prompt, question, read, MAX_QUERIES)
    reply = dialogue.reply(intent_prompt(question, read, MAX_QUERIES), again)
    warnings = (*dialogue.warnings, *left_out)
    spent = {"warnings": warnings, "cost": dialogue.cost}
    if reply is None:
        return ruled.model_copy(update=spent)
    if reply.none:
        reason = f"The LLM found that nothing needs to be looked up ({reply.none})."
        return SessionIntent(standalone=question, reason=reason, by="llm").model_copy(update=spent)
    queries = query_plan(question, ruled.standalone, reply.queries)
    reason = "The question is searched as asked and by the LLM's queries."
    found = SessionIntent(queries=queries, standalone=ruled.standalone, reason=reason, by="llm")
    return found.model_copy(update={**spent, "warnings": (*warnings, *_left_out(reply.queries, queries))})


def _with_room(question: str, session: Session, prompt_tokens: int) -> tuple[Session, tuple[str, ...]]:
    """The conversation as far as the prompt has room for it, and a warning where that is not all."""
    texts = [text[:MAX_SESSION_CHARS] for text in (session.summary, *(each.content for each in session.recent))]
    bare = intent_again_prompt(question, Session(), MAX_QUERIES, _BY_RULES)
    room = max(0, room_beside(bare, prompt_tokens) - TAG * len(texts))
    limits = fair_parts(list(map(written_tokens, texts)), room)
    parts = [begun(text, max(1, limit)) for text, limit in zip(texts, limits, strict=True)]
    if parts == texts:
        return session, ()
    messages = tuple(
        each.model_copy(update={"content": part}) for each, part in zip(session.recent, parts[1:], strict=True)
    )
    warning = f"The LLM read the conversation without the ends of some messages: {NO_ROOM}."
    return session.model_copy(update={"summary": parts[0], "messages": messages}), (warning,)


def intent_by_rules(question: str, session: Session) -> SessionIntent:
    """Up to five queries, the question itself first; none where nothing needs to be looked up."""
    nothing = no_retrieval_reason(question)
    if nothing:
        return SessionIntent(standalone=question, reason=nothing)
    found = follow_up(question, without_small_talk(question), _heard(session))
    if found.fault:
        return SessionIntent(standalone=question, reason=found.fault)
    standalone = found.standalone
    phrases = _typed_phrases(standalone)
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


def _heard(session: Session) -> Session:
    """The conversation without the user's greetings and thanks."""
    kept = (one for one in session.messages if one.role != "user" or not no_retrieval_reason(one.content))
    return session.model_copy(update={"messages": tuple(kept)})


def _typed_phrases(question: str) -> TypedPhrases:
    text = " ".join(without_small_talk(question).split()).strip(" ?？.。!！")
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
