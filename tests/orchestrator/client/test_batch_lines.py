"""The lines of a batch: each becomes one job or is counted for what it is, however often its client is killed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator

import pytest
import redis

from orchestrator import batches
from orchestrator.client import Ramify
from orchestrator.intake import as_request, bounded_lines, read_questions
from shared.errors import BatchCancelledError, InputError, NotFoundError
from shared.jobs import JobStore, State
from shared.jobs.lines import NewLine, Page
from shared.models import BatchStatus
from shared.models.batch import BatchSource, LineKind, LineRecord
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob
from tests.support.accounts import assert_adds_up

FILE = b"""{"question": "one?", "idempotency_key": "k1", "id": "first", "meta": {"row": 1}}
{"question": "two?", "idempotency_key": "k2"}

{"question": "one?", "idempotency_key": "k1", "id": 3.5}
{"question": ""}
{"question": "five?", "strategy": "no_such_one"}
six?
"""


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_PAGE", 200)


@pytest.fixture
def ramify(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    """`client` empties Redis."""
    with Ramify(settings) as ramify:
        yield ramify


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


def read(ramify: Ramify, content: bytes, batch_id: str | None = None) -> tuple[str, list[LineRecord]]:
    batch_id = batch_id or ramify.open_batch()
    records = list(ramify.read_into_batch(batch_id, read_questions(bounded_lines(io.BytesIO(content)))))
    assert_adds_up(ramify._redis, batch_id)
    return batch_id, records


def keyed(first: int, last: int) -> bytes:
    lines = ({"question": f"why, {n}?", "idempotency_key": f"key {n}"} for n in range(first, last))
    return "\n".join(json.dumps(line) for line in lines).encode()


def counts(status: BatchStatus) -> dict[str, int]:
    names = ("lines", "enqueued", "known", "duplicate", "rejected", "blank", "known_open")
    return {name: count for name in names if (count := getattr(status, name))}


def test_every_line_is_counted_as_one_kind_and_kept_with_what_the_caller_wrote(ramify: Ramify) -> None:
    batch_id, records = read(ramify, FILE)
    status = ramify.batch_status(batch_id)
    assert counts(status) == {"lines": 7, "enqueued": 3, "duplicate": 1, "rejected": 2, "blank": 1}
    assert [record.line for record in records] == [1, 2, 4, 5, 6, 7]
    assert list(ramify.batch_lines(batch_id)) == records
    first, second, again, empty, strategy, last = records
    assert (first.kind, first.id, first.meta, first.key) == (LineKind.ENQUEUED, "first", {"row": 1}, "k1")
    assert (again.kind, again.id, again.job_id) == (LineKind.DUPLICATE, 3.5, first.job_id)
    assert (second.kind, last.kind) == (LineKind.ENQUEUED, LineKind.ENQUEUED)
    assert (empty.kind, empty.job_id) == (LineKind.REJECTED, None)
    assert strategy.reason
    assert "no_such_one" in strategy.reason
    assert ramify.batch_jobs(batch_id) == [first.job_id, second.job_id, last.job_id]
    assert ramify.status(first.job_id or "").question == "one?"


def test_a_rerun_says_what_was_new_and_names_the_jobs_that_answer_the_rest(ramify: Ramify) -> None:
    _, before = read(ramify, keyed(0, 30))
    again, records = read(ramify, keyed(0, 32))
    assert counts(ramify.batch_status(again)) == {"lines": 32, "enqueued": 2, "known": 30, "known_open": 30}
    assert [record.job_id for record in records[:30]] == [record.job_id for record in before]
    third, _ = read(ramify, keyed(0, 2) + b"\n" + keyed(0, 2))
    assert counts(ramify.batch_status(third)) == {"lines": 4, "known": 2, "duplicate": 2, "known_open": 2}


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_the_end_of_a_known_job_is_counted_by_who_ends_it(
    ramify: Ramify, store: JobStore, client: redis.Redis, end: str
) -> None:
    first, records = read(ramify, keyed(0, 3))
    others = [read(ramify, keyed(0, n))[0] for n in (1, 3)]
    job_id = records[0].job_id or ""
    if end == "done":
        WalkedJob(store, job_id).to("summarising").done()
    else:
        store.stop(WalkedJob(store, job_id).job, State(end), "why not")
    assert [assert_adds_up(client, batch)["known_open"] for batch in others] == [0, 2]
    assert assert_adds_up(client, first)[end] == 1
    late, _ = read(ramify, keyed(0, 1))
    assert (assert_adds_up(client, late)["known"], assert_adds_up(client, late)["known_open"]) == (1, 0)
    ramify.cancel_batch(first)
    assert [assert_adds_up(client, batch)["known_open"] for batch in others] == [0, 0]
    assert all(ramify.batch_status(batch).terminal for batch in (first, *others, late))
    assert client.keys("*named_by*") == []


def test_a_batch_ends_its_own_jobs_and_not_those_that_it_names(ramify: Ramify) -> None:
    first, records = read(ramify, keyed(0, 2))
    other, _ = read(ramify, keyed(0, 3))
    assert ramify.cancel_batch(other) == 1
    assert ramify.status(records[0].job_id or "").state == "queued"
    assert not ramify.batch_status(first).finished


def test_a_batch_that_waits_for_jobs_of_others_says_so_and_its_own_can_be_tried_again(ramify: Ramify) -> None:
    _, records = read(ramify, keyed(0, 2))
    other = ramify.open_batch(source=BatchSource(name="more.jsonl"))
    read(ramify, keyed(0, 3), other)
    assert (
        f"Of more.jsonl 3 lines were read so far: if nobody reads on, resume it (`ramify batch --resume {other}`)"
        in ramify.why(other).said
    )
    ramify.cancel_batch(other)
    said = ramify.why(other).said
    assert "It waits for 2 jobs of others, which its lines name by their keys." in said
    assert "It was cancelled before all was read: it took no more than 3 lines." in said
    assert "--resume" not in said
    made = ramify.retry(other)
    assert made.jobs == 1
    assert [row.line for row in ramify.batch_report(made.batch_id or "")] == [3]
    ramify.close_batch(other)
    for record in records:
        ramify.cancel(record.job_id or "")
    assert ramify.why(other).said.startswith("It has ended: 0 of 1 job are done, 1 cancelled.")


def test_a_client_that_goes_on_enters_each_line_once(ramify: Ramify) -> None:
    """given a client that is cut off in the middle of a file / then another one goes on behind what was entered."""
    source = BatchSource(name="f.jsonl", defaults={"deadline_s": 60}, options={"wait": True}, out="a.jsonl")
    batch_id = ramify.open_batch(source=source)
    content = FILE + keyed(0, 700) + b"\n"
    begun = ramify.read_into_batch(batch_id, read_questions(bounded_lines(io.BytesIO(content))))
    for _ in range(250):
        next(begun)
    begun.close()
    position = ramify.resume_batch(batch_id)
    assert (position.source, position.read) == (source, 400)
    assert ramify.batch_status(batch_id).closed_at is None
    _, rest = read(ramify, content, batch_id)
    assert [rest[0].line, rest[-1].line] == [401, 707]
    status = ramify.batch_status(batch_id)
    assert counts(status) == {"lines": 707, "enqueued": 703, "duplicate": 1, "rejected": 2, "blank": 1}
    assert read(ramify, content, batch_id)[1] == []
    assert ramify.batch_status(batch_id) == status
    ramify.close_batch(batch_id)
    assert ramify.batch_status(batch_id).closed_at


@pytest.mark.parametrize("changed", [b"x" + FILE, FILE.replace(b"two", b"2"), FILE[:100]])
def test_a_changed_file_is_refused_in_a_sentence(ramify: Ramify, changed: bytes) -> None:
    batch_id, _ = read(ramify, FILE)
    before = ramify.batch_status(batch_id)
    with pytest.raises(InputError, match="its first 7 lines are not those that batch"):
        read(ramify, changed + b"\nmore?\n", batch_id)
    assert ramify.batch_status(batch_id) == before
    assert [line.line for line in read(ramify, FILE + b"eight?", batch_id)[1]] == [8]


def test_of_two_clients_that_fill_one_batch_one_is_told(ramify: Ramify) -> None:
    batch_id = ramify.open_batch()
    slow = ramify.add_to_batch(batch_id, (f"slow {n}?" for n in range(500)))
    next(slow)
    list(ramify.add_to_batch(batch_id, ["quick?"]))
    with pytest.raises(InputError, match="another client is adding lines"):
        list(slow)
    assert counts(ramify.batch_status(batch_id)) == {"lines": 201, "enqueued": 201}
    with pytest.raises(NotFoundError):
        list(ramify.add_to_batch("0" * 21, ["why?"]))


def test_a_batch_that_is_cancelled_while_it_is_filled_takes_no_more_lines_and_adds_up(
    ramify: Ramify, client: redis.Redis
) -> None:
    batch_id = ramify.open_batch(source=BatchSource(name="q.jsonl"))
    filling = ramify.add_to_batch(batch_id, (f"slow {n}?" for n in range(700)))
    for _ in range(201):
        next(filling)
    assert ramify.cancel_batch(batch_id) == 400
    with pytest.raises(BatchCancelledError, match=f"batch {batch_id} was cancelled after line 400: it takes no more"):
        list(filling)
    with pytest.raises(BatchCancelledError):
        list(ramify.add_to_batch(batch_id, ["one more?"]))
    status, found = ramify.batch_status(batch_id), assert_adds_up(client, batch_id)
    assert (found["lines"], found["enqueued"], found["cancelled"], found["open"]) == (400, 400, 400, 0)
    assert (status.cancelled_early, status.read_whole, status.terminal) == (True, False, True)
    assert "it took no more than 400 lines" in ramify.why(batch_id).said
    retried = ramify.retry(batch_id)
    assert (retried.jobs, ramify.batch_status(retried.batch_id or "").open) == (400, 400)


def test_given_lines_that_break_off_when_read_then_those_of_the_page_under_way_are_told(ramify: Ramify) -> None:
    def lines() -> Iterator[str]:
        yield from (f"why, {number}?" for number in range(400))
        raise OSError("the disk is gone")

    records = ramify.add_to_batch(batch_id := ramify.open_batch(), lines())
    told = list[LineRecord]()
    with pytest.raises(OSError, match="gone"):
        told.extend(records)
    assert [record.line for record in told] == [*range(1, 401)]
    assert ramify.batch_status(batch_id).enqueued == len(told)


def test_given_a_page_that_is_on_its_way_when_the_next_line_comes_then_it_is_read(
    ramify: Ramify, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, send = list[str](), ramify._batches._submitter.send

    def sent(batch_id: str, page: Page) -> Callable[[], list[LineRecord]]:
        seen.append("sent")
        entered = send(batch_id, page)
        return lambda: seen.append("waited for") or entered()

    def lines() -> Iterator[str]:
        yield from (f"why, {number}?" for number in range(200))
        seen.append("read on")
        yield "and then?"

    monkeypatch.setattr(ramify._batches._submitter, "send", sent)
    assert len(list(ramify.add_to_batch(ramify.open_batch(), lines()))) == 201
    assert seen == ["sent", "read on", "waited for", "sent", "waited for"]


def test_given_a_connection_that_breaks_while_a_page_is_on_its_way_then_its_lines_are_entered_once(
    ramify: Ramify, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = ramify._batches._submitter.send

    def sent(batch_id: str, page: Page) -> Callable[[], list[LineRecord]]:
        entered = send(batch_id, page)
        client.client_kill_filter(_type="normal")
        return entered

    monkeypatch.setattr(ramify._batches._submitter, "send", sent)
    records = list(ramify.add_to_batch(batch_id := ramify.open_batch(), ["one?", "two?"]))
    assert [record.kind for record in records] == [LineKind.ENQUEUED] * 2
    assert assert_adds_up(client, batch_id)["enqueued"] == 2


def test_a_batch_that_was_read_whole_is_cancelled_as_it_is(ramify: Ramify) -> None:
    batch_id, _ = read(ramify, keyed(0, 3))
    ramify.close_batch(batch_id)
    assert ramify.cancel_batch(batch_id) == 3
    status = ramify.batch_status(batch_id)
    assert (status.cancelled_at, status.cancelled_early, status.cancelled) == (None, False, 3)


def test_lines_that_were_entered_before_the_cancel_are_confirmed_to_a_client_that_asks_again(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    batch_id = ramify.open_batch()
    job = store.new_job("1" * 21, as_request("why?"), batch_id=batch_id)
    page = Page(0, "", 1, "d", [NewLine(1, job)])
    entered = store.batches.enter(batch_id, page)
    ramify.cancel_batch(batch_id)
    assert store.batches.enter(batch_id, page) == entered
    assert assert_adds_up(client, batch_id)["lines"] == 1


def test_the_newest_batches_are_listed_and_those_that_are_gone_leave_the_list(
    ramify: Ramify, client: redis.Redis
) -> None:
    ids = [ramify.open_batch(source=BatchSource(name=f"{n}.jsonl")) for n in range(4)]
    list(ramify.add_to_batch(ids[3], ["why?"]))
    client.delete(f"ramify:{{{ids[2]}}}:batch")
    assert [(batch.batch_id, batch.source) for batch in ramify.batches(2)] == [(ids[3], "3.jsonl"), (ids[1], "1.jsonl")]
    assert [batch.open for batch in ramify.batches()] == [1, 0, 0]
    assert client.zcard("ramify:batches") == 3


def test_a_damaged_batch_costs_what_cannot_be_read_of_it(ramify: Ramify, client: redis.Redis) -> None:
    ids = [read(ramify, keyed(n, n + 3))[0] for n in (0, 10, 20)]
    bad = {"done": "x", "created_at": b"\xff", "source": "{", "budget:calls": "y"}
    client.hset(f"ramify:{{{ids[0]}}}:batch", mapping=bad)
    client.hset(f"ramify:{{{ids[0]}}}:lines", "2", b"\xff")
    client.set(f"ramify:{{{ids[1]}}}:batch", "no hash")
    assert [batch.batch_id for batch in ramify.batches()] == [ids[2], ids[0]]
    status = ramify.batch_status(ids[0])
    assert (status.lines, status.open, status.done, status.created_at) == (3, 3, 0, 0.0)
    first, second, third = ramify.batch_report(ids[0])
    assert (first.kind, second.kind, third.kind) == ("enqueued", "rejected", "enqueued")
    assert second.error
    assert "cannot be read" in second.error
    assert [job.state for job in ramify.jobs(batch=ids[0])] == ["queued"] * 3
    assert ramify.cancel_batch(ids[0]) == 3
    assert ramify.batch_status(ids[0]).cancelled == 3
