"""Packages are installed as wheels with pinned hashes: none runs code of its own while it is installed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_install_of_requirements_wants_hashes_and_wheels() -> None:
    for name in ("Makefile", "deploy/Dockerfile"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
        installs = re.findall(r"[^\n&|;]*install [^\n&|;]*-r requirements[^\n]*", text)
        assert installs
        for line in installs:
            assert "--require-hashes" in line
            assert re.search(r"\$\(WHEELS\)|\$wheels|--only-binary=:all:", line)
        assert "--only-binary=:all:" in text


def test_every_requirement_is_pinned_by_version_and_hash() -> None:
    for file in ROOT.glob("requirements*.txt"):
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        assert [line for line in lines if not re.match(r"[\w.\-\[\]]+==\S+.* --hash=sha256:[0-9a-f]{64}", line)] == []
