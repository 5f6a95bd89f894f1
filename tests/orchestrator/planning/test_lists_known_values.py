"""Known values are read wherever they stand, with what ties them to the documents; each word is accounted for."""

from __future__ import annotations

from datetime import date
from itertools import product

import pytest

from orchestrator.planning.lists.possible import asks_for_several, may_be_list, names_list
from orchestrator.planning.lists.reading import Reading, read_question
from shared.language.text import plain
from shared.models import Filters
from shared.models.enumeration import Values

TODAY = date(2026, 11, 22)
VALUES = Values(
    kinds={"parcel": 9, "pest-report": 4, "货单": 5, "会议纪要": 3},
    tags={"fragile": 3, "documentary": 2, "冷藏": 2},
    folders=("depot/", "depot/journals/", "depot/抽查记录/"),
    fields={
        "courier": {"Edda Vik": 4, "Malik Osei": 2, "Ruth Bell": 1},
        "clerk": {"Nils Aune": 3},
        "outcome": {"lost": 3, "delivered": 5, "rejected": 2},
        "hall": {"North Shed": 3, "Quay Hall": 2},
        "freight": {"dry ice": 2, "crushed ice": 1, "glass beads": 3},
        "sender": {"Marsh Seeds": 2},
        "经手人": {"周岚": 3, "陈默": 2, "马骁": 1},
        "责编": {"林晓": 3},
        "责任编辑": {"林晓": 1, "何川": 1},
        "货况": {"在途": 3, "已签收": 4, "滞留": 2},
        "仓库": {"东库房": 3, "码头仓": 2},
        "所在港": {"青港": 3, "乌港": 2},
    },
    documents=30,
)


def read(question: str) -> Reading:
    return read_question(question, Filters(), VALUES, TODAY)


def understood(question: str) -> tuple[list[str], tuple[str, ...]]:
    scan = read(question).scan
    assert scan is not None
    return sorted(scan.understood.split(", ")), scan.unread


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("which parcels does Edda look after?", ["courier = Edda Vik", "kind = parcel"]),
        ("what parcels has Malik been working on", ["courier = Malik Osei", "kind = parcel"]),
        ("parcels where Nils Aune was around", ["clerk = Nils Aune", "kind = parcel"]),
        ("parcels that went to Ruth Bell", ["courier = Ruth Bell", "kind = parcel"]),
        ("Edda's lost parcels", ["courier = Edda Vik", "kind = parcel", "outcome = lost"]),
        ("parcels except Edda's", ["kind = parcel", "not courier = Edda Vik"]),
        ("parcels that Edda did not carry", ["kind = parcel", "not courier = Edda Vik"]),
        ("how many parcels did we reject?", ["kind = parcel", "outcome = rejected"]),
        ("parcels that ended up lost", ["kind = parcel", "outcome = lost"]),
        (
            "lost parcels in North Shed or Quay Hall",
            ["hall = North Shed or Quay Hall", "kind = parcel", "outcome = lost"],
        ),
        ("parcels neither lost nor in North Shed", ["kind = parcel", "not hall = North Shed", "not outcome = lost"]),
        ("lost reports", ["kind = pest-report", "outcome = lost"]),
        ("lost parcels with ice", ["freight = dry ice or crushed ice", "kind = parcel", "outcome = lost"]),
        ("parcels with a bead", ["freight = glass beads", "kind = parcel"]),
        ("parcels from marsh", ["kind = parcel", "sender = Marsh Seeds"]),
        ("parcels 2025", ["dated 2025-01-01 to 2025-12-31", "kind = parcel"]),
        ("everything except lost journals", ["not outcome = lost", "path = depot/journals/"]),
        ("parcels saying something about wax", ['containing or tagged "wax"', "kind = parcel"]),
        ("要么在途要么滞留的货单", ["kind = 货单", "货况 = 在途 or 滞留"]),
        ("除滞留外的货单", ["kind = 货单", "not 货况 = 滞留"]),
        ("每个港各有多少货单", ["kind = 货单", "per 所在港"]),
        ("在途的货单分布在哪些港？", ["any 所在港", "kind = 货单", "per 所在港", "货况 = 在途"]),
        ("2025年5月的抽查记录", ["dated 2025-05-01 to 2025-05-31", "path = depot/抽查记录/"]),
        ("number of parcels for each courier", ["kind = parcel", "per courier"]),
        ("周岚手上在途的货单", ["kind = 货单", "经手人 = 周岚", "货况 = 在途"]),
        ("由陈默搬的货单", ["kind = 货单", "经手人 = 陈默"]),
        ("周岚没碰的货单", ["kind = 货单", "not 经手人 = 周岚"]),
        ("不滞留的货单", ["kind = 货单", "not 货况 = 滞留"]),
        ("货单，不要东库房的", ["kind = 货单", "not 仓库 = 东库房"]),
        ("林晓责编的货单", ["kind = 货单", "责编 or 责任编辑 = 林晓"]),
        ("陈默去了哪些会", ["kind = 会议纪要", "经手人 = 陈默"]),
    ],
)
def test_given_values_in_any_words_when_read_then_they_are_filters_and_nothing_is_unread(
    question: str, parts: list[str]
) -> None:
    assert understood(question) == (parts, ())


