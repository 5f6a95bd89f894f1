"""Chinese comparisons: a question for each thing and one for all together. Finds the things, judges none."""

from __future__ import annotations

from orchestrator.planning.rules.chinese_phrases import PHRASES, asks, peeled
from orchestrator.planning.rules.reading import MAX_PART, Part
from shared.models import Facet

_THINGS = (2, 5)
_MAX_CHARS = 24


def compared(sentence: str) -> tuple[Part, ...]:
    """The parts of a comparison of 2 to 5 things, else nothing."""
    found = PHRASES.comparison(sentence)
    if found is None:
        return ()
    kind, slots = found
    pieces = [slots["a"], slots["b"]] if slots.get("a") else [slots["items"]]
    scope, pieces[0] = _headed(pieces[0])
    if not slots.get("a"):
        scope, pieces = _split(scope, pieces[0])
    if not pieces:
        return ()
    pieces[0] = peeled(pieces[0], "item_lead", times=3)
    items = list(dict.fromkeys(piece.strip() for piece in pieces))
    if not _THINGS[0] <= len(items) <= _THINGS[1] or not all(map(_is_thing, items)):
        return ()
    items, aspect = _shared(items)
    slots = {"aspect": aspect, "scope": f"{scope}," if scope else ""}
    return _questions("attribute" if aspect else kind, items, slots, choice=kind == "choice")


def _questions(kind: str, items: list[str], slots: dict[str, str], *, choice: bool) -> tuple[Part, ...]:
    sentences = PHRASES.sentences
    together = {**slots, "items": f"{'、'.join(items[:-1])}和{items[-1]}"}
    queries = [sentences[f"thing_{kind}"].format(item=item, **slots) for item in items]
    parts = [Part(facet=Facet.CORE, query=query, asked=True) for query in queries]
    parts.append(Part(facet=Facet.CORE, query=sentences[f"together_{kind}"].format(**together)))
    if choice:
        parts.append(Part(facet=Facet.NOTE, query=sentences["decide"].format(**together)))
    return tuple(part for part in parts if len(part.query) <= MAX_PART)


def _headed(text: str) -> tuple[str, str]:
    """The scope of "在高并发场景下 X ...", and the rest."""
    found = PHRASES.compiled["scope_head"].match(text)
    return (found["scope"], found["rest"]) if found else ("", text)


def _split(scope: str, text: str) -> tuple[str, list[str]]:
    """The things in `text`, and what narrows the comparison: given, or found behind them."""
    text = peeled(text, "item_tail")
    if not scope and (tailed := PHRASES.compiled["scope_tail"].match(text)):
        scope, text = tailed["scope"], peeled(tailed["rest"], "item_tail")
    pieces = [piece for piece in PHRASES.compiled["separator"].split(text) if piece.strip()]
    purpose = PHRASES.compiled["purpose_tail"].match(pieces[-1]) if pieces else None
    if purpose and not scope:  # "X 还是 Y 做日志收集"
        scope, pieces[-1] = f"用于{purpose['what']}时", purpose["rest"]
    return scope, pieces


def _is_thing(item: str) -> bool:
    return 0 < len(item) <= _MAX_CHARS and "是" not in item and not asks(item) and not {",", ";"} & set(item)


def _shared(items: list[str]) -> tuple[list[str], str]:
    """The aspect 性能 of "X 和 Y 的性能"; in "P 的 X 和 Y" both are of P."""
    first, last = items[0], items[-1]
    if "的" in last and not any("的" in item for item in items[:-1]):
        thing, _, aspect = last.rpartition("的")
        return [*items[:-1], thing.strip()], aspect.strip()
    if "的" in first and not any("的" in item for item in items[1:]):
        owner = first[: first.rindex("的") + 1]
        return [first, *(f"{owner}{item}" for item in items[1:])], ""
    return items, ""
