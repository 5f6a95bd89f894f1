"""The complete list as an answer: how many, of how many, and the first rows, each with its source. Pure."""

from __future__ import annotations

from shared.models import Summary
from shared.models.enumeration import Row, Table
from shared.settings.aggregators import Enumeration, Simple
from shared.text import is_cjk_text
from workers.merge.aggregators.base import Aggregated, Findings
from workers.merge.aggregators.simple import simple
from workers.merge.display import plain_line

_NO_TABLE = "There is no complete list for this question, so the answer is made of what was found."
_COUNT = ("{} {} in the list", "共 {} 篇文档")
_SAID = {
    "understood": (": {}.", "：{}。"),
    "plain": (".", "。"),
    "scanned": ("Looked through {} of {} documents.", "已逐篇查看 {} / {} 篇文档。"),
    "copies": ("{} of them have the same text as an earlier one.", "其中 {} 篇与前面的某一篇内容相同。"),
    "partial": ("The list is not complete.", "列表不完整。"),
    "changed": ("The corpus was written meanwhile.", "查看期间语料有改动。"),
    "more": ("… and {} more.", "……另有 {} 篇。"),
}
_HEADS = (("title", "source", "date", "says"), ("标题", "来源", "日期", "内容"))


def enumeration(found: Findings, options: Enumeration) -> Aggregated:
    """The table, and its beginning as text; the plain answer with a warning where nothing was listed."""
    if found.table is None:
        plain = simple(found, Simple())
        return plain.model_copy(update={"warnings": (*plain.warnings, _NO_TABLE)})
    text = as_markdown(found.table, options.rows, chinese=is_cjk_text(found.question))
    return Aggregated(summary=Summary(text=text, kind="extractive"), table=found.table)


def as_markdown(table: Table, most: int, *, chinese: bool) -> str:
    """The count, what was understood and looked through, then at most `most` rows as a Markdown table."""
    shown = table.rows[:most]
    parts = [_headline(table, chinese=chinese)]
    if shown:
        parts.append(_rows(shown, table.columns, chinese=chinese))
    if table.matched > len(shown):
        parts.append(_SAID["more"][chinese].format(table.matched - len(shown)))
    return "\n\n".join(parts)


def _headline(table: Table, *, chinese: bool) -> str:
    counted = _COUNT[chinese].format(table.matched, "document" if table.matched == 1 else "documents")
    understood = plain_line(table.understood)
    end = _SAID["understood"][chinese].format(understood) if understood else _SAID["plain"][chinese]
    said = [counted + end, _SAID["scanned"][chinese].format(table.scanned, table.planned)]
    said += [_SAID["copies"][chinese].format(table.copies)] if table.copies else []
    said += [_SAID[name][chinese] for name in ("partial", "changed") if getattr(table, name)]
    return ("" if chinese else " ").join(said)


def _rows(rows: tuple[Row, ...], columns: tuple[str, ...], *, chinese: bool) -> str:
    head = ("#", *_HEADS[chinese][:3], *(columns or _HEADS[chinese][3:]))
    lines = [head, ("---",) * len(head)]
    for number, row in enumerate(rows, 1):
        told = tuple(row.fields.get(name, "") for name in columns) if columns else (row.sentence,)
        lines.append((str(number), row.title, row.path, row.date or "", *told))
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    """One line that ends no cell."""
    return plain_line(text).replace("\\", "\\\\").replace("|", "\\|")
