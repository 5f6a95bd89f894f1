"""An ingest says how fast it was and what took the time: for people in one line, for programs in the last of --json."""

from __future__ import annotations

from orchestrator.cli.corpus import pace
from orchestrator.cli.render.ingests import draw_pace
from orchestrator.documents.ingest import Progress


def test_given_parts_when_drawn_then_the_slowest_three_stand_with_their_share() -> None:
    parts = {"reading": 1.0, "writing": 3.0, "chunking": 0.5, "keyword vectors": 5.5}
    said = draw_pace(5000, 62.5, parts).plain
    assert said == "5000 files in 62.5 s, 80 files/s; slowest: keyword vectors 55%, writing 30%, reading 10%"


def test_given_no_parts_when_drawn_then_the_rate_stands_alone() -> None:
    assert draw_pace(2, 0.5, {}).plain == "2 files in 0.5 s, 4 files/s"


def test_given_a_last_step_when_asked_for_json_then_it_has_numbers_and_without_one_nothing() -> None:
    step = Progress(read=10, total=10, seconds=4.0, parts={"writing": 1.23456})
    assert pace(step) == {"files": 10, "seconds": 4.0, "files_per_s": 2.5, "parts": {"writing": 1.235}}
    assert pace(Progress(read=0, total=0))["files_per_s"] is None
    assert pace(None) == {}
