"""Writes the summary by the LLM, its citations checked; else the extractive one, with a warning that says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from shared.errors import DeadlineError, RamifyError, ReplyError
from shared.language import derived, languages
from shared.language.sentences import sentences
from shared.models import Cost, MergedHit, NodeKind, Summary
from shared.models.answer import ReasoningStep
from shared.models.base import Model
from shared.models.plan import node_order
from shared.models.support import SupportReport
from shared.providers.fallbacks import fell_back
from shared.providers.llm.client import spent
from shared.providers.llm.prompts import summarise_prompt
from shared.providers.llm.replies import readable, summary_text
from shared.providers.metering import usual_tokens
from shared.providers.time_shares import seconds_for
from workers.display import safe
from workers.inert import inert
from workers.merge.citations import citation
from workers.merge.findings import Aggregated, Findings
from workers.merge.grounded import Verify, grounded
from workers.merge.memories import memories
from workers.merge.support import best_quote
from workers.merge.verifying import Verification

_MAX_RANGE = 50
_PART = re.compile(r"(\d{1,9})(?:\s?[\-–]\s?(\d{1,9}))?")
_CODE = re.compile(r"(```[\s\S]*?(?:```|\Z)|`[^`\n]*`)")
_CITED = re.compile(r"\[(\d{1,9})\]")
_CUT = "The summary by LLM ends in the middle: its tokens were used up; raise llm_max_tokens."
_OPEN = "The summary by LLM ends in the middle of a sentence."
#: Lists, tables, headings and code end without a full stop.
_ENDS_PLAIN = re.compile(r"[ \t]*(?:[-*+#>|]|\d{1,3}[.)、]|```)")
_LEAST_PROSE = 20
_NO_BRACKETS = str.maketrans("[]", "()")


class CheckedText(Model):
    """`text` with valid citations only, each as [n]; `cited` in order of appearance; `removed` counts the others."""

    text: str
    cited: tuple[int, ...] = ()
    removed: int = 0


def summarise(found: Findings, fallback: Callable[[], Summary], steps: Sequence[ReasoningStep] = ()) -> Aggregated:
    """The summary of what was found, or the conclusion from `steps`; `[n]` in it is the n-th hit of the pool.

    Without an LLM or without hits it is the `fallback`. It is that too, with a warning, where the LLM fails or cites
    no source that it was given; never raises for that.
    """
    own = Aggregated(summary=Summary(text="", kind="none"), steps=tuple(steps))
    hits = found.pool.hits
    if found.llm is None or not hits:
        return own.model_copy(update={"summary": fallback()})
    cost, left, asked = Cost(), "", Verification(found)
    try:
        if not (timeout_s := seconds_for("summary", found.timeout_s)):
            raise DeadlineError("no time was left for it")
        tree = sorted(found.nodes.values(), key=lambda node: node_order(node.id))
        whole = all(node.kind is not NodeKind.LEAF or not node.facet.planned for node in tree)
        ask = partial(
            summarise_prompt, found.question, tree=tree, intent=found.routed.intent, steps=own.steps, whole=whole
        )
        room = min(found.sources_tokens, found.prompt_tokens - usual_tokens(ask(memories=())))
        sources, left = memories(hits, room)
        last = sources[-1].number
        read = partial(_cited_text, sources=last)
        prompt = ask(memories=sources)
        reply = found.llm.complete(prompt, timeout_s=timeout_s, check=read)
        cost = reply.cost
        drafted, verify = read(reply.text), asked.ask if found.verifier else None
        cut = _CUT if reply.cut else _OPEN if ends_open(drafted.text) else ""
        checked, support = _supported(drafted, hits[:last], mark=found.mark_unsupported, verify=verify)
    except RamifyError as error:
        fell_back("llm", error)
        reason = str(error).strip().rstrip(".")
        warning = f"The summary by LLM cannot be used, so it is extractive: {reason}."
        changed = {"summary": fallback(), "cost": (cost or spent(error).cost) + asked.cost, "warnings": (warning,)}
        return own.model_copy(update=changed)
    warnings = tuple(filter(None, (*_told(checked, support), cut, left, asked.warning)))
    summary = _summary(checked, hits).model_copy(update={"support": support})
    return own.model_copy(update={"summary": summary, "cost": cost + asked.cost, "warnings": warnings})


def _told(checked: CheckedText, support: SupportReport) -> Iterator[str]:
    """What was taken out of the text, or marked in it."""
    if checked.removed:
        yield f"{checked.removed} citation(s) of sources that do not exist were removed from the summary."
    if support.removed:
        yield f"{len(support.removed)} sentence(s) of the summary were removed: their sources do not say them."
    if support.unsupported:
        yield f"{support.unsupported} sentence(s) of the summary are marked: their sources do not say them."


def ends_open(text: str) -> bool:
    """Whether a text of prose ends without the end of a sentence."""
    last = text.rstrip().rpartition("\n")[2]
    prose = len(last) >= _LEAST_PROSE and not _ENDS_PLAIN.match(last)
    return prose and (last[-1].isalnum() or last[-1] in ",，、;；:：(（-–")


def _supported(
    checked: CheckedText, sources: Sequence[MergedHit], *, mark: bool, verify: Verify | None
) -> tuple[CheckedText, SupportReport]:
    """The text without what its sources do not say, or with marks. Raises: ReplyError where no sentence is left."""
    held = grounded(checked.text, sources, mark=mark, verify=verify)
    if held.report.sentences and not any(one.kind != "no claim" for one in held.report.spans):
        first = held.report.removed[0]
        raise ReplyError(f"its sources do not say it: {first.kind}, {first.reason}")
    cited = tuple(dict.fromkeys(int(number) for number in _CITED.findall(_CODE.sub("", held.text))))
    return checked.model_copy(update={"text": held.text, "cited": cited}), held.report


def _summary(checked: CheckedText, hits: Sequence[MergedHit]) -> Summary:
    claims: dict[int, list[str]] = {number: [] for number in checked.cited}
    # Mask brackets in code before splitting: a code span may hold a sentence end, and its `[3]` is no citation.
    for sentence in _claims(_CODE.sub(lambda code: code[0].translate(_NO_BRACKETS), checked.text)):
        for number in claims.keys() & map(int, _CITED.findall(sentence)):
            claims[number].append(sentence)
    citations = tuple(
        citation(number, hits[number - 1], best_quote(hits[number - 1], " ".join(claims[number])))
        for number in sorted(claims)
    )
    return Summary(text=checked.text, kind="llm", citations=citations, removed=checked.removed)


def _claims(text: str) -> list[str]:
    """Sentences with the citations that follow their full stop: "Done. [1] Next" -> "Done. [1]", "Next"."""
    claims: list[str] = []
    for sentence in sentences(text):
        body = sentence.lstrip()
        while claims and body.startswith("[") and "]" in body:
            mark, _, body = body.partition("]")
            claims[-1] += f"{mark}]"
            body = body.lstrip()
        if body:
            claims.append(body)
    return claims


def _cited_text(reply: str, sources: int) -> CheckedText:
    """The summary of a reply. Raises: ReplyError when it cites none of its sources."""
    checked = check_citations(safe(summary_text(safe(readable(reply)))), sources)
    if not checked.cited:
        raise ReplyError(f"it cites none of the {sources} memories")
    return checked


def check_citations(text: str, sources: int) -> CheckedText:
    """Keep the citations of 1..`sources`, remove and count the others.

    Lists, ranges, footnote marks and wide brackets ([1, 3], [2-4], [^1], 【1】) become [1][3]. Code is left as it is:
    `rows[0]` cites nothing.
    """
    cited: dict[int, None] = {}
    removed = 0

    def rewrite(match: re.Match[str]) -> str:
        nonlocal removed
        numbers = _numbers(match[1] or match[2] or match[3], sources)
        valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= sources]
        removed += len(set(numbers)) - len(valid)
        cited.update(dict.fromkeys(valid))
        return (" " if valid and match[0][0] in " \t" else "") + "".join(f"[{number}]" for number in valid)

    parts = _CODE.split(text)
    parts[::2] = [_citation().sub(rewrite, part) for part in parts[::2]]
    # Citations in other brackets than these may have become the words of a link.
    return CheckedText(text=inert("".join(parts)), cited=tuple(cited), removed=removed)


@derived
def _citation() -> re.Pattern[str]:
    separators = "|".join((r"[,，、;；\-–]", *(word for language in languages() for word in language.words.and_)))
    numbers = rf"\^?\d{{1,9}}(?:\s?(?:{separators})\s?\^?\d{{1,9}})*"
    return re.compile(rf"[ \t]{{0,3}}(?:\[({numbers})\]|【({numbers})】|［({numbers})］)")


def _numbers(inside: str, sources: int) -> list[int]:
    """The numbers of one bracket; a range is written out, and one that is no range counts by its two ends."""
    numbers: list[int] = []
    for part in _PART.finditer(inside):
        first, last = int(part[1]), int(part[2] or part[1])
        whole = first <= last <= sources + _MAX_RANGE and last - first <= _MAX_RANGE
        numbers.extend(range(first, last + 1) if whole else (first, last))
    return numbers
