"""Which of the differences of two answers did it: one sentence that names the cause. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from orchestrator.records.diff import FAILED, PLAN_OPTIONS, AnswerDifference, Changed, difference
from shared.models.degraded import Degradation
from shared.models.manifest import Manifest, Record

#: What an answer is made without because it is set up so, and not because something failed.
_SET_UP = frozenset({Degradation.NOT_CONFIGURED.value})
#: What another setting, model or plan of one's own leads to, without a failure of a server.
_FOLLOWS = frozenset({Degradation.LLM_REPLY_UNUSABLE.value, Degradation.OVER_BUDGET.value})
_WITHOUT: Mapping[str, str] = MappingProxyType(
    {
        Degradation.LLM_UNAVAILABLE: "the LLM",
        Degradation.LLM_REPLY_UNUSABLE: "a reply of the LLM that can be used",
        Degradation.EMBEDDING_UNAVAILABLE: "the embedding model",
        Degradation.RERANK_UNAVAILABLE: "the reranker",
        Degradation.STORE_UNAVAILABLE: "the store",
        Degradation.VERIFIER_UNAVAILABLE: "the verifier",
        Degradation.OVER_BUDGET: "more of its budget",
        Degradation.OUT_OF_TIME: "more time",
        Degradation.PLUGIN_FAILED: "a plugin",
        FAILED: "the answer of a leaf",
    }
)
_CHUNKING = "chunking"
_MOST_NAMED, _LONGEST = 3, 80


class Cause(StrEnum):
    """What can make two answers differ. The order is that of causation: what stands before explains what follows."""

    QUESTION = "question"
    SETTINGS = "settings"
    MODEL = "model"
    OUTAGE = "outage"
    CORPUS = "corpus"
    PLAN = "plan"
    RELEASE = "release"


_BEFORE_OUTAGE = frozenset({Cause.QUESTION, Cause.SETTINGS, Cause.MODEL})
_BEFORE_CORPUS = _BEFORE_OUTAGE | {Cause.OUTAGE}


def compared(a: Manifest, b: Manifest) -> AnswerDifference:
    """How `b` differs from `a`, with what did it."""
    found = difference(a, b)
    said = {cause: words for cause in Cause if (words := _SAID[cause](found))}
    if (said.keys() & _BEFORE_OUTAGE or _own_plan(found)) and _codes(found) <= _FOLLOWS:
        said.pop(Cause.OUTAGE, None)
    if (said.keys() & _BEFORE_CORPUS or _own_plan(found)) and not _changed(found):
        said.pop(Cause.CORPUS, None)  # other documents were found, which that explains
    if said.keys() - {Cause.PLAN, Cause.RELEASE} and not _own_plan(found):
        said.pop(Cause.PLAN, None)  # it follows from what stands before it
    if not said and (words := _other_scores(found, a.record) or _other_text(found, a.record, b.record)):
        said = {Cause.MODEL: words}
    elif said.keys() == {Cause.CORPUS} and (words := _other_text(found, a.record, b.record)):
        said = {Cause.MODEL: words, **(said if found.results else {})}
    return found.model_copy(update={"causes": tuple(said), "sentence": _sentence(found, said)})


def _sentence(found: AnswerDifference, said: Mapping[Cause, str]) -> str:
    if found.same:
        return "Nothing differs: the two records are the same, byte for byte."
    if not said:
        return "The records name no cause: nothing that was asked, set or stored differs, and no server failed."
    (first, words), *more = said.items()
    if not more:
        return f"The cause is the {_NAMES[first]}: {words}."
    both = "; ".join(f"the {_NAMES[cause]} ({text})" for cause, text in said.items())
    return f"Several things changed, the first of which explains most: {both}."


_NAMES = {cause: cause.value for cause in Cause} | {Cause.SETTINGS: "settings", Cause.OUTAGE: "outage of a server"}


def _question(found: AnswerDifference) -> str:
    return "another one was asked" if found.question else ""


def _settings(found: AnswerDifference) -> str:
    options = [change for change in found.options if change.name not in PLAN_OPTIONS]
    return _named([*(_value(one) for one in options), *(_value(one, "the default") for one in found.settings)])


def _model(found: AnswerDifference) -> str:
    models = [_value(one) for one in found.models]
    prompts = [f"the prompt {name} was changed" for name in found.prompts] if "llm" not in _names(found.models) else []
    return _named([*models, *prompts])


def _other_scores(found: AnswerDifference, record: Record) -> str:
    """Which model has scored otherwise under the same name.

    A rerank model scores a passage for the question alone; of which leaf the other parts are may have changed.
    """
    parts = {part.name for result in found.results for part in result.parts}
    names = (name for name, part in (("rerank", "rerank"), ("embedding", "dense")) if part in parts)
    return next((words for name in names if (words := _replied_otherwise(name, record))), "")


def _other_text(found: AnswerDifference, a: Record, b: Record) -> str:
    """That the LLM has written otherwise from the same passages in the same order: it is shown no scores."""
    moved = found.documents or any(one.how != "scored" for one in found.results)
    written = (found.sentences_went or found.sentences_came) and a.answer.kind == b.answer.kind == "llm"
    return _replied_otherwise("llm", a) if written and not moved else ""


def _replied_otherwise(name: str, record: Record) -> str:
    used = record.models.get(name)
    return f"{name} {used.provider} {used.model} replied otherwise under the same name" if used and used.model else ""


def _outage(found: AnswerDifference) -> str:
    """What one of the two was made without, and where."""
    said = dict[str, list[str]]()
    for change in found.degraded:
        before, after = (frozenset(codes or ()) - _SET_UP for codes in (change.before, change.after))
        for which, more in (("B", after - before), ("A", before - after)):
            for code in sorted(more):
                what = f"without {_WITHOUT[code]} ({code})" if code in _WITHOUT else f"with {code}"
                said.setdefault(f"{which} was made {what}", []).append(change.name)
    return _named([f"{what} at {', '.join(sorted(items)[:_MOST_NAMED])}" for what, items in said.items()])


def _codes(found: AnswerDifference) -> frozenset[str]:
    """What one of the two was made without, and the other one was not, somewhere."""
    pairs = ((frozenset(change.before or ()), frozenset(change.after or ())) for change in found.degraded)
    return frozenset(code for before, after in pairs for code in before ^ after) - _SET_UP


def _corpus(found: AnswerDifference) -> str:
    """Documents whose content changed; such as came or went where the corpus was written in between."""
    if any(change.name.partition(".")[0] == _CHUNKING for change in found.settings):
        return ""  # all documents are cut otherwise: that is the setting
    if changed := _changed(found):
        return f"{_paths(changed)} {'was' if len(changed) == 1 else 'were'} changed"
    before, after = found.index_versions
    if before == after or found.same:
        return ""
    came, went = ([one.path for one in found.documents if one.how == how] for how in ("came", "went"))
    no_more = f"{'is' if len(went) == 1 else 'are'} found no more"
    told = _named([f"{_paths(paths)} {how}" for how, paths in (("came in", came), (no_more, went)) if paths])
    written = "it was written in between"
    return f"{written}: {told}" if told else f"{written}, and none of the documents they rest on changed"


def _changed(found: AnswerDifference) -> list[str]:
    """The paths of documents of which the two rest on different contents."""
    return [one.path for one in found.documents if one.how == "changed"]


def _plan(found: AnswerDifference) -> str:
    if given := [change for change in found.options if change.name in PLAN_OPTIONS]:
        return _named(
            [_value(one) if one.before is None or one.after is None else "another plan was given" for one in given]
        )
    if not found.plan:
        return ""
    route = [_value(one) for one in found.plan if not one.name[0].isdigit()]
    nodes = [one.name for one in found.plan if one.name[0].isdigit()]
    split = [f"the question was split otherwise ({', '.join(nodes[:_MOST_NAMED])})"] if nodes else []
    return _named([*route, *split])


def _release(found: AnswerDifference) -> str:
    return _named([_value(one) for one in found.releases])


def _own_plan(found: AnswerDifference) -> bool:
    return any(change.name in PLAN_OPTIONS for change in found.options)


def _names(found: Sequence[Changed]) -> set[str]:
    return {change.name for change in found}


def _value(change: Changed, nothing: str = "none") -> str:
    before, after = (_shown(value, nothing) for value in (change.before, change.after))
    return f"{change.name} is {after} instead of {before}"


def _shown(value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return f"{', '.join(paths[:_MOST_NAMED])}{more}"


def _named(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    return f"{', '.join(parts[:_MOST_NAMED])}{more}"


_SAID: Mapping[Cause, Callable[[AnswerDifference], str]] = MappingProxyType(
    {
        Cause.QUESTION: _question,
        Cause.SETTINGS: _settings,
        Cause.MODEL: _model,
        Cause.OUTAGE: _outage,
        Cause.CORPUS: _corpus,
        Cause.PLAN: _plan,
        Cause.RELEASE: _release,
    }
)
