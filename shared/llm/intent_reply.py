"""Asks for the typed queries of a message and reads the reply (C2). The reply is untrusted: refused, never guessed."""

from __future__ import annotations

import unicodedata
from xml.etree.ElementTree import Element

from shared.errors import ReplyError, shown
from shared.llm.prompts import escaped, filled
from shared.llm.xml_element import read_element
from shared.models.base import Model
from shared.models.session import MAX_TYPED_CHARS, ContextType, Message, Session, TypedQuery

MIN_CHARS = 2
MAX_INTENT_CHARS = 200
#: So much of a summary and of each message is shown to the model.
MAX_SHOWN_CHARS = 2000
_TYPES = {kind.value: kind for kind in ContextType} | {
    "技能": ContextType.SKILL, "资源": ContextType.RESOURCE, "记忆": ContextType.MEMORY,
}  # fmt: skip
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


class PlanReply(Model):
    """What the model says: queries, or why there are none."""

    queries: tuple[TypedQuery, ...] = ()
    none: str = ""


def intent_prompt(question: str, session: Session, most: int) -> str:
    """Asks for up to `most` typed queries of `question` after `session`: its summary and its last five messages."""
    values = {
        "summary": escaped(_cut(session.summary)) or "(none)",
        "messages": "\n".join(map(_message, session.recent)) or "(none)",
        "user_query": escaped(question),
        "most": str(most),
        "least": str(MIN_CHARS),
        "longest": str(MAX_TYPED_CHARS),
    }
    return filled("intent", values)


def intent_again_prompt(question: str, session: Session, most: int, fault: str) -> str:
    """Asks once more and names the fault of the first reply."""
    return f"{intent_prompt(question, session, most)}\n{filled('intent_again', {'fault': escaped(fault)})}"


def parse_plan(text: str, most: int) -> PlanReply:
    """The queries of the first <plan> element outside the model's thinking, in its order.

    Raises: ReplyError naming the first fault: no element, cut off, too large, not well-formed, a type, length or
        priority that cannot be taken, more than `most` queries, queries and <none> at once, or neither.
    """
    root = read_element(text, "plan", "typed_query")
    none = next((_text(element) for element in root if _name(element) == "none"), None)
    typed = [element for element in root if _name(element) == "typed_query"]
    if none is not None and typed:
        raise ReplyError("the <plan> holds <none> beside queries: give one or the other")
    if none is not None:
        return PlanReply(none=_cleaned(none)[:MAX_INTENT_CHARS] or "no reason given")
    if not typed:
        raise ReplyError("the <plan> holds neither a <typed_query> nor <none>")
    if len(typed) > most:
        raise ReplyError(f"the <plan> holds {len(typed)} queries, at most {most} are allowed")
    return PlanReply(queries=tuple(_typed(element, number) for number, element in enumerate(typed, 1)))


def _typed(element: Element, number: int) -> TypedQuery:
    parts: dict[str, str] = {}
    for part in element:
        parts.setdefault(_name(part), _text(part))
    for name in ("context_type", "query"):
        if name not in parts:
            raise ReplyError(f"query {number} has no <{name}>")
    kind = parts["context_type"].strip().casefold()
    if kind not in _TYPES:
        raise ReplyError(f"query {number}: context type {shown(kind)} is none of skill, resource, memory")
    query = _cleaned(parts["query"])
    if not MIN_CHARS <= len(query) <= MAX_TYPED_CHARS:
        bounds = f"{MIN_CHARS} to {MAX_TYPED_CHARS}"
        raise ReplyError(f"query {number} has {len(query)} characters, {bounds} are allowed")
    return TypedQuery(
        query=query,
        context_type=_TYPES[kind],
        intent=_cleaned(parts.get("intent", ""))[:MAX_INTENT_CHARS],
        priority=_priority(parts.get("priority", "3"), number),
    )


def _priority(value: str, number: int) -> int:
    if value.strip() not in {"1", "2", "3", "4", "5"}:
        raise ReplyError(f"query {number}: priority {shown(value.strip())} is no number from 1 to 5")
    return int(value)


def _message(message: Message) -> str:
    return f'<message role="{escaped(message.role)}">{escaped(_cut(message.content))}</message>'


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _cleaned(text: str) -> str:
    """One line without control characters and direction marks."""
    kept = (c for c in text if c.isspace() or (unicodedata.category(c) not in {"Cc", "Cs"} and c not in _BIDI))
    return " ".join("".join(kept).split())


def _text(element: Element) -> str:
    return element.text or ""


def _name(element: Element) -> str:
    return element.tag.casefold()
