"""Plugins as pip installs them: entry points of a package on the path. A broken one is told and harms nobody."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from textwrap import dedent

import pytest
from pydantic import TypeAdapter

from orchestrator.local.checks import machine
from shared.errors import SettingsError, TransientError
from shared.files.walk import discover
from shared.language.routing import route_by_rules
from shared.models import Filters, Hit, MergedPool, RawDocument
from shared.plugins import plugins, suffixes_of_readers
from shared.settings import load_settings
from shared.settings.strategies import Strategy, aggregator_names, checked_plugins, plugin_strategies, stage_models
from workers.index.readers import read_documents
from workers.index.readers.formats import parsers
from workers.merge.aggregators import Findings, aggregate, all_known
from workers.search import engine
from workers.search.engine import run
from workers.search.state import Query, SearchState, Tools, as_candidates

OPTIONS = """
    from pydantic import BaseModel, Field, model_validator

    class Newest(BaseModel):
        keep: int = Field(default=2, ge=1)

        @model_validator(mode="after")
        def _not_seven(self):
            if self.keep == 7:
                raise ValueError("seven brings bad luck")
            return self

    class Stage:
        options = Newest
        run = "acme.run:newest"
    """
RUN = """
    def newest(state, options, tools):
        ranked = sorted(state.candidates, key=lambda candidate: candidate.hit.date or "", reverse=True)
        return state.but(candidates=tuple(ranked[: options.keep]), note="newest first")
    """
TABLES = [{"stage": "lexical"}, {"stage": "fusion"}, {"stage": "rerank"}, {"stage": "newest", "keep": 1}]
GOOD = "[ramify.stages]\nnewest = acme.options:Stage\n[ramify.strategies]\nacme = acme.tables:TABLES\n"


def forget() -> None:
    settings = (stage_models, aggregator_names, plugin_strategies)
    for kept in (plugins, suffixes_of_readers, *settings, all_known, engine._plugin_run):
        kept.cache_clear()
    for name in [name for name in sys.modules if name == "acme" or name.startswith("acme.")]:
        del sys.modules[name]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs the package `acme` with these entry points and files."""
    site = tmp_path / "site"
    (site / "acme").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(site))

    def installed(entries: str = GOOD, name: str = "acme", **files: str):
        info = site / f"{name}-1.2.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(entries)
        sources = {"__init__": "", "options": OPTIONS, "run": RUN, "tables": f"TABLES = {TABLES}", **files}
        for module, text in sources.items():
            (site / "acme" / f"{module}.py").write_text(dedent(text))
        forget()
        return site

    yield installed
    forget()


def state(*dates: str) -> SearchState:
    hits = [
        Hit(
            chunk_id=f"c{n}", doc_id="d", ordinal=n, path=f"{n}.md", title="t", text="x", kind="note", date=date,
            score=1.0 / n,
        )
        for n, date in enumerate(dates, 1)
    ]  # fmt: skip
    return SearchState(Query("q", Filters(), 10), candidates=as_candidates(hits))


def stages(*tables: dict) -> Strategy:
    return TypeAdapter(Strategy).validate_python(tables)


def after(*tables: dict) -> SearchState:
    return run(stages(*tables), state("2024-01-01", "2026-01-01", "2025-01-01"), Tools(settings=load_settings()))


def test_given_a_package_when_loaded_then_its_strategy_and_its_stage_are_as_good_as_our_own(install):
    install()
    settings = load_settings(routing={"types": {"aspects": {"strategy": "acme"}, "unsure": {"post": ["newest"]}}})
    assert [stage.stage for stage in settings.strategies["acme"]] == ["lexical", "fusion", "rerank", "newest"]
    assert settings.stages_of("default/unsure")[-1].keep == 2
    assert plugins().faults == []


def test_given_a_stage_when_run_then_it_changes_the_hits_and_its_note_is_traced(install):
    install()
    found = after({"stage": "newest", "keep": 2}, {"stage": "limit", "limit": 1})
    assert [candidate.hit.chunk_id for candidate in found.candidates] == ["c2"]
    assert (found.trace[0].stage, found.trace[0].note, found.trace[0].hits) == ("newest", "newest first", 2)


