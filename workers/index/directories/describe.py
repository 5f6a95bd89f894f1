"""Who describes a directory: the LLM when there is one, else, and when it fails, its documents' own sentences."""

from __future__ import annotations

import time
from typing import NamedTuple

from shared.errors import RamifyError, ReplyError, TransientError
from shared.llm.client import LLM, LLMReply, spent
from shared.llm.prompts import escaped, filled
from shared.llm.replies import summary_text
from shared.models import Cost
from workers.index.directories.extract import (
    ABSTRACT_CHARS,
    OVERVIEW_CHARS,
    Contents,
    Item,
    abstract_of,
    clipped,
    overview_of,
)
from workers.merge.display import plain_line, safe

_LEAST_TIME_S = 0.5
#: What `summary_text` may add to a text that it cuts.
_CUT_MARK = 2


class Described(NamedTuple):
    """A directory's abstract and overview, what they cost, and why the LLM did not write them, if it should have."""

    abstract: str
    overview: str
    cost: Cost = Cost()
    fault: str | None = None


def describe(contents: Contents, llm: LLM | None, end: float) -> Described:
    """Describe a directory; the LLM is asked until `end` (time.monotonic()). Never raises for the LLM's faults."""
    abstract = abstract_of(contents)
    plain = Described(abstract, overview_of(contents, abstract))
    if llm is None:
        return plain
    cost = Cost()
    try:
        reply = _ask(llm, _overview_prompt(contents), end)
        cost += reply.cost
        overview = summary_text(safe(reply.text), OVERVIEW_CHARS - _CUT_MARK)
        reply = _ask(llm, filled("abstract", {"path": _path(contents.path), "overview": escaped(overview)}), end)
        cost += reply.cost
        abstract = plain_line(summary_text(safe(reply.text), ABSTRACT_CHARS - _CUT_MARK))
        if not abstract:
            raise ReplyError("the reply holds no abstract")
    except RamifyError as error:
        return plain._replace(cost=cost + spent(error).cost, fault=str(error).strip().rstrip("."))
    return Described(clipped(abstract, ABSTRACT_CHARS), overview, cost)


def _ask(llm: LLM, prompt: str, end: float) -> LLMReply:
    left = end - time.monotonic()
    if left < _LEAST_TIME_S:
        raise TransientError("no time was left for it (hierarchy.llm_budget_s)")
    return llm.complete(prompt, timeout_s=left)


def _overview_prompt(contents: Contents) -> str:
    values = {
        "path": _path(contents.path),
        "contents": "\n".join(map(_element, contents.items)) or "(none)",
        "more": escaped("; ".join(map(plain_line, contents.more))) or "(none)",
        "left": str(contents.left),
    }
    return filled("overview", values)


def _element(item: Item) -> str:
    name = "directory" if item.is_directory else "document"
    return f'<{name} title="{escaped(plain_line(item.title))}">{escaped(item.lead)}</{name}>'


def _path(path: str) -> str:
    return escaped(plain_line(path))
