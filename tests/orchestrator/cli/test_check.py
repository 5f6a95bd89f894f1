"""`ramify check`: lines of claims, a text against files, its exit codes and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app

_PASSAGE = "The relay was designed by Ada Byrne in 2019. It keeps events for 30 days.\n\nA page about otters."


def _run(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["check", *args])
    return done.exit_code, done.stdout, done.stderr


def test_given_lines_of_claims_when_checked_then_each_has_a_verdict_and_bad_ones_cost_only_themselves(
    tmp_path: Path,
) -> None:
    file = tmp_path / "claims.jsonl"
    rows = [
        {"id": "a", "claim": "It keeps events for 30 days.", "passage": _PASSAGE, "label": "anything"},
        {"id": "b", "claim": "It keeps events for 90 days.", "passage": ["Of otters.", _PASSAGE]},
        {"id": "c", "claim": "误报减少了40%。", "passage": "误报没有减少40%。"},
    ]
    lines = [json.dumps(row) for row in rows]
    file.write_text("\n".join([lines[0], '{"id": 7, "claim": ', "", *lines[1:], '{"claim": "x"}']) + "\n")
    code, out, err = _run("--file", str(file), "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(row["id"], row["verdict"], row["kind"]) for row in found] == [
        ("a", "supported", "quote"),
        ("b", "unsupported", "number"),
        ("c", "unsupported", "negation"),
    ]
    assert code == 3
    assert "line 2: it is no JSON" in err
    assert "line 6: passage" in err


def test_given_a_text_when_held_against_files_then_each_sentence_is_told_and_the_page_shows_it(tmp_path: Path) -> None:
    source, page = tmp_path / "relay.md", tmp_path / "page.html"
    source.write_text(_PASSAGE)
    text = "# The relay\n\nThe relay was designed by Ada Byrne in 2018. It keeps events for 30 days. <b>Cats fly.</b>\n"
    code, out, _ = _run(text, "--passages", str(source), "--out", str(page), "--json")
    found = json.loads(out)
    assert [one["verdict"] for one in found["sentences"]] == ["contradicted", "supported", "unsupported"]
    assert found["not_read"] == 1
    assert found["sentences"][1]["passage"]["path"] == str(source)
    assert all(text[one["start"] : one["end"]] == one["text"] for one in found["sentences"])
    assert code == 3
    assert "&lt;b&gt;" in page.read_text()


def test_given_passages_that_disagree_then_both_are_named_in_each_format(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("The relay keeps events for 30 days.")
    (tmp_path / "two.md").write_text("The relay keeps events for 90 days.")
    page = tmp_path / "page.md"
    files = ("--passages", str(tmp_path / "one.md"), "--passages", str(tmp_path / "two.md"))
    text = "# Relay\n\nThe relay keeps events for 30 days. The relay keeps events for 7 days. <b>Cats</b> fly high."
    _, out, _ = _run(text, *files, "--out", str(page), "--json")
    found = json.loads(out)
    first, second, third = found["sentences"]
    assert [Path(one["path"]).name for one in first["supporting"]] == ["one.md"]
    assert [Path(one["path"]).name for one in first["contradicting"]] == ["two.md"]
    assert (second["supporting"], len(second["contradicting"])) == ([], 2)
    assert (third["verdict"], third["contradicting"], found["disputed"]) == ("unsupported", [], 1)
    written = page.read_text()
    assert "1 disputed" in written
    assert "~~The relay keeps events for 7 days.~~ *(contradicted: number" in written
    assert "<b>" not in written
    assert "contradicted by" in _run(text, *files)[1]


def test_given_a_text_that_is_supported_when_checked_then_the_code_is_0(tmp_path: Path) -> None:
    source = tmp_path / "relay.md"
    source.write_text(_PASSAGE)
    code, out, _ = _run("It keeps events for 30 days.", "--passages", str(source))
    assert code == 0
    assert "1 supported" in out


@pytest.mark.parametrize("args", [(), ("text", "--file", "x.jsonl"), ("text", "--passages", "/nowhere.md")])
def test_given_bad_arguments_when_checked_then_one_sentence_and_code_2(args: tuple[str, ...]) -> None:
    code, _, err = _run(*args)
    assert code == 2
    assert err.count("\n") == 1


def test_given_lines_that_are_all_supported_when_checked_then_the_code_is_0_else_3(tmp_path: Path) -> None:
    file = tmp_path / "claims.jsonl"
    good = json.dumps({"claim": "It keeps events for 30 days.", "passage": _PASSAGE})
    file.write_text(f"{good}\n")
    assert _run("--file", str(file))[0] == 0
    file.write_text(f"{good}\n{good.replace('30 days.', '31 days.', 1)}\n")
    assert _run("--file", str(file))[0] == 3


def test_given_a_line_without_end_when_checked_then_reading_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.checking.MOST_PIECES", 2)
    code, _, err = _run("--file", "/dev/zero", "--json")
    assert code == 3
    assert "does not end" in err


def test_given_a_table_when_checked_then_each_row_is_a_claim_with_its_place(tmp_path: Path) -> None:
    source, facts = tmp_path / "source.txt", "| Designed by | Ada Byrne |\n| Kept | 90 days |\n"
    text = f"Facts:\n\n| Fact | Value |\n|---|---|\n{facts}"
    source.write_text("The relay was designed by Ada Byrne in 2019. Events are kept for 30 days.")
    code, out, _ = _run(text, "--passages", str(source), "--json")
    rows = [(text[one["start"] : one["end"]], one["verdict"]) for one in json.loads(out)["sentences"][-2:]]
    assert rows[0] == ("| Designed by | Ada Byrne |", "supported")
    assert (rows[1][0], code) == ("| Kept | 90 days |", 3)
    assert rows[1][1] != "supported"