def test_given_a_stage_when_written_down_then_options_and_package_are_part_of_it_so_that_caches_tell_versions_apart(
    install,
):
    install()
    written = TypeAdapter(Strategy).dump_python(stages({"stage": "newest", "keep": 5}, {"stage": "mmr"}), mode="json")
    assert written[0] == {"stage": "newest", "plugin": "acme 1.2", "keep": 5}
    assert stages(*written) == stages({"stage": "newest", "keep": 5}, {"stage": "mmr"})


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ({"stage": "newest", "kep": 1}, ("'kep'", "did you mean 'keep'", "its options: keep")),
        ({"stage": "newest", "keep": 0}, ("keep: ", "greater than or equal to 1")),
        ({"stage": "newest", "keep": 7}, ("seven brings bad luck",)),
        ({"stage": "newst"}, ("'newst'", "did you mean 'newest'", "mmr")),
    ],
)
def test_given_a_mistake_in_its_options_when_loaded_then_one_sentence_says_which(install, table, parts):
    install()
    with pytest.raises(SettingsError) as caught:
        load_settings(strategies={"x": [{"stage": "lexical"}, {"stage": "fusion"}, table]})
    assert caught.value.field == "strategies.x, stage 3"
    assert all(part in str(caught.value) for part in parts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "files", "reason"),
    [
        ("[ramify.stages]\nbad = acme.nowhere:Stage", {}, "ModuleNotFoundError: No module named 'acme.nowhere'"),
        ("[ramify.stages]\nbad = acme.options:Gone", {}, "AttributeError"),
        ("[ramify.stages]\nbad = acme.bad:Stage", {"bad": "raise RuntimeError('two\\nlines')"}, "two lines"),
        ("[ramify.stages]\nbad = acme.bad:Stage", {"bad": "import sys; sys.exit(3)"}, "SystemExit: 3"),
        ("[ramify.stages]\nbad = acme.bad:Stage", {"bad": "Stage = 3"}, "no pydantic model"),
        ("[ramify.stages]\nlexical = acme.options:Stage", {}, "Ramify has a stage of that name"),
        ("[ramify.stages]\nbad = acme.bad:Stage", {"bad": f"{dedent(OPTIONS)}\nStage.run = 3"}, "its `run`"),
        (
            "[ramify.stages]\nbad = acme.bad:Stage",
            {"bad": f"{dedent(OPTIONS)}\nclass Needs(BaseModel):\n    must: int\nStage.options = Needs"},
            "must",
        ),
        ("[ramify.stages]\nbad = acme.bad:Stage", {"bad": f"{dedent(OPTIONS)}\nStage.run = 'acme.run:no'"}, "'no'"),
        ("[ramify.strategies]\nbad = acme.bad:T", {"bad": "T = 3"}, "no list of stages"),
        ("[ramify.strategies]\nbad = acme.bad:T", {"bad": "T = [{'stage': 'lexcal'}]"}, "lexcal"),
        ("[ramify.strategies]\nbad = acme.bad:T", {"bad": "T = [{'stage': 'lexical'}]"}, "exactly one stage fusion"),
        ("[ramify.strategies]\nbad = acme.bad:T", {"bad": "def T():\n    return 1 / 0"}, "ZeroDivisionError"),
        ("[ramify.strategies]\ndefault = acme.tables:TABLES", {}, "there is a strategy 'default' already"),
        ("[ramify.aggregators]\nbad = acme.tables:TABLES", {}, "no pydantic model"),
        ("[ramify.aggregators]\nsimple = acme.options:Stage", {}, "Ramify has an aggregator of that name"),
    ],
)
def test_given_a_broken_plugin_when_loaded_then_one_sentence_says_why_and_the_others_work(
    install, caplog, entries, files, reason
):
    install(entries, name="broken", **files)
    install(GOOD, **files)
    with caplog.at_level(logging.WARNING, "ramify.plugins"):
        settings = load_settings()
        faults = [str(fault) for fault in checked_plugins().faults]
    assert "acme" in settings.strategies
    assert "lexical" in {stage.stage for stage in settings.strategies["default"]}
    assert len(faults) == 1
    assert "broken 1.2" in faults[0]
    assert reason in faults[0]
    assert "\n" not in faults[0]
    assert [record.getMessage() for record in caplog.records] == faults, "said once"


def test_given_two_packages_with_one_name_when_loaded_then_the_first_has_it_and_the_other_is_told(install):
    install("[ramify.stages]\nnewest = acme.options:Stage\n", name="zulu")
    install()
    faults = checked_plugins().faults
    assert [(fault.found.package, fault.reason) for fault in faults] == [
        ("zulu 1.2", "acme 1.2 brings one of that name")
    ]
    assert stages({"stage": "newest"})[0].plugin == "acme 1.2"


