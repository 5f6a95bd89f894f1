"""Passages at once: one query, a question in a conversation, a text held against them; and what a plan would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, StrictBool

from orchestrator.access.caller import Scope
from orchestrator.checking import PASSAGES, CheckedPassage, Passages, TextCheck, check_text, passage_of
from orchestrator.client import Ramify
from orchestrator.intake import as_request
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.planning.preview import Preview, preview
from orchestrator.planning.route_preview import RoutePreview, route_preview
from shared.errors import InputError
from shared.models.base import Model
from shared.models.find import MAX_RELATED, FindQuery, FindResult, SessionResult
from shared.models.request import Filters, Name, Question, QuestionText, SearchMode, Session
from shared.settings.strategies import named

#: Characters of a sentence that are searched for.
_MAX_QUERY = 2_000
Target = Annotated[
    str | None,
    Field(
        max_length=1000,
        description="only what is under ramify://NAMESPACE/FOLDER/, or such paths",
        json_schema_extra={"pattern": r"^(ramify://[^/\s]+(/.*)?|[^/:\s][^:]*)$"},
    ),
]
Related = Annotated[int, Field(strict=True, ge=0, le=MAX_RELATED, description="related contexts of each hit")]
Plan = Annotated[StrictBool, Field(description="tell the queries and what each found")]


class FindInput(FindQuery):
    """A query, and how its hits are shown."""

    related: Related = MAX_RELATED
    target_uri: Target = None
    plan: Plan = False


class SearchInput(Model):
    """A question in a conversation: one that comes with it (`session`), or one that is kept (`session_id`).

    `remember`: add the question and the results to the conversation of `session_id`.
    """

    question: QuestionText
    session: Session | None = None
    session_id: Name | None = None
    remember: StrictBool = False
    mode: SearchMode | None = None
    strategy: Name | None = None
    explain: StrictBool = False
    top_n: int = Field(default=10, ge=1, le=200)
    deadline_s: float | None = Field(default=None, gt=0, le=600)
    filters: Filters = Filters()
    related: Related = MAX_RELATED
    target_uri: Target = None
    plan: Plan = False


class CheckInput(Model):
    """A text, and the passages that it is held against; without any, those that the corpus has for each sentence."""

    text: str = Field(min_length=1, max_length=20_000)
    passages: tuple[Annotated[str, Field(max_length=50_000)], ...] = Field(default=(), max_length=100)
    namespace: Name | None = None


class PlanInput(Question):
    """A question that is only planned. `llm`: let the LLM plan, if there is one; that costs its calls."""

    llm: StrictBool = True


class RouteInput(Model):
    """A question that is only classified. `llm`: ask the LLM where the rules are unsure; None: as the settings say."""

    question: QuestionText
    strategy: Name | None = None
    llm: StrictBool | None = None


def given_fields(given: Model) -> dict[str, Any]:
    """What was given, by field; the rest is left to the settings."""
    return {name: getattr(given, name) for name in given.model_fields_set}


def _find(client: Ramify, given: FindInput) -> FindResult:
    fields = given_fields(given)
    found = client.find(fields.pop("query"), **fields)
    differ = client.settings_differ()
    return found.model_copy(update={"warnings": (*found.warnings, differ)}) if differ else found


def _search(client: Ramify, given: SearchInput) -> SessionResult:
    fields = given_fields(given)
    own = {name: fields.pop(name, None) for name in ("question", "session", "session_id", "remember")}
    if given.session is not None and given.session_id is not None:
        raise InputError("session_id", given.session_id, "session is given beside it: give one of them")
    if given.remember and given.session_id is None:
        raise InputError("remember", given.remember, "name the conversation in session_id")
    kept = None if given.session_id is None else client.session(given.session_id)
    found = client.search(own["question"], kept or given.session, **fields)
    if given.remember and kept is not None:
        kept.remember(given.question, found)
    return found


def _check(client: Ramify, given: CheckInput) -> TextCheck:
    if given.passages:
        texts = [CheckedPassage(path=f"passage {n}", text=text) for n, text in enumerate(given.passages, 1)]
        return check_text(given.text, Passages(texts).near)
    return check_text(given.text, lambda sentence: near(client, sentence, given.namespace))


def near(client: Ramify, sentence: str, namespace: str | None) -> Sequence[CheckedPassage]:
    """The passages of the corpus that come nearest to a sentence."""
    filters = {"namespace": namespace} if namespace else {}
    found = client.find(sentence[:_MAX_QUERY], top_n=PASSAGES, related=0, filters=filters)
    return [passage_of(hit) for hit in found.hits]


def _plan(client: Ramify, given: PlanInput) -> Preview:
    if given.strategy is not None:
        named(client.settings.strategies, given.strategy)
    fields = given_fields(given)
    llm = bool(fields.pop("llm", True))
    return preview(as_request(fields), client.settings, llm=llm)


def _route(client: Ramify, given: RouteInput) -> RoutePreview:
    settings = client.settings
    if given.strategy is not None:
        named(settings.strategies, given.strategy)
    request = as_request(given.question, {"strategy": given.strategy})
    return route_preview(request, settings, llm=settings.routing.llm if given.llm is None else given.llm)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "find", FindInput, FindResult, _find, command="find", tool="find", waits=True,
        routes=(HttpRoute("POST", "/v1/find"),),
    ),
    Operation(
        "search", SearchInput, SessionResult, _search, Scope.ASK, command="search", tool="search", waits=True,
        idempotent=False, routes=(HttpRoute("POST", "/v1/search"),),
    ),
    Operation(
        "check", CheckInput, TextCheck, _check, command="check", tool="check", waits=True,
        routes=(HttpRoute("POST", "/v1/check"),),
    ),
    Operation(
        "plan", PlanInput, Preview, _plan, Scope.ASK, command="plan", waits=True,
        routes=(HttpRoute("POST", "/v1/plan"),),
    ),
    Operation(
        "route", RouteInput, RoutePreview, _route, Scope.ASK, command="route", waits=True,
        routes=(HttpRoute("POST", "/v1/route"),),
    ),
)  # fmt: skip
