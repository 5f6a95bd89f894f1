"""Takes out of a question what is to be told of each document of the list: "with their owner", 带上负责人. Pure."""

from __future__ import annotations

from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.words import Names, Sentence, compiled, listed, unique
from shared.language.text import is_han, value_key
from shared.models.enumeration import MAX_COLUMNS

_COLUMNS = r"<columns>\s*(?P<list>[^?!。？！\x1f]{1,200})[?!.。？！\s]*$"
_BETWEEN = r"\s*(?:,\s*<column_last!>?|、|<column_join!>)\s*"
#: The end of a list of names: marks, and what is to be done with them.
_END = r"\s*(?P<end><columns_end>)?[\s?!.。？！]*$"
_MAX_CHARS, _MAX_WORDS = 40, 4
#: So far before the end bare names of fields are looked for, in characters.
_LONGEST = 160


def take_columns(sentence: Sentence, fields: Names, folders: Names, named: NamedValues) -> None:
    """The columns at the end of the question: whatever stands behind "with their", names of `fields` behind "with".

    The name of one of `folders` behind 的 is what the documents are called.
    """
    if found := compiled(_COLUMNS).search(sentence.text):
        wanted = _parts(sentence, found["list"])
        if wanted and all(len(part) <= _MAX_CHARS and len(part.split()) <= _MAX_WORDS for part in wanted):
            _keep(sentence, fields, wanted, found.start(), named)
            return
    for lead in compiled("<columns_lead>").finditer(sentence.text, max(0, len(sentence.text) - _LONGEST)):
        end = compiled(_END).search(sentence.text, lead.end())
        wanted = _parts(sentence, sentence.text[lead.end() : end.start() if end else len(sentence.text)])
        known = all(fields.of(part) or value_key(part) in listed("built_in") for part in wanted)
        sure = len(wanted) > 1 or is_han(lead[0]) or not compiled("<columns_unsure>").fullmatch(lead[0])
        asked = lead[0].strip(" ,") != "" or (end is not None and end["end"] is not None)
        described = (
            bool(wanted) and compiled("(?:<value_end!>)").fullmatch(lead[0]) is not None and bool(folders.of(wanted[0]))
        )
        if wanted and known and sure and asked and not described:
            _keep(sentence, fields, wanted, lead.start(), named)
            return


def _parts(sentence: Sentence, text: str) -> list[str]:
    parts = (sentence.restored(part).strip(" .") for part in compiled(_BETWEEN).split(text))
    return [compiled("^(?:<article!>)").sub("", part) for part in parts if part]


def _keep(sentence: Sentence, fields: Names, wanted: list[str], start: int, named: NamedValues) -> None:
    named.columns = unique([part for part in wanted if fields.of(part) or value_key(part) not in listed("built_in")])[
        :MAX_COLUMNS
    ]
    sentence.take(start, len(sentence.text))
