"""A Qdrant server that is down, slow or half-answering: what is tried again, what is not, and what it is called."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from qdrant_client import QdrantClient, models

from shared.errors import RamifyError, StoreError, TransientError
from shared.models import Filters
from shared.providers.gates import Gate, GateError
from shared.providers.gates.gate_store import GateStore
from shared.providers.http_deadline import DeadlineTransport, until
from shared.settings import load_settings
from shared.settings.services import ProviderSettings
from shared.store import DENSE
from shared.store.server import ServerStore
from shared.store.server_transport import ServerTransport, is_cut_off, transport
from tests.fakes.qdrant_server import Answer, FakeQdrant, good
from tests.support.redis_server import free_port
from workers.search.leaf import LeafQuery, run_search_stages
from workers.search.resources import SearchResources

ASK = models.QueryRequest(query=[1.0, 0.0], using=DENSE)
GOOD = good("/query/batch")
BREAKER = {"failures": 3, "open_s": 1.0, "longest_open_s": 3}
Make = Callable[..., ServerStore]


@pytest.fixture
def qdrant() -> Iterator[FakeQdrant]:
    with FakeQdrant() as fake:
        yield fake


@pytest.fixture
def make(qdrant: FakeQdrant, client: redis.Redis) -> Iterator[Make]:
    """Stores as those of several workers, with one Redis."""
    with ExitStack() as stack:

        def build(
            timeout_s: float = 2.0, attempts: int = 3, url: str = qdrant.url, patience_s: float = 0, **providers: Any
        ) -> ServerStore:
            store = GateStore(client)
            gate = Gate("qdrant", url, ProviderSettings.model_validate({"pause_s": 0.1, **providers}), lambda: store)
            made = ServerTransport(
                DeadlineTransport(proxy=None, limits=httpx.Limits()), gate, attempts, timeout_s, patience_s
            )
            opened = QdrantClient(url=url, transport=made, timeout=2, check_compatibility=False)
            return stack.enter_context(closing(ServerStore(opened, "ramify")))

        yield build


def failure(store: ServerStore) -> RamifyError:
    with pytest.raises(RamifyError) as caught:
        store.query([ASK])
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "fault",
    [
        Answer(500, {"status": {"error": "panic"}}),
        Answer(502, b"<html>bad gateway</html>"),
        Answer(503, b""),
        Answer(408, {}),
        Answer(429, {"status": {"error": "slow down"}}),
        Answer(429, {"status": {"error": "slow down"}}, {"Retry-After": "0"}),
        Answer(429, {}, {"Retry-After": "soon"}),
        Answer(200, GOOD, cut=60),
        Answer(200, GOOD, cut=0),
        Answer(200, b'{"result": [{"points": [{"id'),
        Answer(200, b""),
        Answer(200, b"no gzip", {"Content-Encoding": "gzip"}),
    ],
)
def test_what_may_pass_is_tried_again(qdrant: FakeQdrant, make: Make, fault: Answer) -> None:
    qdrant.script.extend([fault, fault])

    [[hit]] = make().query([ASK])

    assert hit.title == "标题"
    assert len(qdrant.seen) == 3


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Answer(500, {}), "Qdrant failed with 500 while searching"),
        (Answer(200, GOOD, cut=30), "Qdrant does not answer while searching: "),
        (Answer(200, b'{"result": [{'), "Qdrant sent half an answer while searching"),
        (Answer(429, {}), "Qdrant is overloaded (429) while searching"),
    ],
)
def test_what_does_not_pass_is_transient_after_all_tries(
    qdrant: FakeQdrant, make: Make, fault: Answer, words: str
) -> None:
    qdrant.always = fault
    error = failure(make())
    assert isinstance(error, TransientError)
    assert words in str(error)
    assert len(qdrant.seen) == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(200, b"<html>hello</html>"), "is no Qdrant server"),
        (Answer(200, b"[1, 2]"), "is no Qdrant server"),
        (Answer(200, b"hello"), "is no Qdrant server"),
        (Answer(200, {"hello": "world"}), "it holds no result"),
        (Answer(200, {"result": None, "status": "ok", "time": 0.1}), "it holds no result"),
        (Answer(200, {"result": "many", "status": "ok", "time": 0.1}), "not of the shape"),
        (Answer(200, {"result": [{"points": [{"id": 1}]}], "status": "ok"}), "not of the shape"),
        (Answer(200, {"result": [{"points": [{"id": 1, "version": 1, "score": "high"}]}]}), "score"),
        (Answer(400, {"status": {"error": "bad filter"}}), "bad filter"),
        (Answer(401, {}), "store.api_key"),
        (Answer(404, {}), "404"),
    ],
)
def test_what_will_not_pass_is_asked_once_and_never_opens_the_breaker(
    qdrant: FakeQdrant, make: Make, answer: Answer, words: str
) -> None:
    qdrant.always, store = answer, make(breaker=BREAKER)
    errors = [failure(store) for _ in range(4)]
    assert all(isinstance(error, StoreError) for error in errors)
    assert words in str(errors[0])
    # A collection that is not found may be behind an alias by now, for which it looks once each time.
    assert len(qdrant.seen) == (8 if answer.status == 404 else 4)


def test_a_server_that_is_slow_ends_with_the_time_of_the_leaf(qdrant: FakeQdrant, make: Make) -> None:
    qdrant.always, store = Answer(200, GOOD, slow=30), make(timeout_s=10)
    began = time.monotonic()
    with until(time.monotonic() + 0.4):
        error = failure(store)
    assert 0.3 < time.monotonic() - began < 4
    assert isinstance(error, TransientError)
    assert "nothing came within" in str(error)


def test_tries_and_their_waits_end_with_the_time_of_the_leaf(qdrant: FakeQdrant, make: Make) -> None:
    qdrant.always, store = Answer(500, {}), make(attempts=10, breaker={"failures": 0})
    began = time.monotonic()
    with until(time.monotonic() + 1.0):
        error = failure(store)
    assert time.monotonic() - began < 3
    assert "failed with 500" in str(error)
    assert 2 <= len(qdrant.seen) <= 6


def test_without_a_leaf_the_tries_have_their_own_bound(qdrant: FakeQdrant, make: Make) -> None:
    qdrant.always = Answer(200, GOOD, slow=30)
    began = time.monotonic()
    failure(make(timeout_s=0.2, attempts=3))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_holds_back_all_workers(qdrant: FakeQdrant, make: Make, form: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)
    # whole seconds, and making the clients takes a moment: two seconds are certain
    qdrant.script.append(Answer(429, {}, {"Retry-After": "2" if form == "seconds" else date}))
    stores = [make(timeout_s=10) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(stores[0].query, [ASK])
        while not qdrant.seen:
            time.sleep(0.001)
        time.sleep(0.05)
        assert [len(found) for found in threads.map(lambda store: store.query([ASK]), stores)] == [1] * 4
        first.result()
    times = [at for at, _, _ in qdrant.seen]
    assert len(times) == 6
    assert min(times[1:]) - times[0] >= 1.95


def test_a_dead_server_is_left_alone_by_all_and_found_again(qdrant: FakeQdrant, make: Make) -> None:
    qdrant.always = Answer(503, {})
    stores = [make(breaker={"failures": 3, "open_s": 2}) for _ in range(2)]
    failure(stores[0])
    began = time.monotonic()
    errors = [failure(stores[n % 2]) for n in range(50)]
    assert time.monotonic() - began < 1.5
    assert len(qdrant.seen) == 3
    assert {type(error) for error in errors} == {GateError}
    assert "Qdrant at 127.0.0.1:" in str(errors[0])
    assert "after 3 failures in a row, the last: it failed with 503" in str(errors[0])

    qdrant.always = None
    time.sleep(began + 2.1 - time.monotonic())
    assert len(stores[1].query([ASK])) == len(stores[0].query([ASK])) == 1


def test_nothing_listening_is_transient_and_opens_the_breaker(make: Make) -> None:
    store = make(url=f"http://127.0.0.1:{free_port()}", breaker=BREAKER)
    assert "does not answer while searching: '[Errno 111]" in str(failure(store))
    assert isinstance(failure(store), GateError)


def test_a_write_waits_for_a_server_that_comes_back_and_a_search_does_not(qdrant: FakeQdrant, make: Make) -> None:
    qdrant.always, store = Answer(503, {}), make(breaker=BREAKER)
    failure(store)
    qdrant.always = None
    assert isinstance(failure(store), GateError)
    began = time.monotonic()
    store._client.set_payload("ramify", {"backlinks": 1}, points=[1], wait=True)
    assert 0.5 < time.monotonic() - began < 6


def test_searches_of_leaves_sit_out_a_server_that_is_started_anew(qdrant: FakeQdrant, make: Make) -> None:
    """Four workers, ten leaves, no Qdrant for a second: none of them fails, and few of them ask it meanwhile."""
    qdrant.always = Answer(503, {})
    stores = [make(patience_s=20, breaker=BREAKER) for _ in range(4)]

    def leaf(n: int) -> int:
        with until(time.monotonic() + 60):
            return len(stores[n % 4].query([ASK]))

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(leaf, n) for n in range(10)]
        time.sleep(1.5)
        asked, qdrant.always = len(qdrant.seen), None
        assert [one.result() for one in found] == [1] * 10
    assert asked <= 3 + 4 + 3, "three to open it, those that were under way, and the probes"


@pytest.mark.parametrize(("left_s", "patience_s", "waits_s"), [(60, 0.6, 0.6), (5, 60, 5 / 7), (60, 0, 0)])
def test_a_leaf_waits_for_a_share_of_its_time_at_most(
    qdrant: FakeQdrant, make: Make, left_s: float, patience_s: float, waits_s: float
) -> None:
    qdrant.always = Answer(503, {})
    store = make(attempts=1, patience_s=patience_s, breaker={"failures": 1, "open_s": 0.3, "longest_open_s": 0.3})
    failure(store)
    began = time.monotonic()
    with until(time.monotonic() + left_s):
        assert isinstance(failure(store), TransientError)
    assert waits_s - 0.4 <= time.monotonic() - began < waits_s + 3


def test_the_search_of_a_leaf_ends_with_its_time_and_says_so(qdrant: FakeQdrant, tmp_path: Path) -> None:
    store = {"kind": "server", "url": qdrant.url, "timeout_s": 10}
    resources = SearchResources(load_settings(data_dir=tmp_path, store=store))
    ask = LeafQuery(text="缓存 vacuum", strategy="default", filters=Filters(), tenant="default", wanted=5)
    qdrant.always = Answer(200, GOOD, slow=30)
    began = time.monotonic()
    with pytest.raises(TransientError, match="Qdrant does not answer while reading the collection"):
        run_search_stages(ask, resources, None, 0.5)
    assert time.monotonic() - began < 3
    resources.close()


def test_making_a_collection_is_not_tried_again(qdrant: FakeQdrant, make: Make) -> None:
    qdrant.always = Answer(500, {})
    with pytest.raises(Exception, match="500"):
        make()._client.create_collection("ramify", vectors_config={})
    assert [path.split("?")[0] for _, _, path in qdrant.seen] == ["/collections/ramify"]


def test_the_settings_make_the_transport(qdrant: FakeQdrant) -> None:
    settings = load_settings(
        store={"kind": "server", "url": qdrant.url, "timeout_s": 5}, providers={"qdrant_attempts": 2}
    )
    qdrant.always = Answer(500, {})
    made = transport(settings.store, settings.providers)
    store = ServerStore(QdrantClient(url=qdrant.url, transport=made, check_compatibility=False), "ramify")
    failure(store)
    store.close()
    assert len(qdrant.seen) == 2


@pytest.mark.parametrize(
    ("content", "cut"),
    [(b"", True), (b' {"a"', True), (b'{"a": 1}\n', False), (b"<html>", False), (b"[1", False), (b"{}", False)],
)
def test_half_an_answer_is_an_object_without_its_end(content: bytes, cut: bool) -> None:
    assert is_cut_off(content) is cut
