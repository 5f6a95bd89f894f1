"""Text of documents and models made fit to show: no terminal escapes, no HTML, no links. Pure; never adds a word."""

from __future__ import annotations

import html
import re

from shared.hidden import visible, without_hidden
from shared.language.text import CJK, HAN
from workers.inert import inert

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_HARMLESS = re.compile("[\u2028\u2029\u2800\ue000-\uf8ff]")
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\([^()]*\)")
_IN_SENTENCE = re.compile(r"[a-z\d]")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]+)\]\]")
# Between underscores only what is no name in code: "__repr__" and "__a[__b]" stay as they are.
_EMPHASIS = re.compile(
    r"(\*\*\*|\*\*|~~)(?=\S)(.{1,400}?)(?<=\S)\1(?![A-Za-z0-9_])|(?<!\w)__(?=\S)(?![^\W_]\w*?__(?!\w))((?:(?!__).){1,400})(?<=\S)__(?!\w)"
)
#: Of an emphasis that goes on in the sentence before or behind.
_LONE_MARK = re.compile(r"^\s*\*\*(?=\S)|(?<=\S)\*\*\s*$")
_SLANT = re.compile(r"(?<![\w*])([*])(?=[^\s*])([^*\n]{1,400}?)(?<=[^\s*])\1(?![\w*])")
#: A role or a reference of reStructuredText: its text stays, without its target.
_ROLE = re.compile(
    r"(?<!`)(?:(?::[\w+.-]{1,80}+){1,3}:|\{[\w+:.-]{1,80}+\})`[~!]?([^`<>\n]{1,200}+)(?:<[^`<>\n]{0,500}+>)?`(?!`)"
)
_REFERENCE = re.compile(r"(?<!`)`([^`<>\n]{1,200}+)<[^`<>\n]{0,500}+>`_{1,2}")
#: A field of reStructuredText, or a directive with an argument.
_FIELD = re.compile(r"^\s*:([^:`\n]{1,60}):\s+")
_DIRECTIVE = re.compile(r"^\s*\.\. ([\w:.+-]{1,80}?)::\s*")
#: Reference-style links and footnote marks of Markdown.
_REFERRED = re.compile(r"(?<![\]\w])\[([^\[\]\n]{2,120})\]\[[^\[\]\n]{0,80}\]|\[\^[^\[\]\s]{1,40}\](?!:)")
_ENTITY = re.compile(
    r"&(?!lt;|gt;|#0*6[02];|#x0*3[ce];)(?:[a-z][a-z0-9]{1,30}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE
)
_CODE = re.compile(r"(`{1,2})(?!`)([^`\n]{1,400})(?<!`)\1(?!`)_{0,2}")
#: Characters of code that would read as markup or as a citation without its marks.
_MARKUP = re.compile(r"[\[\]*_<>~]")
_CITATION_LIKE = re.compile(r"\[(\^?\d{1,9}(?:[,，、;\-–]\s?\d{1,9})*)\]")
#: Words and punctuation in which no pattern here finds anything: most lines. A field or a directive begins with a colon
#: or two dots, and of marks those are left that no second one makes markup of.
_NO_MARKUP = re.compile(
    rf"(?! *(?::|\.\.))(?:[A-Za-z0-9{HAN} .,:;()/?'\"%+=$@#|>{{}}—–…，。、；：！？（）「」“”‘’\-]++"
    r"|!(?!\[)|\[(?![\[^0-9])|\](?!:| *[\[(])|_(?!_)|~(?!~)|<(?![A-Za-z/!?]))*+"
)
_WRAP_CJK = re.compile(rf"(?<=[{CJK}，。、；：！？])[^\S\n]*+\n\s*+(?=[{CJK}])")


def safe(text: str) -> str:
    """`text` without terminal escapes, control characters (line breaks and tabs stay), hidden marks and HTML tags.

    Images become their caption and links their text (a linked citation stays one): a model's reply must not make a
    reader's browser call anyone. Code stays as it is.
    """
    return inert(_visible(text))


def _visible(text: str) -> str:
    return visible(_TERMINAL.sub("", text))


def plain_line(quote: str) -> str:
    """A sentence of a document as one line of plain text: `safe`, markers of Markdown and reStructuredText off.

    Code stays as it is; it keeps its backticks where it would read as markup without. White space is folded. A
    document's own "[3]" becomes "(3)", so that it cannot pass for a citation.
    """
    if _NO_MARKUP.fullmatch(quote):
        return " ".join(quote.split())
    text = _DIRECTIVE.sub(r"\1: ", _FIELD.sub(r"\1: ", quote))
    text = _REFERENCE.sub(_named, _ROLE.sub(_named, text))
    parts = _CODE.split(text)
    # Every third and fourth part are the marks and the inside of a piece of code.
    shown = [_plain(part) for part in parts[::3]]
    for at, inside in enumerate(parts[2::3]):
        code = _visible(inside)
        shown[at] += f"`{code}`" if _MARKUP.search(code) else code
    # Once more as a whole: what is harmless in parts may make a tag or a link together.
    return inert(" ".join(_WRAP_CJK.sub("", "".join(shown)).split())).strip()


def _named(found: re.Match[str]) -> str:
    return found[1].strip()


def _plain(text: str) -> str:
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    text = safe(_REFERRED.sub(lambda found: found[1] or "", _WIKI_LINK.sub(r"\1", text)))
    text = _EMPHASIS.sub(lambda found: found[2] or found[3], text)
    text = _SLANT.sub(r"\2", text).replace("`", "")
    return _CITATION_LIKE.sub(r"(\1)", _LONE_MARK.sub("", text))


def without_links(quote: str) -> str:
    """`quote` less its links: the title of another page is not what this sentence says.

    A label that begins with a digit or a small letter is a part of the sentence: "supports [69 languages](list.md)".
    """
    return _LINK.sub(
        lambda link: link[1] if _IN_SENTENCE.match(link[1]) else " ", _WIKI_LINK.sub(" ", _IMAGE.sub(" ", quote))
    )


def has_controls(text: str) -> bool:
    """True when `text` holds characters that must not reach a terminal; it is then not quoted.

    Separators of lines and signs of a font of one's own (list marks of word processors) are only left out.
    """
    if _CONTROL.search(text):
        return True
    text = _HARMLESS.sub("", text)
    return without_hidden(text) != text
