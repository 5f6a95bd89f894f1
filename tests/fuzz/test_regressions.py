"""What fuzzing found, each with its cause, so that it stays mended."""

from __future__ import annotations

import gzip
import time
import zlib
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest
from pydantic import SecretStr

from orchestrator.cli.invocation import parse_overrides
from orchestrator.evaluation.dataset import as_object
from orchestrator.intake import as_request, bounded_lines, read_questions
from orchestrator.planning.lists.reading import read_question
from orchestrator.planning.plan_file import read_plan
from orchestrator.planning.planner import decompose_by_rules
from orchestrator.sessions import read_session
from shared.contract import read_message
from shared.errors import InputError, MessageVersionError, ReplyError, SettingsError
from shared.jobs import codec
from shared.language.routing import route_by_rules
from shared.models import Filters, Hit, LeafResult
from shared.models.enumeration import Values
from shared.providers.gates import Gate
from shared.providers.http import JsonClient
from shared.providers.llm.replies import parse_rows, summary_text
from shared.settings import CONFIG_ENV, load_settings
from shared.settings.services import ProviderSettings
from tests.fuzz.http_server import RawServer
from tests.fuzz.targets_cli import _opened
from tests.fuzz.targets_documents import _ingest
from tests.fuzz.targets_http import _bomb, _chat, _embedding
from tests.fuzz.targets_questions import _TODAY

DIGITS = "9" * 5000


def _cpu(run: object, *given: object) -> float:
    began = time.process_time()
    run(*given)
    return time.process_time() - began


def test_a_number_of_5000_digits_is_no_json_decode_error(tmp_path: Path) -> None:
    """Python refuses to read it with a bare ValueError: batches, plans, sessions, --set and labelled sets crashed."""
    line = f'{{"question": "q", "top_n": {DIGITS}}}'
    (found,) = read_questions(bounded_lines(BytesIO(line.encode())))
    assert found.rejected
    assert "too many digits" in found.rejected.reason
    for name, text, read in (
        ("plan.json", f'{{"question": {DIGITS}}}', read_plan),
        ("plan.toml", f"question = {DIGITS}", read_plan),
        ("chat.json", f'{{"messages": {DIGITS}}}', read_session),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError):
            read(tmp_path / name)
    with pytest.raises(InputError, match="starts like JSON"):
        parse_overrides([f"a.b=[{DIGITS}]"])
    with pytest.raises(InputError, match="too many digits"):
        as_object("a:1", f'{{"id": {DIGITS}}}'.encode())


@pytest.mark.parametrize("text", [f"a = {DIGITS}", "a = " + "[" * 5000])
def test_toml_raises_more_than_its_own_error(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ValueError of a long number, RecursionError of deep nesting: the settings file crashed every command."""
    (tmp_path / "ramify.toml").write_text(text)
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "ramify.toml"))
    with pytest.raises(SettingsError, match="write valid TOML"):
        load_settings()


def test_a_settings_file_has_a_bound_and_a_long_name_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read whole, whatever its size; a name that the system refuses to look at was an OSError."""
    (tmp_path / "ramify.toml").write_bytes(b"#" * 1_000_001)
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "ramify.toml"))
    with pytest.raises(SettingsError, match="no settings file"):
        load_settings()
    monkeypatch.setenv(CONFIG_ENV, "x" * 5000)
    with pytest.raises(SettingsError, match="no such file"):
        load_settings()


def test_a_table_in_the_environment_that_is_no_json_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's reader raises an error of its own, before anything is validated."""
    monkeypatch.setenv("RAMIFY_STORE", "embedded")
    with pytest.raises(SettingsError, match="RAMIFY_STORE__NAME") as raised:
        load_settings()
    assert "embedded" not in str(raised.value)


def test_a_name_that_a_caller_wrote_is_one_short_line_in_the_error() -> None:
    """The field stood as it was given: line breaks, terminal escapes and all of its length."""
    with pytest.raises(InputError) as raised:
        as_request({"question": "q", "a\nb\x1b[31m" + "x" * 5000: 1})
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 600


