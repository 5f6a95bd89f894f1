"""Asks a model how a question is to be answered, and reads its reply: what does not fit is refused, not guessed."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar
from xml.etree.ElementTree import Element

from shared.errors import ReplyError, shown
from shared.llm.prompts import escaped, filled
from shared.llm.xml_element import read_element
from shared.models.base import Model
from shared.models.route import Hops, Intent, QueryType

_Name = TypeVar("_Name", bound=StrEnum)


class RouteReply(Model):
    """A model's decision; `hops` for complex questions and for no others."""

    type: QueryType
    intent: Intent
    hops: Hops | None = None


def route_prompt(question: str) -> str:
    """Asks for type, hops and intent of `question`, which stands escaped in <user_query>."""
    return filled("route", {"user_query": escaped(question)})


def parse_route(text: str) -> RouteReply:
    """The decision in the first <route> element outside the model's thinking. Hops beside another type are ignored.

    Raises: ReplyError naming the first fault: no element, cut off, too large, not well-formed, too deep, no type or
        intent, an unknown name, a complex question without hops.
    """
    root = read_element(text, "route", "type")
    kind = _named(root, "type", QueryType)
    hops = _named(root, "hops", Hops) if kind is QueryType.COMPLEX_REASONING else None
    return RouteReply(type=kind, intent=_named(root, "intent", Intent), hops=hops)


def _named(root: Element, tag: str, names: type[_Name]) -> _Name:
    found = next((part for part in root if part.tag.casefold() == tag), None)
    if found is None:
        raise ReplyError(f"the <route> has no <{tag}>")
    value = (found.text or "").strip().casefold()
    try:
        return names(value)
    except ValueError:
        raise ReplyError(f"{tag} {shown(value)} is none of {', '.join(names)}") from None
