"""The plain answer (the merged results and their summary), and the complete list of an enumeration as an answer."""

from __future__ import annotations

from shared.language import Language, answer_language, reader_sentence, sentence_in
from shared.models import Summary
from shared.models.enumeration import ListRow, ListTable, ListTotal
from shared.settings.sections import EnumerationAggregator, SimpleAggregator
from workers.display import plain_line
from workers.merge.extract import extract
from workers.merge.findings import Aggregated, Findings
from workers.merge.summarise import summarise

_NO_TABLE = "There is no complete list for this question, so the answer is made of what was found."


def simple(found: Findings, options: SimpleAggregator) -> Aggregated:
    """One text: direct for a question of one leaf, in headed groups for one that branched."""
    return summarise(found, lambda: extract(found.question, found.pool, found.nodes, options.sentences))


def enumeration(found: Findings, options: EnumerationAggregator) -> Aggregated:
    """The table, and its beginning as text; the plain answer with a warning where nothing was listed."""
    if found.table is None:
        plain = simple(found, SimpleAggregator())
        return plain.model_copy(update={"warnings": (*plain.warnings, _NO_TABLE)})
    text = as_markdown(found.table, options.rows, answer_language(found.question))
    summary = Summary(text=text, kind="extractive")
    if found.table.unread:
        summary = _with_searched(summary, found)
    return Aggregated(summary=summary, table=found.table)


def _with_searched(listed: Summary, found: Findings) -> Summary:
    """A list that words of the question were left out of, with what the search for all of them found below it."""
    nodes = {node_id: node for node_id, node in found.nodes.items() if node.shard is None}
    searched = extract(found.question, found.pool, nodes)
    if not searched.citations:
        return listed
    text = "\n\n".join((listed.text, reader_sentence("list_beside", found.question), searched.text))
    return listed.model_copy(update={"text": text, "citations": searched.citations})


def as_markdown(table: ListTable, limit: int, language: Language) -> str:
    """The count, what was understood and looked through, then at most `limit` rows as a Markdown table."""
    shown = table.rows[:limit]
    parts = [*_unread(table, language), *_total(table, language), _headline(table, language)]
    if table.grouped_by:
        parts.append(_groups(table, language))
    if shown:
        parts.append(_rows(shown, table.columns, language))
    if table.matched > len(shown):
        parts.append(sentence_in(language, _of_unit("more", table), table.matched - len(shown)))
    return "\n\n".join(parts)


def _headline(table: ListTable, language: Language) -> str:
    counted = sentence_in(language, _of_unit("listed_one" if table.matched == 1 else "listed", table), table.matched)
    if table.kinds:
        kinds = (f"{kind} {count}" for kind, count in sorted(table.kinds.items()))
        counted += sentence_in(language, "in_brackets", sentence_in(language, "comma").join(kinds))
    understood = plain_line(table.understood)
    end = sentence_in(language, "understood", understood) if understood else sentence_in(language, "full_stop")
    parts = [
        counted + end,
        *_part_of_all(table, language),
        sentence_in(language, _of_code("scanned", table), table.scanned, table.planned),
    ]
    parts += [sentence_in(language, "copies", table.copies)] if table.copies else []
    parts += [sentence_in(language, name) for name in ("partial", "changed") if getattr(table, name)]
    parts += [sentence_in(language, "unparsed", table.unparsed)] if table.unparsed else []
    return sentence_in(language, "space").join(parts)


def _unread(table: ListTable, language: Language) -> list[str]:
    """What was not understood: it stands before anything that would read as certain."""
    unread = sentence_in(language, "comma").join(table.unread)
    return [sentence_in(language, "list_not_read", plain_line(unread))] if table.unread else []


def _total(table: ListTable, language: Language) -> list[str]:
    """The sum or the average that was asked for, and of how many documents it is."""
    if (total := table.total) is None:
        return []
    amount = _amount(total.amount, total)
    told = sentence_in(language, f"list_{total.way}", plain_line(total.label), amount, total.documents)
    left = table.matched - total.documents
    return [told + sentence_in(language, "space") + sentence_in(language, "list_no_number", left) if left else told]


def _amount(number: float, total: ListTotal) -> str:
    return f"{number:,.2f}".rstrip("0").rstrip(".") + (f" {total.unit}" if total.unit else "")


def _groups(table: ListTable, language: Language) -> str:
    """How many documents there are of each value, and what their numbers are together, a line each."""
    told = [sentence_in(language, "list_groups", plain_line(table.grouped_by), table.grouped)]
    for group in table.groups:
        value = plain_line(group.value) or sentence_in(language, "list_no_value_of_group", plain_line(table.grouped_by))
        if table.total and group.amount is not None:
            value = f"{value}: {_amount(group.amount, table.total)}"
        told.append(f"- {sentence_in(language, 'list_group', value, group.documents)}")
    return "\n".join(told)


def _part_of_all(table: ListTable, language: Language) -> list[str]:
    """How many fit, where the question asked for some of them."""
    if table.fitting <= table.matched:
        return []
    return [sentence_in(language, f"list_{table.order}", table.matched, table.fitting, table.ordered_by)]


def _of_unit(name: str, table: ListTable) -> str:
    return name if table.unit == "document" else f"{name}_{table.unit}"


def _of_code(name: str, table: ListTable) -> str:
    return name if table.unit == "document" else f"{name}_file"


def _rows(rows: tuple[ListRow, ...], columns: tuple[str, ...], language: Language) -> str:
    names = (sentence_in(language, name) for name in ("title", "source", "date"))
    head = ("#", *names, *(columns or (sentence_in(language, "sentence"),)))
    lines = [head, ("---",) * len(head)]
    for number, row in enumerate(rows, 1):
        values = tuple(row.fields.get(name, "") for name in columns) if columns else (row.sentence,)
        title = f"{row.kind} {row.title}" if row.line else row.title
        lines.append((str(number), title, row.place, row.date or "", *values))
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    """One line, with what would end the cell escaped."""
    return plain_line(text).replace("\\", "\\\\").replace("|", "\\|")
