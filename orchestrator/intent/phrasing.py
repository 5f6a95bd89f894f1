"""Says a question by type (C2): a skill starts with a verb, a resource is a noun phrase, a memory is the user's.

By rules, English and Chinese; pure and linear.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from shared.language import language
from shared.models.base import Model

_LEAD = re.compile(
    r"(?:(?:and|but|also|so|then|what about|how about) )?(?:please |kindly |can you |could you |would you |"
    r"help me(?: to)? |i (?:want|need|would like) to |i'd like to |let's |let us |show me |tell me |explain )?"
)
_HOW = re.compile(
    r"how (?:(?:do|can|should|would|could) (?:i|we|you|one) |to )|(?:what (?:is|are) )?the (?:best way|steps) to "
)
_CUT = re.compile(r" (?:from|to|in|on|with|without|using|for|when|after|before|so that|if|and|by|into) ")
_PERSONAL = re.compile(r"\b(?:my|mine|our|ours|i|we|us)\b")

_LEAD_ZH = re.compile(
    "(?:那么?|还有|另外|然后|请问|请|麻烦你?|帮我|帮忙|帮|给我|替我|我想要?|我要|我需要|能不能|能否|可以|该)*"
)
_HOW_ZH = re.compile("(?:我们?)?(?:应该|该|要)?(?:怎么样|怎样|怎么|如何)(?:才能|去|来)?")
_MEASURE_ZH = re.compile("(?:一个|一份|一篇|一下|一套|一张|个|份|篇)?")
_ASK_ZH = re.compile(
    "什么时候|为什么|是什么|什么是|有什么|有哪些|是多少|是哪个|是谁|怎么样|怎么|如何|怎样|哪些|哪个|多少|什么|吗|呢|[?？。！!]"
)
_PERSONAL_ZH = re.compile(
    "(?:我们?|咱们?)(?:之前|以前|上次|当时|曾经)?(?:记录|记下|写|说|提到|决定|做)?过?的?|上次|之前"
)


class Phrases(Model):
    """A question by context type; "" where it asks for nothing of that type."""

    skill: str = ""
    resource: str = ""
    memory: str = ""


def phrased(question: str) -> Phrases:
    """The question as queries by type. Neither English nor Chinese: nothing but the question itself."""
    text = " ".join(question.split()).strip(" ?？.。!！")
    spoken = language(text)
    if spoken == "zh":
        return _chinese(text)
    return _english(text) if spoken == "en" else Phrases()


def _english(text: str) -> Phrases:
    rest = _after(_LEAD, text)
    how = _HOW.match(rest.lower())
    rest = _after(_HOW, rest)
    first, _, thing = rest.partition(" ")
    verb = first.lower()
    if thing.lower().startswith("up ") and verb in {"set", "back"}:
        first, verb, thing = f"{first} up", f"{verb}up", thing[3:]
    noun = _noun(thing)
    personal = bool(_PERSONAL.search(rest.lower()))
    if noun and (how or verb in _table()["en"]["making"] + _table()["en"]["doing"]):
        making, short = verb in _table()["en"]["making"], _CUT.split(f"{noun} ", maxsplit=1)[0].strip() or noun
        return Phrases(
            skill=f"{first[:1].upper()}{first[1:]} {noun}",
            resource=f"{short} template" if making else f"{noun} {first.lower()} guide",
            memory=f"user's {short} preferences" if making else f"user's {noun}" if personal else "",
        )
    noun = _noun(rest)
    return Phrases(resource=noun, memory=f"user's {noun}" if personal and noun else "")


def _noun(text: str) -> str:
    """The words of `text` but for question words, auxiliaries, articles and pronouns."""
    small, deeds = _table()["en"]["small"], _table()["deeds"]
    kept = [word.strip("?!,;:") for word in text.split() if word.strip("?!,.;:").lower() not in small]
    return " ".join(deeds.get(word.lower(), word) for word in kept if word)


def _chinese(text: str) -> Phrases:
    rest = _after(_HOW_ZH, _after(_LEAD_ZH, text))
    verb = _verb_zh().match(rest)
    personal = bool(_PERSONAL_ZH.search(rest))
    thing = _thing(_after(_MEASURE_ZH, rest[verb.end() :].strip())) if verb else ""
    if verb and thing:
        making = verb[0] in _table()["zh"]["making"]
        return Phrases(
            skill=_joined(verb[0], thing),
            resource=_joined(thing, "模板" if making else f"{verb[0]}指南"),
            memory=_joined("用户的", thing, "偏好") if making else _joined("用户的", thing) if personal else "",
        )
    thing = _thing(rest)
    return Phrases(resource=thing, memory=_joined("用户的", thing) if personal and thing else "")


def _thing(text: str) -> str:
    return " ".join(_ASK_ZH.sub(" ", _PERSONAL_ZH.sub("", text)).split()).strip(" 的，,")


def _joined(*parts: str) -> str:
    """Chinese and Latin words side by side, with a blank where one meets the other."""
    text = ""
    for part in parts:
        apart = text and (text[-1].isascii() != part[0].isascii())
        text += f" {part}" if apart else part
    return text


def _after(lead: re.Pattern[str], text: str) -> str:
    found = lead.match(text.lower()) if len(text.lower()) == len(text) else lead.match(text)
    return text[found.end() :].strip() if found else text


@cache
def _verb_zh() -> re.Pattern[str]:
    words = (*_table()["zh"]["making"], *_table()["zh"]["doing"])
    return re.compile("|".join(sorted(words, key=len, reverse=True)))


@cache
def _table() -> Any:
    """The words of phrasing.toml, by language."""
    return tomllib.loads(resources.files("orchestrator.intent").joinpath("phrasing.toml").read_text("utf-8"))