@pytest.mark.parametrize(
    ("question", "unread"),
    [
        ("Edda's grubbiest parcels", "grubbiest"),
        ("parcels praised by Edda", "praised by edda"),
        ("parcels inspected by Edda and wrapped beautifully", "wrapped beautifully"),
        ("东库房最难搬的货单", "最难搬"),
        ("在途却没人要的货单", "没人要"),
        ("讨论不充分的会议纪要", "不充分"),
        ("审核人是周岚的货单", "审核人是周岚"),
    ],
)
def test_given_words_that_say_more_when_a_value_stands_beside_them_then_they_are_named_and_no_condition(
    question: str, unread: str
) -> None:
    scan = read(question).scan
    assert scan is not None
    assert scan.conditions == ()
    assert unread in plain(" ".join(scan.unread))


ENGLISH = (
    "parcels {verb} by {person}",
    "which parcels did {person} {verb}?",
    "{state} parcels that {person} {verb}",
    "{verb} {state} parcels",
    "parcels from 2025 that {verb} in {hall}",
    "{person}'s {verb} parcels",
    "{state} parcels {verb} like {other}",
    "fragile parcels with a {verb} {other}",
    "latest 5 {verb} parcels of {person}",
)
CHINESE = (
    "{person}{verb}的货单",
    "{state}却{verb}的货单",
    "哪些货单{verb}了{other}",
    "{verb}的{hall}货单",
    "2025年{person}{verb}的货单",
    "{hall}里{verb}得{other}的货单",
    "{verb}的货单有几张",
)


def questions() -> list[str]:
    asked = []
    for texts, made_up, values in (
        (
            ENGLISH,
            [("glorbed", "wimple"), ("frobble", "snark")],
            [("Edda Vik", "lost", "Quay Hall"), ("Malik", "rejected", "North Shed")],
        ),
        (
            CHINESE,
            [("夯叠", "囫囵"), ("蘸甩", "皴裂")],
            [("周岚", "在途", "东库房"), ("马骁", "滞留", "码头仓")],
        ),
    ):
        for text, (verb, other), (person, state, hall) in product(texts, made_up, values):
            asked.append(text.format(verb=verb, other=other, person=person, state=state, hall=hall))
    return asked


@pytest.mark.parametrize("question", questions())
def test_given_words_that_no_rule_knows_when_read_then_each_is_read_or_told_or_named_as_unread(question: str) -> None:
    reading = read(question)
    told = plain(" ".join(reading.warnings))
    for word in ("glorbed", "wimple", "frobble", "snark", "夯叠", "囫囵", "蘸甩", "皴裂"):
        assert word not in question or word in told
    scan = reading.scan
    for value in ("Edda Vik", "Malik", "lost", "rejected", "Quay Hall", "North Shed", "周岚", "马骁", "在途", "滞留"):
        if scan and value in question:
            assert (value in scan.understood) != (plain(value) in plain(" ".join(scan.unread)))


def is_list(question: str) -> bool:
    scan = read(question).scan
    return may_be_list(question) and scan is not None and names_list(question, VALUES, scan)


@pytest.mark.parametrize(
    "question",
    [
        "lost documentaries",
        "滞留的有哪些",
        "陈默去了哪些会",
        "what did Edda courier?",
        "parcels with their hall",
        "whatever Malik carried",
    ],
)
def test_given_values_that_stand_for_the_documents_when_read_then_it_is_a_list(question: str) -> None:
    assert is_list(question)


