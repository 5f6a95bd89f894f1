"""Reads English questions: their parts (sentences, clauses, comparisons, facets), their steps, their queries by type.

A question nests when one part waits for another, as in "when was the director of X born": the innermost description of
something named is asked for, its number stands in its place, and so on. Unsure: no steps. The phrases are in
planning.toml and words.toml; every pattern is linear in a sentence of bounded length.
"""

from __future__ import annotations

import re

from shared.language import base
from shared.language.en import clauses
from shared.language.en.clauses import PHRASES, bare, is_indirect
from shared.language.sentences import question_sentences
from shared.language.tables import WordTable

_WORDS = (2, 18)
#: Question types whose facets merely vary one narrow question.
_NARROW = frozenset({"narrow", "why"})
_SEPARATOR = re.compile(r",? (?:and|or|versus|vs\.?|over|instead of|rather than|compared (?:to|with)) |, (?:and |or )?")
_COMPARE = re.compile(r" (?:with|to|against) ")
_THINGS = (2, 5)
_MODIFIED = 2  # words of the last thing compared, from which one word before it is no thing but a modifier
_MOST_ITEM_WORDS = 6
_CAPITAL = r"[A-Z\u00c0-\u00de0-9][\w'’&.\-]*+"
_PLAIN = r"[A-Z\u00c0-\u00de0-9][\w&.\-]*+"
_JOINT = r"(?:of|the|de|del|della|di|da|du|la|le|van|von|der|den|al|el|bin|ibn|and|for|in|on|at|to|a|an|&|y|e)"
#: Something named: a quoted title, a run of capitalised words, or the number of a step before.
_NAME = (
    rf"(?:#\d|[\"“][^\"“”]{{2,80}}[\"”]|{_CAPITAL}(?:,? (?:{_JOINT} ){{0,2}}{_CAPITAL}|!|:(?= [A-Z])){{0,9}}"
    r"(?: \([^()]{1,40}\))?)"
)
_THE = r"(?:the |a |an )?"
#: What may follow a description: the end, or what its question says of it. Any other word may belong to the name.
_END = rf"(?<!['’]s)(?=$| (?:{PHRASES.any_of('nested_verb')})\b| (?:or|and) (?:the|#))"
_RELATION = re.compile(
    rf"\bthe (?P<relation>{PHRASES.any_of('nested_person')}|{PHRASES.any_of('nested_thing')}) of "
    rf"(?P<what>{_THE}(?:{PHRASES.any_of('nested_class')} )?{_NAME}){_END}"
)
_POSSESSIVE = re.compile(
    rf"(?<![\w'’])(?P<what>{_PLAIN}(?:,? (?:{_JOINT} )?{_PLAIN}){{0,6}}|#\d)['’]s? "
    rf"(?P<relation>{PHRASES.any_of('nested_person')}|{PHRASES.any_of('nested_thing')}){_END}"
)
_NOUN = r"(?!(?:reason|fact|way|time|first|day|idea|one|case|extent|year)\b)[a-z]+(?: (?!(?:and|or)\b)[a-z]+){0,2}?"
_LINK = r"(?:that|which|who|whose|where|when|while)\b"
_CLAUSE = re.compile(
    rf"\bthe (?P<noun>{_NOUN}) (?:that|which|who) (?P<clause>(?!the\b)[a-z]+(?: (?!{_LINK})[a-z]+){{0,4}}? {_NAME}"
    rf"(?: in \d{{4}})?){_END}"
)
_PARTICIPLE = re.compile(
    rf"\bthe (?P<noun>{_NOUN}) (?P<clause>(?:[a-z]{{2,}}ed|written|sung|built|made|led|won|run|known|held) "
    rf"(?:by|in|for|as|at) {_THE}{_NAME}){_END}"
)
_PERSON = re.compile(PHRASES.any_of("nested_person"), re.IGNORECASE)
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|how|(?:in|at|on|from|for) (?:what|which)|are|is|was|were|did|do|does)\b",
    re.IGNORECASE,
)
#: "Who is #2": the step that finds #2 asks it already.
_TRIVIAL = re.compile(r"(?:who|what|where|which [a-z]+) (?:is|are|was|were) #\d", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:(?:and|but|also|so|then|what about|how about) )?(?:please |kindly |can you |could you |would you |"
    r"help me(?: to)? |i (?:want|need|would like) to |i'd like to |let's |let us |show me |tell me |explain )?"
)
_HOW = re.compile(
    r"how (?:(?:do|can|should|would|could) (?:i|we|you|one) |to )|(?:what (?:is|are) )?the (?:best way|steps) to "
)
_CUT = re.compile(r" (?:from|to|in|on|with|without|using|for|when|after|before|so that|if|and|by|into) ")
_WHICH_ONE = re.compile(
    r"^which(?: one| of (?:them|these|the two)| option)?(?= (?:is|are|was|were|should|do|does|can|\w+s)\b)",
    re.IGNORECASE,
)
#: Of what, another part says.
_WHICH_ONE_ALONE = re.compile(r"which (?:one|of (?:them|these|the two))\b", re.IGNORECASE)
#: "summer and winter treatment": a word of its own for the first would lose what both are.
_MODIFIER = re.compile(r"[a-z]{3,}")
#: What things are compared by: "Compare X and Y: cost and latency".
_BY_ASPECTS = re.compile(
    r"(?P<things>compar[^:]{3,200}): (?P<aspects>[^:?]{3,120})"
    r"|(?P<beside>(?:compar|(?:[^:]{0,60} )?differences? between)[^:]{3,120}? (?:and|with|to|versus|vs\.?) [^:]{2,60}?)"
    r" (?:in|on|by|regarding|in terms of|with (?:respect|regard) to) (?P<listed>[^:?]{2,60}(?:,| and) [^:?]{2,60})",
    re.IGNORECASE,
)
#: What is asked of each of the things compared: "Compare X and Y: who built them?"
_BY_QUESTIONS = re.compile(
    r"(?P<things>compar[^:]{3,200}): (?P<asked>(?:who|what|when|where|which|why|how|is|are|do|does|did)\b[^:]+)",
    re.IGNORECASE,
)
_EACH = re.compile(r"\b(?:each|both)\b", re.IGNORECASE)
#: No thing that is compared starts so: "Which is cheaper per year, X or Y".
_NO_THING = re.compile(r"(?:per|at|over|under|by|within|since|until|during|after|before) ", re.IGNORECASE)
#: A year or a number alone is compared with its like only: "the price in 2026 with 2024" are not two things.
_NUMBER = re.compile(r"[\d.,%-]+")
#: "the 2024 and 2025 drills": what both are stands once.
_PERIOD = re.compile(
    rf"(?:the )?(?P<period>(?:Q[1-4] ?)?\d{{4}}|Q[1-4]|v?\d+(?:\.\d+)?|{PHRASES.any_of('period')})"
    r"(?: (?P<of>[a-z].*))?",
    re.IGNORECASE,
)
_OWNER = re.compile(r"(?:the )?[\w.-]+['’]s (?=\S)")
_PERSONAL = re.compile(r"\b(?:my|mine|our|ours|i|we|us)\b")


