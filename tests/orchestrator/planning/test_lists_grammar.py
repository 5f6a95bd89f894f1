"""Ways to say the same condition, by grammar: each is read as the filter that it means, or named as unread."""

from __future__ import annotations

import re
from datetime import date

import pytest

from orchestrator.planning.lists.closely import read_closely
from shared.language import languages
from shared.models import Filters
from shared.models.enumeration import Values

TODAY = date(2026, 11, 22)
KINDS = {"bug": 20, "recipe": 9, "task": 9, "合同": 5, "缺陷": 20}
FIELDS = {
    "bug": {"assignee": {"Tobias": 8, "Ines Vale": 4}, "status": {"open": 9, "fixed": 11}, "platform": {"Switch": 7}},
    "recipe": {"cook": {"Rafael": 3}, "cooked by": {"Rafael": 2, "Omar": 1}, "course": {"soup": 4, "dessert": 5}},
    "task": {
        "budget": {"18,500 EUR": 3, "45,000 EUR": 2, "120,000 EUR": 4},
        "due": {"2026-05-30": 2, "2026-07-01": 2, "2026-09-15": 1},
        "owner": {"Ada": 5},
    },
    "合同": {"金额": {"3000元": 2, "5000元": 1, "1.2万元": 2}, "截止日期": {"2026-05-30": 2, "2026-07-01": 2}},
    "缺陷": {"处理人": {"孙浩": 9, "周敏": 7}, "状态": {"处理中": 9, "已关闭": 8}, "平台": {"手机端": 9}},
}


def under(filters: Filters) -> Values:
    """What exists under a filter of kinds."""
    kinds = filters.kinds or tuple(KINDS)
    fields: dict[str, dict[str, int]] = {}
    for kind in kinds:
        fields |= FIELDS[kind]
    tags = {"audio": 4, "physics": 5, "联机": 6, "回归": 4}
    return Values(kinds=KINDS, tags=tags, fields=fields, documents=sum(KINDS[kind] for kind in kinds))


def test_given_a_folder_named_like_a_kind_when_others_in_it_say_none_then_all_of_the_folder_is_listed() -> None:
    inside = Values(kinds={"培训": 6, "resource": 6}, folders=("培训/",), documents=12)
    everything = inside.model_copy(update={"kinds": {"培训": 6, "resource": 90}, "documents": 96})

    def ask(filters: Filters) -> Values:
        return inside if filters.paths else everything

    reading, _ = read_closely("2025年以来的培训", Filters(), ask, TODAY)
    assert reading.scan is not None
    assert (reading.scan.found.kinds, reading.scan.found.paths) == ((), ("培训/",))
    everything = everything.model_copy(update={"kinds": {"培训": 7, "resource": 89}})  # one lies elsewhere
    reading, _ = read_closely("2025年以来的培训", Filters(), ask, TODAY)
    assert reading.scan is not None
    assert (reading.scan.found.kinds, reading.scan.found.paths) == (("培训",), ())


OF_BADGERS = {"breed": {"badger": 3}, "cost": {"£90": 2, "£20": 1}, "found at": {"Kelby": 2, "Fen Lock": 1}}
OF_FEED = {"price": {"£7": 9}, "from": {"Fen Lock": 9}, "等级": {"特级": 3, "一级": 2, "二级": 4}}


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("How much does a badger cost us on average?", "breed = badger, average of cost"),
        ("Where were the badgers found?", "any found at, breed = badger, per found at"),
        ("Where do most of the badgers come from?", "any found at, breed = badger, per found at"),
        ("What breeds have the badgers had?", "any breed, breed = badger, per breed"),
        ("银杏都分布在哪里", "any 所在区, 树种 = 银杏, per 所在区"),
        ("二级或二级以上的有哪些", "等级 = 特级 or 一级 or 二级"),
    ],
)
def test_given_what_is_asked_of_a_value_when_read_then_it_is_a_field_of_the_documents_that_have_it(
    question: str, understood: str
) -> None:
    inside = {"animals/": OF_BADGERS, "feed/": OF_FEED, "绿化/": {"树种": {"银杏": 2}, "所在区": {"东区": 2}}}
    inside[""] = {name: values for fields in inside.values() for name, values in fields.items()}

    def ask(filters: Filters) -> Values:
        fields = inside["".join(filters.paths)]
        return Values(kinds={"resource": 14}, folders=(*inside,)[:3], documents=14, fields=fields)

    reading, _ = read_closely(question, Filters(), ask, TODAY)
    assert reading.scan is not None, reading.warnings
    assert (reading.scan.understood, reading.scan.unread) == (understood, ())