def test_given_a_table_that_names_a_broken_plugin_when_loaded_then_the_refusal_says_what_is_wrong_with_it(install):
    install("[ramify.strategies]\nbad = acme.nowhere:T\n[ramify.aggregators]\nhaiku = acme.nowhere:T\n")
    for row in ({"strategy": "bad"}, {"aggregator": "haiku"}):
        with pytest.raises(SettingsError, match=r"left out: ModuleNotFoundError: No module named 'acme\.nowhere'"):
            load_settings(routing={"types": {"aspects": row}})


def test_given_an_aggregator_when_named_in_the_table_then_it_is_taken(install):
    install("[ramify.aggregators]\nhaiku = acme.options:Stage\n")
    assert (
        load_settings(routing={"types": {"aspects": {"aggregator": "haiku"}}}).routing.types.aspects.aggregator
        == "haiku"
    )


HAIKU = """
    from pydantic import BaseModel, ConfigDict

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        lines: int = 3

    class Haiku:
        options = Options
        run = "acme.haiku:write"

    def write(found, options):
        from shared.models import Summary
        from workers.merge.aggregators import Aggregated
        return Aggregated(summary=Summary(text=f"{found.question} in {options.lines} lines", kind="haiku"))
    """
HAIKU_ENTRY = "[ramify.aggregators]\nhaiku = acme.haiku:Haiku\n"


def test_given_an_aggregator_when_an_answer_is_made_then_it_is_made_by_it_with_its_options(install):
    install(HAIKU_ENTRY, haiku=HAIKU)
    given = load_settings(aggregators={"haiku": {"lines": 5}}).aggregators.model_dump()["haiku"]
    found = Findings(question="what?", pool=MergedPool(), nodes={}, leaves=(), routed=route_by_rules("what?"))
    name, made = aggregate("haiku", found, given, all_known())
    assert (name, made.summary.text) == ("haiku", "what? in 5 lines")


@pytest.mark.parametrize(
    ("table", "said"),
    [({"haikoo": {}}, "did you mean 'haiku'"), ({"haiku": {"line": 1}}, "haiku.line"), ({"haiku": 3}, "haiku")],
)
def test_given_a_mistake_in_an_aggregators_options_when_loaded_then_it_is_refused(install, table, said):
    install(HAIKU_ENTRY, haiku=HAIKU)
    with pytest.raises(SettingsError, match=said) as caught:
        load_settings(aggregators=table)
    assert caught.value.field == "aggregators"


def test_given_an_aggregator_that_breaks_when_an_answer_is_made_then_the_plain_one_stands_in(install):
    install(HAIKU_ENTRY, haiku=HAIKU.replace("found.question", "found.nothing"))
    found = Findings(question="what?", pool=MergedPool(), nodes={}, leaves=(), routed=route_by_rules("what?"))
    name, made = aggregate("haiku", found, {}, all_known())
    assert name == "simple"
    assert "AttributeError" in made.warnings[0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("def newest(state, options, tools):\n    return 1 / 0", "ZeroDivisionError"),
        ("def newest(state, options, tools):\n    return list(state.candidates)", "gave a list"),
        ("other = 3", "newest"),
    ],
)
def test_given_a_stage_that_fails_when_run_then_it_is_left_out_with_a_warning_and_the_rest_goes_on(
    install, body, reason
):
    install(run=body)
    found = after({"stage": "newest"}, {"stage": "limit", "limit": 2})
    assert [candidate.hit.chunk_id for candidate in found.candidates] == ["c1", "c2"]
    assert reason in found.warnings[0]
    assert "acme 1.2" in found.warnings[0]
    assert found.trace[0].skipped == found.warnings[0]


def test_given_a_stage_that_cannot_reach_its_server_when_run_then_what_was_found_stays_or_else_the_leaf_fails(install):
    install(run="from shared.errors import TransientError\ndef newest(*_):\n    raise TransientError('busy')")
    found = after({"stage": "newest"})
    assert len(found.candidates) == 3
    assert "The stage newest failed, so it did nothing: busy" in found.warnings
    with pytest.raises(TransientError, match="busy"):
        run(stages({"stage": "newest"}), state(), Tools(settings=load_settings()))


