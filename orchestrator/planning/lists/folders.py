"""Takes the folders that a question names out of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from orchestrator.planning.lists.markers import NamedValues, is_negated, negation_start
from orchestrator.planning.lists.words import (
    GAP,
    Names,
    Sentence,
    compiled,
    kind_names,
    other_names,
    short_names,
    unique,
)
from shared.language import reader_sentence
from shared.language.text import HAN, is_han, plain, value_key
from shared.models.enumeration import Values

_PATHISH = re.compile(r"(?:[\w.\-]+/)+[\w.\-]*")
_HIDDEN_PATH = re.compile(r"(?:and|or)/|/(?:and|or)$")
_WORD_END = re.compile(rf"(?:(?<!\w)|(?<=[{HAN}]))[^\W{HAN}]{{1,40}}$|[{HAN}]\w{{0,39}}(?<=[{HAN}])$")
_FOLDER = r"<folder_lead!>(?P<name>[\w\-]{1,60})"
#: A folder that stands for its documents: "which logs are assigned to Mateo".
_LISTED_FOLDER = r"(?:<head_lead> )*(?!<noun>)(?P<name>[\w\-]{1,60}s)\s*(?:$|[?.!,;]|<head_behind>)"
#: The beginning of a name behind "which" at the end of a question.
_SHORT_NOUN = rf"(?:<head_asked>)(?P<name>[{HAN}]{{1,3}})[?。!\s]*$"
#: One more folder behind the first: "in photometer or guider".
_MORE = r"\s*(?:,|<either>|<both>)\s*(?:<in_folder>\s*)?(?P<name>[\w\-]{1,60})(?!/)"
_MOST_MORE = 8
#: Between a folder's name and the documents that it describes; before a name that no word goes on into.
_DESCRIBED = rf"\s*(?:<value_end!>)?\s*(?:{GAP}\s*(?:<value_end!>)?\s*)*"
_HAN_NOUN = rf"(?=[{HAN}])<noun>"
_APART = rf"(?:[^{HAN}]|<value_end!>|<in_folder>)$"
#: Behind it stands what documents are about, or what their texts hold.
_TOPIC_LEAD = r"(?:<about>|<about_next>|<mention>)\s*(?:the |our |any )?$"


def take_paths(sentence: Sentence, values: Values, named: NamedValues) -> None:
    """Folders in "skills/ 下", "the queues folder", "in queues": those that exist, or a path that ends with a slash."""
    place = 0
    while found := _PATHISH.search(sentence.text, place):
        place = found.end()
        folders = _folders(found[0], values)
        if not folders and is_han(found[0]) and (inner := _folder_in(found[0], values)):
            begun = found.start() + inner.start()
            _add_paths(_folders(inner[0], values), values, sentence, (begun, begun + len(inner[0])), named)
            place = 0
        elif (folders or found[0].endswith("/")) and not _HIDDEN_PATH.search(found[0]):
            if not folders:
                named.warnings.append(reader_sentence("list_no_folder", named.question, found[0]))
            _add_paths(folders or (found[0],), values, sentence, found.span(), named)
            place = 0
    for found in compiled("<after_folder>").finditer(sentence.text):
        head = sentence.text[: found.start()].rstrip()
        tail = _WORD_END.search(head)
        name = (held[0] if (held := sentence.held(len(head) - 2)) else "") or _named_at_end(
            tail[0] if tail else "", values
        )
        folders = _folders(f"{name}/", values) if name else ()
        if folders:
            start = len(head) - (2 if held else len(name))
            _add_paths(folders, values, sentence, (start, found.end()), named)
            return
    for found in compiled(_FOLDER).finditer(sentence.text):
        if folders := _folders(f"{found['name']}/", values):
            _add_paths(folders, values, sentence, found.span("name"), named)
            return
    listed_one = compiled(_LISTED_FOLDER).match(sentence.text)
    folders = _folders(f"{listed_one['name']}/", values) if listed_one else ()
    if listed_one and folders and not kind_names(values.kinds).of(listed_one["name"]):
        _add_paths(folders, values, sentence, listed_one.span("name"), named)


def take_listed_folder(sentence: Sentence, values: Values, named: NamedValues) -> None:
    """A folder whose name stands for its documents wherever it stands: "open pest reports", 三月的会议纪要.

    Not beside a kind, another folder or a word for documents, and not as what documents are about.
    """
    names, kinds = folder_names(values.folders), kind_names(values.kinds)
    if named.kinds or named.paths or named.without_kinds or _has_noun(sentence.text, names):
        return
    text, exists = sentence.text, compiled("<head_exists>").search(plain(named.question))  # "is there a late voyage"
    places = [place for place in range(len(text)) if _begins_name(text, place)]
    if any(kinds.at(text, place) for place in places):
        return
    for place in places:
        known = names.at(text, place)
        single = named.order or named.by or compiled("<each_one> $").search(text[:place]) or exists
        one = single and not text[known.end : known.end + 1].isalnum() if known else False
        if (
            known is None
            or not (one or _ends_name(text, place, known.end))
            or compiled(_TOPIC_LEAD).search(text[:place])
        ):
            continue
        folders = tuple(folder for folder in values.folders if leaf_of(folder) in known.values)
        _add_paths(folders, values, sentence, (place, known.end), named)
        return


def _has_noun(text: str, folders: Names) -> bool:
    """True where a word for documents stands that is no part of a folder's name, as 记录 is of 巡查记录."""
    text = compiled("<head_mass>").sub("", text)
    places = [place for place in range(len(text)) if is_han(text[place])]
    named = [(place, known.end) for place in places if (known := folders.at(text, place))]
    nouns = compiled("<noun>").finditer(text)
    return any(not any(place < noun.start() and noun.end() <= end for place, end in named) for noun in nouns)


