"""A question after a list while it is read: the languages' phrases, its text, and the values that it may name."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

from shared.language import derived, languages
from shared.language.tables import NEVER, with_lists
from shared.language.text import is_han, plain, terms, value_key

T = TypeVar("T", bound=Hashable)

#: Stands where something was taken out.
GAP = "\x1f"
#: What a value describes at the end of a question, whatever kind it is of: 张三演的戏有哪些.
FIELD_NOUN = rf"(?P<noun><field_noun>)(?=(?:<head_tail>|<tail>|{GAP})*+$)"
#: Stands before the number of a quoted text.
HOLD = "\ue000"
MAX_CHARS = 1000
_QUOTED = re.compile(
    r"“([^“”\n]{1,80})”|\"([^\"\n]{1,80})\"|「([^「」\n]{1,80})」|『([^『』\n]{1,80})』|《([^《》\n]{1,80})》"
    r"|(?<![\w])'([^'\n]{1,80})'(?!\w)|`([^`\n]{1,80})`"
)
_HELD = re.compile(HOLD + "(.)")
_FIRST_HELD = 0xE100
_MOST_HELD = 20
#: Words of the longest value that is looked for.
_MOST_WORDS = 6
_LEAST_CHARS = 2
#: From so many letters on, and so much alike, a word may be a name that is misspelt.
_LONG, _MISSPELT = 5, 0.85
_SHORT_PLURAL = re.compile(r" [a-z][^\Wiaus\d_]s$")
_WORD = re.compile(r"[^\s,;:!?，。；：！？、()\x1f]+")
#: A name is spelt in at most so many times its own characters, and so many more: "redis - streams".
_ROOMY, _MORE = 2, 16


@derived
def compiled(template: str) -> re.Pattern[str]:
    """A pattern in which `<name>` stands for any phrase of that list, in Latin letters between word boundaries.

    `<name!>` stands for the same phrases as they are written.
    """
    return re.compile(with_lists(template, _alternatives))


def _alternatives(name: str) -> str:
    if name.endswith("!"):
        return "|".join(listed(name[:-1])) or NEVER
    return "|".join(_bounded(phrase) for phrase in sorted(listed(name), key=len, reverse=True)) or NEVER


def _bounded(phrase: str) -> str:
    first = phrase.replace("(?:", "").lstrip("^")[0]
    head = r"(?<![a-z0-9])" if first.isascii() and first.isalpha() else ""
    tail = r"(?![a-z0-9])" if phrase[-1].isascii() and phrase[-1] not in "$:=+/b " and not is_han(phrase) else ""
    return f"{head}(?:{phrase}){tail}"


@derived
def listed(name: str) -> tuple[str, ...]:
    """The phrases of one list as they are written, by language."""
    return tuple(phrase for language in languages() for phrase in language.lists.phrases.get(name, ()))


@derived
def _rewrites() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Ways to say a condition that are read as another one."""
    return tuple(
        (compiled(pattern), instead) for language in languages() for pattern, instead in language.lists.rewrites
    )


@derived
def count_of(word: str) -> int:
    """What a word of the list `count` counts; they stand in the order of their numbers, by language."""
    for language in languages():
        for number, names in enumerate(language.lists.phrases.get("count", ()), 1):
            if re.fullmatch(names, word):
                return number
    return 0


class Sentence:
    """The folded text of a question; what was understood is taken out of it, quoted parts are put aside (`quoted`)."""

    def __init__(self, question: str) -> None:
        self.quoted: list[str] = []
        self._taken: list[int] = []
        self.takes = 0
        bare = "".join(c if c.isprintable() and not "\ue000" <= c <= "\uf8ff" else " " for c in question[:MAX_CHARS])
        # Bounded again: folded, one character may be eighteen.
        self.text = " ".join(plain(_QUOTED.sub(self._hold, bare))[:MAX_CHARS].split())

        for pattern, instead in _rewrites():
            self.text = pattern.sub(instead, self.text)[:MAX_CHARS]

    def _hold(self, found: re.Match[str]) -> str:
        text = next(part for part in found.groups() if part is not None).strip()
        if not text or len(self.quoted) >= _MOST_HELD:
            return " "
        self.quoted.append(text)
        return f" {HOLD}{chr(_FIRST_HELD + len(self.quoted) - 1)} "

    def held(self, start: int) -> tuple[str, int] | None:
        """The quoted text that stands at `start`, and where its place ends."""
        found = _HELD.match(self.text, start)
        return (self.quoted[ord(found[1]) - _FIRST_HELD], found.end()) if found else None

    def take(self, start: int, end: int) -> None:
        """Take a part out. Each time has a number, `takes`."""
        self.takes += 1
        place, gone = self.text[:start].count(GAP), self.text[start:end].count(GAP)
        self._taken[place : place + gone] = [self.takes]
        self.text = f"{self.text[:start]} {GAP} {self.text[end:]}"

    def taken_at(self, place: int) -> int:
        """Which number of taking out left the gap that is the `place`-th from the left."""
        return self._taken[place] if place < len(self._taken) else 0

    def restored(self, text: str) -> str:
        """`text` with its quoted parts back in it."""
        return _HELD.sub(lambda found: self.quoted[ord(found[1]) - _FIRST_HELD], text)


def says_something(words: str, question: str) -> bool:
    """True for what has a word that texts are searched for, a short state ("done"), or a name in capitals ("IT")."""
    if terms(words) or compiled("<small_state>").fullmatch(words):
        return True
    named = re.search(rf"(?<!\w){re.escape(words.upper())}(?!\w)", question[:MAX_CHARS])
    return named is not None and len(words) >= _LEAST_CHARS and words.isalpha() and not question.isupper()


