"""`check`: what a text claims, held against the corpus or given passages; or a file of claims, line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, output_files, streams
from orchestrator.cli.invocation import Invocation, invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.checking import CheckedPassage, TextCheck

_MAX_FILE_BYTES = 4_000_000
_MAX_QUERY = 2_000


def check(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|FILE]", help="A text, or a file with one; - reads it from stdin.")
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option(metavar="CLAIMS.jsonl", help='Lines {"id", "claim", "passage"} instead; needs no stack.'),
    ] = None,
    passages: Annotated[
        list[Path] | None, typer.Option(help="Hold TEXT against these files, not the corpus; repeatable, no stack.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the text with its marks to this file: HTML, or Markdown for .md.")
    ] = None,
    tenant: options.Tenant = None,
    namespace: options.Namespace = None,
    json: options.Json = False,
) -> None:
    """Exit code 3: not every claim is supported."""
    if (text is None) == (file is None):
        raise InputError("TEXT", text or "none", "give a text, or --file with lines of claims: one of them")
    if file is not None:
        raise typer.Exit(_check_file(file, as_json=json))
    from orchestrator.checking import check_text
    from orchestrator.cli.render.checked import checked_markdown, checked_page, draw_checked

    target = streams.writable("--out", out) if out is not None else None
    content = _content(text or "")
    with _Source(invocation_of(ctx), passages or [], tenant, namespace) as near:
        found = check_text(content, near)
    streams.output(found, draw_checked, as_json=json)
    if target is not None:
        write = checked_markdown if target.suffix.lower() == ".md" else checked_page
        output_files.replace("--out", target, write(content, found))
        streams.note(f"written: {target}")
    raise typer.Exit(_exit_code(found))


def _check_file(name: str, *, as_json: bool) -> int:
    from orchestrator.checking import check_lines
    from orchestrator.cli.render.checked import verdict_line

    counts: dict[str, int] = {}
    with streams.lines_of(name) as (lines, _):
        for found in check_lines(lines):
            state = found.verdict.value if found.verdict else "not read"
            counts[state] = counts.get(state, 0) + 1
            if found.error:
                streams.warn(f"line {found.line}: {found.error}")
            elif as_json:
                streams.line(found.model_dump(include={"id", "verdict", "reason", "kind"}))
            else:
                streams.show(verdict_line(found))
    streams.note(", ".join(f"{number} {state}" for state, number in sorted(counts.items())) or "no line with a claim")
    return streams.PARTIAL if counts.keys() - {"supported"} else streams.DONE


def _exit_code(found: TextCheck) -> int:
    return streams.PARTIAL if found.unsupported or found.contradicted else streams.DONE


def _content(given: str) -> str:
    if given == streams.STDIN:
        return streams.text_argument("TEXT", given)
    try:
        is_file = Path(given).is_file()
    except OSError:
        is_file = False
    return _read(Path(given)) if is_file else given


def _read(path: Path) -> str:
    """Raises: InputError for what is no readable text."""
    if not path.is_file():
        raise InputError("--passages", str(path), "there is no such file")
    with path.open("rb") as handle:
        raw = handle.read(_MAX_FILE_BYTES + 1)
    if len(raw) > _MAX_FILE_BYTES:
        raise InputError("FILE", str(path), f"it has more than {_MAX_FILE_BYTES:,} bytes: split it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("FILE", f"{path}, byte {error.start}", "write it in UTF-8") from None


class _Source:
    """Where the passages come from: the given files, paragraph by paragraph, or a search of the corpus."""

    def __init__(
        self, invocation: Invocation, files: Sequence[Path], tenant: str | None, namespace: str | None
    ) -> None:
        self._files = [(path, _read(path)) for path in files]
        self._client = None if files else invocation.client(tenant)
        self._filters = {"namespace": namespace} if namespace else {}

    def __enter__(self) -> Callable[[str], Sequence[CheckedPassage]]:
        from orchestrator.checking import CheckedPassage, Passages

        given = [CheckedPassage(path=str(path), text=text) for path, text in self._files]
        return Passages(given).near if self._client is None else self._found

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def _found(self, sentence: str) -> Sequence[CheckedPassage]:
        from orchestrator.checking import PASSAGES, passage_of

        if self._client is None:
            return ()
        found = self._client.find(sentence[:_MAX_QUERY], top_n=PASSAGES, related=0, filters=self._filters)
        return [passage_of(hit) for hit in found.hits]
