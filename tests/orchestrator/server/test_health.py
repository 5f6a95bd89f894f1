"""Health while Redis hangs: a balancer hears soon that this server is not ready."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fastapi.testclient import TestClient

from orchestrator.server.app import make_app
from shared.settings import load_settings
from tests.support.redis_server import RedisServer


def test_a_redis_that_hangs_is_told_in_two_seconds_though_requests_hold_all_threads(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as redis_server:
        redis = {"url": redis_server.url, "timeout_s": 5}
        settings = load_settings(redis=redis, data_dir=tmp_path, server={"threads": 4})
        with TestClient(make_app(settings), "http://localhost", raise_server_exceptions=False) as http:
            assert http.get("/readyz").status_code == 200
            assert redis_server.process
            with ThreadPoolExecutor(6) as threads:
                redis_server.process.send_signal(signal.SIGSTOP)
                try:
                    asked = [threads.submit(http.get, "/v1/jobs") for _ in range(6)]
                    time.sleep(0.3)
                    began = time.monotonic()
                    assert http.get("/readyz").status_code == 503
                    assert time.monotonic() - began < 3.5
                    assert http.get("/healthz").status_code == 200
                finally:
                    redis_server.process.send_signal(signal.SIGCONT)
                assert {one.result().status_code for one in asked} == {200}
