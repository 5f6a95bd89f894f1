"""HTML: the main text by trafilatura as Markdown; where that finds none, all text in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import trafilatura
from lxml import etree
from lxml import html as lxml_html

from workers.formats.encodings import decoded_as
from workers.formats.parsed import NO_TEXT, FilePart, FormatError, Parsed, heading, joined, table, tidy

_SKIPPED = frozenset({"script", "style", "noscript", "template", "head", "nav", "svg", "iframe", "object", "form"})
_BLOCKS = frozenset({
    "p", "div", "section", "article", "main", "blockquote", "pre", "dd", "dt", "figcaption", "address", "center", "td",
    "body",
})  # fmt: skip
_HEADING = re.compile(r"h([1-6])$")
#: The main text must have this share of all text, or the page is no article and is read whole.
_LEAST_SHARE = 0.25
#: Headings, items and tables. Of a short page trafilatura gives lines without any of them: it is read whole, too.
_STRUCTURE = re.compile(r"^(?:#{1,6} |- |\|)", re.MULTILINE)
#: A declaration of the document's type with definitions of its own in brackets.
_SUBSET = re.compile(rb"\A([^\[]{0,2000}?<!DOCTYPE[^\[>]{0,500})\[[^\]]{0,20000}\]\s*>", re.IGNORECASE)
_MAX_DEPTH = 250
#: Where a page says its encoding, and within how many bytes.
_NAMED = re.compile(
    rb"(?:<\?xml[^>]{0,200}?encoding|<meta[^>]{0,300}?charset)\s*+=\s*+[\"']?([a-z\d_.:-]{2,40}+)", re.IGNORECASE
)
_HEAD = 4096


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a page without text."""
    del name
    return read_html(content)


def read_html(content: bytes | str, place: str = "") -> Parsed:
    """The text of a page or of a part of a book or of a mail."""
    tree = tree_of(content)
    for cell in tree.iter("td", "th"):
        for name in ("colspan", "rowspan"):
            cell.attrib.pop(name, None)
    whole = "\n\n".join(_blocks(tree))
    main = trafilatura.extract(
        tree, output_format="markdown", include_tables=True, include_comments=False, include_images=False,
        include_links=False, include_formatting=True, favor_recall=True,
    ) or ""  # fmt: skip
    flat = _STRUCTURE.search(whole) is not None and _STRUCTURE.search(main) is None
    text = main if len(main) >= _LEAST_SHARE * len(whole) and not flat else whole
    if not text.strip():
        raise FormatError(NO_TEXT)
    return joined([FilePart(text, place)], title=title_of(tree), date=_date(tree))


def tree_of(content: bytes | str) -> lxml_html.HtmlElement:
    """The page as a tree; nothing is loaded. Raises: FormatError for an empty one."""
    parser = lxml_html.HTMLParser(
        no_network=True, remove_comments=True, remove_pis=True, huge_tree=False, encoding="utf-8"
    )
    text = _decoded(content) if isinstance(content, bytes) else content
    # The parser takes the end of a subset for text.
    content = _SUBSET.sub(rb"\1>", text.encode("utf-8", "replace"), count=1)
    try:
        tree = lxml_html.document_fromstring(content, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
        raise FormatError(f"is no HTML that can be read ({str(error)[:80]}): save it anew") from None
    return tree


def _decoded(content: bytes) -> str:
    """The page as text: the parser leaves out all behind a byte that the encoding which it names does not have."""
    named = _NAMED.search(content[:_HEAD])
    return decoded_as(content, named[1].decode() if named else "")


def title_of(tree: lxml_html.HtmlElement) -> str:
    """What the page is called: its title, else its first heading."""
    found = tree.findtext(".//title") or tree.findtext(".//h1") or ""
    return " ".join(found.split())


def whole_text(content: bytes | str) -> str:
    """All text of a page, block by block."""
    return tidy("\n\n".join(_blocks(tree_of(content))))


def _date(tree: lxml_html.HtmlElement) -> str:
    for key in ("article:modified_time", "article:published_time", "date", "dcterms.modified", "dc.date"):
        for meta in tree.iter("meta"):
            if (meta.get("property") or meta.get("name") or "").lower() == key:
                found = re.match(r"\d{4}-\d{2}-\d{2}", meta.get("content") or "")
                if found:
                    return found[0]
    return ""


def _blocks(element: etree._Element, depth: int = 0) -> Iterator[str]:
    """Headings, list items, tables and paragraphs below an element."""
    tag = element.tag if isinstance(element.tag, str) else ""
    if tag in _SKIPPED or depth > _MAX_DEPTH:
        return
    if level := _HEADING.match(tag):
        yield heading(int(level[1]), _text(element))
    elif tag == "table" and element.find(".//table") is None:
        yield table([[_text(cell) for cell in row if cell.tag in {"td", "th"}] for row in element.iter("tr")])
    elif tag in {"ul", "ol"}:
        yield "\n".join(f"- {_text(item)}" for item in element if item.tag == "li" and _text(item))
    elif tag == "pre":
        yield f"```\n{''.join(element.itertext()).strip()}\n```"
    elif any(_is_block(child) for child in element.iterdescendants()):
        yield " ".join((element.text or "").split())
        for child in element:
            yield from _blocks(child, depth + 1)
            yield " ".join((child.tail or "").split())
    else:
        yield _text(element)


def _is_block(element: etree._Element) -> bool:
    return element.tag in _BLOCKS or element.tag in {"ul", "ol", "table"} or bool(_HEADING.match(str(element.tag)))


def _text(element: etree._Element) -> str:
    parts = (
        text
        for each in element.iter()
        for text in ((each.text if each.tag not in _SKIPPED else ""), each.tail if each is not element else "")
    )
    return " ".join("".join(part or "" for part in parts).split())
