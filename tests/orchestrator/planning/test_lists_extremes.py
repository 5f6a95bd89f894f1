"""The most and the least of anything in an order, who is asked for, and what is so or not: by fields."""

from __future__ import annotations

from datetime import date

import pytest

from orchestrator.planning.lists.closely import read_closely
from orchestrator.planning.lists.people import holds_people, is_people
from shared.models import Filters
from shared.models.enumeration import Scan, Values

TODAY = date(2026, 11, 22)
FIELDS: dict[str, dict[str, dict[str, int]]] = {
    "repair": {
        "bill": {"EUR 120": 4, "EUR 1,450": 5, "$ 80": 0},
        "deposit": {"EUR 20": 4, "EUR 60": 5},
        "weight": {"900 g": 4, "2.5 kg": 5},
        "taken": {"3 days": 4, "2 weeks": 5},
        "urgency": {"low": 3, "high": 3, "urgent": 3},
        "received": {"2026-03-02": 4, "2026-05-30": 5},
        "technician": {"Ada Moreau": 4, "Piet Vos": 5},
        "owner": {"Lena Fischer": 5, "Ravi Menon": 4},
        "insured": {"yes": 4, "no": 5},
        "picked up at": {"Ghent": 4, "Delft": 5},
        "sent to": {"Ghent": 5, "Delft": 4},
        "parts": {"bow": 6, "bridge": 5, "peg": 3},
    },
    "technician": {"languages": {"French": 2, "Dutch": 1}, "joined": {"2019-02-01": 1, "2024-08-01": 1}},
    "捐赠": {
        "估价": {"3000元": 2, "9万元": 3},
        "入藏日期": {"2025-03-02": 2, "2026-01-05": 3},
        "级别": {"一级": 2, "二级": 2, "三级": 1},
        "是否展出": {"是": 2, "否": 3},
        "捐赠人": {"孟春雨": 3, "何守拙": 2},
        "库房": {"东库": 3, "西库": 2},
    },
}
COUNTS = {"repair": 9, "technician": 3, "捐赠": 5}


def under(filters: Filters) -> Values:
    """What exists under a filter of kinds; no document has a date."""
    if filters.after or filters.before:
        return Values()
    kinds = filters.kinds or tuple(FIELDS)
    fields: dict[str, dict[str, int]] = {}
    for kind in kinds:
        fields |= FIELDS[kind]
    return Values(kinds=COUNTS, fields=fields, documents=sum(COUNTS[kind] for kind in kinds))


def read(question: str) -> tuple[Scan, str]:
    """The scan, and all warnings."""
    reading, _ = read_closely(question, Filters(), under, TODAY)
    assert reading.scan is not None, reading.warnings
    return reading.scan, " ".join(reading.warnings)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which repair was the heaviest?", "kind = repair, the 1 with the highest weight"),
        ("Which repair took the longest?", "kind = repair, the 1 with the highest taken"),
        ("repairs with the highest urgency", "kind = repair, the 1 with the highest urgency"),
        ("the most urgent repairs", "kind = repair, the 1 with the highest urgency"),
        ("Which repair was received last?", "kind = repair, the 1 with the latest received"),
        (
            "What was the first repair we received for Ravi Menon?",
            "kind = repair, owner = Ravi Menon, the 1 with the earliest received",
        ),
        ("Which technician joined most recently?", "kind = technician, the 1 with the latest joined"),
        ("Which uninsured repairs are urgent?", "kind = repair, insured = no, urgency = urgent"),
        ("repairs that are not insured", "kind = repair, not insured = yes"),
        ("repairs in May 2026", "kind = repair, received = 2026-05-30"),
        ("repairs to Ghent", "kind = repair, sent to = Ghent"),
        ("repairs with bow and bridge", "kind = repair, parts = bow, parts = bridge"),
        ("Who speaks Dutch?", "kind = technician, languages = Dutch"),
        ("Which owner has the most repairs?", "kind = repair, any owner, per owner, the most frequent first"),
        (
            "What is the least common urgency of repairs?",
            "kind = repair, any urgency, per urgency, the least frequent first",
        ),
        (
            "Which technician has had the fewest insured repairs?",
            "kind = repair, any technician, insured = yes, per technician, the least frequent first",
        ),
        ("估价最高的捐赠是哪件", "kind = 捐赠, the 1 with the highest 估价"),
        ("最值钱的一件捐赠", "kind = 捐赠, the 1 with the highest 估价"),
        ("最早入藏的捐赠是哪件", "kind = 捐赠, the 1 with the earliest 入藏日期"),
        ("估价前二的捐赠", "kind = 捐赠, the 2 with the highest 估价"),
        ("没有展出的捐赠有哪些", "kind = 捐赠, 是否展出 = 否"),
        ("正在展出的捐赠有哪些", "kind = 捐赠, 是否展出 = 是"),
        ("2026年1月入藏的捐赠", "kind = 捐赠, 入藏日期 = 2026-01-05"),
        ("哪个库房的捐赠最多", "kind = 捐赠, any 库房, per 库房, the most frequent first"),
        ("谁捐赠的捐赠最多", "kind = 捐赠, any 捐赠人, per 捐赠人, the most frequent first"),
    ],
)  # fmt: skip
def test_given_an_order_or_who_or_what_is_so_when_asked_for_then_the_field_that_is_meant_is_read(
    question: str, expected: str
) -> None:
    scan, _ = read(question)
    assert sorted(scan.understood.split(", ")) == sorted(expected.split(", "))
    assert scan.unread == ()


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Who did the urgent repairs?", "technician"),  # or the owner
        ("Whose repairs are urgent?", "owner"),
        ("Ghent repairs", "sent to"),
        ("Which gadgets were received in May 2026?", "gadgets"),
    ],
)
def test_given_what_may_be_of_several_fields_when_read_then_a_warning_names_what_was_not_read(
    question: str, told: str
) -> None:
    scan, warnings = read(question)
    assert "not read" in warnings
    assert told in warnings
    assert scan.fields


def test_given_values_when_looked_at_then_people_are_told_from_firms_ships_and_places() -> None:
    assert holds_people("skipper", ["Ingrid Solberg", "Tomas Keller", "Owen Pryce"])
    assert holds_people("mentor", ["Zog Mbeki"])
    assert holds_people("经办", ["孟春雨", "何守拙"])
    assert not holds_people("ship", ["Northern Star", "Amber Light", "Sea Fox"])
    assert not holds_people("charterer", ["Halden Grain", "Baltic Mills", "Orinoco Trading"])
    assert not holds_people("order", ["A 12", "A 13"])
    assert is_people("translators")
    assert is_people("人员")
    assert not is_people("repairs")
