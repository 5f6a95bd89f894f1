"""Requests of several threads in one batch, and what each of them gets when something goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.errors import PermanentError, RamifyError, TransientError
from shared.providers.rerankers.call_batcher import CallBatcher, Run
from shared.providers.rerankers.scoring import Request


def request(*texts: str, query: str = "q", seconds: float = 20) -> Request:
    return Request(query, texts, time.monotonic() + seconds)


class Lengths:
    """Scores a text by its length; notes each batch. "bad" cannot be scored, and fails its whole batch."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.batches: list[list[str]] = []
        self.before = before

    def __call__(self, requests: Sequence[Request], deadline: float) -> None:
        texts = sorted({text for one in requests for text in one.open()})
        self.batches.append(texts)
        self.before()
        requests[0].calls += 1
        if "bad" in texts:
            raise PermanentError("bad text")
        for one in requests:
            one.scores.update({text: float(len(text)) for text in one.open()})


def batcher(run: Run, *, at_once: bool = False, window_s: float = 0.3) -> CallBatcher:
    return CallBatcher(run, window_s, lambda one: one.query, one_at_a_time=at_once)


def ask_all(together: CallBatcher, requests: Sequence[Request]) -> list[RamifyError | None]:
    """All at once; the error of each."""
    ready = threading.Barrier(len(requests))

    def ask(one: Request) -> RamifyError | None:
        ready.wait(10)
        try:
            together.score(one)
        except RamifyError as error:
            return error
        return None

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(ask, requests))


def test_given_the_same_query_from_many_threads_then_one_run_with_each_text_once() -> None:
    run = Lengths()
    requests = [request("a", "shared"), request("bb", "shared"), request("ccc", "shared")]
    assert ask_all(batcher(run), requests) == [None] * 3
    assert run.batches == [["a", "bb", "ccc", "shared"]]
    assert [one.scores for one in requests] == [
        {"a": 1.0, "shared": 6.0},
        {"bb": 2.0, "shared": 6.0},
        {"ccc": 3.0, "shared": 6.0},
    ]
    assert sum(one.calls for one in requests) == 1


def test_given_different_queries_then_side_by_side_in_runs_of_their_own() -> None:
    both = threading.Barrier(2)
    run = Lengths(before=lambda: both.wait(10))  # would break if one waited for the other
    assert ask_all(batcher(run), [request("a"), request("b", query="other")]) == [None, None]
    assert sorted(run.batches) == [["a"], ["b"]]


def test_given_a_bad_request_in_a_batch_then_it_alone_fails() -> None:
    run = Lengths()
    requests = [request("good"), request("bad"), request("fine")]
    errors = ask_all(batcher(run), requests)
    assert [error is None for error in errors] == [True, False, True]
    assert str(errors[1]) == "bad text"
    assert requests[0].scores == {"good": 4.0}
    assert sum(one.calls for one in requests) == len(run.batches) == 4


def test_given_a_short_timeout_in_a_batch_then_the_others_are_served_all_the_same() -> None:
    """The batch ends with the hasty request; the patient one joins another."""
    deadlines = []

    def run(requests: Sequence[Request], deadline: float) -> None:
        deadlines.append(deadline)
        if len(requests) > 1:
            time.sleep(max(0.0, deadline - time.monotonic()))
            return
        requests[0].scores.update(dict.fromkeys(requests[0].open(), 1.0))

    hasty, patient = request("a", seconds=0.6), request("b", seconds=20)
    errors = ask_all(batcher(run), [hasty, patient])
    assert isinstance(errors[0], TransientError)
    assert errors[1] is None
    assert patient.scores == {"b": 1.0}
    assert deadlines[0] == hasty.deadline


def test_given_a_follower_whose_time_is_up_then_it_leaves_before_the_run() -> None:
    run = Lengths()
    together = batcher(run, window_s=0.8)
    leader, follower = request("a"), request("b", seconds=0.3)
    with ThreadPoolExecutor(2) as pool:
        led = pool.submit(together.score, leader)
        time.sleep(0.1)
        late = pool.submit(together.score, follower)
        with pytest.raises(TransientError, match="0 of 1 texts"):
            late.result(10)
        led.result(10)
    assert run.batches == [["a"]]


def test_given_one_at_a_time_then_requests_gather_while_the_model_is_at_work() -> None:
    started, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        go_on.wait(10)

    run = Lengths(before=wait)
    together = batcher(run, at_once=True, window_s=0.001)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(together.score, request("first"))]
        assert started.wait(10)
        asked += [pool.submit(together.score, request(text)) for text in ("x", "y", "z")]
        time.sleep(0.2)
        go_on.set()
        for one in asked:
            one.result(10)
    assert run.batches == [["first"], ["x", "y", "z"]]


def test_given_no_window_then_each_request_runs_at_once_and_alone() -> None:
    run = Lengths()
    requests = [request("a"), request("b")]
    assert ask_all(batcher(run, window_s=0), requests) == [None, None]
    assert sorted(run.batches) == [["a"], ["b"]]


def test_given_what_was_scored_before_the_fault_then_it_is_kept() -> None:
    def run(requests: Sequence[Request], deadline: float) -> None:
        requests[0].scores["a"] = 1.0
        raise TransientError("broke off")

    one = request("a", "b")
    with pytest.raises(TransientError, match="broke off"):
        batcher(run, window_s=0).score(one)
    assert one.scores == {"a": 1.0}
