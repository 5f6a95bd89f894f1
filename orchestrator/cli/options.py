"""The options that several commands share, each written once, and how they become fields of a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shared.settings import Settings

_FILTERS = "Filters"

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
Mode = Annotated[
    str | None, typer.Option(help="hybrid, bm25_only, vec_only or deep: the strategy of that name", show_default=False)
]
Strategy = Annotated[
    str | None, typer.Option(help="A list of search stages by name (default: search.strategy)", show_default=False)
]
Explain = Annotated[bool, typer.Option("--explain", help="Show how every score came to be.")]
NearSymbol = Annotated[
    str | None,
    typer.Option(
        "--near-symbol",
        help="Start at this name in code, e.g. pkg.module.function: its callers and what it calls.",
        show_default=False,
    ),
]
Depth = Annotated[
    int | None,
    typer.Option("--depth", min=1, max=2, help="Follow links and calls for so many hops.", show_default=False),
]
Top = Annotated[int | None, typer.Option("--top", "-n", help="Number of results.", show_default=False)]
After = Annotated[
    str | None, typer.Option(help="Only documents of this day or later (YYYY-MM-DD).", rich_help_panel=_FILTERS)
]
Before = Annotated[
    str | None, typer.Option(help="Only documents of this day or earlier (YYYY-MM-DD).", rich_help_panel=_FILTERS)
]
Tag = Annotated[
    list[str] | None, typer.Option(help="Only documents with this tag; repeatable.", rich_help_panel=_FILTERS)
]
Kind = Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.", rich_help_panel=_FILTERS)]
PathPrefix = Annotated[
    list[str] | None, typer.Option("--path", help="Only paths that begin so; repeatable.", rich_help_panel=_FILTERS)
]
Namespace = Annotated[
    str | None, typer.Option(help="The corpus to use. (default: default)", rich_help_panel=_FILTERS, show_default=False)
]
Summary = Annotated[
    bool | None,
    typer.Option(
        "--summary/--no-summary", help="Write the summary with the LLM (default: enable_summary)", show_default=False
    ),
]
Decompose = Annotated[
    bool | None,
    typer.Option(
        "--decompose/--no-decompose",
        help="Branch the question (the default) or search it as it is.",
        show_default=False,
    ),
]
Deadline = Annotated[
    float | None, typer.Option(help="Seconds from now to the answer. (default: jobs.deadline_s)", show_default=False)
]
Tenant = Annotated[str | None, typer.Option(help="Whose question or documents. (default: default)", show_default=False)]
_BUDGET = "Budget (hard; what does not fit is left out, and the answer says so)"
MaxCalls = Annotated[
    int | None,
    typer.Option(
        help="LLM calls; 0: no LLM at all. (default: budget.max_calls)", rich_help_panel=_BUDGET, show_default=False
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        help="Tokens of LLM and embedding. (default: budget.max_tokens)", rich_help_panel=_BUDGET, show_default=False
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help="Seconds from submission. (default: budget.max_seconds)", rich_help_panel=_BUDGET, show_default=False
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        help="Money, by the table prices. (default: budget.max_cost)", rich_help_panel=_BUDGET, show_default=False
    ),
]

BatchMaxCalls = Annotated[
    int | None, typer.Option(help="LLM calls, of all jobs together.", rich_help_panel=_BUDGET, show_default=False)
]
BatchMaxTokens = Annotated[
    int | None, typer.Option(help="Tokens, of all jobs together.", rich_help_panel=_BUDGET, show_default=False)
]
BatchMaxSeconds = Annotated[
    float | None,
    typer.Option(
        help="Seconds from now; then no more is spent, of all jobs together.",
        rich_help_panel=_BUDGET,
        show_default=False,
    ),
]
BatchMaxCost = Annotated[
    float | None, typer.Option(help="Money, of all jobs together.", rich_help_panel=_BUDGET, show_default=False)
]


def asked(question: str | None, plan: Path | None, settings: Settings) -> dict[str, Any]:
    """The question and the plan that were given. Raises: InputError when neither has a question."""
    from orchestrator.cli.streams import text_argument  # noqa: PLC0415 - `--help` must not wait for it
    from orchestrator.planning.plan_file import check_leaves, read_plan  # noqa: PLC0415
    from shared.errors import InputError  # noqa: PLC0415

    fields: dict[str, Any] = {}
    if plan is not None:
        fields["plan"] = read_plan(plan)
        check_leaves(fields["plan"], settings.decomposition.max_total_leaves, f"{plan}: ")
    if question is not None:
        fields["question"] = text_argument("QUESTION", question)
    elif plan is None or not fields["plan"].question:
        where = f"{plan}: question" if plan else "QUESTION"
        raise InputError(where, "", "there is no question: write one behind the command, or in the plan")
    return fields


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given; what was not is left to the settings."""
    return {name: value for name, value in fields.items() if value is not None and value != []}


def filters(**fields: Any) -> dict[str, Any]:
    """`{"filters": {...}}` with the fields of Filters that were given, or nothing at all."""
    chosen = given(**fields)
    return {"filters": chosen} if chosen else {}
