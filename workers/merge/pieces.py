"""What of a passage can be quoted: sentences, list items, definitions, table rows, lines of code. Pure."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from shared.language import derived_of_passages
from shared.language.sentences import BlockKind, TextSpan, blocks, split_block
from shared.language.text import CJK, is_cjk_text, terms
from shared.models import Hit
from workers.display import has_controls, plain_line, without_links

MAX_QUOTE = 200  # characters; a CJK one counts as two
_BREAKS = ",;，；、"
_MIN_TERMS = 2
_MAX_CODE = 160
#: Rows of a table that are read; a longer one would hide the rest of its passage.
_MAX_ROWS = 200
_ORDERED = re.compile(r"(?:(\d{1,3})[.)、]|#\.)$")
_BORDER = re.compile(r"[=\-+: |]+$")
#: That of a grid table or a simple table of reStructuredText.
_FRAME = re.compile(r"\+[=\-+: |]*|[\-+: |]*=[=\-+: |]*")
_LIST_ROW = re.compile(r"\s*\* -(?:\s|$)")
_LIST_CELL = re.compile(r"^\s*+(?:\* )?-(?:\s|$)")
_COLUMN = re.compile(r"=+")
#: The term of a definition list of Markdown or reStructuredText, and of one that begins with a bold word.
_TERM = re.compile(r"([^\n]{1,60}?)(?<![.,;:!?。，；：！？])[ \t]*\n(?:[ \t]*:[ \t]+|[ \t]{2,}(?=\S))")
_BOLD_TERM = re.compile(r"(?:\*\*|__)([^*_\n]{1,60})(?:\*\*|__)\s*[:：–—-]|(?:\*\*|__)([^*_\n]{1,60})[:：](?:\*\*|__)")
_NAMED_DIRECTIVE = re.compile(r"\s*\.\. [\w:.+-]{1,80}::[ \t]*([^\n]{1,80})$")
_OPENED = re.compile(r" {0,3}(?:`{3,}+|~{3,}+)[ \t]*+([\w+#.-]{0,30}+)[^\n]*+\n")
_CLOSED = re.compile(r"\n {0,3}(?:`{3,}|~{3,})[ \t]*$")
_MAX_LINES = 60
#: A line between fences that is a sentence, as in the output of a program or a quoted note.
_SENTENCE = re.compile(
    rf"(?=[A-Z0-9])(?=(?:\S+ ){{4}})[^(){{}}\[\]=<>|\\;$]*[a-z0-9%][.!?]|[{CJK}][^(){{}}=<>|\\;$]{{6,}}[。！？]"
)
_LINK = re.compile(r"\[[^\[\]\n]{1,300}\]\([^()\s]{1,500}\)")
#: A line that is a question, as in a list of questions and answers: what stands below it answers it.
_ASKED = re.compile(r"(?:(?![.!?。！？]\s|[。！？?](?!$)).){3,160}[?？]")
#: A line "Key: value" among others, as a page begins with.
_FIELD_LINE = re.compile(r"[^\s:：][^:：\n]{0,23}[:：](?:(?<=：)|\s)\s*\S")
_PROMPT = re.compile(r"\s*(?:\$ |>>> |# (?=\w+ -)|% )?")
_COMMENT = re.compile(r"\s*(?:#|//|--|/\*|\*)")


@dataclass(frozen=True, slots=True)
class QuotableSentence:
    """A sentence, a part of a long one, a list item, a table row or a line of code of the hit `number` (from 1).

    It is the `position`-th piece of it, the `place`-th below its heading (both from 0). `quote` is a verbatim slice of
    the hit's text, `text` the same as it is shown, `words` its terms; `lead` are those of what it stands below: the
    heading, the line that ends in a colon, the head of the table and what is said before that. `subject` is what it
    defines, or the first cell of its row (`row`: of a table). `series` numbers the ordered list that it is an item of,
    0 for none.
    """

    number: int
    position: int
    quote: str
    text: str
    words: frozenset[str]
    lead: frozenset[str] = field(default=frozenset(), compare=False)
    subject: frozenset[str] = field(default=frozenset(), compare=False)
    place: int = field(default=0, compare=False)
    series: int = field(default=0, compare=False)
    code: bool = field(default=False, compare=False)
    row: bool = field(default=False, compare=False)

    def of_hit(self, number: int) -> QuotableSentence:
        """The same of another hit: as `replace`, for a fifth of its time."""
        return QuotableSentence(
            number, self.position, self.quote, self.text, self.words, self.lead, self.subject, self.place, self.series,
            self.code, self.row,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Piece:
    quote: str
    shown: str
    lead: str = ""
    subject: str = ""
    place: int = 0
    series: int = 0
    code: bool = False
    row: bool = False


def quotable_sentences(hits: Iterable[Hit]) -> list[QuotableSentence]:
    """All quotable pieces of `hits`: sentences that state something, list items, table rows and lines of code.

    Headings and table heads are left out, as are questions, lead-ins that end in a colon and are no step of an ordered
    list, and what holds control characters. Long sentences are clipped at a pause.
    """
    return [
        one.of_hit(number)
        for number, hit in enumerate(hits, start=1)
        for one in _quotable_sentences(hit.title, hit.text)
    ]


@derived_of_passages
def _quotable_sentences(title: str, passage: str) -> tuple[QuotableSentence, ...]:
    """Those of one passage, as of hit 0. Kept for a while: the best passages of a corpus are found again and again."""
    found, name = list[QuotableSentence](), plain_line(title)
    leads: dict[str, frozenset[str]] = {}  # the pieces below one line share what they stand below
    for position, piece in enumerate(_pieces(passage)):
        text = piece.shown if piece.code else plain_line(piece.shown)
        words = frozenset(terms(without_links(piece.quote)))
        titled = text.rstrip(".。") == name
        asks = text.endswith(("?", "？")) or (text.endswith((":", "：")) and not piece.series)
        if titled or len(words) < (0 if piece.series else _MIN_TERMS) or asks or not any(map(str.isalnum, text)):
            continue
        if (lead := leads.get(piece.lead)) is None:
            lead = leads[piece.lead] = frozenset(terms(piece.lead))
        subject = frozenset(terms(piece.subject))
        found.append(
            QuotableSentence(
                0, position, piece.quote, text, words, lead, subject, piece.place, piece.series, piece.code, piece.row
            )
        )
    return tuple(found)


def code_blocks(hits: Iterable[Hit]) -> list[QuotableSentence]:
    """The blocks of code in `hits`, whole and verbatim between fences, but for those of more than 60 lines."""
    found: list[QuotableSentence] = []
    for number, hit in enumerate(hits, start=1):
        before = ""
        for position, block in enumerate(blocks(hit.text)):
            source = hit.text[hit.text.rfind("\n", 0, block.start) + 1 : block.end]
            if block.kind is not BlockKind.FENCE:
                before = source
                continue
            opened = _OPENED.match(source)
            inside = _CLOSED.sub("", source[opened.end() :]) if opened else textwrap.dedent(source)
            lines = inside.splitlines()
            if not 0 < len(lines) <= _MAX_LINES or any(has_controls(line.replace("\t", " ")) for line in lines):
                continue
            fence = "````" if "```" in inside else "```"
            text = f"{fence}{opened[1] if opened else ''}\n{inside.rstrip()}\n{fence}"
            words, lead = frozenset(terms(inside)), frozenset(terms(before))
            quote = hit.text[block.start : block.end]
            found.append(QuotableSentence(number, position, quote, text, words, lead, code=True))
    return found


def quote_width(text: str) -> int:
    """Characters of `text`; those of a CJK text count twice."""
    return len(text) * (2 if is_cjk_text(text) else 1)


def _pieces(text: str) -> Iterator[_Piece]:
    """The pieces of a passage in order, each with what it stands below."""
    heading = lead_in = said = term = ""
    asked = ("", "")
    place = series = step = 0
    for block in blocks(text):
        source = text[block.start : block.end]
        marker = text[text.rfind("\n", 0, block.start) + 1 : block.start].strip()
        if block.kind is BlockKind.HEADING:
            heading, lead_in, said, term, asked, place = source, "", "", "", ("", ""), 0
            continue
        asked = _question_above(block, source, marker, asked)
        place = 0 if asked == (source, marker) else place
        ordered = _ORDERED.match(marker) if block.kind is BlockKind.PROSE else None
        if ordered:
            number = int(ordered[1] or (step + 1))
            series, step = (series, number) if number == step + 1 and step else (series + 1, number)
        elif not marker and block.kind is BlockKind.PROSE:
            step = 0
        under = f"{heading}\n{asked[0]}\n{said if block.kind is BlockKind.TABLE else lead_in}"
        if named := _NAMED_DIRECTIVE.match(source) if block.kind is BlockKind.PROSE else None:
            term = named[1]
            continue
        defined = term
        for piece in _of_block(text, block, item=bool(marker)):
            shown = f"{term}: {piece.shown}" if term else piece.shown
            subject = piece.subject or term
            yield replace(
                piece, shown=shown, lead=f"{under}\n{defined}\n{piece.lead}", subject=subject, place=place,
                series=series if ordered or (step and block.kind is BlockKind.FENCE) else 0,
            )  # fmt: skip
            place += 1
            term = ""
        if block.kind is BlockKind.PROSE and not marker:
            lead_in = source if source.rstrip().endswith((":", "：")) else ""
            said = source if lead_in or len(list(islice(split_block(text, block), 2))) == 1 else ""


def _question_above(block: TextSpan, source: str, marker: str, above: tuple[str, str]) -> tuple[str, str]:
    """The line with a question that a block stands below, or is, with its list mark; the next number ends it."""
    if block.kind is not BlockKind.PROSE:
        return above
    if _ASKED.fullmatch(source.strip()):
        return source, marker
    return ("", "") if _ORDERED.match(marker) and _ORDERED.match(above[1]) else above


def _of_block(text: str, block: TextSpan, *, item: bool) -> Iterator[_Piece]:
    source = text[block.start : block.end]
    if block.kind is BlockKind.TABLE:
        yield from _rows(source)
    elif block.kind is BlockKind.FENCE:
        yield from _code(source)
    else:
        yield from (piece for piece in _prose(text, block, item=item) if not has_controls(piece.quote))


def _prose(text: str, block: TextSpan, *, item: bool) -> Iterator[_Piece]:
    """Sentences; a definition or a list item that is short enough is one piece."""
    source = text[block.start : block.end]
    defined = _TERM.match(source) or _BOLD_TERM.match(source)
    subject = next((group for group in defined.groups() if group), "") if defined else ""
    if (item or defined) and quote_width(source) <= MAX_QUOTE:
        shown = f"{defined[1]}: {source[defined.end() :]}" if defined and "\n" in defined[0] else source
        yield _Piece(source, shown, subject=subject)
        return
    fields = source.split("\n")
    if len(fields) > 1 and all(map(_FIELD_LINE.match, fields)):
        yield from (_Piece(line.strip(), line) for line in fields)
        return
    lines = source.split("\n", 2)
    hanging = len(lines) > 1 and lines[1].startswith("  ") and len(lines[0]) <= MAX_QUOTE
    lead = lines[0] if hanging else subject
    asked, first = "", None
    for span in split_block(text, block):
        start = span.start if first is None else first
        sentence = text[start : span.end]
        if first is None and span.end < block.end and len(terms(text[span.start : span.end])) < _MIN_TERMS:
            first = span.start  # "Yes." goes with what follows
            continue
        first = None
        for quote, shown in _parts(sentence):
            yield _Piece(quote, shown, lead=f"{lead}\n{asked}", subject=subject)
            subject = ""
        asked = sentence if sentence.endswith(("?", "？")) else ""


def _parts(sentence: str) -> Iterator[tuple[str, str]]:
    """A sentence; an overlong one in parts that end at a pause, each a verbatim slice, the later ones behind "…"."""
    lead = ""
    while quote_width(sentence) > MAX_QUOTE:
        part = sentence[: MAX_QUOTE * len(sentence) // quote_width(sentence)]
        pause = max(part.rfind(mark) for mark in _BREAKS)
        end = pause if pause > len(part) // 2 else part.rfind(" ")
        cut = next((link for link in _LINK.finditer(sentence) if link.start() < end < link.end()), None)
        end = (cut.start() or cut.end()) if cut else end
        part = sentence[:end] if end > 0 else part
        yield part.rstrip(), lead + part.rstrip()
        sentence, lead = sentence[len(part) :].lstrip(f"{_BREAKS} "), "… "
    yield sentence, lead + sentence


def _code(fence: str) -> Iterator[_Piece]:
    """The lines of a piece of code, each verbatim, without a prompt before it; comments are no lines of it.

    Lines that are sentences are no code.
    """
    for line in fence.splitlines():
        if _SENTENCE.fullmatch(said := line.strip()) and not has_controls(said):
            yield _Piece(said, said)
            continue
        code = _PROMPT.sub("", line, count=1).rstrip()
        quotable = 0 < len(code) <= _MAX_CODE and "`" not in code and not _COMMENT.match(code)
        if quotable and not code.startswith("~~~") and _balanced(code) and not has_controls(code):
            yield _Piece(code, f"`{code}`", code=True)


def _balanced(code: str) -> bool:
    """False for a line that is a part of a statement only."""
    return all(code.count(one) == code.count(other) for one, other in ("()", "[]", "{}")) and not code.endswith(",")


def _rows(table: str) -> Iterator[_Piece]:
    """The rows of a table; the cells are shown with a dash between, each behind the head of its column."""
    lines = table.splitlines()[:_MAX_ROWS]
    if lines and _LIST_ROW.match(lines[0]):
        rows = _listed(lines)
    elif lines and "|" not in table and not _BORDER.fullmatch(lines[0].strip()):
        read = zip(lines, csv.reader((line.strip() for line in lines), skipinitialspace=True), strict=False)
        rows = [("", []), *((line.strip(), cells) for line, cells in read)]  # its head is an option
    elif lines and _FRAME.fullmatch(lines[0].strip()):
        rows = _bordered(lines)
    else:
        rows = [(line.strip(), _cells(line)) for line in lines if not _BORDER.fullmatch(line.strip())]
        if lines and _BORDER.fullmatch(lines[0].strip()):
            rows.insert(0, ("", []))  # the passage begins behind the table's head
    head = [plain_line(cell) for cell in rows[0][1]] if rows else []
    for quote, cells in rows[1:]:
        if len(quote) <= MAX_QUOTE * 2 and not has_controls(quote):
            named = [
                f"{name}: {cell}" if place and name else cell
                for place, (cell, name) in enumerate(zip(cells, [*head, *[""] * len(cells)], strict=False))
                if cell
            ]
            yield _Piece(quote, " – ".join(named), lead="\n".join(head), subject=cells[0] if cells else "", row=True)


def _listed(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The rows of a list-table of reStructuredText: "* - cell", then "- cell" for each further one."""
    rows: list[tuple[str, list[str]]] = []
    for line in lines:
        cell = _LIST_CELL.sub("", line).strip()
        if _LIST_ROW.match(line):
            rows.append((line, [cell]))
        elif rows and line.strip():
            quote, cells = rows[-1]
            joined = [*cells, cell] if _LIST_CELL.match(line) else [*cells[:-1], f"{cells[-1]} {cell}"]
            rows[-1] = (f"{quote}\n{line}", joined)
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _bordered(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The rows of a simple or grid table of reStructuredText, lines that go on with a row joined to it."""
    grid = lines[0].lstrip().startswith("+")
    columns = [found.start() for found in _COLUMN.finditer(lines[0])]
    rows: list[tuple[str, list[str]]] = []
    fresh = True
    for line in lines:
        if _BORDER.fullmatch(line.strip()):
            fresh = True
            continue
        ends = [*columns[1:], None]
        cells = _cells(line) if grid else [line[at:end].strip() for at, end in zip(columns, ends, strict=True)]
        if rows and (not cells[0] if not grid else not fresh):
            quote, before = rows[-1]
            joined = [f"{one} {more}".strip() for one, more in zip(before, cells, strict=False)]
            rows[-1] = (f"{quote}\n{line}", joined)
        else:
            rows.append((line, cells))
        fresh = False
    return rows