def test_a_filter_that_no_json_can_hold_is_refused() -> None:
    """Half a surrogate pair passed where no length was set, and broke when the job was stored."""
    for field in ("tags", "kinds", "paths"):
        with pytest.raises(InputError, match=f"filters.{field}"):
            as_request({"question": "q", "filters": {field: ["a\udcff"]}})


def test_a_question_of_underscores_is_routed_at_once() -> None:
    """^[a-z]+(?:[._][a-z0-9_]+)+$ can cut a run of underscores in 2^n ways: the plan pool hung."""
    assert _cpu(route_by_rules, "hi" + "_" * 300 + "?_") < 1
    for name in ("snake_case_name", "pkg.module.name", "a__b.c"):
        assert any(reason.rule == "en.error_or_identifier" for reason in route_by_rules(name).reasons), name
    assert not any(reason.rule == "en.error_or_identifier" for reason in route_by_rules("etc..").reasons)


def test_a_dotless_i_is_an_i_without_regard_to_case_alone() -> None:
    """The pattern matched it, the table of words did not know it: KeyError."""
    decompose_by_rules("Why is the sky bı?", 5)
    decompose_by_rules("Why does ı fail and what should ı do?", 5)


def test_folded_characters_and_long_words_keep_a_list_quick() -> None:
    """½ is three characters when folded, one of them may be 18; each place of a long word read all of it."""
    values = Values(tags={f"topic-{n}": 1 for n in range(50)})
    for question in ("What i" + "½" * 3900, "list " + "\ufdfa" * 3900, "列出" + "文档" * 1900):
        assert _cpu(read_question, question, Filters(), values, _TODAY) < 1, question[:10]


def test_many_unknown_tags_are_not_all_looked_up() -> None:
    """A tag that looks like it was sought for each of them, among all that exist."""
    values = Values(tags={f"topic-{n}-{n * 7919}": 1 for n in range(5000)})
    question = "list notes " + " ".join(f"#x{n}" for n in range(150))
    assert _cpu(read_question, question, Filters(), values, _TODAY) < 2


def test_a_reply_of_blanks_behind_a_fence_is_read_at_once() -> None:
    r"""[ \t]*(\w*)[ \t]* shares a run of blanks out in n ways."""
    assert _cpu(summary_text, "```" + "\t" * 200_000 + "x```") < 1


def test_what_a_model_repeats_is_cut_in_the_error() -> None:
    """The number of a row stood in the error, and in the next prompt, however long."""
    with pytest.raises(ReplyError) as raised:
        parse_rows(f'<rows><row id="{DIGITS}"></row></rows>', 3, 2)
    assert len(str(raised.value)) < 300
    with pytest.raises(MessageVersionError) as refused:
        read_message({"v": DIGITS})
    assert len(str(refused.value)) < 300


def test_a_damaged_blob_is_a_value_error() -> None:
    """zlib.error is none, nor is the error of struct for half a half float."""
    blob = codec.pack(LeafResult(node_id="0.1", status="done"))
    with pytest.raises(ValueError, match="damaged"):
        codec.unpack(blob[:9] + b"\xff\xff" + blob[11:], LeafResult)
    with pytest.raises(ValueError, match="half floats"):
        Hit.model_validate({"chunk_id": "c", "doc_id": "d", "path": "p", "title": "t", "text": "x", "vector": "YWJj"})
    with pytest.raises(ValueError, match="cut off"):
        codec.unpack(zlib.compress(b"{}")[:-2], LeafResult)


