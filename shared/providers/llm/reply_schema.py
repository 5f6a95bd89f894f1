"""Reads one XML element of a model's reply by a declared schema. What does not fit is refused with a named fault.

Replies are untrusted: the size, the depth and the declarations of the XML are limited. Text around it is ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import EllipsisType, MappingProxyType
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from shared.errors import ReplyError, shown
from shared.language import derived, languages

MAX_XML_BYTES = 65_536
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)
#: CDATA is matched to be skipped: an ampersand in it is literal already.
_BARE_AMPERSAND = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&(?![A-Za-z][A-Za-z0-9]{0,31};|#[0-9]{1,7};|#x[0-9a-fA-F]{1,6};)", re.DOTALL
)
#: Characters that XML does not know.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_THINKING = r"<(/?)(?:think|thinking|reasoning)>"
_ANYWHERE = re.compile(_THINKING, re.IGNORECASE)
_OWN_LINE = re.compile(rf"(?:^|(?<=\n))[ \t]*{_THINKING}", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_WORDS = {"yes": ("true", "yes", "1"), "none": ("", "none", "no", "null")}
_INTEGER = re.compile("[0-9]{1,4}")


class ReplyPlace(NamedTuple):
    """Where a value stands: how faults name its element, what they begin with, and its number among the items."""

    name: str
    prefix: str = ""
    number: int = 0


#: Makes a value of the text of an element or attribute. Raises: ReplyError naming the fault.
Reader = Callable[[str, ReplyPlace], Any]


class FieldSchema(NamedTuple):
    """One value of an element: the first child of its name, else the attribute, else `default` (...: a fault)."""

    read: Reader
    default: str | EllipsisType | None = ...


@dataclass(frozen=True, slots=True)
class ElementSchema:
    """An element of a reply: its fields, its own text, and the repeated children (`items`) that it holds.

    `noun` names it in faults. `others` says what becomes of children that the schema does not name: ignored, refused
    (as are items that hold elements), or taken for items whatever their tag.
    """

    tag: str
    fields: Mapping[str, FieldSchema] = field(default_factory=lambda: MappingProxyType({}))
    text: Reader | None = None
    items: ElementSchema | None = None
    noun: str = ""
    others: Literal["ignored", "refused", "taken"] = "ignored"


class ParsedElement(NamedTuple):
    """What was read of an element by its schema; its `children`, the items, are read on demand."""

    fields: dict[str, Any]
    text: Any
    children: tuple[Element, ...]
    schema: ElementSchema | None

    @property
    def items(self) -> Iterator[ParsedElement]:
        """The items in their order. Raises: ReplyError naming the first fault."""
        if (schema := self.schema) is not None:
            for number, child in enumerate(self.children, start=1):
                name = f"{schema.noun} {number}" if schema.noun else f"a <{schema.tag}>"
                yield _read(child, schema, ReplyPlace(name, f"{name}: " if schema.noun else "", number))


def read_reply(text: str, schema: ElementSchema) -> ParsedElement:
    """The first `<schema.tag>` of the reply outside the model's thinking.

    Raises: ReplyError naming the first fault: no element, cut off, too large, not well-formed, more than two levels
        deep, a value that is missing or cannot be taken.
    """
    return _read(_parsed(_element(text, schema), schema.tag), schema, ReplyPlace(f"the <{schema.tag}>"))


def one_line(text: str) -> str:
    """`text` on one line, without control characters and direction overrides."""
    return " ".join("".join(c for c in text if c.isspace() or not is_control(c)).split())


def is_control(char: str) -> bool:
    """True for control characters, halves of surrogate pairs and direction overrides."""
    return unicodedata.category(char) in {"Cc", "Cs"} or char in _BIDI_CONTROLS


def line(least: int = 0, most: int | None = None, label: str = "", *, cut: bool = False) -> Reader:
    """One line of `least` to `most` characters; a longer one is refused, or `cut`."""

    def read(value: str, place: ReplyPlace) -> str:
        cleaned = one_line(value)
        if cut:
            return cleaned[:most]
        if len(cleaned) < least or (most is not None and len(cleaned) > most):
            subject = f"{place.prefix}the {label}" if label else place.name
            raise ReplyError(f"{subject} has {len(cleaned)} characters, {least} to {most} are allowed")
        return cleaned

    return read


def choice(
    names: Mapping[str, Any], label: str, listed: str, also: Callable[[], Mapping[str, Any]] = dict[str, Any]
) -> Reader:
    """One of `names`, whatever its case and without a remark in brackets. `listed` stands in the fault.

    `also` are other names, of languages that a model may answer in.
    """

    def read(value: str, place: ReplyPlace) -> object:
        name = re.split("[(（]", value)[0].strip().casefold()  # our prompts call facets "core (…)"
        if name not in names and name not in also():
            raise ReplyError(f"{place.prefix}{label} {shown(value.strip())} is none of {listed}")
        return names[name] if name in names else also()[name]

    return read


def integer(least: int, most: int, fault: str) -> Reader:
    """A whole number of `least` to `most`. `fault` may name the {value} and {most}."""

    def read(value: str, place: ReplyPlace) -> int:
        given = value.strip()
        if not _INTEGER.fullmatch(given) or not least <= int(given) <= most:
            raise ReplyError(place.prefix + fault.format(value=shown(given), most=most))
        return int(given)

    return read


def yes_or_no(value: str, _place: ReplyPlace) -> bool:
    """True for a yes in any form, False for everything else."""
    return value.strip().casefold() in _words("yes")


def earlier(value: str, place: ReplyPlace) -> tuple[int, ...]:
    """Numbers of elements that stand before this one."""
    if value.strip().casefold() in _words("none"):
        return ()
    found = []
    for name in filter(None, re.split(r"[\s,，、;；#]+", value)):
        position = int(name) if _INTEGER.fullmatch(name) else 0
        if not 1 <= position < place.number:
            raise ReplyError(f"{place.prefix}depends_on {shown(name)} is no earlier subquery's number")
        found.append(position)
    return tuple(found)


def _read(element: Element, schema: ElementSchema, place: ReplyPlace) -> ParsedElement:
    parts: dict[str, str] = {}
    items: list[Element] = []
    for part in element:
        name = part.tag.casefold()
        if name in schema.fields:
            parts.setdefault(name, part.text or "")
        elif schema.others == "refused" and (schema.items is None or name != schema.items.tag or len(part)):
            raise ReplyError(f"{place.name} {_refused(part, schema)}")
        elif schema.items and (schema.others == "taken" or name == schema.items.tag):
            items.append(part)
    given = {name.casefold(): value for name, value in element.items()} | parts
    fields = {
        name: _field(name, wanted, given.get(name, wanted.default), place) for name, wanted in schema.fields.items()
    }
    text = schema.text(element.text or "", place) if schema.text else None
    return ParsedElement(fields, text, tuple(items), schema.items)


def _refused(part: Element, schema: ElementSchema) -> str:
    if schema.items is None:
        return "holds further elements, only text is allowed"
    return f"hold {shown(part.tag)} where only <{schema.items.tag}> may stand"


def _field(name: str, schema: FieldSchema, given: str | EllipsisType | None, place: ReplyPlace) -> object:
    if isinstance(given, EllipsisType):
        raise ReplyError(f"{place.name} has no <{name}>")
    return None if given is None else schema.read(given, place)


@cache
def _marks(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(rf"<{tag}\b[^<>]*>", re.IGNORECASE), re.compile(rf"</{tag}\s*>", re.IGNORECASE)


def _element(text: str, schema: ElementSchema) -> str:
    """The element's own text, ready for the parser."""
    text, tag = without_thinking(text, anywhere=True), schema.tag
    opening, closing = _marks(tag)
    start = opening.search(text)
    if start is None:
        raise ReplyError(f"the reply holds no <{tag}> element")
    if start[0].endswith("/>"):
        lacking = schema.items.tag if schema.items else next(iter(schema.fields), "text")
        raise ReplyError(f"the <{tag}> holds no <{lacking}>")
    end = closing.search(text, start.end())
    if end is None:
        raise ReplyError(f"the <{tag}> element is cut off: </{tag}> is missing")
    if _DECLARATION.search(text, 0, end.end()):
        raise ReplyError("the reply declares a document type or entities, which is not allowed")
    inner = text[start.end() : end.start()]
    if len(inner.encode("utf-8", "replace")) > MAX_XML_BYTES:
        raise ReplyError(f"the <{tag}> element is larger than {MAX_XML_BYTES} bytes")
    inner = _BARE_AMPERSAND.sub(lambda found: "&amp;" if found[0] == "&" else found[0], NOT_XML.sub("", inner))
    return f"<{tag}>{inner}</{tag}>"


