"""Says a Chinese question by type: a skill starts with a verb, a resource is a noun phrase, a memory is the user's."""

from __future__ import annotations

import re
from functools import cache

from shared.language.base import TypedPhrases
from shared.language.tables import WordTable

_LEAD = re.compile(
    "(?:那么?|还有|另外|然后|请问|请|麻烦你?|帮我|帮忙|帮|给我|替我|我想要?|我要|我需要|能不能|能否|可以|该)*"
)
_HOW = re.compile("(?:我们?)?(?:应该|该|要)?(?:怎么样|怎样|怎么|如何)(?:才能|去|来)?")
_MEASURE = re.compile("(?:一个|一份|一篇|一下|一套|一张|个|份|篇)?")
_ASK = re.compile(
    "什么时候|为什么|是什么|什么是|有什么|有哪些|是多少|是哪个|是谁|怎么样|怎么|如何|怎样|哪些|哪个|多少|什么|吗|呢|[?？。！!]"
)
_PERSONAL = re.compile("(?:我们?|咱们?)(?:之前|以前|上次|当时|曾经)?(?:记录|记下|写|说|提到|决定|做)?过?的?|上次|之前")


def typed_phrases(text: str, words: WordTable) -> TypedPhrases:
    rest = _after(_HOW, _after(_LEAD, text))
    verb = _verb((*words.making, *words.doing)).match(rest)
    personal = bool(_PERSONAL.search(rest))
    thing = _thing(_after(_MEASURE, rest[verb.end() :].strip())) if verb else ""
    if verb and thing:
        making = verb[0] in words.making
        return TypedPhrases(
            skill=_joined(verb[0], thing),
            resource=_joined(thing, "模板" if making else f"{verb[0]}指南"),
            memory=_joined("用户的", thing, "偏好") if making else _joined("用户的", thing) if personal else "",
        )
    thing = _thing(rest)
    return TypedPhrases(resource=thing, memory=_joined("用户的", thing) if personal and thing else "")


def _thing(text: str) -> str:
    return " ".join(_ASK.sub(" ", _PERSONAL.sub("", text)).split()).strip(" 的，,")


def _joined(*parts: str) -> str:
    """Chinese and Latin words side by side, with a blank where one meets the other."""
    text = ""
    for part in parts:
        apart = text and (text[-1].isascii() != part[0].isascii())
        text += f" {part}" if apart else part
    return text


def _after(lead: re.Pattern[str], text: str) -> str:
    found = lead.match(text)
    return text[found.end() :].strip() if found else text


@cache
def _verb(verbs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(verbs, key=len, reverse=True)))
