"""Parsers of the LLM's replies: decomposition, rewrites, answer, typed queries, route, columns, marks, summary.

Replies are untrusted: what does not fit is refused with a named fault, not guessed.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal

from shared.errors import ReplyError, shown
from shared.language import derived, languages
from shared.models import Facet, SubQuery
from shared.models.base import Model
from shared.models.request import MAX_TYPED_CHARS, MIN_TYPED_CHARS, ContextType, TypedQuery
from shared.models.route import Hops, Intent, QueryType
from shared.providers.llm.reply_schema import (
    ElementSchema,
    FieldSchema,
    ValueParser,
    choice,
    integer,
    is_control,
    line,
    read_reply,
    without_thinking,
)

MIN_QUERY_CHARS, MAX_QUERY_CHARS = 5, 300
MAX_SUMMARY_CHARS = 20_000
#: What a parser of Markdown reads in about a second at worst; without thinking.
MAX_MARKDOWN_CHARS = 50_000
MAX_ANSWER_CHARS = 200
MAX_INTENT_CHARS = 200
#: What a reply may take: an answer is a name, a date, a place.
MAX_ANSWER_TOKENS, MAX_ROUTE_TOKENS, MAX_MISSING_TOKENS = 200, 300, 800
_BEST_MARK = 10
_MARK = re.compile(r"\d{1,2}(?:\.\d{1,4})?")
_FENCED = re.compile(r"```[ \t]*+(\w*+)[ \t]*+\n(.*?)\n?```", re.DOTALL)  # possessive: a reply may be all blanks
_UNKNOWN = re.compile(r"<unknown\s*/?>", re.IGNORECASE)
_NONE = re.compile(r"<none\s*/?>", re.IGNORECASE)
_MISSING = re.compile(r"<missing\b", re.IGNORECASE)
_ANSWER = re.compile(r"<answer\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[。！？\n]|[.!?](?=\s)")
_NUMBER = re.compile("[0-9]{1,4}")


@derived
def _facets() -> dict[str, Facet]:
    """Facets by the names that a model may write, in any language; so the next two."""
    names = {name: facet for language in languages() for name, facet in language.words.reply.facets.items()}
    return names | {facet.value: facet for facet in Facet if facet.planned}


@derived
def _context_types() -> dict[str, ContextType]:
    names = {name: kind for language in languages() for name, kind in language.words.reply.context_types.items()}
    return names | {kind.value: kind for kind in ContextType}


@derived
def _words(kind: Literal["yes", "none"]) -> frozenset[str]:
    own = {"yes": ("true", "yes", "1"), "none": ("", "none", "no", "null")}[kind]
    return frozenset(own).union(*(getattr(language.words.reply, kind) for language in languages()))


def _member(kind: type[StrEnum], label: str) -> ValueParser:
    names = {member.value: member for member in kind}
    return choice(label, ", ".join(kind), lambda: names)


DECOMPOSITION = ElementSchema(
    "decomposition",
    items=ElementSchema(
        "subquery",
        noun="subquery",
        fields={
            "dimension": FieldSchema(choice("dimension", "core, why, how, case, note", _facets)),
            "query": FieldSchema(line(MIN_QUERY_CHARS, MAX_QUERY_CHARS, "the query")),
            "needs_refinement": FieldSchema(lambda value: value.strip().casefold() in _words("yes"), ""),
            "depends_on": FieldSchema(str.strip, ""),
        },
    ),
)
REWRITES = ElementSchema(
    "rewrites", items=ElementSchema("rewrite", noun="rewrite", text=line(MIN_QUERY_CHARS, MAX_QUERY_CHARS))
)
MISSING = ElementSchema(
    "missing", items=ElementSchema("query", noun="query", text=line(MIN_QUERY_CHARS, MAX_QUERY_CHARS))
)
ANSWER = ElementSchema("answer", text=line(1, MAX_ANSWER_CHARS), others="refused")
PLAN = ElementSchema(
    "plan",
    fields={"none": FieldSchema(line(most=MAX_INTENT_CHARS, cut=True), None)},
    items=ElementSchema(
        "typed_query",
        noun="query",
        fields={
            "context_type": FieldSchema(choice("context type", "skill, resource, memory", _context_types)),
            "query": FieldSchema(line(MIN_TYPED_CHARS, MAX_TYPED_CHARS, "the query")),
            "intent": FieldSchema(line(most=MAX_INTENT_CHARS, cut=True), ""),
            "priority": FieldSchema(integer(1, 5, "priority {value} is no number from 1 to {most}"), "3"),
        },
    ),
)
ROUTE = ElementSchema(
    "route",
    fields={
        "type": FieldSchema(_member(QueryType, "type")),
        "intent": FieldSchema(_member(Intent, "intent")),
        "hops": FieldSchema(str, None),
    },
)
_HOPS = _member(Hops, "hops")


class PlanReply(Model):
    """What the model says: queries, or why there are none."""

    queries: tuple[TypedQuery, ...] = ()
    none: str = ""


class RouteReply(Model):
    """A model's decision; `hops` for complex questions and for no others."""

    type: QueryType
    intent: Intent
    hops: Hops | None = None