def _parsed(element: str, tag: str) -> Element:
    try:
        root: Element = fromstring(element, forbid_dtd=True)
    except ParseError as error:
        raise ReplyError(f"the <{tag}> is not well-formed XML: {error}") from None
    except (DefusedXmlException, ValueError):
        raise ReplyError(f"the <{tag}> holds XML that is not allowed") from None
    for part in root:
        for inner in part:
            if len(inner):
                raise ReplyError(f"element {shown(inner.tag)} holds further elements, only text is allowed")
    return root


def without_thinking(text: str, *, anywhere: bool = False) -> str:
    """`text` without <think>...</think>. An unclosed mark hides all that follows it, a lone closing one all before it.

    Marks count at the beginning of a line, or `anywhere`: prose may speak of such marks, XML cannot hold them bare.
    """
    marks = _ANYWHERE if anywhere else _OWN_LINE
    kept: list[str] = []
    at = 0
    while mark := marks.search(text, at):
        if mark[1]:  # the chat template swallowed the opening mark
            kept.clear()
            at = mark.end()
            continue
        kept.append(text[at : mark.start()])
        closing = _CLOSING.search(text, mark.end())
        if closing is None:
            return "".join(kept)
        at = closing.end()
    return "".join([*kept, text[at:]])


@derived
def _words(kind: Literal["yes", "none"]) -> frozenset[str]:
    """What a model writes for yes, or for nothing at all."""
    return frozenset(_WORDS[kind]).union(*(getattr(language.words.reply, kind) for language in languages()))
