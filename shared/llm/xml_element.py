"""Finds one element in a model's reply and parses it, hardened (B4). What is around it is ignored."""

from __future__ import annotations

import re
from functools import cache
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from shared.errors import ReplyError, shown
from shared.llm.thinking import without_thinking

MAX_XML_BYTES = 65_536
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)
#: CDATA is matched to be skipped: an ampersand in it is literal already.
_BARE_AMPERSAND = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&(?![A-Za-z][A-Za-z0-9]{0,31};|#[0-9]{1,7};|#x[0-9a-fA-F]{1,6};)", re.DOTALL
)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_element(text: str, tag: str, child: str) -> Element:
    """The first `<tag>` of the reply outside the model's thinking; its children are `<child>`, two levels at most.

    Raises: ReplyError naming the first fault: no element, cut off, too large, not well-formed, too deep.
    """
    return _parsed(_element(text, tag, child), tag)


@cache
def _marks(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(rf"<{tag}\b[^<>]*>", re.IGNORECASE), re.compile(rf"</{tag}\s*>", re.IGNORECASE)


def _element(text: str, tag: str, child: str) -> str:
    """The element's own text, ready for the parser."""
    text = without_thinking(text, anywhere=True)
    opening, closing = _marks(tag)
    start = opening.search(text)
    if start is None:
        raise ReplyError(f"the reply holds no <{tag}> element")
    if start[0].endswith("/>"):
        raise ReplyError(f"the <{tag}> holds no <{child}>")
    end = closing.search(text, start.end())
    if end is None:
        raise ReplyError(f"the <{tag}> element is cut off: </{tag}> is missing")
    if _DECLARATION.search(text, 0, end.end()):
        raise ReplyError("the reply declares a document type or entities, which is not allowed")
    inner = text[start.end() : end.start()]
    if len(inner.encode("utf-8", "replace")) > MAX_XML_BYTES:
        raise ReplyError(f"the <{tag}> element is larger than {MAX_XML_BYTES} bytes")
    inner = _BARE_AMPERSAND.sub(lambda found: "&amp;" if found[0] == "&" else found[0], _NOT_XML.sub("", inner))
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
