"""An answer as a chat completion: its text with the sources behind it, annotations, and what was spent. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from shared.language import reader_sentence
from shared.models import Answer, Citation, Cost
from shared.models.base import Model
from shared.uri import SCHEME, quoted

#: Characters of one piece of a streamed answer.
_PIECE = 80
_MARK = re.compile(r"\[(\d{1,4})\]")
_SOURCE_LINE = re.compile(r"^- \[\d{1,4}\] (.*?)(?: — .*)?$", re.MULTILINE)
#: As many words as fit into a piece, else a part of one long word (Chinese has no blanks); never a part of a mark.
_PIECES = re.compile(rf"(?:\S{{1,{_PIECE}}}(?:\s+|$)){{1,12}}|(?:\[\d{{1,4}}\]|[^\[]|\[){{1,{_PIECE // 2}}}", re.DOTALL)
#: Results that are named where nothing was written.
_MOST_NAMED = 10


class UrlCitation(Model):
    """Where `[n]` stands in the text (characters), and what it stands for."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Model):
    """A citation, as OpenAI writes it."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class ChatUsage(Model):
    """Tokens of language models that the job has spent; 0 where none was asked."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class ChatAbout(Model):
    """What Ramify says of an answer: its job, what was asked in the end, and what the answer lacks."""

    job_id: str | None = None
    question: str = ""
    coverage: str = ""
    partial: bool = False
    degraded: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ChatReply(Model):
    """The message of a completion. `refusal` is always None: clients expect it."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: tuple[Annotation, ...] = ()


class ChatChoice(Model):
    """The one choice."""

    index: int = 0
    message: ChatReply
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class ChatCompletion(Model):
    """A chat completion as OpenAI's clients read it. `ramify`: what only Ramify says."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[ChatChoice, ...]
    usage: ChatUsage
    ramify: ChatAbout = ChatAbout()


class ChunkChoice(Model):
    """A piece of the one choice."""

    index: int = 0
    delta: dict[str, Any] = Field(default_factory=dict)
    logprobs: None = None
    finish_reason: Literal["stop"] | None = None


class ChatChunk(Model):
    """A piece of a completion that is streamed."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: ChatUsage | None = None
    ramify: SerializeAsAny[ChatAbout] | None = None


class ChatModel(Model):
    """A model that may be named in a request."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["ramify"] = "ramify"


class ChatModels(Model):
    """All models."""

    object: Literal["list"] = "list"
    data: tuple[ChatModel, ...]


def reply_of(answer: Answer, question: str, namespace: str, base_url: str = "") -> ChatReply:
    """The text of an answer with its sources at the end. `question`: in whose language they are announced.

    `base_url`: of the server whose page shows a cited passage; without one citations have Ramify's own addresses.
    """
    text = answer.summary.text or _named(answer)
    cited = {citation.number: citation for citation in answer.summary.citations}
    marks = tuple(
        Annotation(
            url_citation=UrlCitation(
                start_index=mark.start(),
                end_index=mark.end(),
                url=f"{base_url}/jobs/{answer.job_id}/sources/{citation.number}"
                if base_url
                else f"{SCHEME}{namespace}/{quoted(citation.path)}",
                title=citation.title,
            )
        )
        for mark in _MARK.finditer(text)
        if (citation := cited.get(int(mark[1])))
    )
    return ChatReply(content=text + _sources(answer, question), annotations=marks)


def about(answer: Answer) -> ChatAbout:
    """What else there is to say of an answer."""
    names = ("job_id", "question", "coverage", "partial", "degraded", "verdicts", "warnings")
    return ChatAbout(**{name: getattr(answer, name) for name in names})


def usage_of(cost: Cost) -> ChatUsage:
    """Tokens of the LLM."""
    into, out = cost.llm_tokens_in, cost.llm_tokens_out
    return ChatUsage(prompt_tokens=into, completion_tokens=out, total_tokens=into + out)


def pieces(text: str) -> Iterator[str]:
    """The text in pieces of some words, which together are all of it."""
    for found in _PIECES.finditer(text):
        yield found[0]


def nothing_to_look_up(question: str) -> str:
    """The reply to thanks and greetings."""
    return reader_sentence("nothing_to_look_up", question)


def _sources(answer: Answer, question: str) -> str:
    lines = [f"- [{one.number}] {_source(one)}" for one in answer.summary.citations]
    return f"\n\n{reader_sentence('sources', question)}:\n" + "\n".join(lines) if lines else ""


def listed(text: str) -> str:
    """A message that was made here, its sources as a list of titles: "the second one" counts in them."""
    return _SOURCE_LINE.sub(r"1. \1", text)


def _source(citation: Citation) -> str:
    """A line: a text of the corpus must not begin another one."""
    place = f", {citation.place}" if citation.place else ""
    named = citation.path if citation.title == citation.path else f"{citation.title} — {citation.path}"
    return " ".join(f"{named}{place}".split())


def _named(answer: Answer) -> str:
    """The best results, where no text was written."""
    lines = [f"{place}. {hit.title}" for place, hit in enumerate(answer.results[:_MOST_NAMED], 1)]
    return "\n".join(lines) or answer.coverage
