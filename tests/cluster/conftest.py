"""Tests with servers, rights or minutes that a usual test run has not: `make test-cluster`, apart from `make test`.

Each skips, with the reason, where its program or its right is missing.
All together take twenty minutes on two busy cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark every test of this folder, before those that no `-m` asks for are left out."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("cluster")
