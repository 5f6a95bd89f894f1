"""Cuts English sentences into clauses that stand alone, and turns questions into statements. Leaves what is unsure."""

from __future__ import annotations

import re

from shared.language.tables import PlanningTable, toml

PHRASES = PlanningTable.model_validate(toml("en", "planning"))
_SECOND = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "we": "you", "us": "you",
    "our": "your", "ours": "yours", "ourselves": "yourselves", "i'm": "you're", "i am": "you are", "am i": "are you",
    "we're": "you're", "i've": "you've", "we've": "you've",
}  # fmt: skip
_FIRST = re.compile(rf"\b(?:{'|'.join(sorted(_SECOND, key=len, reverse=True))})\b", re.IGNORECASE)
_UPPER = re.compile(r"\b(?:US|ME|MY)\b")
_MAX_SUBJECT_WORDS = 6
_POSSESSIVE = {"its", "their"}
#: "this" in "this error" points at nothing outside; "this" alone does.
_DETERMINER = re.compile(r"\b(?:this|these|those|each|both) (?=[a-z])(?!and\b|or\b|in\b|for\b|to\b)", re.IGNORECASE)
_SUBJECT_PRONOUNS = frozenset({"i", "we", "you", "they"})


def bare(sentence: str) -> str:
    """`sentence` without lead-in, end marks and thanks."""
    text = PHRASES.without_lead_in(PHRASES.compiled["tail"].sub("", sentence.strip()))
    return PHRASES.compiled["tail"].sub("", text)


def second_person(phrase: str) -> str:
    """Makes "your query" of "my query": a facet question speaks to the one who asks. US and ME in capitals stay."""

    def second(found: re.Match[str]) -> str:
        # Without regard to case a Turkish dotless i is an "i", too, but not when it is made small.
        return found[0] if _UPPER.fullmatch(found[0]) else _SECOND.get(found[0].lower(), found[0])

    return _FIRST.sub(second, phrase)


def is_indirect(sentence: str) -> bool:
    """True for "what Raft is", which is no question unless something like "explain" stands before it."""
    return PHRASES.compiled["indirect"].match(sentence) is not None


def split(sentence: str) -> list[str]:
    """The questions in one sentence, joined by "and"; one element when it asks one thing."""
    pieces: list[str] = []
    start = 0
    for cut in PHRASES.compiled["cut"].finditer(sentence):
        left = sentence[start : cut.start()].strip(" ,")
        if len(left.split()) > 1 and (PHRASES.compiled["asks"].match(left) or is_indirect(left)):
            pieces.append(left)
            start = cut.end()
    pieces.append(sentence[start:].strip(" ,"))
    return [part for piece in _explained(pieces) for part in _phrases(piece)]


def _explained(pieces: list[str]) -> list[str]:
    """The lead verb of "explain what X is and how it works" is dropped here and put back for each."""
    return [re.sub(r"^(?:explain|describe) (?=how |what |why )", "", piece, flags=re.IGNORECASE) for piece in pieces]


def _phrases(clause: str) -> list[str]:
    """A question for each verb phrase in "how do I install X and configure Y"; "causes and symptoms of X" likewise."""
    if any(idiom in clause.lower() for idiom in PHRASES.words["idiom"]):
        return [clause]
    if attributes := PHRASES.compiled["attributes"].match(clause):
        nouns = attributes.group("a", "b")
        return [
            f"what {'are' if re.search('[^sui]s$', noun) else 'is'} the {noun} of {attributes['x']}" for noun in nouns
        ]
    how = PHRASES.compiled["howto_prefix"].match(clause)
    if how is None:
        return [clause]
    prefix, vp = how["prefix"], how["vp"]
    if listed := PHRASES.compiled["verb_list"].match(vp):
        verbs = re.split(r",? and |, ", vp[: listed.start("object")].strip())
        return [f"{prefix} {verb} {listed['object']}" for verb in verbs if verb]
    phrases = PHRASES.compiled["second_verb"].split(vp)[::2]
    if any(len(phrase.split()) < 2 for phrase in phrases):
        return [clause]
    return [f"{prefix} {phrase.strip(' ,')}" for phrase in phrases]