def unique(items: Sequence[T]) -> tuple[T, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(items))


class KnownName(NamedTuple):
    """A name in a text: the values that it stands for, and where it ends."""

    values: tuple[str, ...]
    end: int


class Names:
    """Looks for values of one field at a place of a folded text; the longest wins. `least`: characters of a name."""

    def __init__(
        self, values: Iterable[str], aliases: Mapping[str, Sequence[str]] | None = None, least: int = _LEAST_CHARS
    ) -> None:
        self._values: dict[str, tuple[str, ...]] = {}
        self.known = tuple(values)
        for value in self.known:
            for name in (value, *(aliases or {}).get(value, ())):
                spelt = _name_key(name)
                if len(spelt) >= least or (name != value and is_han(spelt)):
                    self._values[spelt] = (*self._values.get(spelt, ()), value)
        self._reach = _ROOMY * max(map(len, self._values), default=0) + _MORE
        self._han: dict[str, list[str]] = {}
        for name in sorted(filter(is_han, self._values), key=len, reverse=True):
            self._han.setdefault(name[0], []).append(name)

    def at(self, text: str, start: int) -> KnownName | None:
        """The longest name that begins at `start`."""
        latin = self._words_at(text, start)
        name = next((name for name in self._han.get(text[start : start + 1], ()) if text.startswith(name, start)), None)
        if name is None or (latin and latin.end >= start + len(name)):
            return latin
        return KnownName(self._values[name], start + len(name))

    def _words_at(self, text: str, start: int) -> KnownName | None:
        ends: list[int] = []
        place, last = start, min(len(text), start + self._reach)  # else every place of a long word reads it to its end
        while len(ends) < _MOST_WORDS and (word := _WORD.match(text, place, last)):
            ends.append(word.end())
            place = word.end()
            while place < last and text[place] == " ":
                place += 1
        for end in reversed(ends):
            latin_end = next((at for at in range(start, end) if is_han(text[at])), end)  # "redis的" names redis
            owned = end - 2 if text.endswith("'s", start, end) else end
            for stop in dict.fromkeys((end, owned, end - 1 if text[end - 1] in ".'" else end, latin_end)):
                if stop > start and (values := self._values.get(_name_key(text[start:stop]))):
                    return KnownName(values, stop)
        return None

    def of(self, name: str) -> tuple[str, ...]:
        """The values that a whole name stands for; none when it is unknown."""
        return self._values.get(_name_key(name), ())

    def misspelt(self, word: str) -> str:
        """The known name that an unknown word is one or two letters away from; "" for none."""
        if len(word) < _LONG or self.of(word):
            return ""
        spelt = {plain(value): _name_key(value) for value in self.known} | {name: name for name in self._values}
        spelt |= {f"{name}s": name for name in self._values if name.isascii()}
        close = get_close_matches(plain(word), spelt, n=1, cutoff=_MISSPELT)
        return spelt[close[0]] if close and spelt[close[0]] != plain(word) else ""

    def near(self, name: str) -> str:
        """Known values that look like an unknown one, for people."""
        by_name = {plain(value): value for value in self.known}
        close = get_close_matches(plain(name), by_name, n=3)
        return ", ".join(by_name[value] for value in close)


class Nouns(NamedTuple):
    """What documents may be called by: their kinds, folders and tags."""

    kinds: Names
    folders: Names
    tags: Names


def is_plural(spelt: str) -> bool:
    """True for documents as such in the plural, and for Han characters, which have none."""
    return (
        is_han(spelt[-1])
        or (spelt.endswith("s") and value_key(spelt) != spelt)
        or compiled("<head_mass>").fullmatch(spelt) is not None
    )


def word_start(text: str, place: int) -> int:
    """Where the first word at or behind `place` begins: behind blanks."""
    return place + len(text[place:]) - len(text[place:].lstrip())


def _name_key(name: str) -> str:
    """The key of a name; a short last word of several counts without its plural too: "follow-ups"."""
    key = value_key(name)
    return key[:-1] if _SHORT_PLURAL.search(key) else key


def kind_names(kinds: Collection[str]) -> Names:
    """Kinds with their other names in all languages."""
    aliases = other_names(kinds)
    for kind, short in short_names(kinds).items():
        aliases[kind] = (*aliases.get(kind, ()), short)
    return Names(kinds, aliases)


def other_names(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What documents of kinds, or in folders, of these names are called, too, in all languages."""
    own = {name: _name_key(name) for name in names}
    known: dict[str, tuple[str, ...]] = {}
    for language in languages():
        for kind, others in language.lists.kinds.items():
            known[_name_key(kind)] = (*known.get(_name_key(kind), ()), *others)
    existing = {*own.values()}  # one that is a kind of its own stands for that alone
    found = {
        name: tuple(other for other in known.get(key, ()) if _name_key(other) not in existing)
        for name, key in own.items()
    }
    return {name: others for name, others in found.items() if others}


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The last word of each name of several, where no other name ends in it: "reports" for "pest reports"."""
    lasts: dict[str, list[str]] = {}
    for name in names:
        words = _name_key(name).split()
        lasts.setdefault(words[-1] if words else "", []).append(name)
    return {
        found[0]: last
        for last, found in lasts.items()
        if len(found) == 1 and _name_key(found[0]) != last and not compiled("<noun>").fullmatch(last)
    }
