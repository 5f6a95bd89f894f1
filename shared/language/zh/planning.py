"""Reads Chinese questions: their parts (sentences, clauses, comparisons, facets), their steps, their queries by type.

A question nests when one part waits for another, as in 《X》的导演的出生地是哪里: relations are read from the left,
X 的导演, then what is asked of that one. Unsure: no steps. The phrases are in planning.toml and words.toml; every
pattern is linear in a sentence of bounded length.
"""

from __future__ import annotations

import re
from functools import cache

from shared.language import base
from shared.language.sentences import question_sentences
from shared.language.tables import WordTable
from shared.language.zh import clauses, simplified, traditional
from shared.language.zh.clauses import PHRASES, asks, bare, peeled, spaced

_THINGS = (2, 5)
_MAX_THING = 24
_MAX_TOPIC = 40
_MIN_OBJECT = 2
#: Verbs that say no more than "do": what comes before them holds the real one.
_LIGHT_VERBS = frozenset({"做", "进行", "实现", "搞", "开展", "落地", "操作", "弄"})
_POINTING_WORDS = ("它", "这个", "那个", "这些")

_WIDE = {",": "\uff0c", "?": "\uff1f", "!": "\uff01", ";": "\uff1b", ":": "\uff1a"}
_NEAR_HAN = re.compile(r"(?<=[\u3400-\u9fff])\s*([,?!;:])\s*|\s*([,;])\s*(?=[\u3400-\u9fff])|(\?)$")
_MAX_NAMED = 30
#: Something named: in title marks, the number of a step before, or a run without 的 and without punctuation.
_WHAT = rf"(?:《[^《》]{{1,{_MAX_NAMED}}}》|#\d|[^的,;:。?!《》\s][^的,;:。?!《》]{{0,{_MAX_NAMED}}})"
_RELATION = re.compile(
    rf"(?P<lead>(?:{PHRASES.any_of('nested_class')})?)(?P<what>{_WHAT})的(?P<relation>{PHRASES.any_of('nested_person')}|{PHRASES.any_of('nested_thing')})"
    r"(?P<tail>.+)"
)
#: "谁是 X 的 Y 的 Z": the same as "X 的 Y 的 Z 是谁".
_TURNED = re.compile(r"(?:谁是|哪一?位是)(?P<what>.+的.+的[^的]+)")
#: The relation is what is asked for: nothing waits for it.
_ASKED = re.compile(
    r"\s*(?:是|叫|有|为|在)?(?:谁|什么|哪些|哪位|哪一?[个位人家部座]|哪里|哪儿|几|多少)(?:[人位个名家部座]|名字)?(?:[呢啊呀])?"
)
#: What may stand behind a relation: a verb, a question word, or another 的. Else it is part of a longer word (导演组).
_GOES_ON = re.compile(rf"\s*(?:的|{PHRASES.any_of('nested_verb')}|{PHRASES.any_of('ask')})")
#: Words that name nothing: "our team", "the country".
_UNNAMED = re.compile(
    rf"(?:{PHRASES.any_of('nested_class')}|{PHRASES.any_of('nested_thing')}|[我你您他她它](?:们)?|这.*|那.*|该.*|大家|自己|咱们?)"
)
_PERSON = re.compile(PHRASES.any_of("nested_person"))
_LEAD = re.compile(
    "(?:那么?|还有|另外|然后|请问|请|麻烦你?|帮我|帮忙|帮|给我|替我|我想要?|我要|我需要|能不能|能否|可以|该)*"
)
_HOW = re.compile("(?:我们?)?(?:应该|该|要)?(?:怎么样|怎样|怎么|如何)(?:才能|去|来)?")
_MEASURE = re.compile("(?:一个|一份|一篇|一下|一套|一张|个|份|篇)?")
_ASK = re.compile(
    "什么时候|为什么|是什么|什么是|有什么|有哪些|是多少|是哪个|是谁|怎么样|怎么|如何|怎样|哪些|哪个|多少|什么|吗|呢|[?？。！!]"
)
_PERSONAL = re.compile("(?:我们?|咱们?)(?:之前|以前|上次|当时|曾经)?(?:记录|记下|写|说|提到|决定|做)?过?的?|上次|之前")


def split(question: str) -> base.Split:
    """Kind and parts of a Chinese question, in its own characters."""
    text = simplified(question)
    found = [s for s in question_sentences(text)[: base.MAX_SENTENCES] if len(s) <= base.MAX_SENTENCE]
    asking = [_as_question(sentence) for sentence in found if _is_request(sentence)]
    if len(asking) > 1:
        reading = _compound(clauses.split("。".join(asking)))
    else:
        reading = _read_sentence(asking[0]) if asking else base.Split()
    queries = [_as_written(spaced(part.query, like=text), question) for part in reading.parts]
    parts = (part.model_copy(update={"query": query}) for part, query in zip(reading.parts, queries, strict=True))
    return reading.model_copy(update={"parts": tuple(parts)})


