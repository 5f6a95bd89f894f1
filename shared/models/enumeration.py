"""A complete list: what is asked for, what one shard found, and the table that comes of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.code import CodeScan
from shared.models.request import Filters, TenantName

#: Longest sentence and longest value of a field in a row, in characters.
MAX_SENTENCE, MAX_VALUE = 240, 200
#: Columns that a question may ask for.
MAX_COLUMNS = 12


#: By date, by the numbers of a field, or "" for the order of the paths. Documents without a date or number come last.
ListOrder = Literal["", "newest", "oldest", "most", "least"]


class Condition(Model):
    """What a document must say: one of `words` in its title, headings or text; with `tagged` also as a tag.

    `exact`: letter by letter but for case and width; else its words beside each other, each in all its forms.
    `negated`: it must not.
    """

    words: tuple[str, ...] = Field(min_length=1)
    exact: bool = False
    tagged: bool = False
    negated: bool = False


class FieldFilter(Model):
    """Documents with one of these values in a field, whatever of its `names` it goes by; any value where none is named.

    Names and values count by their `value_key`. `negated`: the others; without values those that lack the field.
    `told`: the range that the values are all of, for people.
    """

    names: tuple[str, ...] = Field(min_length=1)
    values: tuple[str, ...] = ()
    negated: bool = False
    told: str = ""


class Choice(Model):
    """Conditions of which at least so many must hold: fields, and tags."""

    fields: tuple[FieldFilter, ...] = ()
    tags: tuple[str, ...] = ()
    least: int = Field(default=1, ge=1)


class AmountOrder(Model):
    """The field that a list is ordered by: keys of its names, its name for people, and key of a value -> its number.

    `unit`: of the numbers, as documents write it, where their sum or average is asked for.
    """

    names: tuple[str, ...] = Field(min_length=1)
    label: str
    unit: str = ""
    numbers: dict[str, float] = Field(default_factory=dict)


class Grouping(Model):
    """What the documents of a list are counted by: a field, by the keys of its `names`, or what documents have anyway.

    `label`: its name for people.
    """

    by: Literal["field", "tag", "kind", "month", "year"] = "field"
    names: tuple[str, ...] = ()
    label: str


class Scan(Model):
    """Which documents belong to the list, and what is to be told of each.

    All of it must hold: `filters` (the request's own), `found` (what the question names), one of the spans of `dates`,
    one of each group of `tags` (with `only_tags` no other tag), nothing of `lacking` (any tag, any date), none of the
    `without_*`, each of `fields` and `choices`, a passage of one of `facets`, and every condition. `columns` are those
    that were asked for, `also_called` the other keys that the corpus has for one, `counting` that the number
    was. With `code` the members are definitions of code, or files by what they define and import. `unread`: words of
    the question that are in none of it; documents that meet more of `ranking`, which is made of them, come first.
    `order`: by date instead, or by the field `by`, and only the first `limit` of them, with those that have the same
    number as the last one; 0: all. `total`: the sum, or the average, of the
    field `by` is asked for. `per`: it is asked how many there are of each value.
    `documents` and `index_version`: what the filter held when the scan was planned.
    """

    filters: Filters = Filters()
    found: Filters = Filters()
    tags: tuple[tuple[str, ...], ...] = ()
    without_tags: tuple[str, ...] = ()
    without_kinds: tuple[str, ...] = ()
    without_paths: tuple[str, ...] = ()
    dates: tuple[Filters, ...] = ()
    without_dates: tuple[Filters, ...] = ()
    lacking: tuple[Literal["tags", "date"], ...] = ()
    fields: tuple[FieldFilter, ...] = ()
    choices: tuple[Choice, ...] = ()
    only_tags: bool = False
    facets: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    code: CodeScan | None = None
    columns: tuple[str, ...] = Field(default=(), max_length=MAX_COLUMNS)
    also_called: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    counting: bool = False
    order: ListOrder = ""
    limit: int = Field(default=0, ge=0)
    by: AmountOrder | None = None
    total: Literal["", "sum", "mean"] = ""
    per: Grouping | None = None
    unread: tuple[str, ...] = ()
    ranking: tuple[Condition, ...] = ()
    understood: str = ""
    documents: int = Field(default=0, ge=0)
    index_version: int = Field(default=0, ge=0)


class ListRow(Model):
    """One document of the list, or one definition of a file of code.

    `uri` is its source, `sentence` the one that matches (the first one without words).

    `fields` has the columns that it says something about, `copy_of` the number (from 1) of an earlier row with the
    same text. `digest` tells equal texts. `near`: so much of the scan's `ranking` it meets. `amount`: its number in the
    field that the list is ordered by. `groups`: its values of what the list is counted by.

    Of a definition, `title` is its name, `symbol` the qualified one, `sentence` its head, `line` where it begins, and
    `number` (from 1) its place in the file.
    """

    doc_id: str
    title: str
    path: str
    uri: str
    date: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = ""
    sentence: str = ""
    fields: dict[str, str] = Field(default_factory=dict)
    copy_of: int | None = None
    digest: str = ""
    near: int = 0
    amount: float | None = None
    groups: tuple[str, ...] = ()
    symbol: str = ""
    line: int | None = None
    number: int = 0

    @property
    def place(self) -> str:
        """Where it stands, as people read it: the path, of a definition with its line."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


class RowPage(Model):
    """A page of rows as the job store keeps them."""

    rows: tuple[ListRow, ...] = ()


class ShardReport(Model):
    """What one shard's leaf has to say besides its rows. `cut`: its time was up before its end.

    `unparsed` counts the files of code of which the store does not know what they define, `unlabelled` the documents
    that speak of a field that was asked for, but of which no such field was read.

    `first_version` and `last_version` are the store's when it began and ended; `dropped` counts values that a model
    gave and that do not stand in the document.
    """

    scanned: int = 0
    matched: int = 0
    unparsed: int = 0
    unlabelled: int = 0
    pages: int = 0
    cut: bool = False
    first_version: int = 0
    last_version: int = 0
    by: Literal["fields", "llm"] = "fields"
    dropped: int = 0


class ListGroup(Model):
    """A value, "" for none, and how many documents of a list have it.

    `amount`: the sum, or the average, of their numbers in the list's total; None without a number.
    """

    value: str
    documents: int
    amount: float | None = None


class ListTotal(Model):
    """The sum or the average (`way`) of a field over the `documents` of a list that have a number in it, in `unit`."""

    way: Literal["sum", "mean"]
    label: str
    amount: float
    unit: str = ""
    documents: int = 0


class ListTable(Model):
    """The list: its first rows and where the others are. `coverage` is for people: "scanned 412 of 412 documents".

    `unit` says what the rows are, `kinds` how many definitions of each kind there are, `unparsed` of how many files it
    is not known what they define, `unlabelled` how many documents speak of a field that was asked for, of which none
    was read. `matched` counts rows, `fitting` all that meet the conditions where only some were asked for, in `order`
    (of the field `ordered_by`), `total` what the numbers of a field are together, `groups` the most frequent of the
    `grouped` values of `grouped_by`, `copies` those with
    the text of an earlier row. `pages` of `page_rows` rows each are in the job store, all rows together, in the order
    of their paths; with `unread`, words of the question that were not understood, those that have more of them first.
    `partial`: not everything was read; `changed`: the corpus was
    written meanwhile. `columns` were asked for; `by` says who filled them; `dropped` counts a model's values that do
    not stand in the document.
    """

    understood: str
    unread: tuple[str, ...] = ()
    counting: bool = False
    coverage: str = ""
    scanned: int = 0
    planned: int = 0
    matched: int = 0
    fitting: int = 0
    order: ListOrder = ""
    ordered_by: str = ""
    total: ListTotal | None = None
    grouped_by: str = ""
    grouped: int = 0
    groups: tuple[ListGroup, ...] = ()
    unit: Literal["document", "definition", "file"] = "document"
    kinds: dict[str, int] = Field(default_factory=dict)
    unparsed: int = 0
    unlabelled: int = 0
    copies: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[ListRow, ...] = ()
    pages: int = 0
    page_rows: int = 0
    partial: bool = False
    changed: bool = False
    by: Literal["fields", "llm"] = "fields"
    dropped: int = 0


class ValuesRequest(Model):
    """Which values a tenant's documents under a filter have; with `scan`, only how many of them that one will read.

    With `symbol` only in how many pieces of code under the filter a definition goes by that name, as `documents`; with
    `titles` only the pages of the namespace that have one of these titles, folded as their keys are.
    """

    tenant: TenantName
    filters: Filters = Filters()
    scan: Scan | None = None
    symbol: str = ""
    titles: tuple[str, ...] = ()


class TitledPage(Model):
    """A page that is asked for by its title, with its date and the beginning of its text."""

    title: str
    path: str
    date: str | None = None
    text: str = ""


class Values(Model):
    """What exists under a filter: values with the number of their chunks, folders with a slash at their end.

    `fields`: key of a field's name -> value as it is written -> documents; `field_names`: the
    key -> the name as documents write it. `truncated` names those of which only the
    most frequent values are here. `fields_unknown`: documents that were stored before fields were read. `code` counts
    the files of code among the `documents`. `titled`: the title that was asked for -> the only page that has it.
    """

    kinds: dict[str, int] = Field(default_factory=dict)
    tags: dict[str, int] = Field(default_factory=dict)
    folders: tuple[str, ...] = ()
    fields: dict[str, dict[str, int]] = Field(default_factory=dict)
    field_names: dict[str, str] = Field(default_factory=dict)
    fields_unknown: int = 0
    truncated: tuple[str, ...] = ()
    index_version: int = 0
    documents: int = 0
    code: int = 0
    titled: dict[str, TitledPage] = Field(default_factory=dict)


class ValuesReply(Model):
    """What was asked for, or the sentence that says why it is not known."""

    values: Values | None = None
    error: str | None = None
