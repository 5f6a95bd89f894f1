"""A client that is bound to a tenant, method by method: another's job, batch or dead letter is like none at all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.intake import number_questions
from orchestrator.retries.dead_letters import DeadLetters
from shared.connections.quarantine import Quarantine
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs import JobStore
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.stale import StaleAnswers
from shared.models import JobRequest, Lane
from shared.models.batch import BatchPosition, BatchSource
from shared.models.stale import StaleBy, StaleMark
from shared.models.status import DeadLetter
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob

Call = Callable[[Ramify, str], object]
UNKNOWN = "0659f9e0000000deadbeef00"
REQUEST = JobRequest(question="why?", lane=Lane.BATCH)

#: The line of the batch that is asked for.
LINES = list(number_questions(["one?"], {}, BatchPosition(read=0, digest="", source=BatchSource())))
#: Every public method of the client, by what it asks for; some take a job's id or a batch's.
OF_JOB: Mapping[str, Call] = {
    "cancel": lambda client, id_: client.cancel(id_),
    "follow_ingest": lambda client, id_: list(client.follow_ingest(id_)),
    "ingest_result": lambda client, id_: client.ingest_result(id_),
    "manifest": lambda client, id_: client.manifest(id_),
    "replay": lambda client, id_: client.replay(id_, "plan"),
    "result": lambda client, id_: client.result(id_),
    "judge": lambda client, id_: client.judge(id_, "good"),
    "refresh": lambda client, id_: client.refresh(id_),
    "refreshes_under_way": lambda client, id_: client.refreshes_under_way(id_),
    "retry": lambda client, id_: client.retry(id_),
    "rows": lambda client, id_: list(client.rows(id_)),
    "status": lambda client, id_: client.status(id_),
    "stream": lambda client, id_: list(client.stream(id_, timeout_s=0.1)),
    "tree": lambda client, id_: client.tree(id_),
    "wait": lambda client, id_: client.wait(id_, timeout_s=0.0),
    "why": lambda client, id_: client.why(id_),
    "too_slow": lambda client, id_: client.too_slow(id_),
}
OF_BATCH: Mapping[str, Call] = {
    "add_to_batch": lambda client, id_: list(client.add_to_batch(id_, [REQUEST])),
    "batch_jobs": lambda client, id_: client.batch_jobs(id_),
    "batch_status": lambda client, id_: client.batch_status(id_),
    "cancel_batch": lambda client, id_: client.cancel_batch(id_),
    "batch_lines": lambda client, id_: list(client.batch_lines(id_)),
    "batch_report": lambda client, id_: list(client.batch_report(id_)),
    "close_batch": lambda client, id_: client.close_batch(id_),
    "read_into_batch": lambda client, id_: list(client.read_into_batch(id_, LINES)),
    "resume_batch": lambda client, id_: client.resume_batch(id_),
    "refresh": lambda client, id_: client.refresh(id_),
    "refreshes_under_way": lambda client, id_: client.refreshes_under_way(id_),
    "retry": lambda client, id_: client.retry(id_),
    "why": lambda client, id_: client.why(id_),
    "too_slow": lambda client, id_: client.too_slow(id_),
}
OF_DEAD_LETTER: Mapping[str, Call] = {
    "get": lambda client, id_: client.dead.get(id_),
    "replay": lambda client, id_: client.dead.replay(id_),
}
#: What makes something new: tested below, each with and without a tenant's name.
REQUESTS = {
    "delete", "find", "ingest", "ingest_changes", "open_batch", "read_question", "search", "session", "start_ingest",
    "submit", "submit_many", "upsert", "watch",
}  # fmt: skip
LISTS = {
    "batches", "jobs", "statuses", "dead", "webhooks", "refresh_stale", "stale_jobs", "standing", "judgements",
    "unchecked_answers",
}  # fmt: skip
DEAD_LISTS = {"list", "count", "drop", "quarantined"}
NEUTRAL = {
    "close",
    "corpus",
    "for_tenant",
    "operator",
    "patience_s",
    "ping",
    "unserved_queues",
    "reads_by_name",
    "redis",
    "settings_differ",
}


@pytest.fixture
def acme(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings, tenant="acme") as acme:
        yield acme


@pytest.fixture
def other(client: redis.Redis, settings: Settings) -> Iterator[Ramify]:
    with Ramify(settings, tenant="other") as other:
        yield other


def mark_stale(store: JobStore, job_id: str) -> None:
    mark = StaleMark(doc_id="d1", path="docs/a.md", by=StaleBy.CHANGED, since=1.0, leaves=("0.1",))
    StaleAnswers(store.client, store.settings, store.clock).mark("acme", {job_id: ([mark], ())})


def commands(client: redis.Redis, call: Callable[[], object]) -> tuple[str, dict[str, int]]:
    """The error of a call, and which commands Redis has got for it."""
    client.config_resetstat()
    with pytest.raises(NotFoundError) as raised:
        call()
    stats: Any = client.info("commandstats")
    return str(raised.value), {name: found["calls"] for name, found in stats.items() if "config" not in name}


def test_every_public_method_of_the_client_is_in_one_of_the_tables() -> None:
    methods = {name for name, _ in inspect.getmembers(Ramify) if not name.startswith("_")}
    assert methods == {*OF_JOB, *OF_BATCH, *REQUESTS, *LISTS, *NEUTRAL}
    of_dead = {name for name, _ in inspect.getmembers(DeadLetters) if not name.startswith("_")}
    assert of_dead == {*OF_DEAD_LETTER, *DEAD_LISTS}


@pytest.mark.parametrize("name", OF_JOB)
def test_given_another_tenants_job_when_asked_for_then_it_is_an_unknown_id(
    acme: Ramify, other: Ramify, store: JobStore, client: redis.Redis, name: str
) -> None:
    job_id = other.submit("why?")
    assert WalkedJob(store, job_id).to("summarising").done()
    before = client.hgetall(f"ramify:{{{job_id}}}:job")
    acme.jobs()  # the connection and the scripts are there
    unknown = commands(client, lambda: OF_JOB[name](acme, UNKNOWN))
    theirs = commands(client, lambda: OF_JOB[name](acme, job_id))
    assert (theirs[0].replace(job_id, UNKNOWN), theirs[1]) == unknown
    assert client.hgetall(f"ramify:{{{job_id}}}:job") == before


@pytest.mark.parametrize("name", OF_JOB)
def test_given_its_own_job_when_asked_for_then_it_is_found(acme: Ramify, store: JobStore, name: str) -> None:
    job_id = acme.submit("why?")
    assert WalkedJob(store, job_id).to("summarising").done(partial=True)
    mark_stale(store, job_id)
    if name in {"rows", "ingest_result"}:
        with pytest.raises(RamifyError, match=r"has no list|is a question"):
            OF_JOB[name](acme, job_id)
    else:
        OF_JOB[name](acme, job_id)


@pytest.mark.parametrize("name", OF_BATCH)
@pytest.mark.parametrize("opener", ["other", None])
def test_given_a_batch_that_is_not_its_own_when_asked_for_then_it_is_an_unknown_id(
    acme: Ramify, client: redis.Redis, settings: Settings, name: str, opener: str | None
) -> None:
    with Ramify(settings, opener) as theirs:
        batch_id = theirs.submit_many(["one?", "two?"], tenant="other").batch_id
    before = client.hgetall(f"ramify:{{{batch_id}}}:batch")
    acme.jobs()
    unknown = commands(client, lambda: OF_BATCH[name](acme, UNKNOWN))
    foreign = commands(client, lambda: OF_BATCH[name](acme, batch_id))
    assert (foreign[0].replace(batch_id, UNKNOWN), foreign[1]) == unknown
    assert client.hgetall(f"ramify:{{{batch_id}}}:batch") == before
    assert acme.jobs() == [], "nothing was enqueued"


@pytest.mark.parametrize("name", OF_BATCH)
def test_given_its_own_batch_when_asked_for_then_it_is_found(acme: Ramify, store: JobStore, name: str) -> None:
    taken = acme.submit_many(["one?"])
    assert WalkedJob(store, taken.job_ids[0]).to("summarising").done(partial=True)
    mark_stale(store, taken.job_ids[0])
    OF_BATCH[name](acme, taken.batch_id)
    assert acme.batch_status(taken.batch_id).tenant == "acme"


@pytest.mark.parametrize("name", OF_DEAD_LETTER)
def test_given_another_tenants_dead_letter_when_asked_for_then_it_is_an_unknown_id(
    acme: Ramify, client: redis.Redis, settings: Settings, name: str
) -> None:
    retire(client, settings, "other")
    acme.jobs()
    unknown = commands(client, lambda: OF_DEAD_LETTER[name](acme, f"{UNKNOWN}:0.1"))
    theirs = commands(client, lambda: OF_DEAD_LETTER[name](acme, "job-of-other:0.1"))
    assert (theirs[0].replace("job-of-other", UNKNOWN), theirs[1]) == unknown


def retire(client: redis.Redis, settings: Settings, *tenants: str) -> None:
    dead = DeadLetterStore(client, settings)
    for at, tenant in enumerate(tenants):
        dead.add(
            DeadLetter(
                id=f"job-of-{tenant}:0.{at + 1}", kind="work", at=float(at), tenant=tenant, job_id=f"job-of-{tenant}",
                item=f"0.{at + 1}", task="search.leaf", reason="it kills",
            )
        )  # fmt: skip


def test_given_dead_letters_of_two_tenants_when_listed_then_each_sees_counts_and_drops_its_own(
    acme: Ramify, ramify: Ramify, client: redis.Redis, settings: Settings
) -> None:
    retire(client, settings, "other", "acme", "other", "acme")
    assert [letter.id for letter in acme.dead.list()] == ["job-of-acme:0.4", "job-of-acme:0.2"]
    assert [letter.id for letter in acme.dead.list(1)] == ["job-of-acme:0.4"]
    assert (acme.dead.count(), ramify.dead.count()) == (2, 4)
    assert not acme.dead.drop("job-of-other:0.1")
    assert acme.dead.drop("job-of-acme:0.2")
    assert (acme.dead.count(), ramify.dead.count()) == (1, 3)


def test_given_jobs_of_two_tenants_when_listed_then_each_sees_its_own_whatever_came_later(
    acme: Ramify, other: Ramify, ramify: Ramify
) -> None:
    own = [acme.submit(f"why {n}?") for n in range(3)]
    for n in range(520):  # more than a page of the list
        other.submit(f"what {n}?")
    assert [job.job_id for job in acme.jobs()] == own[::-1]
    assert [job.job_id for job in acme.jobs(2)] == own[:0:-1]
    assert (acme.jobs().looked_at, ramify.jobs(600).looked_at) == (3, 523), "how many others have is not told"
    some = [UNKNOWN, own[2], *(job.job_id for job in other.jobs(3)), own[0]]
    assert [job.job_id for job in acme.statuses(some)] == [own[2], own[0]]
    assert len(ramify.statuses(some)) == 5
    assert {job.tenant for job in ramify.jobs(600)} == {"acme", "other"}
    assert len(ramify.jobs(600)) == 523


def test_given_batches_when_their_jobs_are_listed_then_anothers_is_unknown_and_of_nobodys_its_own_are_chosen(
    acme: Ramify, other: Ramify, ramify: Ramify, client: redis.Redis
) -> None:
    theirs = other.submit_many(["one?"]).batch_id
    acme.jobs()
    unknown = commands(client, lambda: acme.jobs(batch=UNKNOWN))
    foreign = commands(client, lambda: acme.jobs(batch=theirs))
    assert (foreign[0].replace(theirs, UNKNOWN), foreign[1]) == unknown
    mixed = ramify.submit_many([{"question": f"{name}?", "tenant": name} for name in ("acme", "other")])
    assert [job.question for job in acme.jobs(batch=mixed.batch_id)] == ["acme?"]
    assert len(ramify.jobs(batch=mixed.batch_id)) == 2
    assert acme.jobs(batch=mixed.batch_id, state="done") == [], "it has jobs of it, but none of these"
    assert acme.jobs(batch=acme.open_batch()) == [], "its own"
    without = ramify.submit_many([{"question": "one?", "tenant": "other"}]).batch_id
    with pytest.raises(NotFoundError) as error:
        acme.jobs(batch=without)
    assert str(error.value).replace(without, UNKNOWN) == unknown[0]


def test_given_a_bound_client_when_it_submits_then_the_job_is_its_tenants(acme: Ramify, ramify: Ramify) -> None:
    for question in ("why?", {"question": "why?"}, JobRequest(question="why?"), {"question": "why?", "tenant": "acme"}):
        assert ramify.status(acme.submit(question)).tenant == "acme"
    taken = acme.submit_many(["why?", {"question": "why?", "tenant": "other"}, "how?"])
    assert {ramify.status(job_id).tenant for job_id in taken.job_ids} == {"acme"}
    assert [line.line for line in taken.rejected] == [2]
    assert "only the tenant acme may be named here" in taken.rejected[0].reason
    assert ramify.status(ramify.submit("why?", tenant="other")).tenant == "other", "a client of all names any"


def test_given_a_bound_client_when_a_request_names_another_tenant_then_it_is_refused(
    acme: Ramify, ramify: Ramify, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.searching.call_pool", lambda *_: pytest.fail("a pool was asked"))
    kept = ramify.session("talk", "other")
    batch_id = acme.open_batch()
    calls: list[Callable[[], object]] = [
        lambda: acme.submit("why?", tenant="other"),
        lambda: acme.submit(JobRequest(question="why?", tenant="default")),
        lambda: acme.find("why?", tenant="other"),
        lambda: acme.search("why?", tenant="other"),
        lambda: acme.search("why?", kept),
        lambda: acme.session("talk", "other"),
        lambda: list(acme.ingest(".", tenant="other")),
        lambda: acme.start_ingest(".", tenant="other"),
        lambda: list(acme.ingest_changes(".", [], tenant="other")),
        lambda: acme.upsert([], source="wiki", tenant="other"),
        lambda: acme.delete([], source="wiki", tenant="other"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="only the tenant acme may be named here: name that one or none"):
            call()
    theirs = JobRequest(question="why?", tenant="other")
    read = number_questions([theirs], {}, BatchPosition(read=1, digest="", source=BatchSource()))  # by a client of all
    for (line,) in (acme.add_to_batch(batch_id, [theirs]), acme.read_into_batch(acme.open_batch(), read)):
        assert line.kind == "rejected"
        assert line.reason
        assert "only the tenant acme may be named here" in line.reason
    assert ramify.jobs() == []


def test_given_lines_that_name_no_tenant_when_a_bound_client_takes_them_then_they_are_its_own(
    acme: Ramify, ramify: Ramify
) -> None:
    batch_id = acme.open_batch()
    (line,) = acme.read_into_batch(batch_id, LINES)
    mine, other = ramify.add_to_batch(batch_id, ["two?", {"question": "three?", "tenant": "other"}])  # the operator's
    assert other.kind == "rejected"
    assert {ramify.status(one.job_id or "").tenant for one in (line, mine)} == {"acme"}


def test_given_a_bound_client_when_no_tenant_is_named_then_finds_conversations_and_documents_are_its_own(
    acme: Ramify, ramify: Ramify, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def pool(_app: object, _settings: object, _name: object, request: Any, _timeout_s: float) -> str:
        asked.append(request.tenant)
        raise RamifyError("no pool here")

    def submit(_ingesting: object, _by: object, _sources: object, options: Any) -> str:
        asked.append(options.tenant)
        raise RamifyError("no ingest here")

    monkeypatch.setattr("orchestrator.searching.call_pool", pool)
    monkeypatch.setattr("orchestrator.documents.ingest.Ingesting.submit", submit)
    for client in (acme, ramify):
        with pytest.raises(RamifyError, match="no pool here"):
            client.find("why?")
        with pytest.raises(RamifyError, match="no ingest here"):
            list(client.ingest("."))
        asked.append(client.session("talk").tenant)
    assert asked == ["acme"] * 3 + ["default"] * 3


def test_given_an_owned_batch_when_an_operator_retries_it_then_the_new_one_is_the_owners(
    acme: Ramify, ramify: Ramify, store: JobStore
) -> None:
    taken = acme.submit_many(["one?"])
    assert WalkedJob(store, taken.job_ids[0]).to("summarising").done(partial=True)
    again = ramify.retry(taken.batch_id).batch_id or ""
    assert acme.batch_status(again).tenant == "acme"
    assert ramify.batch_status(ramify.open_batch()).tenant is None
    assert [batch.batch_id for batch in acme.batches()] == [again, taken.batch_id]
    assert len(ramify.batches()) == 3


@pytest.mark.parametrize("name", ["", "a b", "x" * 65])
def test_given_what_is_no_name_when_a_client_is_bound_to_it_then_it_is_refused(settings: Settings, name: str) -> None:
    with pytest.raises(InputError, match="tenant"):
        Ramify(settings, tenant=name)


def test_given_keys_of_another_type_when_asked_for_then_nobody_owns_them_and_its_own_jobs_are_listed(
    acme: Ramify, client: redis.Redis
) -> None:
    own, broken = acme.submit("why?"), acme.submit("how?")
    client.delete(f"ramify:{{{broken}}}:job")
    client.lpush(f"ramify:{{{broken}}}:job", "no hash")
    assert [job.job_id for job in acme.jobs()] == [own]
    with pytest.raises(NotFoundError):
        acme.status(broken)


def test_given_messages_in_quarantine_then_a_bound_client_sees_and_drops_none(
    acme: Ramify, client: redis.Redis, settings: Settings
) -> None:
    Quarantine(client).add("rerank", b"somebody's question", "no JSON")
    assert acme.dead.quarantined(drop=True) == ()
    with Ramify(settings) as unbound:
        assert [one.head for one in unbound.dead.quarantined(drop=True)] == ["somebody's question"]
        assert unbound.dead.quarantined() == ()