def take_short_noun(sentence: Sentence, values: Values, kinds: Names, named: NamedValues) -> None:
    """The one kind or folder whose name begins with what stands behind "which": 会 in 哪些会, for 会议纪要."""
    found = compiled(_SHORT_NOUN).search(sentence.text)
    if (
        found is None
        or named.kinds
        or named.paths
        or compiled("<noun>").match(found["name"])
        or kinds.of(found["name"])
    ):
        return
    begun = [kind for kind in values.kinds if kind.startswith(found["name"])]
    folders = [folder for folder in values.folders if leaf_of(folder).startswith(found["name"])]
    if len({*begun, *map(leaf_of, folders)}) == 1:
        named.kinds += begun
        named.paths += () if begun else folders
        named.read_as.append(f"{found['name']}: {(begun or [leaf_of(folders[0])])[0]}")
        sentence.take(*found.span("name"))


def take_described_folder(sentence: Sentence, values: Values, kinds: Names, named: NamedValues) -> None:
    """A folder whose name describes the documents behind it, or that they are in: "secular scores", 卷下里的."""
    if named.paths:
        return
    said = Names([*values.tags, *(value for known in values.fields.values() for value in known)])
    text, names = sentence.text, Names(unique([leaf_of(folder) for folder in values.folders]))
    for place in filter(partial(_begins_name, text), range(len(text))):
        known = names.at(text, place)
        if known is None or kinds.at(text, place) or said.at(text, place) or compiled(_TOPIC_LEAD).search(text[:place]):
            continue
        inside = compiled("<inside_noun>").match(text, known.end) if is_han(text[known.end - 1]) else None
        inside = inside if place == 0 or compiled(_APART).search(text[:place]) else None
        behind = compiled(_DESCRIBED).match(text, known.end)
        noun = behind and (kinds.at(text, behind.end()) or compiled(_HAN_NOUN).match(text, behind.end()))
        if inside or noun:
            folders = tuple(folder for folder in values.folders if leaf_of(folder) in known.values)
            named.read_as.append(f"{text[place : known.end]}: {' / '.join(folders)}")
            _add_paths(folders, values, sentence, (place, inside.end() if inside else known.end), named)
            return