@pytest.mark.parametrize(
    "question",
    [
        "what did Edda say?",
        "what does lost mean?",
        "lost documentary",
        "what is a documentary?",
        "滞留是什么意思",
        "who is Edda Vik?",
    ],
)
def test_given_another_question_about_a_value_when_read_then_it_is_no_list(question: str) -> None:
    assert not is_list(question)


def test_given_the_first_of_what_was_not_understood_when_read_then_none_is_left_out_by_its_number() -> None:
    refused = read("latest 5 glorbed wimples of 2025")
    assert refused.scan is None
    assert "glorbed wimples" in refused.warnings[0]
    scan = read("latest 5 glorbed parcels").scan
    assert scan is not None
    assert (scan.order, scan.limit, scan.unread) == ("newest", 0, ("glorbed",))


def test_given_two_values_that_no_document_has_together_when_both_are_asked_for_then_one_of_them_is_enough() -> None:
    assert understood("lost parcels that ended up delivered")[0] == ["kind = parcel", "outcome = lost or delivered"]


def test_given_a_column_when_a_field_is_called_as_a_row_s_own_then_it_is_one() -> None:
    values = VALUES.model_copy(update={"fields": {**VALUES.fields, "来源": {"电话": 3}}})
    scans = [read_question("在途的货单，附上来源", Filters(), known, TODAY).scan for known in (VALUES, values)]
    assert [scan.columns if scan else None for scan in scans] == [(), ("来源",)]


def test_given_a_column_when_documents_call_it_otherwise_then_their_names_are_told_to_the_scan() -> None:
    scan = read("在途的货单，带上责编").scan
    assert scan is not None
    assert scan.also_called == {"责编": ("责编", "责任编辑")}


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("which lodgers are in the attic", True),
        ("how many barges came", True),
        ("哪些房客在阁楼", True),
        ("which port is used?", False),
        ("what is a lodger?", False),
    ],
)
def test_given_the_form_of_a_list_when_it_is_none_then_that_is_worth_a_warning(question: str, several: bool) -> None:
    assert asks_for_several(question) == several


CHOIR = Values(
    kinds={"score": 6, "演出": 6},
    fields={
        "copy": {"8": 1, "12": 1, "20": 2, "35": 1, "57": 1},
        "fee": {"90 GBP": 2, "210 GBP": 3, "400 GBP": 1},
        "edited by": {"Magda Rell": 3, "Ola Finn": 3},
        "票房": {"8500元": 2, "26000元": 3, "36000元": 1},
    },
    documents=12,
)


def choir(question: str) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    found = read_question(question, Filters(), CHOIR, TODAY)
    parts = [] if found.scan is None else found.scan.understood.split(", ")
    return sorted(part for part in parts if not part.startswith("kind")), found.unread, found.warnings


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("scores with fewer than 20 copies", "copy = 8 or 12"),
        ("scores with under twenty copies", "copy = 8 or 12"),
        ("which scores have at least thirty-five copies?", "copy = 35 or 57"),
        ("scores with no more than a dozen copies", "copy = 8 or 12"),
        ("which scores have 35 copies or more?", "copy = 35 or 57"),
        ("scores with between 10 and 30 copies", "copy = 12 or 20"),
        ("scores that cost more than 200 GBP", "fee = 210 GBP or 400 GBP"),
        ("scores that cost more than two hundred GBP", "fee = 210 GBP or 400 GBP"),
        ("票房不到一万元的演出", "票房 = 8500元"),
        ("票房超过三万的演出", "票房 = 36000元"),
        ("票房不少于三万五的演出", "票房 = 36000元"),
        ("超过两万元的演出", "票房 = 26000元 or 36000元"),
        ("票房在一万到三万元之间的演出", "票房 = 26000元"),
    ],
)
def test_given_a_bound_with_its_field_or_unit_behind_when_read_then_the_numbers_are_compared(
    question: str, part: str
) -> None:
    parts, unread, warnings = choir(question)
    assert (parts, unread) == ([part], ())
    assert part in warnings[0]


def test_given_a_value_between_the_two_parts_of_a_denial_when_read_then_it_is_left_out() -> None:
    assert understood("除周岚外经手的货单")[0] == ["kind = 货单", "not 经手人 = 周岚"]


@pytest.mark.parametrize("question", ["票房大约26000元的演出", "演出里票房将近26000元的"])
def test_given_an_amount_behind_an_unread_bound_when_read_then_it_is_no_value(question: str) -> None:
    parts, unread, _ = choir(question)
    assert (parts, "26000" in " ".join(unread)) == ([], True)


