"""Fills the prompts in prompts/*.md. Values from outside are escaped: they can neither close a tag nor name a slot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from pydantic import Field

from shared.hidden import without_hidden
from shared.language.text import is_cjk_text
from shared.models import Node
from shared.models.answer import ReasoningStep
from shared.models.base import Model
from shared.models.request import MAX_TYPED_CHARS, MIN_TYPED_CHARS, ChatMessage, Session
from shared.models.route import Intent
from shared.providers.llm.reply_schema import NOT_XML

MAX_MEMORY_CHARS = 4000
#: So much of a session's summary and of each message is shown to the model.
MAX_SESSION_CHARS = 2000
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})
#: A value may not break its line inside an attribute: models read line by line.
_BREAKS = re.compile(r"[\t\n\r\x85\u2028\u2029]+")
#: Questions of at most so many words, or CJK characters, get a short answer when they were not split.
_SHORT_WORDS, _SHORT_CJK = 8, 16


class Memory(Model):
    """A numbered source of the summary; the text cites it as [number]. `facet` is the one of the leaf that found it.

    `date` is that of the document.
    """

    number: int = Field(ge=1)
    facet: str
    path: str
    text: str
    date: str | None = None


def decompose_prompt(question: str, most: int = 5) -> str:
    """Asks to split `question` into at most `most` subqueries. The same on every level."""
    usual = f"3 to {min(5, most)}" if most > 3 else f"up to {most}"  # subqueries of a complex question
    return filled("decompose", {"user_query": escaped(question), "most": str(most), "usual": usual})


def decompose_again_prompt(question: str, fault: str, most: int = 5) -> str:
    """Asks once more and names the fault of the first reply: the message of its `ReplyError`."""
    return f"{decompose_prompt(question, most)}\n{filled('decompose_again', {'fault': escaped(fault)})}"


def expand_prompt(question: str, count: int) -> str:
    """Asks for `count` rewrites of `question` in other words."""
    return filled("expand", {"user_query": escaped(question), "count": str(count)})


def summarise_prompt(  # noqa: PLR0913 - what the style of the answer follows from
    question: str,
    memories: Iterable[Memory],
    tree: Iterable[Node],
    *,
    intent: Intent = Intent.GENERAL,
    steps: Sequence[ReasoningStep] = (),
    whole: bool = False,
) -> str:
    """Asks for the cited summary. `memories` best first; each text is cut to 4000 characters.

    The style follows `intent`; `whole`, a question that was not split, gets a short answer when it is short. With
    `steps` the model sees these instead of the tree, and concludes from them.
    """
    words = len(question.split())
    short = len(question) <= _SHORT_CJK if is_cjk_text(question) else words <= _SHORT_WORDS
    if steps:
        known = filled("summarise_steps", {"steps": "\n".join(map(_step, steps))})
    else:
        known = filled("summarise_tree", {"tree": _lines(map(_node, tree))})
    values = {
        "user_query": escaped(question),
        "memories": _lines(map(_memory, memories)),
        "known": known.strip(),
        "style": filled(f"summarise_{intent.value}", {}).strip(),
        "length": filled(f"summarise_{'short' if whole and short else 'long'}", {}).strip(),
    }
    return filled("summarise", values)


def read_answer_prompt(question: str, passages: Iterable[tuple[str, str]]) -> str:
    """Asks for the answer to `question` that stands in `passages` (title, text), best first; a text is cut as above."""
    numbered = (
        f'<passage id="{number}" title="{_attribute(title)}">{escaped(_cut(text))}</passage>'
        for number, (title, text) in enumerate(passages, start=1)
    )
    return filled("read_answer", {"user_query": escaped(question), "passages": _lines(numbered)})


def missing_prompt(question: str, passages: Iterable[tuple[str, str]], most: int) -> str:
    """Asks for at most `most` queries for what `passages` (title, text) do not say; texts are cut as above."""
    numbered = (
        f'<passage id="{number}" title="{_attribute(title)}">{escaped(_cut(text))}</passage>'
        for number, (title, text) in enumerate(passages, start=1)
    )
    values = {"user_query": escaped(question), "passages": _lines(numbered), "most": str(most)}
    return filled("missing", values)


def intent_prompt(question: str, session: Session, most: int) -> str:
    """Asks for up to `most` typed queries of `question` after `session`: its summary and its last five messages."""
    values = {
        "summary": escaped(_cut(session.summary, MAX_SESSION_CHARS)) or "(none)",
        "messages": _lines(map(_message, session.recent)),
        "user_query": escaped(question),
        "most": str(most),
        "least": str(MIN_TYPED_CHARS),
        "longest": str(MAX_TYPED_CHARS),
    }
    return filled("intent", values)


def intent_again_prompt(question: str, session: Session, most: int, fault: str) -> str:
    """Asks once more and names the fault of the first reply."""
    return f"{intent_prompt(question, session, most)}\n{filled('intent_again', {'fault': escaped(fault)})}"


def route_prompt(question: str) -> str:
    """Asks for type, hops and intent of `question`, which stands escaped in <user_query>."""
    return filled("route", {"user_query": escaped(question)})


def extract_prompt(documents: Sequence[str], columns: Sequence[str]) -> str:
    """Asks for `columns` of `documents`, both numbered from 1."""
    numbered = (f'<column number="{number}">{escaped(column)}</column>' for number, column in enumerate(columns, 1))
    return filled("extract", {"columns": "\n".join(numbered), "documents": _documents(documents)})


def rerank_prompt(query: str, documents: Sequence[str]) -> str:
    """Asks for a mark of 0 to 10 for each of `documents`, numbered from 1."""
    values = {"user_query": escaped(query), "documents": _documents(documents), "count": str(len(documents))}
    return filled("rerank", values)


def verify_prompt(pairs: Sequence[tuple[str, str]]) -> str:
    """Asks whether the passage of each pair of claim and passage, numbered from 1, states the claim."""
    written = (
        f'<pair id="{number}"><claim>{escaped(claim)}</claim><passage>{escaped(_cut(passage))}</passage></pair>'
        for number, (claim, passage) in enumerate(pairs, 1)
    )
    return filled("verify", {"pairs": "\n".join(written), "count": str(len(pairs))})


def escaped(text: str) -> str:
    """`text` as XML text: & < > " ' as entities, characters that XML does not know and that nobody sees left out."""
    return NOT_XML.sub("", without_hidden(text)).translate(_ENTITIES)


