"""What a caller may ask: the question and its options, checked at the door."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic_core import to_json

from shared.models.base import Model
from shared.models.cost import Budget, Cost
from shared.models.degraded import OnOutage
from shared.models.ingest import IngestRequest
from shared.models.plan import Facet, Links, check_links, references
from shared.models.replay import Replay
from shared.models.webhook import WebhookUrl

MAX_QUESTION_CHARS = 4000
#: Entries of a caller's plan.
MAX_ENTRIES = 63
MAX_MESSAGES = 100
MAX_MESSAGE_CHARS = 8000
#: Messages that are read to understand a question.
LAST_MESSAGES = 5
#: Queries that one question becomes, its own wording among them.
MAX_QUERIES = 5
MIN_TYPED_CHARS, MAX_TYPED_CHARS = 2, 300
#: Control characters but tab and ends of lines, and halves of surrogate pairs.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ROLES = ("user", "assistant", "system", "tool")
NAME_FORM, TENANT_FORM = r"^[\w.\-&&[^\u200c\u200d]]{1,64}$", r"^[A-Za-z0-9_.\-]{1,64}$"
#: Names that stand in keys and filters: no separators, no braces, no white space, nothing that is not seen.
Name = Annotated[
    str,
    Field(
        pattern=NAME_FORM,
        json_schema_extra={"pattern": r"^[\w.\-]{1,64}$"},  # sets are cut in Rust's syntax alone
    ),
]
#: The name of a wall is ASCII: no two of them look the same.
TenantName = Annotated[str, Field(pattern=TENANT_FORM)]
#: A value to filter by. Without a bound pydantic lets half a surrogate pair through, which no JSON can hold.
_Value = Annotated[str, Field(max_length=4096)]
_SYMBOL = re.compile(r"[\w$]+(?:\.[\w$]+)*")


def _as_symbol(given: str) -> str:
    """The name as it is stored: a::b, a#b and a.b() are written too."""
    name = given.strip().removesuffix("()").replace("::", ".").replace("#", ".")
    if not _SYMBOL.fullmatch(name):
        raise ValueError("is no name in code: write it with dots, like pkg.module.function")
    return name


#: A name in code, bare or dotted.
Symbol = Annotated[
    str, Field(max_length=300, json_schema_extra={"pattern": r"^[\w$]+(\.[\w$]+)*$"}), AfterValidator(_as_symbol)
]
#: Of texts, as JSON Schema says it: more than white space, and no control characters.
_WRITTEN: dict[str, Any] = {"pattern": r"^[ \t\n\r]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"}
QuestionText = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS, json_schema_extra=_WRITTEN)]
#: Hops of a two-pass search.
EdgeDepth = Annotated[int, Field(ge=1, le=2)]


class ChatMessage(Model):
    """One message of a conversation. `role` is whose: user, assistant, system or tool."""

    role: str = Field(json_schema_extra={"enum": list(_ROLES)})
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
    messages: tuple[ChatMessage, ...] = ()

    @field_validator("messages", mode="before")
    @classmethod
    def _newest(cls, value: Any) -> Any:
        return value[-MAX_MESSAGES:] if isinstance(value, list | tuple) else value

    @property
    def recent(self) -> tuple[ChatMessage, ...]:
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

    query: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    context_type: ContextType | None = None
    intent: str = Field(default="", max_length=300, description="what it is asked for")
    priority: int = Field(default=3, ge=1, le=5)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of documents that it searches; none: all."""
        return (self.context_type.value,) if self.context_type else ()


class SessionIntent(Model):
    """What a question becomes: 0-5 queries, the question itself first; none: nothing needs to be looked up.

    `standalone` is the question with what it refers to in the conversation; `reason` is a sentence for people.
    """

    queries: tuple[TypedQuery, ...] = Field(default=(), max_length=MAX_QUERIES)
    standalone: str = ""
    reason: str = ""
    by: str = Field(default="rules", description="llm or rules")
    warnings: tuple[str, ...] = ()
    degraded: tuple[str, ...] = Field(default=(), description="codes of `Degradation`: what it was made without")
    cost: Cost = Cost()

    @property
    def retrieval(self) -> bool:
        """False: nothing needs to be looked up."""
        return bool(self.queries)


class SearchMode(StrEnum):
    """Search modes: each is the strategy of its name."""

    HYBRID = "hybrid"
    BM25_ONLY = "bm25_only"
    VEC_ONLY = "vec_only"
    DEEP = "deep"


class Lane(StrEnum):
    """Interactive work overtakes batch work in every queue."""

    INTERACTIVE = "interactive"
    BATCH = "batch"


def _no_number(given: object) -> object:
    if isinstance(given, int | float):
        raise ValueError("is a number: write a date as YYYY-MM-DD")  # noqa: TRY004 - pydantic reads it
    return given


#: A date; a number would be read as seconds since 1970.
Day = Annotated[date, BeforeValidator(_no_number)]


class Filters(Model):
    """Which chunks may be found. The same filter reaches every arm. Dates are inclusive."""

    after: Day | None = None
    before: Day | None = None
    tags: tuple[_Value, ...] = ()
    kinds: tuple[_Value, ...] = ()
    paths: tuple[_Value, ...] = Field(default=(), description="prefixes of a document's path")
    namespace: Name = "default"

    @model_validator(mode="after")
    def _in_order(self) -> Filters:
        if self.after and self.before and self.after > self.before:
            raise ValueError(f"after ({self.after}) lies behind before ({self.before})")
        return self


class PlanEntry(Model):
    """One subquestion of a caller's plan. Entries have 1-based numbers, and name only entries before them.

    `depends_on` are those that it waits for, `under` is the one that it refines: that is not searched itself.
    """

    query: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS, json_schema_extra={"pattern": r"\S"})
    depends_on: tuple[int, ...] = Field(default=(), max_length=MAX_ENTRIES)
    dimension: Facet = Field(
        default=Facet.CORE, json_schema_extra={"enum": [facet.value for facet in Facet if facet.planned]}
    )
    under: int | None = None

    @field_validator("query")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty: write a question")
        return value.strip()

    @field_validator("dimension")
    @classmethod
    def _searchable(cls, value: Facet) -> Facet:
        if not value.planned:
            raise ValueError("the question's own leaf is there anyway: use core, why, how, case or note")
        return value


def _as_entries(given: object) -> object:
    """A plain text stands for an entry that says no more."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return given
    return tuple({"query": entry} if isinstance(entry, str) else entry for entry in given)