def _as_written(query: str, question: str) -> str:
    """`query` with full-width punctuation, in traditional characters where `question` has them."""
    wide = _NEAR_HAN.sub(lambda found: _WIDE[found[1] or found[2] or found[3]], query)
    return traditional(wide) if simplified(question) != question else wide


def _is_request(sentence: str) -> bool:
    text = bare(sentence)
    if PHRASES.compiled["asks"].match(text) or sentence.rstrip().endswith("?"):
        return True
    return bool(PHRASES.compiled["task"].match(text) or PHRASES.compiled["ordered"].match(sentence))


def _as_question(sentence: str) -> str:
    """Without lead-in; "help me optimise X" becomes "how to optimise X"."""
    text = bare(sentence)
    ordered = PHRASES.compiled["ordered"].match(sentence) or PHRASES.compiled["task"].match(text)
    starts_with_verb = any(text.startswith(verb) for verb in PHRASES.verb_class)
    return f"如何{text}" if ordered and starts_with_verb and not asks(text) else text


#: "特级和一级鲜叶", "2024年版和2025年版方案": what both are stands once, and neither is anything without it.
_MODIFIERS = re.compile(
    r"(?:年|特|[一二三四五六七八九十]|\d)(?P<kind>[级版代季期款])[和与及、][^,;、和与]{1,6}(?P=kind)(?!的|有|哪|$)[\u4e00-\u9fff]{2}"
)
#: "2024 年和 2025 年两次演练": likewise, of times.
_PERIOD = re.compile(
    r"(?P<period>\d{4} ?年(?:第?[一二三四]季度|[上下]半年|\d{1,2} ?月)?|\d{1,2} ?月|第?[一二三四]季度|[上下]半年)"
    r"的?(?:这?[一二三两四五\d]+[次个场轮期届份])?(?P<of>.*)"
)
_CONDITION = re.compile(r"如果|假如|要是|倘若|万一")


def _read_sentence(sentence: str) -> base.Split:
    if _MODIFIERS.search(sentence):
        return base.Split()
    if comparison := compared(sentence):
        return base.Split(kind=base.SplitKind.COMPARISON, parts=comparison)
    pieces = clauses.split(sentence)
    compound = _compound(pieces)
    if compound.parts:
        return compound
    context, piece, _ = pieces[0] if pieces else ("", sentence, "")
    if comparison := compared(piece):
        return base.Split(kind=base.SplitKind.COMPARISON, parts=comparison)
    found = _facets(piece)
    if context:
        parts = tuple(part.model_copy(update={"query": f"{context},{part.query}"}) for part in found.parts)
        return base.Split(kind=found.kind, parts=parts)
    return found


def _compound(pieces: list[tuple[str, str, str]]) -> base.Split:
    """One part for each clause that asks; fewer than two are no compound."""
    parts: list[base.Subquestion] = []
    for context, piece, asked in pieces:
        query = f"{context},{piece}?" if context else f"{piece}?"
        leans = bool(parts) and (PHRASES.compiled["leaning"].search(piece) or len(query) < base.MIN_PART)
        if (leans or len(query) >= base.MIN_PART) and len(query) <= base.MAX_PART:
            broad = bool(compared(piece)) or _facets(piece).kind is not base.SplitKind.SIMPLE
            facet = PHRASES.facet_of(piece)
            parts.append(
                base.Subquestion(facet=facet, query=query, broad=broad, asked=True, leans=bool(leans), one_of=asked)
            )
    return base.Split(kind=base.SplitKind.COMPOUND, parts=tuple(parts)) if len(parts) > 1 else base.Split()


def compared(sentence: str) -> tuple[base.Subquestion, ...]:
    """The parts of a comparison of 2 to 5 things, else nothing."""
    found = PHRASES.comparison(sentence)
    if found is None:
        return ()
    kind, slots = found
    pieces = [slots["a"], slots["b"]] if slots.get("a") else [slots["items"]]
    scope, pieces[0] = _headed(pieces[0])
    if not slots.get("a"):
        scope, pieces = _things(scope, pieces[0])
    if not pieces:
        return ()
    pieces[0] = peeled(pieces[0], "item_lead", times=3)
    items = list(dict.fromkeys(piece.strip() for piece in pieces))
    if not _THINGS[0] <= len(items) <= _THINGS[1] or not all(map(_is_thing, items)):
        return ()
    items, aspect = _shared(items)
    if aspect and not scope and (tailed := PHRASES.compiled["scope_tail"].match(items[-1])):
        scope, items[-1] = tailed["scope"], tailed["rest"]  # "X 和 Y 在高并发下的延迟"
    items = _of_periods(items)
    if not items:
        return ()
    scope = scope or _fit_for(slots.get("fit", ""))
    listed = f"{'、'.join(items[:-1])}和{items[-1]}"
    slots = {"aspect": aspect, "scope": f"{scope}," if scope else "", "items": listed}
    sentences = "attribute" if aspect else kind
    return base.comparison_parts(PHRASES.sentences, sentences, items, slots, choice=kind == "choice" and not aspect)