def take_noun_of_kind(sentence: Sentence, values: Values, kinds: Names, named: NamedValues) -> None:
    """The one kind whose name ends with the word for documents that is asked for: 条目, for 方志条目."""
    text = sentence.text
    if named.kinds or any(kinds.at(text, place) for place in range(len(text)) if _begins_name(text, place)):
        return
    found = [each for each in compiled("<noun>").finditer(text) if is_han(each[0])]
    if not found or compiled("<any_noun>").fullmatch(noun := found[-1][0]):
        return
    lead = text[text.rfind(GAP, 0, found[-1].start()) + 1 : found[-1].start()]
    about = next(compiled("<mention>|<about>").finditer(lead), None)
    if about and not compiled("<value_end!>").search(lead, about.end()):
        return
    of_it = [kind for kind in values.kinds if kind.endswith(noun) and kind != noun]
    if len(of_it) == 1:
        if inside := compiled("<inside_noun>").match(text, found[-1].end()):
            sentence.take(*inside.span())
        named.kinds += of_it
        named.read_as.append(f"{noun}: {of_it[0]}")
    elif of_it:
        named.left.append(noun)


def folder_names(folders: Iterable[str]) -> Names:
    """The last names of folders, by which their documents may be called."""
    leaves = unique([leaf_of(folder) for folder in folders])
    others, short = other_names(leaves), short_names(leaves)
    return Names(leaves, {leaf: (*others.get(leaf, ()), *([short[leaf]] if leaf in short else [])) for leaf in leaves})


def leaf_of(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]


def _begins_name(text: str, place: int) -> bool:
    return place == 0 or is_han(text[place]) or not (text[place - 1].isalnum() or text[place - 1] in "_-/.")


def _ends_name(text: str, start: int, end: int) -> bool:
    """Whether a name ends there; one in Latin letters has to be in the plural, as the name of several documents."""
    if is_han(text[end - 1]):
        return True
    return text[start:end].endswith("s") and not (
        text[end : end + 1].isalnum() or text[end : end + 1] in ("/", "-", "_")
    )


def _named_at_end(name: str, values: Values) -> str:
    """The folder that a word without spaces ends with, 影像科 of 放在影像科; else the word."""
    starts = range(len(name) - 1) if is_han(name) else ()
    return next((name[at:] for at in starts if _folders(f"{name[at:]}/", values)), name)


def _folder_in(text: str, values: Values) -> re.Match[str] | None:
    """The longest folder path that stands in a text without spaces: 运维/事故 in 除了运维/事故下的."""
    tails = {
        "/".join(parts[start:])
        for folder in values.folders
        for parts in (folder.rstrip("/").split("/"),)
        for start in range(len(parts) - 1)
    }
    known = sorted((tail for tail in tails if tail.casefold() in text), key=len, reverse=True)
    return re.search(re.escape(known[0].casefold()), text) if known else None


def _add_paths(
    folders: tuple[str, ...], values: Values, sentence: Sentence, place: tuple[int, int], named: NamedValues
) -> None:
    """Keep the folders that stand at `place` and those that are joined to them, take their words out."""
    start, end = place
    lead = compiled(r"<in_folder>\s*$").search(sentence.text[:start])
    begun = lead.start() if lead else start
    target = named.without_paths if is_negated(sentence, begun) else named.paths
    target += folders
    for _ in range(_MOST_MORE):
        more = compiled(_MORE).match(sentence.text, end)
        others = _folders(f"{more['name']}/", values) if more else ()
        if more is None or not others or kind_names(values.kinds).of(more["name"]):
            break
        target += others
        end = more.end()
    sentence.take(negation_start(sentence, begun), end)


def _folders(spelt: str, values: Values) -> tuple[str, ...]:
    """The folders that end with the path that is spelt: "skills/" is every folder of that name.

    Those that are spelt exactly so go before "skill/", which is another folder where both exist.
    """
    exact = f"/{spelt.rstrip('/')}/"
    if same := tuple(folder for folder in values.folders if f"/{folder}".endswith(exact)):
        return same
    wanted = value_key(spelt.rstrip("/")).replace("/ ", "/")
    return tuple(
        folder
        for folder in values.folders
        if (name := value_key(folder.rstrip("/"))) == wanted or name.endswith(f"/{wanted}")
    )
