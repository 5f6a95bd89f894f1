"""docs/security.md names the numbers and settings of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator import intake, sessions
from orchestrator.access import guesses
from orchestrator.evaluation import dataset
from orchestrator.local import checks
from orchestrator.planning import plan_file
from shared.files import walk
from shared.jobs import codec
from shared.models import request
from shared.providers import http
from shared.providers.encoders import endpoint as embedding
from shared.providers.llm import client as llm
from shared.providers.llm import replies
from shared.providers.rerankers import endpoint as rerank
from shared.settings import load_settings, sources
from shared.tasks import message_faults

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
#: How a row of the table begins, and the numbers of the code in it, in order.
BOUNDS = {
    "a settings file": (sources._MAX_FILE_BYTES,),
    "a document": (load_settings().chunking.max_document_bytes,),
    "folders in one another": (walk._MAX_DEPTH,),
    "a question; a message": (request.MAX_QUESTION_CHARS, request.MAX_MESSAGE_CHARS),
    "a conversation; a file": (request.MAX_MESSAGES, sessions.MAX_BYTES),
    "a plan of one's own": (plan_file.MAX_BYTES,),
    "a line of a batch": (intake.MAX_LINE_BYTES,),
    "a line of a labelled set": (dataset._MAX_LINE_BYTES,),
    "a labelled set that is gzipped": (dataset._MOST_TIMES, dataset._ALWAYS_BYTES),
    "a reply of the LLM": (llm._MAX_REPLY_BYTES,),
    "a text of the LLM": (replies.MAX_MARKDOWN_CHARS,),
    "a reply of an embedding server": (embedding._NUMBER_BYTES, embedding._FRAME_BYTES),
    "a vector whose size": (embedding._MOST_NUMBERS,),
    "a reply of a rerank server": (rerank._SCORE_BYTES, rerank._CHAR_BYTES, rerank._FRAME_BYTES),
    "any reply of a model server": (http._MAX_REPLY_BYTES,),
    "an answer to": (int(checks.TIMEOUT_S), http._MAX_FETCHED_BYTES),
    "a blob of a job": (codec._ALWAYS_BYTES, codec._MOST_TIMES, codec._MAX_BYTES),
    "a message in the broker": (message_faults.MAX_MESSAGE_BYTES,),
}


def test_the_page_names_every_secret_with_the_server_that_gets_it() -> None:
    for secret in sources._SECRETS:
        row = next(line for line in PAGE.splitlines() if f"`{secret.name}`" in line and line.startswith("|"))
        assert f"`{secret.target}`" in row
        assert not secret.permitted or f"`{secret.permitted}`" in row


@pytest.mark.parametrize("name", BOUNDS)
def test_the_page_names_the_bounds_of_the_code(name: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {name}"))
    numbers = [int(found.replace(",", "")) for found in re.findall(r"\b\d[\d,]*\b", row.split("|")[2])]
    assert tuple(numbers) == BOUNDS[name]


def test_every_row_is_held_against_the_code() -> None:
    table = PAGE.partition("## What is read")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert len(table.splitlines()) - 2 == len(BOUNDS)


def test_the_page_names_the_bounds_of_guesses_of_logins() -> None:
    told = " ".join(PAGE.partition("- Guesses: ")[2].partition("\n- ")[0].split())
    assert f"behind {guesses.GUESSES} wrong logins" in told
    assert f"{guesses.ADDRESSES:,} addresses" in told