READ = [
    ("bugs with Tobias as the assignee", "kind = bug, assignee = Tobias"),
    ("bugs where Tobias is the assignee", "kind = bug, assignee = Tobias"),
    ("which bugs is Ines Vale the assignee of?", "kind = bug, assignee = Ines Vale"),
    ("bugs on Tobias's plate", "kind = bug, assignee = Tobias"),
    ("bugs that remain open", "kind = bug, status = open"),
    ("bugs marked as open", "kind = bug, status = open"),
    ("bugs no longer open", "kind = bug, not status = open"),
    ("all bugs except the open ones", "kind = bug, not status = open"),
    ("bugs which are either open or fixed", "kind = bug, status = open or fixed"),
    ("bugs in status open or in status fixed", "kind = bug, status = open or fixed"),
    ("bugs that are assigned to Tobias and open", "kind = bug, assignee = Tobias, status = open"),
    ("bugs seen on Switch", "kind = bug, platform = Switch"),
    ("bugs looked after by Tobias", "kind = bug, assignee = Tobias"),
    ("bugs with either the audio or the physics tag", "kind = bug, tag = audio or physics"),
    ("bugs carrying at least one of the tags audio, physics", "kind = bug, tag = audio or physics"),
    ("bugs whose tags include audio", "kind = bug, tag = audio"),
    ("all bugs but those tagged audio", "kind = bug, not tag = audio"),
    ("bugs except the ones from 2026", "kind = bug, not dated 2026-01-01 to 2026-12-31"),
    ("bugs that predate July 2025", "kind = bug, dated 2025-06-30 or earlier"),
    ("recipes cooked by Rafael", "kind = recipe, cook or cooked by = Rafael"),
    ("recipes without a cook", "kind = recipe, no cook or cooked by"),
    ("recipes nobody cooked", "kind = recipe, no cook or cooked by"),
    ("Recipies of the course soup", "kind = recipe, course = soup"),
    ("bugs without audio or physics tags", "kind = bug, not tag = audio or physics"),
    ("bugs not assigned to Tobias but open", "kind = bug, not assignee = Tobias, status = open"),
    ("既没有标签也没有处理人的缺陷", "kind = 缺陷, no tags, no 处理人"),
    ("bugs that need an assignee", "kind = bug, no assignee"),
    ("bugs with the assignee not given", "kind = bug, no assignee"),
    ("bugs where the tag audio is missing", "kind = bug, not tag = audio"),
    ("recipes where the date is missing", "kind = recipe, no date"),
    ("open bugs with assignee and platform", "kind = bug, status = open"),
    ("I was asked to collect the open bugs on Switch.", "kind = bug, status = open, platform = Switch"),
    ("孙浩参与的缺陷", "kind = 缺陷, 处理人 = 孙浩"),
    ("处理人里有孙浩的缺陷", "kind = 缺陷, 处理人 = 孙浩"),
    ("缺陷里孙浩的", "kind = 缺陷, 处理人 = 孙浩"),
    ("不在手机端的缺陷", "kind = 缺陷, not 平台 = 手机端"),
    ("日期为空的缺陷", "kind = 缺陷, no date"),
    ("除回归外，带联机标签的缺陷", "kind = 缺陷, tag = 联机, not tag = 回归"),
    ("2026年6月15日之后（含当天）的缺陷", "kind = 缺陷, dated 2026-06-15 or later"),
    ("跟登录有关的缺陷", 'kind = 缺陷, containing or tagged "登录"'),
    ("有没有处理中的缺陷", "kind = 缺陷, 状态 = 处理中"),
    ("处理中的缺陷，把处理人也带上", "kind = 缺陷, 状态 = 处理中"),
    ("孙浩手里的缺陷", "kind = 缺陷, 处理人 = 孙浩"),
    ("分给孙浩的缺陷", "kind = 缺陷, 处理人 = 孙浩"),
    ("孙浩在处理的缺陷", "kind = 缺陷, 处理人 = 孙浩"),
    ("处理人写的是孙浩的缺陷", "kind = 缺陷, 处理人 = 孙浩"),
    ("处理人既不是孙浩也不是周敏的缺陷", "kind = 缺陷, not 处理人 = 孙浩 or 周敏"),
    ("还没人处理的缺陷", "kind = 缺陷, no 处理人"),
    ("尚未关闭的缺陷", "kind = 缺陷, not 状态 = 已关闭"),
    ("除已关闭之外的所有缺陷", "kind = 缺陷, not 状态 = 已关闭"),
    ("缺陷里还有哪些在处理中", "kind = 缺陷, 状态 = 处理中"),
    ("出在手机端的缺陷有哪些", "kind = 缺陷, 平台 = 手机端"),
    ("标了联机却没标回归的缺陷", "kind = 缺陷, tag = 联机, not tag = 回归"),
    ("带联机、回归任一标签的缺陷", "kind = 缺陷, tag = 联机 or 回归"),
    ("打了联机标签或者回归标签的缺陷", "kind = 缺陷, tag = 联机 or 回归"),
    ("提到过敏的缺陷", 'kind = 缺陷, containing "过敏"'),
    ("非孙浩处理的缺陷", "kind = 缺陷, not 处理人 = 孙浩"),
    ("平台不含手机端的缺陷", "kind = 缺陷, not 平台 = 手机端"),
    ("不涉及手机端的缺陷", "kind = 缺陷, not 平台 = 手机端"),
    ("未出现手机端的缺陷", "kind = 缺陷, not 平台 = 手机端"),
    ("除手机端以外还有哪些缺陷", "kind = 缺陷, not 平台 = 手机端"),
    ("无人处理的缺陷", "kind = 缺陷, no 处理人"),
    ("bugs anywhere except on Switch", "kind = bug, not platform = Switch"),
    ("bugs yet to be fixed", "kind = bug, not status = fixed"),
    ("bugs by platform", "kind = bug, per platform"),
    ("Break the bugs down by platform", "kind = bug, per platform"),
    ("没有任何标签的缺陷", "kind = 缺陷, no tags"),
]

