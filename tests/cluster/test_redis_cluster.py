"""A node of a real Redis Cluster is refused by whoever starts on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.local.stack import Stack
from shared.errors import NotRunningError
from shared.settings import load_settings
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
_WORKER = ("celery", "-A", "orchestrator.app", "worker", "-Q", "ops", "-P", "threads", "-c", "1")


def test_a_redis_cluster_is_refused_at_start_with_the_reason(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "node", "--cluster-enabled", "yes") as node:
        settings = load_settings(redis={"url": node.url}, data_dir=tmp_path)
        with pytest.raises(NotRunningError, match="is a node of a Redis Cluster"):
            Stack(settings).run()
        env = {**os.environ, "RAMIFY_REDIS__URL": node.url, "RAMIFY_DATA_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            (sys.executable, "-m", *_WORKER),
            env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    assert "is a node of a Redis Cluster" in ended.stderr
