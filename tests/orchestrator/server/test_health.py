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
from tests.support.waiting import until


def test_a_redis_that_hangs_is_told_in_two_seconds_though_requests_hold_all_threads(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as redis_server:
        redis = {"url": redis_server.url, "timeout_s": 5}
        settings = load_settings(redis=redis, data_dir=tmp_path, server={"threads": 4})
        app = make_app(settings)
        app.state.redis_watch.lost_after_s = 60
        with TestClient(app, "http://localhost", raise_server_exceptions=False) as http:
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


def test_a_redis_that_stays_away_is_told_at_once_by_every_route_and_pages_say_so(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as redis_server:
        settings = load_settings(redis={"url": redis_server.url, "timeout_s": 20}, data_dir=tmp_path)
        app = make_app(settings)
        with (
            TestClient(app, "http://localhost", raise_server_exceptions=False) as http,
            ThreadPoolExecutor(2) as threads,
        ):
            assert http.get("/v1/jobs").status_code == 200
            assert redis_server.process
            app.state.redis_watch.lost_after_s = 0.5
            redis_server.process.send_signal(signal.SIGSTOP)
            try:
                began = time.monotonic()
                asked = threads.submit(http.post, "/v1/jobs", json={"question": "why?"})
                waiting = asked.result()
                assert time.monotonic() - began < 15, "no time-out of Redis was waited for"
                began = time.monotonic()
                new = [http.get(path) for path in ("/v1/jobs", "/v1/models", "/v1/nothing")]
                page = http.get("/jobs", headers={"accept": "text/html", "cookie": "ramify_language=zh"})
                assert time.monotonic() - began < 5, "far less than the time-out, on a loaded machine too"
                assert http.get("/healthz").status_code == 200
                keyed = http.get("/metrics", headers={"x-api-key": "rmf_0_0"})
                assert (keyed.status_code, "ramify_redis_up 0.0" in http.get("/metrics").text) == (503, True)
            finally:
                redis_server.process.send_signal(signal.SIGCONT)
            assert {(one.status_code, one.headers["retry-after"]) for one in (waiting, *new)} == {(503, "5")}
            assert waiting.headers["content-type"] == "application/problem+json"
            assert waiting.headers["x-content-type-options"] == "nosniff"
            assert waiting.json()["detail"].startswith("Redis does not answer")
            assert (page.status_code, "Redis 没有响应" in page.text) == (503, True)
            until(lambda: http.get("/v1/jobs").status_code == 200, 10, "it is back")