def split(text: str) -> base.Split:
    """Kind and parts of an English question."""
    text = PHRASES.compiled["headed"].sub("", text)
    found = question_sentences(text)[: base.MAX_SENTENCES]
    asking = [bare(one) for one in found if len(one) <= base.MAX_SENTENCE and (len(found) == 1 or _asks(one))]
    if len(found) > 1 and len(asking) > 1:
        parts = _parts(asking)
        if len(parts) > 1:
            return base.Split(kind=base.SplitKind.COMPOUND, parts=parts)
    if len(asking) != 1:
        return base.Split()
    return _read_sentence(asking[0])


def _asks(sentence: str) -> bool:
    text = PHRASES.without_lead_in(sentence)
    return any(PHRASES.compiled[name].match(text) for name in ("asks", "task")) or bool(PHRASES.comparison(bare(text)))


def _read_sentence(sentence: str) -> base.Split:
    if by := _BY_QUESTIONS.fullmatch(sentence):
        return _of_compared(by["things"], clauses.split(by["asked"]))
    pieces = _with_items(clauses.split(sentence))
    if any(_WHICH_ONE_ALONE.match(piece) for piece in pieces[1:]):
        return base.Split()
    parts = _parts(pieces)
    if len(parts) > 1:
        return base.Split(kind=base.SplitKind.COMPOUND, parts=parts)
    sentence = pieces[0] if len(pieces) > 1 else sentence  # the rest does not stand alone; the original leaf has it
    if comparison := compared(sentence):
        return base.Split(kind=base.SplitKind.COMPARISON, parts=comparison)
    return _facets(sentence)


