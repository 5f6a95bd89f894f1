"""Places as readers name them, read back into their parts."""

from __future__ import annotations

import pytest

from shared.models.place import Place, box_of, place_of


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("p. 3", {"page": 3}),
        ("slide 12", {"slide": 12}),
        ("cell 4", {"cell": 4}),
        ("message 7", {"message": 7}),
        ("chapter 2 (The end, p. 9)", {"chapter": 2}),
        ("rows 2-41", {"rows": (2, 41)}),
        ("sheet Assets, rows 22-41", {"sheet": "Assets", "rows": (22, 41)}),
        ("sheet A, rows 1-2, rows 3-4", {"sheet": "A, rows 1-2", "rows": (3, 4)}),
        ("资产.pdf, p. 2", {"page": 2}),
        ("a, b.xlsx, sheet Assets, rows 2-9", {"sheet": "Assets", "rows": (2, 9)}),
        ("a.csv, rows 2-9", {"rows": (2, 9)}),
        ("", {}),
        ("somewhere", {}),
    ],
)
def test_given_a_name_when_read_then_its_parts_stand(name: str, parts: dict[str, object]) -> None:
    assert place_of(name, "A > B") == Place(name=name, heading=("A", "B"), **parts)


def test_given_boxes_when_joined_then_the_smallest_around_them_is_found() -> None:
    assert box_of([(10, 20, 30, 40), (5, 25, 20, 60)]) == (5, 20, 30, 60)
    assert box_of([]) is None
