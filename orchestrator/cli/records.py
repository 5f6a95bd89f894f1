"""`manifest`, `replay` and `diff`: what an answer rests on, the same again from a stage on, and what changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, output_files, streams
from orchestrator.cli.invocation import invocation_of, parse_overrides
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.records.replaying import ReplayStarted
    from shared.models.manifest import Manifest

JobId = Annotated[str | None, typer.Argument(metavar="[ID]", help="Of a job that is done.")]
ManifestFile = Annotated[
    Path | None, typer.Option("--file", help="A manifest, as `ramify manifest ID --out FILE` writes it.")
]


def manifest(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    job_id: JobId = None,
    *,
    file: ManifestFile = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write it into this file.")] = None,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """Show what an answer rests on: plan, settings, models, documents by content, every score, what it cost."""
    if out is not None:
        streams.writable("--out", out)
    found = _manifest(ctx, job_id, file, tenant)
    if out is not None:
        output_files.replace("--out", out, found.model_dump_json(indent=1, exclude_defaults=True) + "\n")
        streams.note(
            f"wrote {out}: `ramify manifest --file {out}` shows it, `ramify replay --file {out}` runs it again"
        )
    elif json:
        streams.document(found)
    else:
        from orchestrator.cli.render.records import draw_manifest

        streams.show(draw_manifest(found))


def _manifest(ctx: typer.Context, job_id: str | None, file: Path | None, tenant: str | None) -> Manifest:
    """Raises: InputError unless one of the two is given."""
    if (job_id is None) == (file is None):
        raise InputError("ID", job_id or "", "give the id of a job, or --file FILE")
    if file is not None:
        from orchestrator.records.files import read_manifest

        return read_manifest(file)
    with invocation_of(ctx).client(tenant) as client:
        return client.manifest(job_id or "")


def replay(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    job_id: JobId = None,
    *,
    file: ManifestFile = None,
    start: Annotated[
        str, typer.Option("--from", help="plan, search, rerank, merge or summary: the first stage that runs again.")
    ] = "plan",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.NAME=VALUE", help="A setting of this run alone; repeatable."),
    ] = None,
    strategy: options.StrategyOption = None,
    detach: Annotated[bool, typer.Option("--detach", help="Print the new job's id and return.")] = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """Run an answer again from a stage on, as a new job; what stands before it comes from the record."""
    changes = parse_overrides(assignments or ())
    of = _manifest(ctx, job_id, file, tenant) if file is not None or job_id is None else job_id
    with invocation_of(ctx).client(tenant) as client:
        made = client.replay(of, start, settings=changes, strategy=strategy)
        streams.warn_about(client, made.job_id)
        if not detach:
            raise typer.Exit(_follow(client, made, as_json=json))
    if json:
        streams.document(made)
    else:
        typer.echo(made.job_id)
        streams.note(f"`ramify status {made.job_id} --watch` follows it")


def _follow(client: Ramify, made: ReplayStarted, *, as_json: bool) -> int:
    from orchestrator.cli.ask import show_outcome
    from orchestrator.cli.follow import follow

    try:
        streams.note(f"job {made.job_id} replays {made.replay_of or made.digest[:12]} from {made.start}")
        status = follow(client, made.job_id)
    except KeyboardInterrupt:
        streams.note(f"job {made.job_id} goes on: `ramify status {made.job_id} --watch` follows it")
        return streams.INTERRUPTED
    code = show_outcome(client, status, as_json=as_json)
    if status.state == "done":
        same = client.manifest(made.job_id).digest == made.digest
        told = "the record is the same, byte for byte" if same else "the record differs"
        how = (
            ""
            if same or not made.replay_of
            else f": `ramify diff {made.replay_of} {made.job_id}` says in what, and why"
        )
        streams.note(f"{told}{how}")
    return code


def diff(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A job that is done, or a manifest file.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    *,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """Compare two answers, from what was asked to their sentences, and name what made the difference."""
    from orchestrator.cli.render.differences import draw_difference
    from orchestrator.records.causes import compared

    one, other = (_job_or_file(ctx, given, tenant) for given in (a, b))
    streams.output(compared(one, other), draw_difference, as_json=json)


def _job_or_file(ctx: typer.Context, given: str, tenant: str | None) -> Manifest:
    """The manifest of a job; of a file where the name has an ending or a folder, which no id has."""
    path = Path(given)
    if path.suffix or len(path.parts) > 1:
        from orchestrator.records.files import read_manifest

        return read_manifest(path, "A or B")
    return _manifest(ctx, given, None, tenant)