def _fit_for(purpose: str) -> str:
    """The scope of "X 和 Y 哪个更适合做日志收集", of what stands behind 适合."""
    if not purpose:
        return ""
    return f"{purpose}时" if PHRASES.compiled["doing"].match(purpose) else f"对于{purpose}"


def _of_periods(items: list[str]) -> list[str]:
    """The first of "2024 年和 2025 年两次演练" is "2024 年演练"."""
    periods = [one for one in map(_PERIOD.fullmatch, items) if one]
    if len(periods) < len(items) or [bool(one["of"]) for one in periods] != [*(False for _ in items[1:]), True]:
        return items
    return [f"{one['period']}{periods[-1]['of']}" for one in periods]


def _headed(text: str) -> tuple[str, str]:
    """The scope of "在高并发场景下 X ...", and the rest."""
    found = PHRASES.compiled["scope_head"].match(text)
    return (found["scope"], found["rest"]) if found else ("", text)


def _things(scope: str, text: str) -> tuple[str, list[str]]:
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
    return 0 < len(item) <= _MAX_THING and "是" not in item and not asks(item) and not {",", ";"} & set(item)


def _shared(items: list[str]) -> tuple[list[str], str]:
    """The aspect 性能 of "X 和 Y 的性能"; in "P 的 X 和 Y" both are of P."""
    owners = [place for place, item in enumerate(items) if "的" in item]
    place = owners[0] if owners else 0
    if 0 < place < len(items) - 1:  # "X 和 Y 的原因和影响"; what "X 和 Y 的写入性能和每年的费用" compares is unsure
        if len(owners) > 1:
            return [], ""
        thing, _, aspect = items[place].rpartition("的")
        aspects = [aspect.strip(), *items[place + 1 :]]
        return [*items[:place], thing.strip()], f"{'、'.join(aspects[:-1])}和{aspects[-1]}"
    first, last = items[0], items[-1]
    if "的" in last and not any("的" in item for item in items[:-1]):
        thing, _, aspect = last.rpartition("的")
        return [*items[:-1], thing.strip()], aspect.strip()
    if "的" in first and not any("的" in item for item in items[1:]):
        owner = first[: first.rindex("的") + 1]
        return [first, *(f"{owner}{item}" for item in items[1:])], ""
    return items, ""


def _facets(sentence: str) -> base.Split:
    """Facet questions about the topic of one sentence without lead-in and end mark."""
    framed = None if _CONDITION.match(sentence) else PHRASES.frame(sentence)
    if framed is None or not all(_fits(text) for text in framed[1].values() if text):
        return base.Split()
    frame, slots = framed
    if frame in {"howto", "task"}:
        return _verb_phrase(slots["vp"])
    if frame == "object_first":
        return _object_first(slots["object"], slots["verb"])
    if frame in {"why", "problem", "trouble"}:
        return _clause(frame, slots)
    return base.facet_split(frame, PHRASES.templates[frame], slots)


def _fits(text: str) -> bool:
    return len(text) <= _MAX_TOPIC and not asks(text) and not any(word in text for word in (*_POINTING_WORDS, ","))


def _verb_phrase(vp: str) -> base.Split:
    adverbs = "|".join(PHRASES.words["adverb"])
    vp = re.sub(rf"^(?:{adverbs})+\s*", "", vp)
    verb = max((verb for verb in PHRASES.verb_class if vp.startswith(verb)), key=len, default="")
    if verb:
        return _classed(verb, _unmeasured(vp[len(verb) :].strip()))
    if len(vp) <= _MIN_OBJECT:
        return base.Split()
    return base.Split(parts=base.filled_templates(PHRASES.templates["narrow"], {"vp": vp}))


_CASE = re.compile("(?:时候?|之?后|了)$")


def _object_first(thing: str, verb: str) -> base.Split:
    """Questions that name the object first: "X 怎么优化", "X 优化怎么做"; "X 时怎么处理" asks for one case."""
    if _CASE.search(thing):
        return base.Split()
    thing = thing.removesuffix("的").strip()
    if verb not in _LIGHT_VERBS:
        known = PHRASES.verb_class.get(verb, "write")
        return base.Split() if known == "write" else _classed(verb, thing)
    inner = next((verb for verb in PHRASES.verbs["noun_like"] if thing.endswith(verb)), "")
    if inner and len(thing) >= len(inner) + _MIN_OBJECT:
        return _classed(inner, thing.removesuffix(inner).strip())
    return base.Split(kind=base.SplitKind.BROAD, parts=base.filled_templates(PHRASES.templates["topic"], {"x": thing}))