#: Ways to deny what follows; each is read, or named.
DENIALS = (
    "bugs not {}", "bugs without {}", "bugs that aren't {}", "bugs never {}", "bugs free of {}", "bugs excluding {}",
    "bugs other than those {}", "bugs that lack {}", "bugs yet to be {}", "bugs anything but {}", "bugs outside {}",
    "bugs with neither {} nor physics", "bugs in which {} is nowhere to be found", "bugs where nothing is {}",
    "不含{}的缺陷", "没有{}的缺陷", "无{}的缺陷", "非{}的缺陷", "并非{}的缺陷", "除{}外的缺陷", "除了{}的缺陷",
    "未见{}的缺陷", "不再是{}的缺陷", "排除{}的缺陷", "缺少{}的缺陷", "{}除外的缺陷", "{}没有的缺陷", "与{}无关的缺陷",
    "别给我{}的缺陷",
)  # fmt: skip


@pytest.mark.parametrize("denied", ["Switch", "Tobias", "手机端", "孙浩"])
def test_given_a_denial_when_read_then_something_is_denied_or_the_answer_names_what_was_not(denied: str) -> None:
    for phrase in DENIALS if denied.isascii() else DENIALS[14:]:
        question = phrase.format(denied)
        reading, _ = read_closely(question, Filters(), under, TODAY)
        scan = reading.scan
        if scan is None or scan.unread:
            continue
        denies = any(one.negated for one in (*scan.fields, *scan.conditions)) or scan.without_tags or scan.lacking
        told = any(each in " ".join(reading.warnings) for each in ("a denial:", "理解为否定"))
        assert denies or told, (question, scan.understood, reading.warnings)


