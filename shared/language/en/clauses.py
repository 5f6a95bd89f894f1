"""Cuts English sentences into clauses that stand alone, and turns questions into statements. Leaves what is unsure."""

from __future__ import annotations

import re

from shared.language.tables import PlanningTable, toml

PHRASES = PlanningTable.model_validate(toml("en", "planning"))
_MAX_SUBJECT_WORDS = 6
#: What narrows the thing of "how do I install X on Ubuntu".
_LIMITS = "on|in|with|without|for|to|from|using|at|by|while|when|after|before|during|under|if|into|between"
_POSSESSIVE = {"its", "their"}
#: "this" in "this error" points at nothing outside; "this" alone does.
_DETERMINER = re.compile(r"\b(?:this|these|those|each|both) (?=[a-z])(?!and\b|or\b|in\b|for\b|to\b)", re.IGNORECASE)
_SUBJECT_PRONOUNS = frozenset({"i", "we", "you", "they"})


def bare(sentence: str) -> str:
    """`sentence` without lead-in, end marks and thanks."""
    text = PHRASES.without_lead_in(PHRASES.compiled["tail"].sub("", sentence.strip()))
    return PHRASES.compiled["tail"].sub("", text)


def is_indirect(sentence: str) -> bool:
    """True for "what Raft is", which is no question unless something like "explain" stands before it."""
    return PHRASES.compiled["indirect"].match(sentence) is not None


def split(sentence: str) -> list[str]:
    """The questions in one sentence, joined by "and"; one element when it asks one thing."""
    pieces: list[str] = []
    start = 0
    if twin := PHRASES.compiled["twin"].match(sentence):
        return [twin["a"], twin["b"]]
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


def resolved(clause: str, about: str | None, before: str) -> str | None:
    """`clause` with its pronouns replaced by what was spoken of; None when that is not known or does not fit.

    What "takes" or "costs" is what the question `before` does, no thing that it names.
    """
    pronoun = PHRASES.compiled["pronoun"]
    pronouns = [found[0].lower() for found in pronoun.finditer(clause) if not _DETERMINER.match(clause, found.start())]
    if not pronouns:
        return clause
    done = PHRASES.compiled["done"].match(before) and PHRASES.compiled["of_deed"].search(clause)
    either = PHRASES.compiled["of_which"].match(before) and PHRASES.compiled["of_either"].search(clause)
    if about is None or done or either or not all(_stands_for(found, about) for found in pronouns):
        return None
    genitive = f"{about}'" if about.endswith("s") else f"{about}'s"

    def replaced(found: re.Match[str]) -> str:
        if _DETERMINER.match(clause, found.start()):
            return found[0]
        return genitive if found[0].lower() in _POSSESSIVE else about

    return pronoun.sub(replaced, clause)


def _stands_for(pronoun: str, about: str) -> bool:
    """True where the number of `pronoun` is that of what `about` names; a team is both."""
    if PHRASES.compiled["names_no_thing"].fullmatch(about):
        return False
    head = PHRASES.compiled["head"].match(about)
    noun = head[0] if head else about
    plural = re.search(r"(?:[^sui]s|people|data)$|\band\b", noun, re.IGNORECASE) is not None
    if pronoun in {"it", "its", "this"}:
        return not plural or noun[:1].isupper()
    return pronoun in {"they", "them", "their", "these", "those"} and (plural or _is_group(noun))


def _is_group(noun: str) -> bool:
    return noun.lower().rpartition(" ")[2] in PHRASES.words["group"]


def subject(clause: str) -> str | None:
    """What a question is about, when its form shows it; what a pronoun after it stands for.

    None where the question narrows that ("on Ubuntu"): what comes after it would lose this.
    """
    patterns = (
        r"what is the [\w-]+ of (?P<x>.+)",
        r"what happened (?:in|during|to|with|at|on) (?P<x>.+)",
        r"what (?:is|are|was|were|caused?|causes) (?P<x>.+)",
        r"where (?:can|do|could|should) \w+ \w+ (?P<x>.+)",
        r"what (?!(?:does|do|did|has|have|is|was) )(?P<x>.+) (?:is|are|means?)",
        r"(?:explain |describe )?how (?:do |does )?(?P<x>.+?) works?",
        r"who (?!is\b|are\b|was\b|were\b)\w+ (?P<x>.+)",
        r"how (?:to|(?:do|can|should|would|could) \w+) \w+ (?P<x>.+?)(?P<limit> (?:<limits>) .+)?".replace(
            "<limits>", _LIMITS
        ),
    )
    for pattern in patterns:
        if found := re.fullmatch(pattern, clause, re.IGNORECASE):
            limited = found.groupdict().get("limit")
            return found["x"] if not limited and len(found["x"].split()) <= _MAX_SUBJECT_WORDS else None
    if found := re.fullmatch(r"why (\S+) (.+)", clause, re.IGNORECASE):
        words = found[2].split()
        place = _boundary(found[1].lower(), words)
        return " ".join(words[:place]) if place and words[0].lower() not in _SUBJECT_PRONOUNS else None
    return None


def declarative(aux: str, rest: str) -> str | None:
    """The statement "my query is so slow" of "is", "my query so slow"; None when the subject's end cannot be told.

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
    return " ".join([*subject_words, *([] if plain else [aux]), *after])


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
