"""The application in this process, over the empty Redis of the tests; without pools."""

from __future__ import annotations

from tests.orchestrator.server.conftest import http
from tests.support.fixtures import ramify, store

__all__ = ["http", "ramify", "store"]