def test_given_a_stage_that_asks_the_store_when_put_behind_the_rerank_then_it_is_refused(install):
    install("[ramify.stages]\nnewest = acme.options:Stage\n", options=f"{dedent(OPTIONS)}\nStage.needs_store = True")
    with pytest.raises(SettingsError, match="newest needs the store"):
        load_settings(routing={"types": {"aspects": {"post": ["newest"]}}})


def test_given_plugins_when_examined_then_doctor_lists_them_and_their_faults(install):
    def line():
        return next(check for check in machine(load_settings()) if check.name == "plugins")

    install("")
    assert (line().ok, line().detail) == (None, "none installed")
    install()
    assert (line().ok, line().detail) == (True, "acme 1.2: stage 'newest', strategy 'acme'")
    install(f"{GOOD}bad = acme.nowhere:T\n")
    assert line().ok is False
    assert "strategy 'acme'" in line().detail
    assert "acme.nowhere" in line().detail


def test_given_a_package_on_the_path_when_a_command_runs_then_it_is_there_and_its_fault_is_one_line(install):
    site = install(f"{GOOD}bad = acme.nowhere:T\n")
    path = os.pathsep.join([str(site), *(part for part in sys.path if part)])
    command = [sys.executable, "-m", "orchestrator.cli.main", "route", "hello", "--strategy", "acme", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": path}, check=False)
    assert done.returncode == 0, done.stderr
    assert '"by": "request"' in done.stdout
    assert done.stderr.count("\n") == 1
    assert "strategy 'bad' of acme 1.2 is left out" in done.stderr


READER = """
    class Drawings:
        suffixes = (".dxf", ".pdf")
        parse = "acme.parse:drawing"
    """
PARSE = """
    import socket
    from workers.formats.parsed import FilePart, FormatError, joined

    def drawing(content, name):
        if content == b"send":
            socket.create_connection(("127.0.0.1", 9))
        if content == b"two":
            return [joined([FilePart("one")]), joined([FilePart("other")])]
        if not content.startswith(b"SECTION"):
            raise FormatError("is no drawing: save it as ASCII DXF")
        return joined([FilePart("Plan of " + name, "sheet 1"), FilePart("Walls.", "sheet 2")])
    """


def test_given_a_reader_when_a_file_is_read_then_its_parser_runs_in_a_process_with_limits(
    install, tmp_path, monkeypatch
):
    site = install("[ramify.readers]\ndrawings = acme.options:Drawings\n", options=READER, parse=PARSE)
    monkeypatch.setenv("PYTHONPATH", str(site))
    parsers.cache_clear()
    folder = tmp_path / "c"
    folder.mkdir()
    for name in ("a.dxf", "b.xyz"):
        (folder / name).write_text("SECTION")
    found, passed = discover([folder])
    assert [one.shown for one in found] == ["c/a.dxf"]
    assert passed == ["1 .xyz: no reader for them"]

    def read(content: bytes, suffix: str = ".dxf"):
        return read_documents(
            RawDocument(source="/c", path=f"c/a{suffix}", identity="/c/a", suffix=suffix, content=content), 1000
        )

    (document,) = read(b"SECTION")
    assert document.text == "Plan of a.dxf\n\nWalls."
    assert document.places == ((0, "sheet 1"), (15, "sheet 2"))
    assert read(b"SECTION", ".pdf")[0].text.startswith("Plan of a.pdf"), "it goes before our own"
    assert [one.path for one in read(b"two")] == ["c/a.dxf#1", "c/a.dxf#2"]
    (refused,), (confined,) = read(b"no"), read(b"send")
    assert refused.reason == "is no drawing: save it as ASCII DXF"
    assert "PermissionError" in confined.reason
    parsers().close()
    parsers.cache_clear()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("class Drawings:\n    suffixes = '.dxf'\n    parse = len", "its `suffixes` are no list"),
        ("class Drawings:\n    suffixes = ['dxf']\n    parse = len", "not all such as"),
        ("class Drawings:\n    suffixes = ['.dxf']", "its `parse` is neither"),
    ],
)
def test_given_a_reader_of_another_shape_when_loaded_then_it_is_left_out(install, options, why):
    install("[ramify.readers]\ndrawings = acme.options:Drawings\n", options=options)
    assert why in str(plugins().faults[0])
    assert suffixes_of_readers() == {}
