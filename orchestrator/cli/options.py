"""The options that several commands share, each written once, and how they become fields of a request."""

from __future__ import annotations

from typing import Annotated, Any

import typer

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
Tenant = Annotated[str | None, typer.Option(help="Whose question it is. (default: default)", show_default=False)]


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given; what was not is left to the settings."""
    return {name: value for name, value in fields.items() if value is not None and value != []}


def filters(**fields: Any) -> dict[str, Any]:
    """`{"filters": {...}}` with the fields of Filters that were given, or nothing at all."""
    chosen = given(**fields)
    return {"filters": chosen} if chosen else {}
