"""The text for a named symbol without an LLM: where it is defined, which definitions call it, what it calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.language import reader_sentence
from shared.models import Hit, MergedHit, Summary
from workers.display import has_controls, plain_line
from workers.merge.citations import citation

_CALLED_BY, _CALLS, _MAX_QUOTE = "called by", "call", 200
#: `Via.precedence` of callers, in the order of `workers.search.stages.near`; one more where what is called leads.
_CALLER, _IN_TEST, _POSSIBLE, _IMPORTER = 1, 2, 3, 4
Numbered = tuple[int, MergedHit]


def of_symbol(question: str, hits: Sequence[MergedHit]) -> Summary | None:
    """Definitions and callers of the symbol that the search started from, each cited; None where it had none.

    `[n]` is the n-th hit. Callers come in the order of the hits: production code before tests.
    """
    numbered = list(enumerate(hits, start=1))
    defined = [(number, hit) for number, hit in numbered if hit.precedence == 0]
    if not defined:
        return None
    name = defined[0][1].via.bridge if defined[0][1].via else ""
    question = question.replace(name, " ")  # which would count as words of English
    called = [(number, hit) for number, hit in numbered if _how(hit) == _CALLS]
    outward = any(hit.precedence == _CALLER for _, hit in called)
    by = {rank: _callers(numbered, rank + outward) for rank in (_CALLER, _IN_TEST, _POSSIBLE, _IMPORTER)}
    lines = [f"{reader_sentence('called_defined', question, _name(hit), _path(hit))} [{n}]" for n, hit in defined]
    sure = [*by[_CALLER], *by[_IN_TEST]]
    parts = [(_headline(question, defined[0][1], len(sure)), sure)]
    parts += [(reader_sentence("called_perhaps", question), by[_POSSIBLE])] if by[_POSSIBLE] else []
    parts += [(reader_sentence("called_imported", question), by[_IMPORTER])] if by[_IMPORTER] else []
    parts += [(reader_sentence("called_calls", question), called)] if outward else []
    tests = {number for number, _ in by[_IN_TEST]}
    for head, group in reversed(parts) if outward else parts:
        lines += ["", head, *_listed(question, group, tests)]
    cited = dict([*defined, *(one for _, group in parts for one in group)])
    citations = tuple(citation(number, cited[number], _quote(cited[number], name)) for number in sorted(cited))
    return Summary(text="\n".join(lines), kind="extractive", citations=citations)


def _how(hit: Hit) -> str | None:
    return hit.via.how if hit.via is not None and hit.via.precedence is not None else None


def _callers(numbered: Iterable[Numbered], precedence: int) -> list[Numbered]:
    return [(n, hit) for n, hit in numbered if _how(hit) == _CALLED_BY and hit.precedence == precedence]


def _headline(question: str, definition: MergedHit, shown: int) -> str:
    """How many definitions call it: as many as were counted, or at least those that are shown."""
    counted = max(shown, (definition.via.callers if definition.via else None) or 0)
    if counted > shown:
        return reader_sentence("called_by_some", question, counted, shown)
    if counted < 2:
        return reader_sentence("called_by_one" if counted else "called_by_none", question)
    return reader_sentence("called_by", question, counted)


def _listed(question: str, group: Iterable[Numbered], tests: set[int]) -> list[str]:
    test = reader_sentence("called_test", question)
    return [f"- `{_name(hit)}`, {_path(hit)}{test if n in tests else ''} [{n}]" for n, hit in group]


def _name(hit: Hit) -> str:
    return plain_line(hit.symbol or hit.title).replace("`", "")


def _path(hit: Hit) -> str:
    return plain_line(hit.path)


def _quote(hit: Hit, name: str) -> str:
    """The first line of the hit that has the symbol's own name, else its first one."""
    lines = [line.strip() for line in hit.text.splitlines() if line.strip() and not has_controls(line)]
    named = (line for line in lines if name.rpartition(".")[2] in line)
    return next(named, lines[0] if lines else "")[:_MAX_QUOTE]
