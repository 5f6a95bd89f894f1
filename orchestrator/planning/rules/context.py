"""Gives parts of a compound question that name no thing of their own the part before as context. Pure."""

from __future__ import annotations

import re

from orchestrator.planning.rules.reading import MAX_PART, Part
from shared.language import language
from shared.text import stem, terms

#: What is left of "What did we change afterwards?" says nothing that could be searched for.
_GENERIC_WORDS = """
    afterwards after later next then common typical usual mistake pitfall error risk step happen result effect
    consequence impact cause reason fix change improve improvement learn lesson avoid watch handle matter main key best
    practice benefit advantage disadvantage drawback cost alternative option example solution problem issue work prevent
    each one both go wrong long take many much important need now instead since else
"""
_GENERIC = frozenset(stem(word) for word in _GENERIC_WORDS.split())
_GENERIC_ZH = re.compile(
    "后来|之后|以后|然后|接着|随后|最后|分别|各自|各|常见|主要|具体|相应|对应|做|改动|改变|改进|变化|处理|应对|解决|"
    "办|效果|结果|影响|原因|误区|错误|注意|事项|问题|风险|步骤|方法|办法|教训|经验|好处|坏处|优点|缺点|优缺点|有没有|"
    "我们|他们|你们|大家|当时|现在|吸取|学到|得到|怎样|怎么|样|如何|哪些|什么|为|了|的|有|是|该|要|又|再|才|还|需|和|会"
)


def in_context(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same parts; one that names nothing of its own says what it is about: the nearest part before that does."""
    told: list[Part] = []
    about = ""
    for part in parts:
        if not _names_nothing(part.query):
            about = part.query
            told.append(part)
            continue
        query = _regarding(about, part.query) if about and part.asked else part.query
        fits = len(query) <= MAX_PART and query != part.query
        told.append(part.model_copy(update={"query": query, "broad": False}) if fits else part)
    return tuple(told)


def _names_nothing(query: str) -> bool:
    if language(query) == "zh":
        return not re.sub(r"[\W_]", "", _GENERIC_ZH.sub("", query))
    return all(term in _GENERIC for term in terms(query))


def _regarding(about: str, query: str) -> str:
    topic = about.rstrip("?？.。 ")
    return f"关于“{topic}”：{query}" if language(about) == "zh" else f"Regarding “{topic}”: {query}"
