"""What of the question before is meant to be another thing: a year for a year, "backups" for "logs". Pure."""

from __future__ import annotations

import re

from orchestrator.planning.topic_words import READ_CHARS, content_words, topic_pattern
from shared.language import alternatives, derived, languages
from shared.language.names import names_of
from shared.language.tables import with_lists
from shared.language.text import HAN, fold, has_cjk

_NAME = re.compile(r"[A-Za-z][\w.+#-]*", re.ASCII)
#: Things of one kind, of which one takes the place of the other: days, years, versions, code, tickets of a series.
_LIKE = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)",
        r"(?<![\d.-])(?:19|20)\d\d(?![\d.-])",
        r"(?<![\w.])v?\d+(?:\.\d+)+(?![\w])",
        r"`?(?<![\w.-])[a-z][a-z0-9]*+(?:[._]++[a-z0-9]++)++`?",
        r"(?<![\w-])[a-z]+-\d+(?![\w-])",
        r"(?<![\w.])\d+(?![\w.])",
    )
)
#: What a word such as "on" stands before, up to the next such word; `{}` is the word.
_BEHIND = r"\b{} (?:the |an? )?(?P<old>[^\s,?]+(?: [^\s,?]+){{0,3}}?)(?= (?:<prepositions>|<joints>)\b|[?,.!]*$)"
_PREPOSITION = r"(?P<word><prepositions>) (?:the |an? )?(?P<thing>\S.*)"
#: A thing named by so few Han characters takes the place of one as long that ends as it does: 缩容 and 扩容.
_HAN = re.compile(rf"[{HAN}]{{2,4}}")
_PLURAL = re.compile(r"(?<![\w-])[a-z]{2,}[a-rt-z]s(?![\w-])", re.IGNORECASE)


def swapped(before: str, old: str, new: str) -> str:
    """The question before with `new` in place of `old`; "" where it does not say that, or says the new thing."""
    if not old or len(before) > READ_CHARS or fold(old) not in fold(before):
        return ""
    new = _fitted(before, old, new)
    return "" if fold(new) in fold(before) else re.sub(re.escape(old), lambda _: new, before, flags=re.IGNORECASE)


def of_a_kind(before: str, new: str) -> tuple[str, str] | None:
    """What of the question before is meant to be another one, and that: a year for a year, "on X" for "on Y"."""
    if len(before) > READ_CHARS:
        return None
    if found := like(new) or _numbered(before, new):
        pattern, named = found
        old = {match[0] for match in pattern.finditer(before)} - {named}
        return (old.pop(), named) if len(old) == 1 else None
    return _placed(before, new) or _of_one_noun(before, new) or _ends_alike(before, new)


def _placed(before: str, new: str) -> tuple[str, str] | None:
    """For "per month" and "per year", and for "after Ada" and "before her", where the word alone is another."""
    placed = _pattern(_PREPOSITION).fullmatch(new)
    if placed is None:
        return None
    word = fold(placed["word"])
    there = list(_pattern(_BEHIND.format(word)).finditer(before))
    if len(there) == 1:
        return there[0]["old"], placed["thing"]
    opposite = next((language.words.topic.opposites.get(word, "") for language in languages()), "")
    there = list(re.finditer(rf"\b{opposite}\b", before, re.IGNORECASE)) if opposite else []
    points = topic_pattern("refers").search(fold(placed["thing"]))
    return (there[0][0], placed["word"]) if points and len(there) == 1 else None


def is_placed(new: str) -> bool:
    """True for "in 2024", "per year"."""
    return _pattern(_PREPOSITION).fullmatch(new) is not None


