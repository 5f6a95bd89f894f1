"""`refresh`: runs again what changed documents have touched of kept answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.jobs import note_unchecked, wait_for_retry
from orchestrator.cli.text import counted
from orchestrator.text_lines import one_line
from shared.errors import ConflictError, InputError

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.retries.retry import Retried

#: Changed answers that are told one by one.
_MOST_TOLD = 20


def refresh(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="Of a job or of a batch.")] = None,
    *,
    stale: Annotated[bool, typer.Option("--stale", help="All stale answers, as a new batch.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it has ended.")] = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    if stale == (id_ is not None):
        raise InputError("ID", id_, "give the id of a job or batch, or --stale for all stale answers")
    with invocation_of(ctx).client(tenant) as client:
        note_unchecked(client)
        try:
            if wait:
                raise typer.Exit(_refresh_and_wait(client, id_, as_json=json))
            made = _begin(client, id_)
        except ConflictError as error:
            if not stale:
                raise
            if json:
                streams.document({"retry_of": "--stale", "jobs": 0})
            streams.note(error.fix)
            return
        new_id = _new_id(made)
        streams.warn_about(client, new_id)
    if json:
        streams.document(made)
        return
    typer.echo(new_id)
    streams.note(_said(made, new_id))
    streams.note(f"`ramify status {new_id} --watch` follows it")


def _begin(client: Ramify, id_: str | None) -> Retried:
    return client.refresh_stale() if id_ is None else client.refresh(id_)


def _refresh_and_wait(client: Ramify, id_: str | None, *, as_json: bool) -> int:
    """Begin what is not under way yet, wait for that and for what is. Returns the exit code.

    Raises: InputError where there is neither.
    """
    begun, why = None, None
    try:
        begun = _begin(client, id_)
    except ConflictError as error:
        why = error
    told = {} if begun is None else {_new_id(begun): (begun, _said(begun, _new_id(begun)))}
    for made in client.refreshes_under_way(id_):
        told.setdefault(_new_id(made), (made, f"{_new_id(made)} refreshes {made.retry_of} already: it is waited for"))
    if why and not told:
        raise why
    codes = list[int]()
    for new_id, (made, said) in told.items():
        streams.warn_about(client, new_id)
        codes.append(wait_for_retry(client, made, said, as_json=as_json))
        if codes[-1] == streams.INTERRUPTED:
            break
        _tell_changes(client, made)
    return max(codes)


def _new_id(made: Retried) -> str:
    return made.job_id or made.batch_id or ""


def _tell_changes(client: Ramify, made: Retried) -> None:
    """What has changed of each answer, in a sentence, the answers that say something else first."""
    from orchestrator.records.causes import compared

    job_ids = [made.job_id] if made.job_id else client.batch_jobs(made.batch_id or "")
    told, same = list[str](), 0
    for status in client.statuses(job_ids):
        if status.state != "done" or status.retry_of is None:
            continue
        found = compared(client.manifest(status.retry_of), client.manifest(status.job_id))
        if found.sentences_came or found.sentences_went or found.answer:
            told.append(f"{one_line(status.question)}: {found.sentence}")
        else:
            same += 1
    for sentence in told[:_MOST_TOLD]:
        streams.note(sentence)
    if (more := len(told) - _MOST_TOLD) > 0:
        streams.note(f"{more} more answers say something else: `ramify diff OLD NEW` says what")
    if same:
        streams.note(f"{counted(same, 'answer')} {'says' if same == 1 else 'say'} the same as before")


def _said(made: Retried, new_id: str) -> str:
    """What is made anew, and how little of it runs."""
    what = f"job {new_id}" if made.job_id else f"batch {new_id} of {counted(made.jobs, 'job')}"
    over = made.taken_over
    return f"{what} refreshes {made.retry_of}: {over.leaves} of {over.leaves_total} leaves are taken over"