def _classed(verb: str, thing: str) -> base.Split:
    """The facets of what is done to `thing`, by the class of the verb."""
    if len(thing) < _MIN_OBJECT:
        return base.Split()
    kind = PHRASES.verb_class[verb]
    if kind in {"write", "build"}:
        kind = "write" if PHRASES.compiled["document"].search(thing) else "build"
    if kind == "noun_like" and PHRASES.compiled["metric"].search(thing):
        kind = "noun_like_metric"
    slots = {"verb": verb, "object": thing, "vp": f"{verb}{thing}"}
    return base.Split(kind=base.SplitKind.BROAD, parts=base.filled_templates(PHRASES.templates[kind], slots))


def _unmeasured(thing: str) -> str:
    """Without owner and measure word: "我们的一份季度报告" is asked about as "季度报告"."""
    measures = "|".join(sorted(PHRASES.words["measure"], key=len, reverse=True))
    return re.sub(rf"^(?:我们?的)?(?:{measures})?\s*", "", thing)


def _clause(frame: str, slots: dict[str, str]) -> base.Split:
    """Why-questions and "what to do when": a state that is bad gets causes and cures, any other one its reason."""
    clause = peeled(slots["clause"], "connective", times=1).removeprefix("会").removesuffix("的").strip()
    clause = re.sub(r"^我们?的\s*", "", f"{slots.get('head', '')}{clause}")
    if frame == "trouble" or PHRASES.compiled["problem"].search(clause):
        parts = base.filled_templates(PHRASES.templates["problem"], {"clause": clause})
        return base.Split(kind=base.SplitKind.BROAD, parts=parts)
    if frame == "problem" or len(clause) < _MIN_OBJECT:  # "what to do when" of no trouble: too little to go by
        return base.Split()
    return base.Split(parts=base.filled_templates(PHRASES.templates["why"], {"clause": clause}))


def steps(question: str) -> tuple[str, ...]:
    """The steps of a nested question, each with `#n` for the one that it waits for; none where it does not nest."""
    if len(question) > base.MAX_SENTENCE:
        return ()
    rest = bare(simplified(question))
    if not asks(rest) or re.search("[,;。?!]", rest):
        return ()
    if turned := _TURNED.fullmatch(rest):
        rest = f"{turned['what']}是谁"
    sentences = PHRASES.sentences
    found: list[str] = []
    while len(found) < base.MAX_STEPS - 1 and (inner := _RELATION.fullmatch(rest)):
        tail, named = inner["tail"], inner["what"]
        if _ASKED.fullmatch(tail) or not _GOES_ON.match(tail) or asks(named) or _UNNAMED.fullmatch(named):
            break
        form = "nested_who" if _PERSON.fullmatch(inner["relation"]) else "nested_what"
        found.append(sentences[form].format(what=f"{inner['lead']}{named}", relation=inner["relation"]))
        rest = f"#{len(found)}{tail}"
    if not found or not asks(rest):
        return ()
    return tuple(_as_written(step, question) for step in base.standing_steps([*found, f"{rest}?"]))


def typed_phrases(text: str, words: WordTable) -> base.TypedPhrases:
    rest = base.behind(_HOW, base.behind(_LEAD, text))
    verb = _verb((*words.making, *words.doing)).match(rest)
    personal = bool(_PERSONAL.search(rest))
    thing = _thing(base.behind(_MEASURE, rest[verb.end() :].strip())) if verb else ""
    if verb and thing:
        making = verb[0] in words.making
        return base.TypedPhrases(
            skill=_joined(verb[0], thing),
            resource=_joined(thing, "模板" if making else f"{verb[0]}指南"),
            memory=_joined("用户的", thing, "偏好") if making else _joined("用户的", thing) if personal else "",
        )
    thing = _thing(rest)
    return base.TypedPhrases(resource=thing, memory=_joined("用户的", thing) if personal and thing else "")


def _thing(text: str) -> str:
    return " ".join(_ASK.sub(" ", _PERSONAL.sub("", text)).split()).strip(" 的，,")


def _joined(*parts: str) -> str:
    """Chinese and Latin words side by side, with a blank where one meets the other."""
    text = ""
    for part in parts:
        apart = text and (text[-1].isascii() != part[0].isascii())
        text += f" {part}" if apart else part
    return text


@cache
def _verb(verbs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(verbs, key=len, reverse=True)))
