"""Reads one XML element of a model's reply by a declared schema. What does not fit is refused with a named fault.

Replies are untrusted: the size, the depth and the declarations of the XML are limited. Text around it is ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType, MappingProxyType
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from shared.errors import ReplyError, shown
from shared.hidden import without_hidden

_MAX_XML_BYTES = 65_536
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
_INTEGER = re.compile("[0-9]{1,4}")

#: Makes a value of the text of an element or attribute. Raises: ReplyError naming the fault, not the element.
ValueParser = Callable[[str], Any]


class FieldSchema(NamedTuple):
    """One value of an element: the first child of its name, else the attribute, else `default` (...: a fault)."""

    read: ValueParser
    default: str | EllipsisType | None = ...


@dataclass(frozen=True, slots=True)
class ElementSchema:
    """An element of a reply: its fields, its own text, and the repeated children (`items`) that it holds.

    `noun` names it in faults. `others` says what becomes of children that the schema does not name: ignored, refused
    (as are items that hold elements), or taken for items whatever their tag.
    """

    tag: str
    fields: Mapping[str, FieldSchema] = field(default_factory=lambda: MappingProxyType({}))
    text: ValueParser | None = None
    items: ElementSchema | None = None
    noun: str = ""
    others: Literal["ignored", "refused", "taken"] = "ignored"


class ParsedElement(NamedTuple):
    """What was read of an element. Its items, `size` in all, are read one by one, and may raise ReplyError."""

    fields: dict[str, Any]
    text: Any
    size: int
    items: Iterator[ParsedElement]


def read_reply(text: str, schema: ElementSchema) -> ParsedElement:
    """The first `<schema.tag>` of the reply outside the model's thinking.

    Raises: ReplyError naming the first fault: no element, cut off, too large, not well-formed, more than two levels
        deep, a value that is missing or cannot be taken.
    """
    tag = schema.tag
    try:
        root: Element = fromstring(_source(text, schema), forbid_dtd=True)
    except ParseError as error:
        raise ReplyError(f"the <{tag}> is not well-formed XML: {error}") from None
    except (DefusedXmlException, ValueError):
        raise ReplyError(f"the <{tag}> holds XML that is not allowed") from None
    for part in root:
        for inner in part:
            if len(inner):
                raise ReplyError(f"element {shown(inner.tag)} holds further elements, only text is allowed")
    return _read(root, schema, f"the <{tag}>")


def line(least: int = 0, most: int | None = None, label: str = "", *, cut: bool = False) -> ValueParser:
    """One line of `least` to `most` characters; a longer one is refused, or `cut`. `label` names it in the fault."""

    def read(value: str) -> str:
        cleaned = one_line(value)
        if cut:
            return cleaned[:most]
        if len(cleaned) < least or (most is not None and len(cleaned) > most):
            raise ReplyError(f"{label} has {len(cleaned)} characters, {least} to {most} are allowed".strip())
        return cleaned

    return read


def choice(label: str, listed: str, names: Callable[[], Mapping[str, Any]]) -> ValueParser:
    """One of `names`, whatever its case and without a remark in brackets. `listed` are those that the fault shows."""

    def read(value: str) -> object:
        name = re.split("[(（]", value)[0].strip().casefold()  # our prompts call facets "core (…)"
        if name not in names():
            raise ReplyError(f"{label} {shown(value.strip())} is none of {listed}")
        return names()[name]

    return read


def integer(least: int, most: int, fault: str) -> ValueParser:
    """A whole number of `least` to `most`. `fault` may name the {value} and {most}."""

    def read(value: str) -> int:
        given = value.strip()
        if not _INTEGER.fullmatch(given) or not least <= int(given) <= most:
            raise ReplyError(fault.format(value=shown(given), most=most))
        return int(given)

    return read


def one_line(text: str) -> str:
    """`text` on one line, without control characters and those that nobody sees."""
    return " ".join("".join(c for c in without_hidden(text) if c.isspace() or not is_control(c)).split())


def is_control(char: str) -> bool:
    """True for control characters and halves of surrogate pairs."""
    return unicodedata.category(char) in {"Cc", "Cs"}


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


def _read(element: Element, schema: ElementSchema, name: str, prefix: str = "") -> ParsedElement:
    """`element` by its schema. Faults of the element begin with its `name`, those of its values with `prefix`."""
    given = {attribute.casefold(): value for attribute, value in element.items()}
    parts: dict[str, str] = {}
    children: list[Element] = []
    for part in element:
        tag = part.tag.casefold()
        if tag in schema.fields:
            parts.setdefault(tag, part.text or "")
            continue
        is_item = schema.items is not None and (schema.others == "taken" or tag == schema.items.tag)
        if schema.others == "refused" and (not is_item or len(part)):
            allowed = "holds further elements, only text is allowed"
            if schema.items:
                allowed = f"hold {shown(part.tag)} where only <{schema.items.tag}> may stand"
            raise ReplyError(f"{name} {allowed}")
        if is_item:
            children.append(part)
    fields: dict[str, Any] = {}
    for field_name, wanted in schema.fields.items():
        value = (given | parts).get(field_name, wanted.default)
        if isinstance(value, EllipsisType):
            raise ReplyError(f"{name} has no <{field_name}>")
        fields[field_name] = None if value is None else _value(wanted.read, value, prefix)
    text = _value(schema.text, element.text or "", f"{name} ") if schema.text else None
    return ParsedElement(fields, text, len(children), _items(children, schema.items) if schema.items else iter(()))


def _items(children: Sequence[Element], schema: ElementSchema) -> Iterator[ParsedElement]:
    for number, child in enumerate(children, start=1):
        name = f"{schema.noun} {number}" if schema.noun else f"a <{schema.tag}>"
        yield _read(child, schema, name, f"{name}: " if schema.noun else "")


def _value(read: ValueParser, text: str, prefix: str) -> Any:
    try:
        return read(text)
    except ReplyError as fault:
        raise ReplyError(f"{prefix}{fault}") from None


def _source(reply: str, schema: ElementSchema) -> str:
    """The element as it stands in the reply, made ready for the parser."""
    text, tag = without_thinking(reply, anywhere=True), schema.tag
    start = re.compile(rf"<{tag}\b[^<>]*>", re.IGNORECASE).search(text)
    if start is None:
        raise ReplyError(f"the reply holds no <{tag}> element")
    if start[0].endswith("/>"):
        lacking = schema.items.tag if schema.items else next(iter(schema.fields), "text")
        raise ReplyError(f"the <{tag}> holds no <{lacking}>")
    end = re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(text, start.end())
    if end is None:
        raise ReplyError(f"the <{tag}> element is cut off: </{tag}> is missing")
    if _DECLARATION.search(text, 0, end.end()):
        raise ReplyError("the reply declares a document type or entities, which is not allowed")
    inner = text[start.end() : end.start()]
    if len(inner.encode("utf-8", "replace")) > _MAX_XML_BYTES:
        raise ReplyError(f"the <{tag}> element is larger than {_MAX_XML_BYTES} bytes")
    inner = _BARE_AMPERSAND.sub(lambda found: "&amp;" if found[0] == "&" else found[0], NOT_XML.sub("", inner))
    return f"<{tag}>{inner}</{tag}>"
