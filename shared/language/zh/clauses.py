"""Cuts Chinese sentences into clauses that stand alone: a clause without a subject takes the one before it."""

from __future__ import annotations

import re

from shared.language.tables import PlanningTable, toml

PHRASES = PlanningTable.model_validate(toml("zh", "planning"))
_TOUCHING = re.compile(r"(?<=[A-Za-z0-9+#])(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])")
_HOW = r"(?:应该|该)?(?:如何|怎么|怎样)(?:才能)?"
_MIN_TOPIC = 2
_TOPICS = tuple(
    re.compile(pattern)
    for pattern in (
        r"什么是(?P<x>.+)",
        r"(?P<x>.+?)的[^的]{1,8}(?:是什么|有哪些|是啥)",
        r"(?P<x>.+?)(?:是什么(?:意思)?|是啥)",
        rf"(?:为什么|为何){_HOW}(?P<x>.+)",
        r"(?:为什么|为何|为啥)(?:要|会|需要)?(?P<x>.+)",
        r"(?P<x>.+?)(?:为什么|为何|为啥|都?有什么|都?有哪些|有何|适合).*",
        rf"{_HOW}(?P<x>.+)",
        rf"(?P<x>.+?){_HOW}.+",
        r"(?:介绍|解释|讲讲|说说)(?:一下|下)?(?P<x>.+)",
    )
)


def bare(sentence: str) -> str:
    """`sentence` without lead-in, end marks and thanks."""
    text = peeled(sentence.strip(), "tail")
    return peeled(PHRASES.without_lead_in(text), "tail")


def peeled(text: str, pattern: str, times: int = 6) -> str:
    """`text` with what the named pattern finds taken off, up to `times` layers; never to nothing."""
    for _ in range(times):
        shorter = PHRASES.compiled[pattern].sub("", text, count=1).strip()
        if shorter in {text, ""}:
            return text
        text = shorter
    return text


def asks(clause: str) -> bool:
    """True when a question word stands in `clause`."""
    return PHRASES.compiled["ask"].search(clause) is not None


def spaced(query: str, like: str) -> str:
    """`query` with a space between Latin and Chinese, unless the question `like` writes them without one."""
    return query if _TOUCHING.search(like) else _TOUCHING.sub(" ", query)


def split(sentence: str) -> list[tuple[str, str, str]]:
    """The clauses that ask, each with the context that it needs ("" mostly) and able to stand alone.

    The third is the clause as it was asked, where it asks the same of several things.

    A clause whose pronoun or missing subject cannot be filled is left out: the original question has it anyway.
    """
    standing: list[tuple[str, str, str]] = []
    topic = context = ""
    for said in sentence.split("。"):
        lead, clauses = _asking(said)
        context = lead or context
        for asked, clause in ((one, phrase) for one in clauses for phrase in _phrases(one)):
            whole = _completed(clause, topic)
            if whole is not None:
                each = _phrases(whole) if whole != clause else [whole]
                several = asked if clause != asked else whole if len(each) > 1 else ""
                standing += [(context, one, several) for one in each]
                topic = _topic(whole) or topic
    return standing


def _asking(sentence: str) -> tuple[str, list[str]]:
    """What leads into the questions ("in a cluster"), and the clauses that ask; what follows one stays with it."""
    lead: list[str] = []
    clauses: list[str] = []
    when = ""
    for piece in PHRASES.compiled["cut"].split(sentence):
        text = bare(peeled(piece, "connective", times=2))
        if not text:
            continue
        if clauses and PHRASES.compiled["time"].fullmatch(text):  # of what is asked next
            when = text
            continue
        text, when = f"{when}{text}", ""
        if asks(text) or PHRASES.compiled["asks"].match(text):
            clauses.append(text)
        elif clauses:
            clauses[-1] = f"{clauses[-1]},{text}"
        else:
            lead.append(text)
    clauses[-1:] = [f"{clauses[-1]},{when}"] if when else clauses[-1:]
    context = ",".join(lead)
    if not clauses:
        return "", [sentence]
    return (context if PHRASES.compiled["context"].fullmatch(context) else ""), clauses


def _phrases(clause: str) -> list[str]:
    """A question for each verb phrase in "如何安装 X 并配置 Y", for each attribute in "X 的原理和用途是什么"."""
    if (found := PHRASES.compiled["attributes"].match(clause)) and not asks(found["b"]):
        return [f"{found['t'].strip()}的{found[name].strip()}{found['tail']}" for name in "ab"]
    if (each := PHRASES.compiled["each"].match(clause)) and asks(each["rest"]) and not asks(each["a"] + each["b"]):
        things = PHRASES.compiled["separator"].split(f"{each['a']}、{each['b']}")
        if min(map(len, things)) >= _MIN_TOPIC:
            return [f"{thing.strip()}{each['of'] or ''}{each['rest']}" for thing in things]
    how = re.match(rf"({_HOW})(.+)", clause)
    if not how:
        return [clause]
    phrases = PHRASES.compiled["verb_join"].split(how[2])
    return [f"{how[1]}{phrase.strip()}" for phrase in phrases] if min(map(len, phrases)) > 3 else [clause]


def _completed(clause: str, topic: str) -> str | None:
    """`clause` with the topic for its missing subject or its pronoun; None when there is none to take."""
    pronoun, dangling = PHRASES.compiled["pronoun"], PHRASES.compiled["dangling"]
    if PHRASES.compiled["elsewhere"].search(clause):
        return None
    each = PHRASES.compiled["of_each"].match(clause) is not None
    if each or PHRASES.compiled["of_event"].search(clause) or PHRASES.compiled["of_said"].match(clause):
        return f"{topic}{clause}" if each and PHRASES.compiled["separator"].search(topic) else clause
    if PHRASES.compiled["subjectless"].match(clause):
        text = pronoun.sub("", clause)
        return f"{topic}{text}" if topic else None
    if dangling.search(clause) and not clause.endswith("们") and re.match(_HOW, clause):
        return f"{topic}{dangling.sub('', clause)}" if topic else clause
    if pronoun.search(clause) and topic and not re.search("它们|他们|她们", clause):
        return pronoun.sub(lambda found: f"{topic}的" if found[0] == "其" else topic, clause)
    return clause


def _topic(clause: str) -> str:
    """What a clause is about, when its form shows it."""
    for pattern in _TOPICS:
        if (found := pattern.fullmatch(clause)) and not asks(found["x"]):
            topic = re.sub(r"^(?:使用|采用|用(?!户|例|量|途|法))\s*", "", found["x"].strip())
            unfit = len(topic) < _MIN_TOPIC or "情况下" in topic or PHRASES.compiled["names_no_thing"].fullmatch(topic)
            return "" if unfit else topic
    return ""