@pytest.mark.parametrize(("question", "expected"), READ, ids=[question for question, _ in READ])
def test_given_another_way_to_say_a_condition_when_read_then_it_is_the_same_filter(
    question: str, expected: str
) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None, reading.warnings
    found = [*reading.scan.understood.split(", ")]
    assert sorted(found) == sorted(expected.split(", "))
    assert reading.scan.unread == ()


COMPARED = [
    ("tasks with a budget above 40,000 EUR", "budget", ("45,000 EUR", "120,000 EUR")),
    ("tasks whose budget is under 50k", "budget", ("18,500 EUR", "45,000 EUR")),
    ("tasks with a budget of 45,000 EUR or more", "budget", ("45,000 EUR", "120,000 EUR")),
    ("tasks with budget between 20,000 and 50,000 EUR", "budget", ("45,000 EUR",)),
    ("tasks with budget over 500,000", "budget", ("budget over 500,000",)),
    ("tasks due before July 2026", "due", ("2026-05-30",)),
    ("tasks that are due after June 2026", "due", ("2026-07-01", "2026-09-15")),
    ("金额超过5000的合同", "金额", ("1.2万元",)),
    ("金额不低于5000元的合同", "金额", ("5000元", "1.2万元")),
    ("金额在4000到6000元之间的合同", "金额", ("5000元",)),
    ("金额1万以上的合同", "金额", ("1.2万元",)),
    ("截止日期在2026年6月之前的合同", "截止日期", ("2026-05-30",)),
    ("截止于2026年5月的合同", "截止日期", ("2026-05-30",)),
    ("2026年5月间截止的合同", "截止日期", ("2026-05-30",)),
]


@pytest.mark.parametrize(("question", "name", "fitting"), COMPARED, ids=[question for question, _, _ in COMPARED])
def test_given_a_comparison_when_read_then_the_values_that_fit_are_the_filter_and_that_is_told(
    question: str, name: str, fitting: tuple[str, ...]
) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None, reading.warnings
    assert [(wanted.names, wanted.values) for wanted in reading.scan.fields] == [((name,), fitting)]
    assert (reading.scan.found.after, reading.scan.found.before, reading.scan.unread) == (None, None, ())
    assert fitting[0] in reading.warnings[0]


def test_given_many_days_of_a_field_in_a_range_when_told_then_it_is_the_range() -> None:
    days = {f"2026-0{month}-11": 1 for month in range(1, 8)}

    def ask(filters: Filters) -> Values:
        return under(filters).model_copy(update={"fields": {"due": days}})

    reading, _ = read_closely("tasks due between March and July 2026", Filters(), ask, TODAY)
    assert reading.scan is not None
    assert reading.scan.understood == "kind = task, due = 2026-03-01 to 2026-07-31"
    assert len(reading.scan.fields[0].values) == 5


@pytest.mark.parametrize("question", ["tasks with a budget over 3 weeks", "tasks with an owner over 30"])
def test_given_a_comparison_that_the_values_do_not_allow_when_read_then_it_is_unread(question: str) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None
    assert not any(wanted.values for wanted in reading.scan.fields)
    assert "over 3" in " ".join(reading.scan.unread)


def test_given_a_name_that_other_kinds_have_in_another_field_when_listed_then_the_kind_s_own_field_counts() -> None:
    asked: list[Filters] = []

    def ask(filters: Filters) -> Values:
        asked.append(filters)
        return under(filters)

    reading, values = read_closely("Rafael's recipes", Filters(), ask, TODAY)
    assert [filters.kinds for filters in asked] == [(), ("recipe",)]
    assert {*values.fields} == {*FIELDS["recipe"]}
    assert {*values.tags} == {"audio", "physics", "联机", "回归"}
    assert reading.scan is not None
    assert reading.scan.fields[0].names == ("cook", "cooked by")


