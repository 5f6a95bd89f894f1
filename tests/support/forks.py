"""Processes that begin with the code imported: forks of one that has imported it, and has opened nothing."""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["workers.index", "shared.providers.llm.client", "tests.fakes.openai_server"])