def test_a_line_of_code_that_is_all_blanks_makes_no_empty_chunk() -> None:
    """A long line is cut by width; a part of it may be blanks alone (U+1680 is one to Python, not to the parser)."""
    _ingest(".go", ("package a\n\nfunc f() {" + "\u1680" * 4500 + "}\n").encode())


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".ts", "namespace A {\n" * 6000 + "}\n" * 6000),
        (".rs", "mod a {\n" * 6000 + "}\n" * 6000),
        (".java", "class A {\n" * 6000 + "}\n" * 6000),
        (".py", "def f(): pass\n" * 12_000),
    ],
)
def test_many_definitions_beside_or_in_each_other_are_read_in_linear_time(suffix: str, text: str) -> None:
    """Each was named with all those around it, and compared with all beside it: a GB, and a minute."""
    assert _cpu(_ingest, suffix, text.encode()) < 6


def test_a_reply_that_is_packed_twice_does_not_unfold() -> None:
    """334 bytes became 2 GB: each layer was unpacked whole before the reply's bound was looked at."""
    body = gzip.compress(_bomb(), 9)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: deflate, gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    with RawServer() as server:
        server.answer = head.encode() + body
        ask, close = _chat(server.url)
        with pytest.raises(ReplyError, match="cannot be decompressed"):
            ask()
        close()


def test_a_count_of_tokens_that_no_counter_holds_is_nonsense() -> None:
    """Redis counts up to 2^63; a server's own figure of 10^30 would have failed the ingest."""
    body = b'{"data": [{"embedding": [1, 0, 0]}, {"embedding": [1, 0, 0]}], "usage": {"total_tokens": 1%s}}' % (
        b"0" * 30
    )
    with RawServer() as server:
        server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        ask, close = _embedding(server.url)
        ask()
        close()


@pytest.mark.parametrize(
    "argv",
    [
        ["--config", "x" * 5000, "config"],
        ["plan", "q", "--plan", "x" * 5000],
        ["plan", "q", "--out", "x" * 5000],
        ["ingest", "x" * 5000],
        ["batch", "x" * 5000],
        ["ask", "q", "--\x1b[31m\u202eevil"],
        ["find", "q", "--tag", "a\udcff"],
    ],
)
def test_words_that_no_system_or_terminal_takes_are_one_sentence(argv: list[str]) -> None:
    """Names too long to look at were OSErrors, hidden characters reached the terminal in errors of usage."""
    with _opened() as run:
        run(argv)


@pytest.mark.parametrize(
    ("variables", "assignments", "said"),
    [
        ({"RAMIFY_BINDING": "[" * 5000}, [], "RAMIFY_BINDING.*nested too deeply"),
        ({"RAMIFY_LLM_MODEL": "a\udc80"}, [], "RAMIFY_LLM_MODEL.*no UTF-8"),
        ({}, ["search.strategy=d\udc80"], "--set.*search.strategy.*no UTF-8"),
        ({"RAMIFY_SEARCH": r'{"strategy": "x\ud800"}'}, [], "half a surrogate pair"),
    ],
)
def test_settings_that_no_message_can_hold_are_one_sentence(
    variables: dict[str, str], assignments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RecursionError of a variable; UnicodeEncodeError out of pydantic, whose own message holds the value."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=said):
        load_settings(**parse_overrides(assignments))


def test_a_cookie_of_a_model_server_is_not_kept() -> None:
    """One that is no ASCII failed every later call of the process, whatever the server said then."""
    body = b'{"data": [{"index": 0, "embedding": [1.0, 0.5]}]}'
    seen: list[str] = []
    with RawServer() as server, closing(_client(server.url)) as client:
        for cookie in ("id=né; Path=/".encode(), b"id=plain; Path=/", b""):
            head = b"HTTP/1.1 200 OK\r\nSet-Cookie: %b\r\nContent-Length: %d\r\n\r\n" % (cookie, len(body))
            server.answer = head + body
            seen.append(str(client.post("/embeddings", {"input": ["a"]}, 5.0).body))
        assert b"cookie" not in server.asked.lower()
    assert len(set(seen)) == 1


def _client(url: str) -> JsonClient:
    return JsonClient(url, SecretStr(""), Gate("embedding", url, ProviderSettings()), 1)
