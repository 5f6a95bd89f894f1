"""What a chat client sends, as OpenAI's clients write it, and which question that is. Pure.

Options of a model that Ramify has no use for (temperature, max_tokens ...) are checked and left out; what would change
what the answer has to be, and cannot be done, is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field

from orchestrator.operations.chat_reply import listed
from shared.errors import InputError, NotFoundError, encodable
from shared.models import MAX_QUESTION_CHARS, Lane
from shared.models.base import Model
from shared.models.request import MAX_MESSAGE_CHARS, ChatMessage, Question, Session

#: The models: a question as it is, one in the batch lane, and the beginning of one by a strategy.
USUAL, IN_BATCH, BY_STRATEGY = "ramify", "ramify-batch", "ramify/"
_MOST_MESSAGES = 1_000
_IGNORED_CHOICES = (None, "none", "auto")
_Share = Annotated[float | None, Field(ge=0, le=1)]
_Penalty = Annotated[float | None, Field(ge=-2, le=2)]
_Tokens = Annotated[int | None, Field(ge=1)]


class ChatPart(Model):
    """A part of a message."""

    model_config = ConfigDict(extra="ignore")
    type: str = Field(max_length=100)
    text: str | None = None


class ChatTurn(Model):
    """A message. Those of the system and of tools are not read: they are meant for a language model."""

    model_config = ConfigDict(extra="ignore")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[ChatPart, ...] | None = None


class StreamOptions(Model):
    """`include_usage`: a last chunk says what was spent."""

    model_config = ConfigDict(extra="ignore")
    include_usage: bool | None = None


class ChatRequest(Model):
    """A request for a chat completion. `ramify`: fields of a question, such as `filters` or `deadline_s`."""

    model_config = ConfigDict(extra="ignore")
    model: str = Field(min_length=1, max_length=200)
    messages: tuple[ChatTurn, ...] = Field(max_length=_MOST_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: tuple[Any, ...] | None = None
    tool_choice: Any = None
    functions: tuple[Any, ...] | None = None
    function_call: Any = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    modalities: tuple[str, ...] | None = None
    stop: str | tuple[str, ...] | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: _Share = None
    presence_penalty: _Penalty = None
    frequency_penalty: _Penalty = None
    max_tokens: _Tokens = None
    max_completion_tokens: _Tokens = None
    ramify: dict[str, Any] = Field(default_factory=dict)


class Asked(NamedTuple):
    """The question of a chat, the conversation before it, and the fields that the model and the caller set."""

    question: str
    session: Session
    options: Mapping[str, Any]


def asked(given: ChatRequest, strategies: Collection[str]) -> Asked:
    """Raises: InputError for what cannot be answered, NotFoundError for a model that there is not."""
    options = {**given.ramify, **options_of(given.model, strategies)}
    if other := sorted(given.ramify.keys() - (Question.model_fields.keys() - {"question"})):
        fix = "it is no field of a question; the last message is the question itself"
        raise InputError(f"ramify.{other[0]}", given.ramify[other[0]], fix)
    _refuse_impossible(given)
    if not given.messages:
        raise InputError("messages", "[]", "send at least one message of the user's")
    texts = [_text(place, turn) for place, turn in enumerate(given.messages)]
    for place, text in enumerate(texts):
        if not encodable(text):
            fix = "half a surrogate pair stands in it: send whole characters"
            raise InputError(f"messages[{place}].content", text, fix)
    last = len(texts) - 1
    if given.messages[last].role != "user":
        raise InputError(f"messages[{last}].role", given.messages[last].role, "the last message must be the user's")
    question = texts[last].strip()
    if not question:
        raise InputError(f"messages[{last}].content", texts[last], "it is empty: write a question")
    if len(question) > MAX_QUESTION_CHARS:
        fix = f"a question may have {MAX_QUESTION_CHARS} characters: put longer texts into the corpus"
        raise InputError(f"messages[{last}].content", f"{len(question)} characters", fix)
    before = tuple(
        ChatMessage(role=turn.role, content=(listed(text) if turn.role == "assistant" else text)[:MAX_MESSAGE_CHARS])
        for turn, text in zip(given.messages[:last], texts, strict=False)
        if turn.role in {"user", "assistant"} and text.strip()
    )
    return Asked(question, Session(messages=before), options)


def model_names(strategies: Collection[str]) -> tuple[str, ...]:
    """All that may be asked for."""
    return (USUAL, IN_BATCH, *(f"{BY_STRATEGY}{name}" for name in sorted(strategies)))


def options_of(model: str, strategies: Collection[str]) -> dict[str, Any]:
    """The fields of a question that a model stands for. Raises: NotFoundError for one that there is not."""
    if model == USUAL:
        return {}
    if model == IN_BATCH:
        return {"lane": Lane.BATCH}
    strategy = model.removeprefix(BY_STRATEGY)
    if strategy != model and strategy in strategies:
        return {"strategy": strategy}
    fix = f"there is no such model: use {USUAL!r}, or another one of /v1/models"
    raise NotFoundError("model", model, fix)


def _refuse_impossible(given: ChatRequest) -> None:
    """Raises: InputError for what would make another answer."""
    if given.n not in {None, 1}:
        raise InputError("n", given.n, "there is one answer: leave it out")
    for name, tools in (("tool_choice", "tools"), ("function_call", "functions")):
        choice, offered = getattr(given, name), getattr(given, tools)
        if choice not in _IGNORED_CHOICES:
            raise InputError(name, choice, "no tools are called here: leave it out, or write 'none'")
        if offered and choice != "none":
            raise InputError(tools, offered, f"no tools are called here: leave them out, or write {name} 'none'")
    if given.stop:
        raise InputError("stop", given.stop, "an answer is not cut: leave it out")
    kind = (given.response_format or {}).get("type", "text")
    if kind != "text":
        raise InputError("response_format.type", kind, "answers are text: leave it out, or write 'text'")
    if given.logprobs:
        raise InputError("logprobs", given.logprobs, "there are none: leave it out")
    if given.modalities and set(given.modalities) != {"text"}:
        raise InputError("modalities", list(given.modalities), "answers are text: leave it out")


def _text(place: int, turn: ChatTurn) -> str:
    """A message's text. Raises: InputError for a part of the user's that is none."""
    if isinstance(turn.content, str) or turn.content is None:
        return turn.content or ""
    for number, part in enumerate(turn.content):
        if part.type not in {"text", "input_text", "output_text", "refusal"} and turn.role == "user":
            fix = "only text is read here: put files into the corpus (POST /v1/ingests) and ask about them"
            raise InputError(f"messages[{place}].content[{number}].type", part.type, fix)
    return "\n".join(part.text for part in turn.content if part.text)
