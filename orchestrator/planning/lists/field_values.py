"""The fields that documents have, by all the names that a question may call them, and their values. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from orchestrator.planning.lists.people import holds_people
from orchestrator.planning.lists.words import Names, short_names, unique
from shared.language import derived, languages
from shared.language.field_names import field_stem, other_forms, synonyms
from shared.language.text import is_han, plain, terms, value_key
from shared.models.enumeration import Values

_WORDS = re.compile(r"[^\W_]+")
#: A value of so many words is also found by one of them: "Ada" for "Ada Lovelace".
_MOST_WORDS = 5
_LEAST_PART = 2
#: A field with more values than these tells documents apart instead of sorting them: its values are no names.
_MOST_SORTED = 200
_PARTICIPLE = re.compile(r"(?<![a-z])[a-z]++(?<=ed|en|[wos]n)", re.IGNORECASE)
_MOST_CHARS, _MOST_NAME = 40, 3
#: A field that so large a share of the documents have is known to all.
_PROMINENT = 0.1
_MOST_NEAR = 3
#: A verb and the name of a field are of one word from so many letters on.
_SAME_STEM = 4
#: Two names are forms of one where their values stand in hardly more documents than there are: none has both.
_ONE_OF_BOTH = 1.2
#: Names of fields whose verbs are looked for.
_MOST_VERBS = 300
#: Fields whose bare values leave no doubt: "open incidents".
_STATES = ("status", "severity", "priority")


#: The lists of a verb in a name: the name itself, before its value, behind it, and without any.
_FORMS_OF_VERB = ("", "_said", "_behind", "_unset", "_lacking", "_nobody")


class Meant(NamedTuple):
    """What a spelt value stands for: the keys of its fields and the values as they are written."""

    names: tuple[str, ...]
    values: tuple[str, ...]


class FieldGroup:
    """What one name calls: rows of field keys, of which the first that has a value counts, and all their values.

    `instead`: no document has a field of that name, so others stand in.
    """

    def __init__(self, rows: Sequence[Sequence[str]], known: KnownFields) -> None:
        self.instead = not rows[0]
        self._rows = [row for row in rows if row]
        self._known = known
        self.keys = unique([key for row in self._rows for key in row])
        values = [value for key in self.keys for value in known.values(key)]
        self.names = Names(values, {value: _parts(value) for value in values}, least=1)

    @property
    def first(self) -> tuple[str, ...]:
        """The keys that the name stands for before any other."""
        return tuple(self._rows[0])

    @property
    def held(self) -> tuple[str, ...]:
        """The values of these keys, without those of others that may stand in."""
        return unique([value for key in self.first for value in self._known.values(key)])

    @property
    def spelt(self) -> tuple[str, ...]:
        """The same as documents write them."""
        return self._known.spelt(self.first)

    @property
    def prominent(self) -> bool:
        """True when it is a usual field of these documents."""
        return any(self._known.prominent(key) for key in self.first)

    def meant(self, spelt: str) -> Meant | None:
        """What `spelt` stands for; None when no document has it. The whole value goes before a part of one."""
        found = self.names.of(spelt)
        whole = [value for value in found if value_key(value) == value_key(spelt)]
        for row in self._rows:
            values = [value for value in (whole or found) if any(value in self._known.values(key) for key in row)]
            if values:
                keys = [key for key in row if any(value in self._known.values(key) for value in values)]
                return Meant(unique(keys), _once(values))
        return None

    def near(self, spelt: str) -> str:
        """Values that look like an unknown one, else the usual ones."""
        counts = [(documents, value) for key in self.first for value, documents in self._known.values(key).items()]
        usual = sorted(counts, key=lambda item: (-item[0], item[1]))
        return self.names.near(spelt) or ", ".join(_once([value for _, value in usual])[:_MOST_NEAR])


class KnownFields:
    """The fields under a filter. `groups` are found by each name that exists or stands for one that does."""

    def __init__(self, values: Values) -> None:
        self._values, self._documents = values.fields, values.documents
        self._spelt = values.field_names
        self.truncated = "fields" in values.truncated
        self.groups: dict[str, FieldGroup] = {}
        self.concepts: dict[str, FieldGroup] = {}
        self._stems: dict[str, list[str]] = {}
        for key in self._values:
            self._stems.setdefault(field_stem(key), []).append(key)
        self._find_concepts()
        for key in self._values:
            group = self.groups.setdefault(key, FieldGroup([self._with_forms([key])], self))
            for form in other_forms(key):
                self.groups.setdefault(form, group)
        tails = [(short, key) for key in self._values for short in _without(key, "name_tail")]
        self.groups |= {short: self.groups[key] for short, key in tails if short not in self.groups}
        self.names = Names(self.groups)
        #: The last words of names of several: "law" of "governing law".
        self.short = Names(self._values, _short_names(self._values))
        #: Names of fields that may hold days, and what is done then: 立案 of 立案日期, the stem of "release".
        self.dated = [(key, stem) for key in self._values for stem in _verbs_of_day(key)]
        short = [value for known in self._values.values() if len(known) <= _MOST_SORTED for value in known]
        short = [value for value in dict.fromkeys(short) if _is_short(value)]
        heads = _heads(short)
        self.anywhere = Names(
            short,
            {
                value: (*_without_lead(value), *_forms_of(value), *_name_parts(value), *heads.get(value, ()))
                for value in short
            },
        )
        #: States without the word before them that says that they are reached: 结案 of 已结案.
        self.reached = unique([state for value in short for state in _without_lead(value) if is_han(state)])
        self.forms: dict[str, tuple[str, ...]] = {}
        for value in filter(_PARTICIPLE.fullmatch, short):
            stem = " ".join(terms(value))
            self.forms[stem] = (*self.forms.get(stem, ()), value)

    @cached_property
    def own(self) -> list[FieldGroup]:
        """The fields that documents have, each once, without those that stand for another one."""
        return list({group.first: group for group in self.groups.values() if not group.instead}.values())

    def _find_concepts(self) -> None:
        """The fields that the languages' tables have names for."""
        for concept, rows in _concepts().items():
            existing = [self._with_forms([key for key in row if key in self._values]) for row in rows]
            if any(existing):
                self.concepts[concept] = FieldGroup(existing, self)
                for number, row in enumerate(rows):
                    for name in row:
                        first = sorted(existing[number], key=lambda key, name=name: key != name)  # type: ignore[misc]
                        own = [first, *existing[:number], *existing[number + 1 :]]
                        if name not in self.groups:
                            self.groups[name] = FieldGroup(own, self)

    def _with_forms(self, keys: Sequence[str]) -> list[str]:
        """The keys with those that are other forms of the same name: so few documents have both that they are one."""
        found = [*keys]
        for key in keys:
            for other in (*self._stems.get(field_stem(key), ()), *self._abbreviated(key)):
                both = sum(self.values(key).values()) + sum(self.values(other).values())
                if other not in found and both <= _ONE_OF_BOTH * self._documents:
                    found.append(other)
        return found

    def _abbreviated(self, key: str) -> Iterator[str]:
        """Names that shorten this one, or that it shortens, and that take a value of it: 责编 and 责任编辑."""
        for other in self._values if is_han(key) else ():
            short, long = sorted((key, other), key=len)
            letters = iter(long)
            fits = (
                _LEAST_PART <= len(short) < len(long) and short[0] == long[0] and all(char in letters for char in short)
            )
            if fits and self._values[key].keys() & self._values[other].keys():
                yield other

    def verbs(self, text: str) -> Iterator[tuple[FieldGroup, str, str, str]]:
        """Each field with the verb in its name that stands in a text: for "supervised by", "supervises", "nobody does".

        Those that the languages' tables have verbs for are left out.
        """
        told = {key for rows in _concepts().values() for key in rows[0]}
        for key in sorted(self._values.keys() - told)[:_MOST_VERBS]:
            for stem, *patterns in _verbs_of(key):
                if stem in text:
                    yield self.groups[key], *patterns  # type: ignore[misc]

    def spelt(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Names as documents write them: "species" for the key "specy"."""
        return unique([self._spelt.get(key, key) for key in keys])

    def values(self, key: str) -> dict[str, int]:
        """Value -> documents of a field."""
        return self._values.get(key, {})

    def prominent(self, key: str) -> bool:
        """True when many documents have the field."""
        return sum(self.values(key).values()) >= max(2, _PROMINENT * self._documents) or key in _all_names()

    @staticmethod
    def is_state(keys: Sequence[str]) -> bool:
        """True when all of these fields say how far or how bad something is: their values stand bare in any text."""
        return all(any(key in row for name in _STATES for row in _concepts().get(name, ())) for key in keys)

    def flag(self, group: FieldGroup) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of a field all of whose values are yes or no, those that are yes and those that are no; else none."""
        yes, no = _yes_and_no()
        values = {value: value_key(value) for key in group.first for value in self.values(key)}
        if group.instead or not {*values.values()} <= yes | no:
            return (), ()
        affirmed = tuple(value for value, key in values.items() if key in yes)
        return affirmed, tuple(value for value, key in values.items() if key in no) if affirmed else ()

    def is_single(self, keys: Sequence[str]) -> bool:
        """True where no document has two values of these fields."""
        return sum(sum(self.values(key).values()) for key in keys) <= self._documents

    def is_person(self, keys: Sequence[str]) -> bool:
        """True where the values of these fields are people: by their names, or by the values that each of them has."""
        return all(key in self._people for key in keys)

    @cached_property
    def _people(self) -> frozenset[str]:
        return frozenset(key for key, known in self._values.items() if holds_people(key, known))

    def holding(self, spelt: str) -> Iterator[Meant]:
        """Each field that has the value, the usual ones first; names of one field together."""
        found = self.anywhere.of(spelt)
        values = [value for value in found if value_key(value) == value_key(spelt)] or found
        counts = {key: sum(self.values(key).get(value, 0) for value in values) for key in self._values}
        seen: set[str] = set()
        for key in sorted((key for key, count in counts.items() if count), key=lambda key: (-counts[key], key)):
            if key not in seen:
                row = [other for other in self.groups[key].first if counts.get(other)]
                seen |= {*row, key}
                yield Meant(unique([key, *row]), _once(values))


def field_names(values: Values) -> Names:
    """The names that fields of these documents may be called by."""
    synonymous = (name for key in values.fields for name in synonyms().get(key, ()))
    return Names({*values.fields, *synonymous, *(form for key in values.fields for form in other_forms(key))})


def _without(key: str, part: str) -> Iterator[str]:
    """A name without a part that says nothing, `name_tail` or `name_lead`: 考核 for 考核方式."""
    for language in languages():
        for form in language.lists.phrases.get(part, ()):
            if found := re.fullmatch(form, key):
                yield found[1]


def _short_names(keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The last word of each name, in Han characters two or what follows a lead: 区 of 所在区; of one name."""
    latin, han = [key for key in keys if not is_han(key)], [key for key in keys if is_han(key)]
    ends = Counter(key[-length:] for key in han for length in range(1, len(key) + 1))
    short = {key: unique([key[-_LEAST_PART:], *_without(key, "name_lead")]) for key in han}
    found = {key: tuple(end for end in named if end != key and ends[end] == 1) for key, named in short.items()}
    return {**found, **{key: (last,) for key, last in short_names(latin).items()}}


def of_one_word(word: str, name: str) -> bool:
    """True for a verb that a field's name is made of: project and "projectionist", 采 and 采集人."""
    if is_han(word):
        return any(char in name for char in word)
    return len(word) >= _SAME_STEM and any(each.startswith(word[:_SAME_STEM]) for each in value_key(name).split())


@derived
def _concepts() -> dict[str, tuple[tuple[str, ...], ...]]:
    """A field -> rows of keys of its names; the rows of all languages side by side."""
    rows: dict[str, list[list[str]]] = {}
    for language in languages():
        for concept, named in language.lists.fields.items():
            known = rows.setdefault(concept, [])
            known += [[] for _ in range(len(named) - len(known))]
            for row, names in zip(known, named, strict=False):
                row.extend(map(value_key, names))
    whole = {name: found[0] for found in rows.values() for name in found[0]}
    for found in rows.values():  # another concept that stands in does so by all of its names
        found[1:] = [[each for name in row for each in (name, *whole.get(name, ()))] for row in found[1:]]
    return {concept: tuple(map(unique, found)) for concept, found in rows.items()}


@derived
def field_concepts() -> dict[str, tuple[str, ...]]:
    """A field -> the keys of all its names, and of those that stand in for it."""
    return {concept: unique([name for row in rows for name in row]) for concept, rows in _concepts().items()}


@derived
def _yes_and_no() -> tuple[frozenset[str], frozenset[str]]:
    """What a field that is yes or no has as its value."""
    yes, no = (
        frozenset(value_key(value) for language in languages() for value in language.lists.phrases.get(name, ()))
        for name in ("flag_yes", "flag_no")
    )
    return yes, no


@derived
def _all_names() -> frozenset[str]:
    return frozenset(name for rows in _concepts().values() for row in rows for name in row)


def _verbs_of(key: str) -> Iterator[tuple[str, str, str, str]]:
    """The verb that a name such as "supervisor" is made of: its stem, and patterns of its forms."""
    for language in languages():
        rows = zip(
            *(language.lists.phrases.get(f"named_verb{part}", ()) for part in _FORMS_OF_VERB),
            strict=True,
        )
        for name, *patterns in rows:
            if found := re.fullmatch(name, key):
                said, behind, *unset = (pattern.format(re.escape(found[1])) for pattern in patterns)
                yield found[1], said, behind, "|".join(unset)


def _is_short(value: str) -> bool:
    """True for a value that somebody may name in a question: no number, no day, no sentence."""
    return (
        len(value) <= _MOST_CHARS
        and len(value.split()) <= _MOST_WORDS
        and not value.replace("-", "").replace("/", "").isdigit()
    )


def _name_parts(value: str) -> tuple[str, ...]:
    """The words of a name of two or three, each of which may stand for it."""
    words = value.split()
    fits = (
        word for word in words if (len(word) > _LEAST_PART or (word == words[0] and word.istitle())) and terms(word)
    )
    return tuple(fits) if _is_name(value) else ()


def _is_name(value: str) -> bool:
    words = value.split()
    return 1 < len(words) <= _MOST_NAME and all(word[0].isupper() and word.isascii() for word in words)


def inflects_name(word: str, value: str) -> bool:
    """True for a word of a name in another form than the name has it: "feed" is no part of "Brackwell Feeds"."""
    whole = value_key(word) == value_key(value)
    return _is_name(value) and not whole and " " not in word and word not in plain(value).split()


def _heads(values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The last word of what is no name, which stands for all values that end in it: "owl" for "Barn owl"."""
    several = [value.split() for value in values]
    kinds = {words[-1] for words in several if 1 < len(words) <= _MOST_NAME and words[-1].islower()}
    fits = {head for head in kinds if len(head) > _LEAST_PART and terms(head)}
    return {value: (head,) for value in values if (head := value.split()[-1]) in fits and head != value}


def _without_lead(value: str) -> tuple[str, ...]:
    """A state without the word before it that says that it is reached, as its denial has it."""
    led = (lead for language in languages() for lead in language.lists.phrases.get("value_lead", ()))
    return tuple(value.removeprefix(lead) for lead in led if value.startswith(lead) and len(value) > len(lead) + 1)


def _forms_of(value: str) -> tuple[str, ...]:
    """Other ways to say a state: 正在修复 for 修复中."""
    rows = (
        zip(*(language.lists.phrases.get(name, ()) for name in ("value_form", "value_said")), strict=True)
        for language in languages()
    )
    found = ((re.fullmatch(form, value), said) for row in rows for form, said in row)
    return tuple(said.format(match[1]) for match, said in found if match)


def _verbs_of_day(key: str) -> Iterator[str]:
    """What is done on the day that a field of this name holds: the verb, in Latin letters its stem."""
    for language in languages():
        for form in language.lists.phrases.get("name_of_day", ()):
            if found := re.fullmatch(form, key):
                yield found[1] if is_han(found[1]) else " ".join(terms(found[1]))
                return


def _parts(value: str) -> tuple[str, ...]:
    words = _WORDS.findall(value)
    if not 1 < len(words) <= _MOST_WORDS:
        return ()
    return tuple(word for word in words if len(word) >= _LEAST_PART and (terms(word) or is_han(word)))


def _once(values: Iterable[str]) -> tuple[str, ...]:
    """One spelling of each value."""
    return tuple({value_key(value): value for value in reversed(list(values))}.values())[::-1]