@pytest.mark.parametrize(
    "question",
    [
        "open bugs and dessert recipes",
        "bugs that are not open or tagged audio",
        "bugs assigned to Tobias and open or tagged audio",
        "bugs that are open or from 2026",
    ],
)
def test_given_or_between_conditions_that_cannot_be_joined_when_read_then_it_is_no_list_and_that_is_told(
    question: str,
) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is None
    assert question in reading.warnings[0]


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("bugs that are open or tagged audio", "kind = bug, status = open or tag = audio"),
        ("bugs assigned to Tobias or open", "kind = bug, assignee = Tobias or status = open"),
        ("状态是处理中或者带联机标签的缺陷", "kind = 缺陷, 状态 = 处理中 or tag = 联机"),
        (
            "bugs with at least two of the tags audio, physics and 联机",
            "kind = bug, at least 2 of (tag = audio, tag = physics, tag = 联机)",
        ),
        (
            "带有联机、回归和audio中至少两个标签的缺陷",
            "kind = 缺陷, at least 2 of (tag = 联机, tag = 回归, tag = audio)",
        ),
        ("bugs tagged only audio", "kind = bug, tag = audio, no other tag"),
        ("只有联机标签的缺陷", "kind = 缺陷, tag = 联机, no other tag"),
    ],
)
def test_given_conditions_of_which_some_are_enough_or_nothing_more_when_read_then_they_are_one(
    question: str, understood: str
) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None
    assert (reading.scan.understood, reading.scan.unread) == (understood, ())


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("open bugs with assignee and platform", ("assignee", "platform")),
        ("open bugs, including assignee", ("assignee",)),
        ("处理中的缺陷，把处理人也带上", ("处理人",)),
        ("处理中的缺陷，附上处理人、平台", ("处理人", "平台")),
        ("bugs with an assignee", ()),
    ],
)
def test_given_names_of_fields_at_the_end_when_read_then_they_are_columns(
    question: str, columns: tuple[str, ...]
) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None
    assert reading.scan.columns == columns
    assert reading.scan.unread == ()


def test_given_words_before_a_tag_that_describe_it_when_read_then_all_of_it_is_unread() -> None:
    reading, _ = read_closely("open bugs with terrible audio that took ages", Filters(), under, TODAY)
    assert reading.scan is not None
    assert (reading.scan.tags, reading.scan.unread) == ((), ("terrible audio", "took ages"))


@pytest.mark.parametrize("question", ["bugs praised by Tobias", "bugs that only Tobias understands"])
def test_given_what_no_field_says_when_a_value_stands_beside_it_then_it_is_unread_and_no_filter(question: str) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None
    assert reading.scan.fields == ()
    assert "Tobias" in " ".join(reading.scan.unread)


@pytest.mark.parametrize(
    ("question", "expected", "unread"),
    [
        ("bugs only on Switch", "kind = bug, platform = Switch", "only"),
        ("bugs with at least one tag", "kind = bug", "with at least one tag"),
    ],
)
def test_given_more_than_a_filter_can_say_when_read_then_those_words_are_named(
    question: str, expected: str, unread: str
) -> None:
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None
    assert (reading.scan.understood, reading.scan.unread) == (expected, (unread,))


def test_given_words_of_time_left_unread_beside_a_date_when_read_then_it_is_no_list() -> None:
    reading, _ = read_closely("bugs from 2026, weekends only", Filters(), under, TODAY)
    assert reading.scan is None
    assert "weekends" in reading.warnings[0]


def test_given_the_phrases_of_all_languages_then_none_of_them_is_found_in_nothing() -> None:
    for language in languages():
        for name, phrases in language.lists.phrases.items():
            assert not [phrase for phrase in phrases if re.fullmatch(phrase.replace("{}", "x"), "")], name
