"""`manifest`, `replay`, `diff` and `export` on the command line. The client is a fake; files are real."""

import json

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from shared.models.manifest import Manifest
from tests.fakes.ramify_client import FakeRamify


@pytest.fixture
def client(monkeypatch):
    fake = FakeRamify()
    monkeypatch.setattr("orchestrator.client.Ramify", fake.opened)
    fake.submit("缓存雪崩的原因？")
    fake.submit("Why?")
    return fake


def ramify(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_manifest_that_was_written_is_shown_compared_and_replayed_from_its_file(client, tmp_path):
    path = tmp_path / "m.json"
    assert ramify("manifest", "job00000", "--out", str(path)).exit_code == 0
    assert Manifest.model_validate_json(path.read_bytes()) == client.manifest("job00000")
    assert "缓存雪崩的原因？" in ramify("manifest", "--file", str(path)).stdout
    assert json.loads(ramify("manifest", "job00000", "--json").stdout)["record"]["question"] == "缓存雪崩的原因？"
    same = ramify("diff", str(path), "job00000")
    assert same.stdout.splitlines()[-1] == "Nothing differs: the two records are the same, byte for byte."
    done = ramify("replay", "--file", str(path), "--from", "search")
    assert done.exit_code == 0
    assert "the record is the same, byte for byte" in done.stderr


def test_a_changed_file_another_file_and_no_file_are_refused_in_a_sentence(client, tmp_path):
    path = tmp_path / "m.json"
    ramify("manifest", "job00000", "--out", str(path))
    path.write_text(path.read_text("utf-8").replace("原因", "后果"), "utf-8")
    other = tmp_path / "other.json"
    other.write_text('{"kind": "something else"}')
    for given, said in (
        (path, "its digest does not fit its record: somebody has changed it"),
        (other, "it is no manifest"),
        (tmp_path / "none.json", "it cannot be read (No such file or directory)"),
    ):
        done = ramify("manifest", "--file", str(given))
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert ramify("manifest").exit_code == 2


def test_what_a_replay_changes_reaches_the_client_and_its_end_says_whether_the_bytes_are_the_same(client):
    done = ramify(
        "replay", "job00000", "--from", "merge", "--set", "multi_query.top_n_per_leaf=9", "--strategy", "deep"
    )
    assert client.replayed == ("merge", {"multi_query": {"top_n_per_leaf": "9"}}, "deep")
    assert "the record is the same, byte for byte" in done.stderr
    detached = ramify("replay", "job00000", "--detach", "--json")
    assert json.loads(detached.stdout)["replay_of"] == "job00000"
    assert ramify("replay", "job00000", "--from", "fusion").exit_code == 2


def test_a_difference_ends_with_its_sentence_and_is_json_too(client):
    done = ramify("diff", "job00000", "job00001")
    assert done.stdout.splitlines()[-1] == "The cause is the question: another one was asked."
    assert json.loads(ramify("diff", "job00000", "job00001", "--json").stdout)["causes"] == ["question"]


@pytest.mark.parametrize(
    ("form", "ending", "said"),
    [
        ("md", ".md", "[^1]: "),
        ("html", ".html", "<!DOCTYPE html>"),
        ("bibtex", ".bib", "@misc{"),
        ("csl", ".csl.json", '"id"'),
    ],
)
def test_an_export_goes_to_stdout_a_file_or_into_a_folder(client, tmp_path, form, ending, said):
    written = ramify("export", "job00000", "--format", form).stdout
    assert said in written
    name = f"job00000{ending}"
    places = {
        f"{tmp_path}": tmp_path / name,
        f"{tmp_path}/own": tmp_path / "own",
        f"{tmp_path}/a/b/": tmp_path / "a/b" / name,
    }
    for place, path in places.items():
        assert ramify("export", "job00000", "--format", form, "--out", place).exit_code == 0
        assert path.read_text("utf-8") == written
    assert ramify("export", "job00000", "--format", "doc").exit_code == 2
    assert ramify("export", "nobody's").exit_code == 2
