"""Reads the model's replies (B4). They are untrusted: what does not fit is refused with a named fault, not guessed."""

from __future__ import annotations

import re
import unicodedata
from xml.etree.ElementTree import Element

from shared.errors import ReplyError, shown
from shared.llm.thinking import without_thinking
from shared.llm.xml_element import read_element
from shared.models import Facet, SubQuery

MIN_QUERY_CHARS, MAX_QUERY_CHARS = 5, 300
MAX_SUMMARY_CHARS = 20_000
MAX_ANSWER_CHARS = 200
_FACETS = {facet.value: facet for facet in Facet if facet is not Facet.ORIGINAL} | {
    "核": Facet.CORE, "因": Facet.WHY, "法": Facet.HOW, "例": Facet.CASE, "注": Facet.NOTE,
}  # fmt: skip
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_YES = {"true", "yes", "1", "是"}
_NONE = {"", "none", "no", "无", "null"}
_FENCED = re.compile(r"```[ \t]*+(\w*+)[ \t]*+\n(.*?)\n?```", re.DOTALL)  # possessive: a reply may be all blanks
_UNKNOWN = re.compile(r"<unknown\s*/?>", re.IGNORECASE)
_ANSWER = re.compile(r"<answer\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[。！？\n]|[.!?](?=\s)")


def parse_decomposition(text: str, most: int = 5) -> tuple[SubQuery, ...]:
    """The subqueries of the first <decomposition> element outside the model's thinking.

    Repeated queries are dropped; `depends_on` holds 1-based positions in the returned tuple, earlier ones only.

    Raises: ReplyError naming the first fault: no element, cut off, too large, not well-formed, too deep, a facet,
        query length or position that cannot be taken, none or more than `most` subqueries.
    """
    root = read_element(text, "decomposition", "subquery")
    read: list[SubQuery] = []
    position_of: dict[str, int] = {}  # folded query -> position kept
    kept_at: list[int] = []  # position in the reply - 1 -> position kept
    for number, element in enumerate((e for e in root if _name(e) == "subquery"), start=1):
        subquery = _subquery(element, number)
        folded = subquery.query.casefold()
        if folded not in position_of:
            earlier = sorted({kept_at[position - 1] for position in subquery.depends_on})
            read.append(subquery.model_copy(update={"depends_on": tuple(earlier)}))
            position_of[folded] = len(read)
        kept_at.append(position_of[folded])
    if not read:
        raise ReplyError("the <decomposition> holds no <subquery>")
    if len(read) > most:
        raise ReplyError(f"the <decomposition> holds {len(read)} subqueries, at most {most} are allowed")
    return tuple(read)


def parse_rewrites(text: str, question: str, most: int) -> tuple[str, ...]:
    """The rewrites of the first <rewrites> element (F4): cleaned, different from the question and from each other.

    Raises: ReplyError naming the first fault.
    """
    root = read_element(text, "rewrites", "rewrite")
    folded = {question.casefold().strip()}
    rewrites: list[str] = []
    for number, element in enumerate((e for e in root if _name(e) == "rewrite"), start=1):
        rewrite = _query(element.text, number)
        if rewrite.casefold() not in folded:
            folded.add(rewrite.casefold())
            rewrites.append(rewrite)
    if not rewrites:
        raise ReplyError("the <rewrites> hold nothing new")
    return tuple(rewrites[:most])


def parse_answer(text: str) -> str | None:
    """The text of the first <answer> element (G13), on one line; None where <unknown/> stands instead of one.

    Raises: ReplyError naming the fault: neither element, cut off, not well-formed, none or too many characters.
    """
    if not _ANSWER.search(spoken := without_thinking(text, anywhere=True)) and _UNKNOWN.search(spoken):
        return None
    root = read_element(text, "answer", "text")
    if len(root):
        raise ReplyError("the <answer> holds further elements, only text is allowed")
    answer = _one_line(root.text or "")
    if not 1 <= len(answer) <= MAX_ANSWER_CHARS:
        raise ReplyError(f"the <answer> has {len(answer)} characters, 1 to {MAX_ANSWER_CHARS} are allowed")
    return answer


def summary_text(text: str, most_chars: int = MAX_SUMMARY_CHARS) -> str:
    """The summary without thinking, a fence around it and control characters, cut at a sentence to `most_chars`.

    Raises: ReplyError when nothing is left.
    """
    cleaned = without_thinking(text.replace("\r\n", "\n")).strip()
    fenced = _FENCED.fullmatch(cleaned)
    if fenced and (
        fenced[1].lower() in {"markdown", "md", "text", "txt"} or (not fenced[1] and "```" not in fenced[2])
    ):
        cleaned = fenced[2]
    cleaned = "".join(c for c in cleaned if c in "\n\t" or not _is_control(c)).strip()
    if not cleaned:
        raise ReplyError("the reply holds no summary")
    if len(cleaned) <= most_chars:
        return cleaned
    ends = [end.end() for end in _SENTENCE_END.finditer(cleaned, 0, most_chars)]
    return f"{cleaned[: ends[-1] if ends else most_chars].rstrip()} …"


def _subquery(element: Element, number: int) -> SubQuery:
    parts: dict[str, str] = {}
    for part in element:
        parts.setdefault(_name(part), part.text or "")
    waits = {name.casefold(): value for name, value in element.items()}.get("depends_on", "")
    return SubQuery(
        dimension=_facet(parts.get("dimension"), number),
        query=_query(parts.get("query"), number),
        needs_refinement=parts.get("needs_refinement", "").strip().casefold() in _YES,
        depends_on=_positions(parts.get("depends_on", waits), number),
    )


def _facet(value: str | None, number: int) -> Facet:
    if value is None:
        raise ReplyError(f"subquery {number} has no <dimension>")
    name = re.split("[(（]", value)[0].strip().casefold()  # our prompts call them "core (核)"
    if name not in _FACETS:
        raise ReplyError(f"subquery {number}: dimension {shown(value.strip())} is none of core, why, how, case, note")
    return _FACETS[name]


def _query(value: str | None, number: int) -> str:
    if value is None:
        raise ReplyError(f"subquery {number} has no <query>")
    query = _one_line(value)
    if not MIN_QUERY_CHARS <= len(query) <= MAX_QUERY_CHARS:
        bounds = f"{MIN_QUERY_CHARS} to {MAX_QUERY_CHARS}"
        raise ReplyError(f"subquery {number}: the query has {len(query)} characters, {bounds} are allowed")
    return query


def _positions(value: str, number: int) -> tuple[int, ...]:
    if value.strip().casefold() in _NONE:
        return ()
    found = []
    for name in filter(None, re.split(r"[\s,，、;；#]+", value)):
        position = int(name) if re.fullmatch("[0-9]{1,3}", name) else 0
        if not 1 <= position < number:
            raise ReplyError(f"subquery {number}: depends_on {shown(name)} is no earlier subquery's number")
        found.append(position)
    return tuple(found)


def _one_line(text: str) -> str:
    return " ".join("".join(c for c in text if c.isspace() or not _is_control(c)).split())


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cs"} or char in _BIDI_CONTROLS


def _name(element: Element) -> str:
    return element.tag.casefold()
