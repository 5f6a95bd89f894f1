"""Retry-After as servers write it, and how long is waited before the next try."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from shared.errors import PermanentError, TransientError
from shared.providers.gates import GateError
from shared.providers.http import backoff_s, retry_after


def date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0), ("2", 2), (" 120 ", 120), ("1.5", 1.5), ("999999999999", 1e12)]
)
def test_seconds_are_seconds(value: str, seconds: float) -> None:
    assert retry_after(httpx.Headers({"Retry-After": value})) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "1e9", "0x10", "٣", "9" * 13, "Thu, 99 Foo 2026"])
def test_nonsense_is_nothing(value: str) -> None:
    assert retry_after(httpx.Headers([(b"Retry-After", value.encode())])) is None


@pytest.mark.parametrize("clock_off_by_s", [0, -3600, 86_400])
def test_a_date_is_read_by_the_clock_of_the_server_that_wrote_it(clock_off_by_s: float) -> None:
    headers = httpx.Headers({"Date": date(clock_off_by_s), "Retry-After": date(clock_off_by_s + 30)})
    assert retry_after(headers) == pytest.approx(30, abs=1)


def test_without_the_servers_clock_ours_is_taken_and_the_past_is_now() -> None:
    assert retry_after(httpx.Headers({"Retry-After": date(30)})) == pytest.approx(30, abs=2)
    assert retry_after(httpx.Headers({"Retry-After": date(30), "Date": "noon"})) == pytest.approx(30, abs=2)
    assert retry_after(httpx.Headers({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"})) == 0


def test_the_wait_grows_and_is_never_less_than_was_asked_for() -> None:
    later = time.monotonic() + 3600
    waits = [backoff_s(TransientError("x"), tries, later) for tries in (1, 2, 3, 20)]
    for wait, most in zip(waits, (0.2, 0.4, 0.8, 5.0), strict=True):
        assert most / 2 <= wait <= most
    assert backoff_s(TransientError("x", 30), 1, later) == 30


def test_what_cannot_pass_or_does_not_fit_is_not_tried_again() -> None:
    later = time.monotonic() + 3600
    assert backoff_s(PermanentError("x"), 1, later) is False
    assert backoff_s(GateError("x", 1), 1, later) is False, "the breaker is open: fall back at once"
    assert backoff_s(TransientError("x", 30), 1, time.monotonic() + 10) is False
    assert backoff_s(TransientError("x"), 1, time.monotonic()) is False