def _in_order(entries: tuple[PlanEntry, ...]) -> tuple[PlanEntry, ...]:
    """Every entry with all that it waits for; a `#2` in its text says so too. A `#9` of a plan of 3 is plain text."""
    checked = []
    for number, entry in enumerate(entries, 1):
        implied = (n for n in references(entry.query) if n <= len(entries))
        wanted = tuple(sorted({*entry.depends_on, *implied}))
        for other in (*wanted, *([] if entry.under is None else [entry.under])):
            _check_place(number, other, len(entries))
        checked.append(entry.model_copy(update={"depends_on": wanted}))
    check_links({number: Links(entry.depends_on, entry.under) for number, entry in enumerate(checked, 1)})
    return tuple(checked)


def _check_place(number: int, other: int, total: int) -> None:
    if other == number:
        raise ValueError(f"entry {number} waits for itself: let it depend on earlier entries only")
    if not 1 <= other <= total:
        raise ValueError(f"entry {number} waits for entry {other}, but the entries are 1 to {total}")
    if other > number:
        raise ValueError(f"entry {number} waits for entry {other}, which stands behind it: put entry {other} first")


#: A caller's plan: texts or entries, in an order in which every entry stands behind those that it waits for.
Plan = Annotated[
    tuple[PlanEntry, ...], BeforeValidator(_as_entries), AfterValidator(_in_order), Field(max_length=MAX_ENTRIES)
]


class Question(Budget):
    """One research question with its options, as any caller may give it. `None` means: as the settings say.

    `strategy` names a list of search stages; `subqueries` are a plan of the caller's own, used instead of a
    decomposition: texts, or objects with `query`, `depends_on`, `dimension` and `under`; a text that holds `#1`
    waits for the first one's answer. `explain` keeps how every score came to be.
    `top_n` is the number of merged results (settings: multi_query.max_total_results); `summary` switches the
    LLM summary; `deadline_s` is in seconds from the job's turn, `queue_limit_s` how many it may wait for that. The
    limits of a budget: see Budget; those that are not given are the settings' (`budget.max_calls` ...).
    `on_outage`: wait for a server that fails, as long as the deadline allows, or go on without it (settings:
    lanes.on_outage_batch, lanes.on_outage_interactive).
    `webhook` is told when the job has ended.
    `near_symbol` starts at a definition, `depth` follows edges for so many hops; both mean the strategy two_pass
    unless another is named.
    """

    question: QuestionText
    mode: SearchMode | None = None
    strategy: Name | None = None
    explain: bool = False
    near_symbol: Symbol | None = None
    depth: EdgeDepth | None = None
    decompose: bool = True
    subqueries: Plan = ()
    summary: bool | None = None
    top_n: int | None = Field(default=None, ge=1, le=200)
    deadline_s: float | None = Field(default=None, gt=0, le=86_400)
    queue_limit_s: float | None = Field(default=None, gt=0, le=2_592_000)
    on_outage: OnOutage | None = None
    filters: Filters = Filters()
    lane: Lane = Lane.INTERACTIVE
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=200)
    webhook: WebhookUrl | None = None

    @field_validator("question")
    @classmethod
    def _clean(cls, value: str) -> str:
        text = value.strip()
        if not text:
            raise ValueError("is empty: write a question")
        if bad := _CONTROL.search(text):
            raise ValueError(f"holds the control character U+{ord(bad[0]):04X}: remove it")
        return text


class JobRequest(Question):
    """A question of a tenant, or an ingest.

    `typed` are the leaves of a search in a conversation, the question itself first, and nothing branches.
    """

    typed: tuple[TypedQuery, ...] = Field(default=(), max_length=MAX_QUERIES)
    tenant: TenantName = "default"
    ingest: IngestRequest | None = Field(default=None, description="the job puts documents in; set by the client alone")
    replay: Replay | None = Field(default=None, description="what it goes on from; set by the client alone")

    @property
    def digest(self) -> str:
        """Of what is asked: the same under one idempotency key. In which lane it waits changes no answer."""
        given = self.model_dump_json(exclude_defaults=True, exclude={"idempotency_key", "lane"})
        return hashlib.sha256(given.encode()).hexdigest()[:16]

    def written(self) -> str:
        """Its JSON as `model_dump_json(exclude_defaults=True)` gives it, for a tenth of its time in the usual case.

        That is where only texts, numbers, truths and members of enumerations were given.
        """
        given, values = dict[str, Any](), vars(self)
        for name in sorted(self.model_fields_set, key=_PLACES.__getitem__):
            value = values[name]
            if value is not _DEFAULTS[name] and value != _DEFAULTS[name]:
                if isinstance(value, StrEnum):
                    value = str(value)
                elif not isinstance(value, (str, int, float)):
                    return self.model_dump_json(exclude_defaults=True)
                given[name] = value
        return to_json(given).decode()


_DEFAULTS = {name: field.default for name, field in JobRequest.model_fields.items()}
_PLACES = {name: place for place, name in enumerate(_DEFAULTS)}