def _of_compared(things: str, asked: list[str]) -> base.Split:
    """What is asked of all things compared, with their names; one that does not say "they" leans on the others."""
    found = _compared_items(things)
    about = _listed(found[0]) if found else None
    resolved = [clauses.resolved(one, about, "") for one in asked]
    if len(asked) < _THINGS[0] or not all(resolved) or resolved[0] == asked[0]:
        return base.Split()
    parts = _parts([one for one in resolved if one])
    if len(parts) < len(asked):
        return base.Split()
    leaning = [one == said for one, said in zip(resolved, asked, strict=True)]
    parts = tuple(part.model_copy(update={"leans": one}) for part, one in zip(parts, leaning, strict=True))
    return base.Split(kind=base.SplitKind.COMPOUND, parts=parts)


def _with_items(pieces: list[str]) -> list[str]:
    """The things that the first piece compares in the place of "which one" in the others."""
    items = _compared_items(pieces[0]) if len(pieces) > 1 else None
    if items is None:
        return pieces
    listed = f"which of {_listed(items[0])}"
    return [pieces[0], *(_WHICH_ONE.sub(lambda _: listed, piece, count=1) for piece in pieces[1:])]


def _parts(texts: list[str]) -> tuple[base.Subquestion, ...]:
    """Each text as a question of its own; a pronoun is replaced by what the one before is about, or the part leans."""
    parts: list[base.Subquestion] = []
    about: str | None = None
    before = ""
    for place, text in enumerate(texts):
        resolved = clauses.resolved(text, about, before)
        before = text if resolved else before
        leans = resolved is None or (place > 0 and PHRASES.compiled["leaning"].search(text) is not None)
        standing = text if leans or resolved is None else resolved
        if len(standing.split()) < _WORDS[0] or (resolved is None and _EACH.search(text)):
            continue
        about = about if leans else clauses.subject(standing)
        query = _question(standing)
        if base.MIN_PART <= len(query) <= base.MAX_PART:
            broad = bool(compared(standing)) or _facets(standing).kind is not base.SplitKind.SIMPLE
            parts.append(
                base.Subquestion(facet=PHRASES.facet_of(standing), query=query, broad=broad, asked=True, leans=leans)
            )
    return tuple(parts)


def _question(sentence: str) -> str:
    if is_indirect(sentence):
        return PHRASES.sentences["explain"].format(part=sentence)
    text = sentence[:1].upper() + sentence[1:]
    if re.match(r"(?:explain|describe|compare|tell|give|list|outline|summari[sz]e)\b", text, re.IGNORECASE):
        return f"{text}."
    return f"{text}." if PHRASES.compiled["task"].match(text) else f"{text}?"


def _facets(sentence: str) -> base.Split:
    """Facet questions about the topic of one sentence; simple without parts when no frame fits surely."""
    framed = PHRASES.frame(sentence)
    if framed is None:
        return base.Split()
    frame, slots = framed
    if frame in {"why", "why_clause"}:
        return _why(slots)
    if frame in {"howto", "task", "purpose"}:
        return _verb_phrase(frame, slots["vp"])
    topic = " ".join(filter(None, (slots["x"], slots.get("rest", ""))))
    topic = re.sub(r" (?:internally|under the hood|exactly)$", "", topic)
    if not _fits(topic, least=1) or PHRASES.compiled["question_word"].match(topic):
        return base.Split()
    return base.facet_split(frame, PHRASES.templates[frame], {"x": topic})


def _verb_phrase(frame: str, vp: str) -> base.Split:
    adverbs = "|".join(PHRASES.words["adverb"])
    vp = re.sub(rf"^(?:{adverbs}) ", "", vp, flags=re.IGNORECASE)
    vp = vp[:1].lower() + vp[1:]
    if not _fits(vp):
        return base.Split()
    verb, kind = _verb(vp)
    kind = "purpose" if frame == "purpose" else kind
    thing = vp[len(verb) :].strip() if verb else ""
    if not thing and kind != "purpose":
        return base.Split()
    if kind == "write" and not re.match(r"(?:an?|the|your|some|new)\b", thing):
        kind = "narrow"
    parts = base.filled_templates(PHRASES.templates[kind], {"vp": vp, "object": thing})
    return base.Split(kind=base.SplitKind.SIMPLE if kind in _NARROW else base.SplitKind.BROAD, parts=parts)