def filled(name: str, values: Mapping[str, str]) -> str:
    """The template with each slot filled in one pass, so a slot's name inside a value stays text."""
    return _SLOT.sub(lambda slot: values[slot[1]], template(name))


def _memory(memory: Memory) -> str:
    facet, path = _attribute(memory.facet), _attribute(memory.path)
    date = f' date="{_attribute(memory.date)}"' if memory.date else ""
    return f'<memory id="{memory.number}" facet="{facet}" path="{path}"{date}>{escaped(_cut(memory.text))}</memory>'


def _step(step: ReasoningStep) -> str:
    """A step as the model sees it. A gap has no memories; what was found are names and answers from documents."""
    attributes = {
        "number": str(step.number),
        "kind": step.kind,
        "after": " ".join(map(str, step.after)),
        "found": "; ".join(step.found),
        "memories": " ".join(map(str, step.passages)),
        "gap": step.gap or "",
    }
    written = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items() if value)
    return f"<step{written}>{_attribute(step.question)}</step>"


def _message(message: ChatMessage) -> str:
    return f'<message role="{escaped(message.role)}">{escaped(_cut(message.content, MAX_SESSION_CHARS))}</message>'


def _documents(texts: Sequence[str]) -> str:
    return "\n".join(f'<document id="{number}">{escaped(text)}</document>' for number, text in enumerate(texts, 1))


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts) or "(none)"


def _cut(text: str, most: int = MAX_MEMORY_CHARS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _node(node: Node) -> str:
    indent = "  " * node.level
    return f'{indent}<node id="{node.id}" facet="{node.facet.value}">{_attribute(node.query)}</node>'


def _attribute(text: str) -> str:
    return escaped(_BREAKS.sub(" ", text))


@cache
def template(name: str) -> str:
    return (files("shared.providers.llm") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
