"""The options that several commands share, each written once. A key is the field of the request that it fills."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

import typer

_FILTERS = "Filters"
_BUDGET = "Budget (hard; what does not fit is left out, and the answer says so)"

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
StrategyOption = Annotated[str | None, typer.Option(help="A list of search stages by name (default: search.strategy)")]
Tenant = Annotated[str | None, typer.Option(help="Whose question or documents. (default: default)")]
OfTenant = Annotated[str | None, typer.Option("--tenant", help="Know nothing of other tenants' jobs. (default: all)")]
Namespace = Annotated[str | None, typer.Option(help="The corpus to use. (default: default)", rich_help_panel=_FILTERS)]
Explain = Annotated[bool | None, typer.Option("--explain", help="Show how every score came to be.")]
NearSymbol = Annotated[
    str | None,
    typer.Option(help="Start at this name in code, e.g. pkg.module.function: its callers and what it calls."),
]
HopsOption = Annotated[int | None, typer.Option(min=1, max=2, help="Follow links and calls for so many hops.")]
Deadline = Annotated[
    float | None,
    typer.Option("--deadline", help="Seconds from its turn to the answer. (default: jobs.deadline_s, of its lane)"),
]
QueueLimit = Annotated[
    float | None,
    typer.Option("--queue-limit", help="Seconds to wait for its turn, then it expires. (default: jobs.queue_limit_s)"),
]

NotifyUrl = Annotated[
    str | None,
    typer.Option("--notify-url", metavar="URL", help="Told once it has ended, signed; see `ramify webhooks secret`."),
]


class FilterOptions(TypedDict):
    """The fields of `Filters`."""

    after: Annotated[
        str | None, typer.Option(help="Only documents of this day or later (YYYY-MM-DD).", rich_help_panel=_FILTERS)
    ]
    before: Annotated[
        str | None, typer.Option(help="Only documents of this day or earlier (YYYY-MM-DD).", rich_help_panel=_FILTERS)
    ]
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Only documents with this tag; repeatable.", rich_help_panel=_FILTERS),
    ]
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", help="Only this kind; repeatable.", rich_help_panel=_FILTERS)
    ]
    paths: Annotated[
        list[str] | None, typer.Option("--path", help="Only paths that begin so; repeatable.", rich_help_panel=_FILTERS)
    ]
    namespace: Namespace


class SearchOptions(FilterOptions):
    """For everything that searches."""

    mode: Annotated[str | None, typer.Option(help="hybrid, bm25_only, vec_only or deep: the strategy of that name")]
    strategy: StrategyOption
    top_n: Annotated[int | None, typer.Option("--top", "-n", help="Number of results.")]
    tenant: Tenant


class PlanOptions(SearchOptions):
    """For what is planned as a job."""

    summary: Annotated[
        bool | None,
        typer.Option("--summary/--no-summary", help="Write the summary with the LLM (default: enable_summary)"),
    ]
    decompose: Annotated[
        bool | None,
        typer.Option("--decompose/--no-decompose", help="Branch the question (the default) or search it as it is."),
    ]


class JobOptions(PlanOptions):
    """For what runs as a job."""

    deadline_s: Deadline
    queue_limit_s: QueueLimit
    on_outage: Annotated[
        str | None,
        typer.Option(
            help="When a server fails: wait for it, or degrade, go on without it (default: lanes.on_outage_...)"
        ),
    ]
    max_calls: Annotated[
        int | None,
        typer.Option(help="LLM calls; 0: no LLM at all. (default: budget.max_calls)", rich_help_panel=_BUDGET),
    ]
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Tokens of LLM and embedding. (default: budget.max_tokens)", rich_help_panel=_BUDGET),
    ]
    max_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds from its turn. (default: budget.max_seconds)", rich_help_panel=_BUDGET),
    ]
    max_cost: Annotated[
        float | None,
        typer.Option(help="Money, by the table prices. (default: budget.max_cost)", rich_help_panel=_BUDGET),
    ]


class AskOptions(JobOptions):
    """For one question."""

    explain: Explain
    near_symbol: NearSymbol
    depth: HopsOption
    idempotency_key: Annotated[str | None, typer.Option(help="Asking again under this key gives the first job.")]
    webhook: NotifyUrl


class BatchOptions(JobOptions):
    """For many questions; what begins with `batch_` is the budget of all of them together."""

    webhook: NotifyUrl
    batch_max_calls: Annotated[
        int | None, typer.Option(help="LLM calls, of all jobs together.", rich_help_panel=_BUDGET)
    ]
    batch_max_tokens: Annotated[int | None, typer.Option(help="Tokens, of all jobs together.", rich_help_panel=_BUDGET)]
    batch_max_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds from now; then no more is spent, of all jobs together.", rich_help_panel=_BUDGET),
    ]
    batch_max_cost: Annotated[float | None, typer.Option(help="Money, of all jobs together.", rich_help_panel=_BUDGET)]


class ContextOptions(SearchOptions):
    """For what shows hits with their surroundings."""

    explain: Explain
    plan: Annotated[bool | None, typer.Option("--plan", help="Show the queries and what each found.")]
    related: Annotated[
        int | None,
        typer.Option(
            min=0, max=5, help="Related contexts of each hit: pages linked to and from it, siblings. (default: 5)"
        ),
    ]
    target_uri: Annotated[
        str | None, typer.Option(help="Only what is under ramify://NAMESPACE/FOLDER/, or paths that begin so.")
    ]


class FindOptions(ContextOptions):
    """For `ramify find`."""

    near_symbol: NearSymbol
    depth: HopsOption


class ConversationOptions(ContextOptions):
    """For `ramify search`."""

    deadline_s: Deadline


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Show Typer the keys of a command's `**given: Unpack[SomeOptions]` as options, before the last one of its own."""
    signature = inspect.signature(command, eval_str=True)
    *own, last, keywords = signature.parameters.values()
    hints = get_type_hints(get_args(keywords.annotation)[0], include_extras=True)
    options = [last.replace(name=name, default=None, annotation=hint) for name, hint in hints.items()]
    command.__signature__ = signature.replace(parameters=[*own, *options, last])  # type: ignore[attr-defined]
    return command


def request_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given as fields of a request, filters nested; the others are left to the settings."""
    fields = {name: value for name, value in given.items() if value is not None and value != []}
    filters = {name: fields.pop(name) for name in FilterOptions.__annotations__ if name in fields}
    return fields | ({"filters": filters} if filters else {})