def _verb(vp: str) -> tuple[str, str]:
    """The verb that `vp` starts with and its class; an unknown one makes a narrow question."""
    words = vp.lower().split()
    for count in (4, 3, 2, 1):
        verb = " ".join(words[:count])
        if verb in PHRASES.verb_class:
            return verb, PHRASES.verb_class[verb]
    return words[0], "narrow"


def _why(slots: dict[str, str]) -> base.Split:
    clause = slots["clause"] if "clause" in slots else clauses.declarative(slots["aux"], slots["rest"])
    if clause is None or not _fits(clause):
        return base.Split()
    kind = "problem" if PHRASES.compiled["problem"].search(clause) else "why"
    parts = base.filled_templates(PHRASES.templates[kind], {"clause": clause})
    return base.Split(kind=base.SplitKind.BROAD if kind == "problem" else base.SplitKind.SIMPLE, parts=parts)


def _fits(phrase: str, least: int = _WORDS[0]) -> bool:
    """True for a phrase that stands alone in a question: not too long, no pronoun that points elsewhere."""
    words = len(phrase.split())
    return least <= words <= _WORDS[1] and not PHRASES.compiled["pronoun"].search(phrase)


def compared(sentence: str) -> tuple[base.Subquestion, ...]:
    """The parts of a comparison of 2 to 5 things, else nothing."""
    by = _BY_ASPECTS.fullmatch(sentence)
    found = _compared_items((by["things"] or by["beside"]) if by else sentence)
    if found is None:
        return ()
    items, scope, kind, aspect = found
    scope = f" {scope}" if scope else ""
    if by:
        kind, aspect = "attribute", re.sub(r"^the ", "", (by["aspects"] or by["listed"]).strip())
    elif kind == "difference" and (aspect or (near := PHRASES.compiled["aspect"].search(sentence))):
        aspect = aspect or (near["aspect"] if near else "")
        scope = f" in terms of {aspect}{scope}"
    slots = {"scope": scope, "aspect": aspect, "items": _listed(items)}
    return base.comparison_parts(PHRASES.sentences, kind, items, slots, choice=kind == "choice")


def _compared_items(sentence: str) -> tuple[list[str], str, str, str] | None:
    """The things that a sentence compares, what narrows that, the kind of comparison and its aspect."""
    found = PHRASES.comparison(sentence)
    if found is None:
        return None
    kind, slots = found
    items, scope = _items(sentence, slots)
    bare_numbers = [bool(_NUMBER.fullmatch(item)) for item in items]
    if not _THINGS[0] <= len(items) <= _THINGS[1] or not all(map(_is_thing, items)) or len(set(bare_numbers)) > 1:
        return None
    if _MODIFIER.fullmatch(items[0]) and len(items[-1].split()) > _MODIFIED:
        return None
    return items, scope, kind, slots.get("aspect", "")


