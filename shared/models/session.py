"""A conversation, and the typed queries that a question in it becomes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator

from shared.models.base import Model
from shared.models.cost import Cost

MAX_MESSAGES = 100
MAX_MESSAGE_CHARS = 8000
#: Messages that are read to understand a question.
LAST_MESSAGES = 5
#: Queries that one question becomes, its own wording among them.
MAX_QUERIES = 5
MIN_TYPED_CHARS, MAX_TYPED_CHARS = 2, 300
_ROLES = ("user", "assistant", "system", "tool")
#: As long as a question may be (`shared.models.request`, which imports this module).
_QUESTION_CHARS = 4000


class Message(Model):
    """One message of a conversation. `role` is whose: user, assistant, system or tool."""

    role: str
    content: str = Field(max_length=MAX_MESSAGE_CHARS)

    @field_validator("role")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in _ROLES:
            raise ValueError(f"is none of {', '.join(_ROLES)}")
        return value

    @field_validator("content")
    @classmethod
    def _whole(cls, value: str) -> str:
        """Half a surrogate pair cannot be stored or sent."""
        return value.encode("utf-8", "replace").decode()


class Session(Model):
    """A conversation: a summary of what was said long ago, and its newest 100 messages, oldest first."""

    summary: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    messages: tuple[Message, ...] = ()

    @field_validator("messages", mode="before")
    @classmethod
    def _newest(cls, value: Any) -> Any:
        return value[-MAX_MESSAGES:] if isinstance(value, list | tuple) else value

    @property
    def recent(self) -> tuple[Message, ...]:
        """The messages that are read."""
        return self.messages[-LAST_MESSAGES:]

    def __bool__(self) -> bool:
        return bool(self.summary.strip() or self.messages)


class ContextType(StrEnum):
    """What kind of document a query is after."""

    MEMORY = "memory"
    RESOURCE = "resource"
    SKILL = "skill"


class TypedQuery(Model):
    """One query of a plan. `context_type` None: all kinds, as for the question itself. `priority` 1 is the first."""

    query: str = Field(min_length=1, max_length=_QUESTION_CHARS)
    context_type: ContextType | None = None
    intent: str = Field(default="", max_length=300, description="what it is asked for")
    priority: int = Field(default=3, ge=1, le=5)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of documents that it searches; none: all."""
        return (self.context_type.value,) if self.context_type else ()


class Intent(Model):
    """What a question becomes: 0-5 queries, the question itself first; none: nothing needs to be looked up.

    `standalone` is the question with what it refers to in the conversation; `reason` is a sentence for people.
    """

    queries: tuple[TypedQuery, ...] = Field(default=(), max_length=MAX_QUERIES)
    standalone: str = ""
    reason: str = ""
    by: str = Field(default="rules", description="llm or rules")
    warnings: tuple[str, ...] = ()
    cost: Cost = Cost()

    @property
    def retrieval(self) -> bool:
        """False: nothing needs to be looked up."""
        return bool(self.queries)