def parse_decomposition(text: str, most: int = 5) -> tuple[SubQuery, ...]:
    """The subqueries; repeated ones are dropped. `depends_on`: 1-based positions in the returned tuple, earlier ones.

    Raises: ReplyError naming the first fault, none or more than `most` subqueries among them.
    """
    read: list[SubQuery] = []
    position_of: dict[str, int] = {}  # folded query -> position kept
    kept_at: list[int] = []  # position in the reply - 1 -> position kept
    for number, item in enumerate(read_reply(text, DECOMPOSITION).items, start=1):
        before = sorted({kept_at[position - 1] for position in _earlier(item.fields["depends_on"], number)})
        subquery = SubQuery(**{**item.fields, "depends_on": tuple(before)})
        folded = subquery.query.casefold()
        if folded not in position_of:
            read.append(subquery)
            position_of[folded] = len(read)
        kept_at.append(position_of[folded])
    if not read:
        raise ReplyError("the <decomposition> holds no <subquery>")
    if len(read) > most:
        raise ReplyError(f"the <decomposition> holds {len(read)} subqueries, at most {most} are allowed")
    return tuple(read)


def _earlier(names: str, subquery: int) -> list[int]:
    """Numbers of subqueries that stand before this one. Raises: ReplyError."""
    found = []
    for name in re.split(r"[\s,，、;；#]+", names) if names.casefold() not in _words("none") else ():
        position = int(name) if _NUMBER.fullmatch(name) else 0
        if name and not 1 <= position < subquery:
            raise ReplyError(f"subquery {subquery}: depends_on {shown(name)} is no earlier subquery's number")
        found += [position] if name else []
    return found


def parse_rewrites(text: str, question: str, most: int) -> tuple[str, ...]:
    """The first `most` rewrites that differ from the question and from each other. Raises: ReplyError."""
    rewrites: dict[str, str] = {}
    for item in read_reply(text, REWRITES).items:
        rewrites.setdefault(item.text.casefold(), item.text)
    rewrites.pop(question.casefold().strip(), None)
    if not rewrites:
        raise ReplyError("the <rewrites> hold nothing new")
    return tuple(rewrites.values())[:most]


def parse_answer(text: str) -> str | None:
    """The text of <answer> on one line; None where <unknown/> stands instead. Raises: ReplyError naming the fault."""
    reply = without_thinking(text, anywhere=True)
    if not _ANSWER.search(reply) and _UNKNOWN.search(reply):
        return None
    answer: str = read_reply(text, ANSWER).text
    return answer


def parse_missing(text: str, most: int) -> tuple[str, ...]:
    """The first `most` queries that differ; none where <none/> stands instead. Raises: ReplyError naming the fault."""
    reply = without_thinking(text, anywhere=True)
    if not _MISSING.search(reply) and _NONE.search(reply):
        return ()
    queries = {item.text.casefold(): item.text for item in reversed(list(read_reply(text, MISSING).items))}
    if not queries:
        raise ReplyError("the <missing> holds no <query>")
    return tuple(reversed(queries.values()))[:most]


def parse_plan(text: str, most: int) -> PlanReply:
    """The typed queries, in their order, or why there are none.

    Raises: ReplyError naming the first fault; more than `most` queries, queries and <none> at once, or neither.
    """
    plan = read_reply(text, PLAN)
    none: str | None = plan.fields["none"]
    if none is not None and plan.size:
        raise ReplyError("the <plan> holds <none> beside queries: give one or the other")
    if none is not None:
        return PlanReply(none=none or "no reason given")
    if not plan.size:
        raise ReplyError("the <plan> holds neither a <typed_query> nor <none>")
    if plan.size > most:
        raise ReplyError(f"the <plan> holds {plan.size} queries, at most {most} are allowed")
    return PlanReply(queries=tuple(TypedQuery(**item.fields) for item in plan.items))