def _listed(items: list[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _items(sentence: str, slots: dict[str, str]) -> tuple[list[str], str]:
    """The things compared, without what narrows the comparison ("for small teams"); and that."""
    scope = slots.get("scope", "")
    if slots.get("a"):
        pieces = [slots["a"], slots["b"]]
    else:
        text = PHRASES.compiled["after_things"].sub("", slots["items"])
        pieces = [piece for piece in _SEPARATOR.split(text) if piece.strip()]
        if len(pieces) < _THINGS[0] and re.match(r"compar", sentence, re.IGNORECASE):
            pieces = _COMPARE.split(text, maxsplit=1)
    if pieces and not scope and (found := PHRASES.compiled["scope"].match(pieces[-1])):
        pieces[-1], scope = found["item"], found["scope"].strip(" ,")
    lead = PHRASES.compiled["item_lead"]
    items = [lead.sub("", piece.strip(" ,:")).strip() for piece in pieces]
    return _with_owner(list(dict.fromkeys(items))), scope


def _is_thing(item: str) -> bool:
    if _NO_THING.match(item) or PHRASES.compiled["question_word"].match(item):
        return False
    return 0 < len(item.split()) <= _MOST_ITEM_WORDS


def _with_owner(items: list[str]) -> list[str]:
    """The second of "the loop's eager and lazy modes" is "the loop's lazy modes"."""
    owner = _OWNER.match(items[0]) if items else None
    if owner is None or any(_OWNER.match(item) for item in items[1:]) or not all(item.islower() for item in items[1:]):
        return _with_shared_head(items)
    return [f"{owner[0]}{item}" for item in _with_shared_head([items[0][owner.end() :], *items[1:]])]


def _with_shared_head(items: list[str]) -> list[str]:
    """The first of "supervised and unsupervised learning" is "supervised learning"."""
    *heads, last = items or [""]
    words = last.split()
    periods = [one for one in map(_PERIOD.fullmatch, items) if one]
    if len(periods) == len(items) and [bool(one["of"]) for one in periods] == [*(False for _ in heads), True]:
        return [f"the {one['period']} {periods[-1]['of']}" for one in periods]
    if len(words) == 3 and all(re.fullmatch("the [a-z]+", item) for item in heads) and words[0] == "the":
        return [*(f"{item} {words[2]}" for item in heads), last]
    if len(words) != 2 or not all(_are_a_pair(item, words[0]) for item in heads):
        return items
    return [*(f"{item} {words[1]}" for item in heads), last]


def _are_a_pair(one: str, other: str) -> bool:
    if one in PHRASES.words["pair_word"] and other in PHRASES.words["pair_word"]:
        return True
    return one.islower() and any(one.endswith(end) and other.endswith(end) for end in PHRASES.words["pair_suffix"])


def steps(question: str) -> tuple[str, ...]:
    """The steps of a nested question, each with `#n` for the ones that it waits for; none where it does not nest."""
    if len(question) > base.MAX_SENTENCE:
        return ()
    rest = bare(question).rstrip(" ?.!")
    if not _ASKS.match(rest):
        return ()
    found: list[str] = []
    while len(found) < base.MAX_STEPS - 1 and (described := _innermost(rest)):
        place, asked = described
        found.append(asked)
        rest = f"{rest[: place.start()]}#{len(found)}{rest[place.end() :]}"
    if not _TRIVIAL.fullmatch(rest):
        found.append(f"{rest}?")
    return base.standing_steps(found)


def _innermost(text: str) -> tuple[re.Match[str], str] | None:
    """The first description that holds no other one, and the question for it."""
    sentences = PHRASES.sentences
    if found := _CLAUSE.search(text):
        return found, sentences["nested_clause"].format(**found.groupdict())
    if found := _PARTICIPLE.search(text):
        return found, sentences["nested_participle"].format(**found.groupdict())
    if found := _RELATION.search(text) or _POSSESSIVE.search(text):
        form = "nested_who" if _PERSON.fullmatch(found["relation"]) else "nested_what"
        return found, sentences[form].format(**found.groupdict())
    return None


def typed_phrases(text: str, words: WordTable) -> base.TypedPhrases:
    rest = base.behind(_LEAD, text)
    how = _HOW.match(rest.lower())
    rest = base.behind(_HOW, rest)
    first, _, thing = rest.partition(" ")
    verb = first.lower()
    if thing.lower().startswith("up ") and verb in {"set", "back"}:
        first, verb, thing = f"{first} up", f"{verb}up", thing[3:]
    noun = _noun(thing, words)
    personal = bool(_PERSONAL.search(rest.lower()))
    if noun and (how or verb in words.making + words.doing):
        making, short = verb in words.making, _CUT.split(f"{noun} ", maxsplit=1)[0].strip() or noun
        return base.TypedPhrases(
            skill=f"{first[:1].upper()}{first[1:]} {noun}",
            resource=f"{short} template" if making else f"{noun} {first.lower()} guide",
            memory=f"user's {short} preferences" if making else f"user's {noun}" if personal else "",
        )
    noun = _noun(rest, words)
    return base.TypedPhrases(resource=noun, memory=f"user's {noun}" if personal and noun else "")


def _noun(text: str, words: WordTable) -> str:
    """The words of `text` but for question words, auxiliaries, articles and pronouns."""
    kept = [word.strip("?!,;:") for word in text.split() if word.strip("?!,.;:").lower() not in words.small]
    return " ".join(words.deeds.get(word.lower(), word) for word in kept if word)