@pytest.mark.parametrize("question", ["scores with roughly 20 copies", "scores with barely 20 copies"])
def test_given_a_bound_that_is_not_understood_when_read_then_its_number_is_no_value(question: str) -> None:
    parts, unread, _ = choir(question)
    assert parts == []
    assert "20 copies" in " ".join(unread)


@pytest.mark.parametrize(
    "question",
    [
        "scores edited by anyone but Magda Rell",
        "which scores were edited by somebody other than Magda Rell?",
        "scores edited by someone else than Magda Rell",
        "every score bar those edited by Magda Rell",
        "all scores save those edited by Magda Rell",
        "scores not edited by Magda Rell",
    ],
)
def test_given_a_value_that_is_denied_in_other_words_when_read_then_it_is_left_out(question: str) -> None:
    assert choir(question)[:2] == (["not edited by = Magda Rell"], ())


@pytest.mark.parametrize(
    "question",
    ["scores hardly edited by Magda Rell", "scores ignoring Magda Rell", "scores unless edited by Magda Rell"],
)
def test_given_a_denial_that_is_not_understood_when_read_then_its_value_is_not_required(question: str) -> None:
    parts, unread, _ = choir(question)
    assert parts == []
    assert "magda rell" in " ".join(unread).lower()


def test_given_words_beside_each_other_behind_mention_when_read_then_each_counts_and_a_quoted_phrase_is_one() -> None:
    parts, unread, warnings = choir("scores that mention a torn cover")
    assert (parts, unread) == (['containing "cover"', 'containing "torn"'], ())
    assert "\u201ctorn\u201d, \u201ccover\u201d" in warnings[0]
    assert choir('scores that mention "torn cover"')[0] == ['containing "torn cover"']
    parts, _, warnings = choir("scores that do not mention a torn cover")
    assert parts == ['without "torn cover"']
    assert "torn cover" in warnings[0]


GAZETTE = Values(
    kinds={"方志条目": 9, "port-call": 5, "score": 6},
    folders=("县志/", "县志/卷上/", "县志/卷下/", "choir/", "choir/secular/"),
    fields={"specy": {"dog": 3, "goat": 2}, "status": {"discharged": 3}, "主演": {"柳含烟": 3}, "剧种": {"越剧": 4}},
    field_names={"specy": "species"},
    documents=30,
)


def gazette(question: str, values: Values = GAZETTE) -> tuple[list[str], tuple[str, ...]]:
    scan = read_question(question, Filters(), values, TODAY).scan
    assert scan is not None
    assert names_list(question, values, scan)
    return sorted(scan.understood.split(", ")), scan.unread


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("2025年的条目有哪些？", ["dated 2025-01-01 to 2025-12-31", "kind = 方志条目"]),
        ("卷下里2025年写的条目有哪些？", ["dated 2025-01-01 to 2025-12-31", "kind = 方志条目", "path = 县志/卷下/"]),
        ("卷上的条目有哪些？", ["kind = 方志条目", "path = 县志/卷上/"]),
        ("list the secular scores", ["kind = score", "path = choir/secular/"]),
        ("which dogs were discharged?", ["species = dog", "status = discharged"]),
        ("柳含烟主演的越剧场次", ["主演 = 柳含烟", "剧种 = 越剧"]),
        ("柳含烟演的戏有哪些？", ["主演 = 柳含烟"]),
    ],
)
def test_given_a_noun_that_is_a_part_of_a_kind_a_folder_or_a_value_when_read_then_it_is_a_list_of_that(
    question: str, parts: list[str]
) -> None:
    assert gazette(question) == (parts, ())


def test_given_a_field_when_told_then_its_name_is_the_one_that_documents_write() -> None:
    found = read_question("which goats were discharged?", Filters(), GAZETTE, TODAY)
    assert found.scan is not None
    assert "species = goat" in found.scan.understood
    assert "species = goat" in found.warnings[0]


def test_given_a_noun_that_two_kinds_end_with_when_read_then_it_is_named_as_unread() -> None:
    values = GAZETTE.model_copy(update={"kinds": {**GAZETTE.kinds, "年鉴条目": 2}})
    assert gazette("2025年的条目有哪些？", values) == (["dated 2025-01-01 to 2025-12-31"], ("条目",))
    assert gazette("2025年的文件有哪些？")[1] == ()