def parse_route(text: str) -> RouteReply:
    """The model's decision; hops beside another type are ignored.

    Raises: ReplyError naming the first fault: no type or intent, an unknown name, a complex question without hops.
    """
    read = read_reply(text, ROUTE).fields
    hops = None
    if read["type"] is QueryType.COMPLEX_REASONING:
        if read["hops"] is None:
            raise ReplyError("the <route> has no <hops>")
        hops = _HOPS(read["hops"])
    return RouteReply(type=read["type"], intent=read["intent"], hops=hops)


def parse_rows(text: str, documents: int, columns: int) -> dict[tuple[int, int], str]:
    """(document, column), both from 1, -> value. Fields without a value, and repeated ones, are passed over.

    Raises: ReplyError when there is no <rows> element that can be read, or one names what was not asked for.
    """
    row, column = (f"a <{tag}> has the number {{value}}, but there are 1 to {{most}}" for tag in ("row", "field"))
    field = ElementSchema("field", fields={"column": FieldSchema(integer(1, columns, column), "")}, text=line())
    ids = {"id": FieldSchema(integer(1, documents, row), "")}
    rows = ElementSchema("rows", items=ElementSchema("row", fields=ids, items=field, others="taken"), others="taken")
    found: dict[tuple[int, int], str] = {}
    for read in read_reply(text, rows).items:
        for value in read.items:
            if value.text:
                found.setdefault((read.fields["id"], value.fields["column"]), value.text)
    return found


def parse_marks(text: str, count: int) -> dict[int, float]:
    """Position (from 0) -> mark of 0 to 10; fewer than `count` is no fault.

    Raises: ReplyError naming the first fault: an id that is unknown or stands twice, no mark of 0 to 10.
    """
    ids = {"id": FieldSchema(integer(1, count, "the <scores> name document {value} of {most}"), "")}
    scores = ElementSchema("scores", items=ElementSchema("s", fields=ids, text=line()), others="refused")
    marks: dict[int, float] = {}
    for item in read_reply(text, scores).items:
        document, mark = item.fields["id"], item.text
        if document - 1 in marks:
            raise ReplyError(f"the <scores> name document {document} twice")
        if not _MARK.fullmatch(mark) or float(mark) > _BEST_MARK:
            raise ReplyError(f"the <scores> give document {document} the mark {shown(mark)}, none of 0 to 10")
        marks[document - 1] = float(mark)
    if not marks:
        raise ReplyError("the <scores> hold no <s>")
    return marks


def parse_verdicts(text: str, count: int) -> dict[int, bool]:
    """Position (from 0) -> whether the pair was called supported; fewer than `count` is no fault.

    Raises: ReplyError naming the first fault: an id that is unknown or stands twice, another word.
    """
    ids = {"id": FieldSchema(integer(1, count, "the <verdicts> name pair {value} of {most}"), "")}
    schema = ElementSchema("verdicts", items=ElementSchema("v", fields=ids, text=line()), others="refused")
    found: dict[int, bool] = {}
    for item in read_reply(text, schema).items:
        pair, word = item.fields["id"], item.text.strip().lower()
        if pair - 1 in found:
            raise ReplyError(f"the <verdicts> name pair {pair} twice")
        if word not in {"supported", "unsupported"}:
            raise ReplyError(f"the <verdicts> call pair {pair} {shown(word)}, neither supported nor unsupported")
        found[pair - 1] = word == "supported"
    if not found:
        raise ReplyError("the <verdicts> hold no <v>")
    return found


def readable(reply: str) -> str:
    """A reply without thinking, short enough to be read as Markdown. Raises: ReplyError for a longer one."""
    text = without_thinking(reply.replace("\r\n", "\n"))
    if len(text) > MAX_MARKDOWN_CHARS:
        raise ReplyError(f"the reply has more than {MAX_MARKDOWN_CHARS:,} characters")
    return text


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
    cleaned = "".join(c for c in cleaned if c in "\n\t" or not is_control(c)).strip()
    if not cleaned:
        raise ReplyError("the reply holds no summary")
    if len(cleaned) <= most_chars:
        return cleaned
    ends = [end.end() for end in _SENTENCE_END.finditer(cleaned, 0, most_chars)]
    return f"{cleaned[: ends[-1] if ends else most_chars].rstrip()} …"