def resolved(clause: str, about: str | None) -> str | None:
    """`clause` with its pronouns replaced by what was spoken of before; None when that is not known."""
    pronoun = PHRASES.compiled["pronoun"]
    if not pronoun.search(_without_determiners(clause)):
        return clause
    if about is None or re.search(r"\b(?:each|both)\b", clause, re.IGNORECASE):
        return None
    genitive = f"{about}'" if about.endswith("s") else f"{about}'s"

    def replaced(found: re.Match[str]) -> str:
        if _DETERMINER.match(clause, found.start()):
            return found[0]
        return genitive if found[0].lower() in _POSSESSIVE else about

    return pronoun.sub(replaced, clause)


def _without_determiners(clause: str) -> str:
    return _DETERMINER.sub("", clause)


def subject(clause: str) -> str | None:
    """What a question is about, when its form shows it; what a pronoun after it stands for."""
    patterns = (
        r"what is the [\w-]+ of (?P<x>.+)",
        r"what happened (?:in|during|to|with|at|on) (?P<x>.+)",
        r"what (?:is|are|was|were|causes?) (?P<x>.+)",
        r"where (?:can|do|could|should) \w+ \w+ (?P<x>.+)",
        r"what (?P<x>.+) (?:is|are|means?)",
        r"(?:explain |describe )?how (?:do |does )?(?P<x>.+?) works?",
        r"who (?!is\b|are\b|was\b|were\b)\w+ (?P<x>.+)",
        r"how (?:to|(?:do|can|should|would|could) \w+) \w+ (?P<x>.+?)(?: (?:on|in|with|for|to|from|using|at|by) .+)?",
    )
    for pattern in patterns:
        if found := re.fullmatch(pattern, clause, re.IGNORECASE):
            return found["x"] if len(found["x"].split()) <= _MAX_SUBJECT_WORDS else None
    if found := re.fullmatch(r"why (\S+) (.+)", clause, re.IGNORECASE):
        words = found[2].split()
        place = _boundary(found[1].lower(), words)
        return " ".join(words[:place]) if place else None
    return None


def declarative(aux: str, rest: str) -> str | None:
    """The statement "your query is so slow" of "is", "my query so slow"; None when the subject's end cannot be told.

    "did" and "had" would need irregular forms and are left.
    """
    words, aux = rest.split(), aux.lower()
    place = _boundary(aux, words)
    if not place or aux in {"did", "had"}:
        return None
    subject_words, after = words[:place], words[place:]
    plain = aux in {"do", "does"} and after[0].lower() != "not"
    if plain and aux == "does":
        after = _third_person(after)
    clause = second_person(" ".join([*subject_words, *([] if plain else [aux]), *after]))
    return re.sub(r"^you (?:am|is)\b", "you are", clause)


def _boundary(aux: str, words: list[str]) -> int | None:
    """Where the subject ends: before the first word that can only belong to the predicate."""
    if len(words) > 1 and words[0].lower() in _SUBJECT_PRONOUNS:
        return 1
    be = aux in PHRASES.words["be"]
    for place in range(1, len(words)):
        if words[place - 1].lower() not in PHRASES.words["no_end"] and _is_predicate(words[place].lower(), be=be):
            return place
    return _progressive(words) if be else None


def _is_predicate(word: str, *, be: bool) -> bool:
    """After a form of "be" an adjective or adverb; after "do" and modals a verb or adverb."""
    if not be and word in PHRASES.words["do_verb"]:
        return True
    is_adjective = word in PHRASES.words["adjective"]
    return PHRASES.compiled["predicate"].match(word) is not None and (be or not is_adjective)


def _progressive(words: list[str]) -> int | None:
    """Before "failing" in "my tests failing in CI"; an -ing word elsewhere is as often a noun."""
    for place in range(1, len(words)):
        following = words[place + 1].lower() if place + 1 < len(words) else "in"
        is_noun = words[place - 1].lower() in PHRASES.words["article"] or following not in PHRASES.words["after_verb"]
        if re.fullmatch(r"[a-z]{3,}ing", words[place].lower()) and not is_noun:
            return place
    return None


def _third_person(words: list[str]) -> list[str]:
    """The first verb among `words` takes its s; adverbs before it stay."""
    for place, word in enumerate(words):
        if word.lower() in PHRASES.words["do_verb"]:
            return [*words[:place], _with_s(word), *words[place + 1 :]]
    return words


def _with_s(verb: str) -> str:
    if verb == "have":
        return "has"
    if re.search(r"(?:s|x|z|ch|sh)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"