def _of_one_noun(before: str, new: str) -> tuple[str, str] | None:
    """The word before the same noun ("billing service", "search service"), or one plural for another."""
    words = [word for word in new.split() if content_words(word)]
    if len(words) == 2 and not has_cjk(new):
        found = re.findall(rf"(?<![\w-])([\w-]+) {re.escape(words[1])}(?![\w-])", before, re.IGNORECASE)
        old = [word for word in found if content_words(word)]
        return (old[0], words[0]) if len(old) == len(found) == 1 else None
    places = (
        found for found in _PLURAL.finditer(before) if not _pattern("(?:<agents>) $").search(before[: found.start()])
    )
    plural = [found[0] for found in places if content_words(found[0])]
    single = len(words) == 1 and words[0].islower() and _PLURAL.fullmatch(words[0]) is not None
    return (plural[0], words[0]) if single and len(plural) == 1 else None


def _ends_alike(before: str, new: str) -> tuple[str, str] | None:
    if not _HAN.fullmatch(new):
        return None
    places = range(len(before) - len(new) + 1)
    alike = {before[at : at + len(new)] for at in places if before[at + len(new) - 1] == new[-1]}
    alike = {each for each in alike if _HAN.fullmatch(each) and "".join(content_words(each)) == each}
    return (alike.pop(), new) if len(alike) == 1 and new not in alike else None


@derived
def _pattern(template: str) -> re.Pattern[str]:
    """A pattern in which `<name>` stands for any phrase of that field of TopicWords."""
    return re.compile(
        with_lists(template, lambda name: alternatives(lambda language: getattr(language.words.topic, name))),
        re.IGNORECASE,
    )


def _numbered(before: str, new: str) -> tuple[re.Pattern[str], str] | None:
    """The number that `new` is behind a word which the question before has such a number behind: "batch 212"."""
    words, _, number = new.rpartition(" ")
    found = like(number) if words else None
    held = found and re.search(rf"\b{re.escape(fold(words))} {found[0].pattern}", fold(before))
    return found if held else None


def like(new: str) -> tuple[re.Pattern[str], str] | None:
    """The day, year, version or ticket that `new` is, as its pattern finds it; None where it says more, or other."""
    for pattern in kinds():
        named = [match[0] for match in pattern.finditer(new)]
        if named:
            return (pattern, named[0]) if len(named) == 1 and not content_words(pattern.sub(" ", new)) else None
    return None


def only_name(question: str) -> str:
    """The one name of a question: a run of words with a capital inside of a sentence, a name of code; "" for more."""
    runs = [name for name in names_of("", question) if " " in name and content_words(name)]
    if len(runs) == 1 and not has_cjk(question) and not question.startswith(runs[0]):
        return runs[0]
    tokens = [match[0] for match in _NAME.finditer(question)]
    inside = tokens if has_cjk(question) else tokens[1:]
    names = dict.fromkeys(word for word in inside if _is_name(word) and content_words(word))
    return next(iter(names)) if len(names) == 1 else ""


def _is_name(word: str) -> bool:
    return "_" in word or any(char.isupper() for char in word)


def head(question: str) -> str:
    """What a question begins with and asks about, as languages without spaces and capitals show it."""
    patterns = (re.compile(one) for language in languages() for one in language.words.topic.heads)
    found = next((match for pattern in patterns if (match := pattern.match(question))), None)
    return found["old"] if found and content_words(found["old"]) else ""


def _fitted(before: str, old: str, new: str) -> str:
    """`new` without the words that stand around `old` already: the article before it, and the noun behind it."""
    place = fold(before).find(fold(old))
    ahead, behind = before[:place].split(), re.findall(r"\w+", before[place + len(old) :])
    words = new.split()
    if len(words) > 1 and ahead and fold(ahead[-1]) == fold(words[0]):
        words = words[1:]
    if len(words) > 1 and behind and fold(behind[0]) == fold(words[-1]):
        words = words[:-1]
    return " ".join(words)


@derived
def kinds() -> tuple[re.Pattern[str], ...]:
    """Things of one kind, as the languages name them, such as months, and in any language."""
    named = (pattern for language in languages() for pattern in language.words.topic.alike)
    return (*(re.compile(pattern, re.IGNORECASE) for pattern in named), *_LIKE)
