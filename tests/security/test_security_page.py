"""docs/security.md names the numbers and settings of the code."""

from __future__ import annotations

from pathlib import Path

from shared.settings import sources
from shared.tasks import quarantine

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_page_names_every_secret_with_the_server_that_gets_it() -> None:
    for secret in sources._SECRETS:
        row = next(line for line in PAGE.splitlines() if f"`{secret.name}`" in line and line.startswith("|"))
        assert f"`{secret.target}`" in row
        assert not secret.permitted or f"`{secret.permitted}`" in row


def test_the_page_names_the_bounds_of_the_code() -> None:
    for bound in (sources._MAX_FILE_BYTES, quarantine.MAX_MESSAGE_BYTES, quarantine.MOST, quarantine.MOST_BYTES):
        assert f"{bound:,}" in PAGE
