"""Webhooks: what has ended is told once it has, again until it was taken, and to each receiver at its own pace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from standardwebhooks import Webhook

from orchestrator.webhooks.endpoints import Webhooks
from orchestrator.webhooks.sender import Sender
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs import JobStore, State, new_id
from shared.jobs.keys import WebhookKeys
from shared.models import JobRequest
from shared.models.webhook import DeliveryState
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob, enter
from tests.fakes.webhook_receiver import WebhookReceiver
from tests.support.waiting import until


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return with_webhooks(settings)


def with_webhooks(settings: Settings, **given: Any) -> Settings:
    usual = {"allow_http": True, "allow_networks": ("127.0.0.0/8",), "first_wait_s": 0.05, "timeout_s": 2.0}
    webhooks = settings.webhooks.model_copy(update={**usual, **given})
    return settings.model_copy(update={"webhooks": webhooks})


@pytest.fixture
def jobs(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


def submitted(jobs: JobStore, **request: Any) -> str:
    job_id = new_id()
    jobs.enqueue([(job_id, JobRequest(question="secret question?", **request))])
    return job_id


def failed(jobs: JobStore, **request: Any) -> str:
    job_id = submitted(jobs, **request)
    jobs.endings.stop([job_id], State.FAILED, "no store")
    return job_id


def sent(sender: Sender, receiver: WebhookReceiver, number: int, seconds: float = 10) -> None:
    """Let the sender look until the receiver has got so many."""

    def looked() -> bool:
        sender.run()
        return len(receiver.received) >= number

    until(looked, seconds, every_s=0.05)


def settled(webhooks: Webhooks, sender: Sender, state: DeliveryState) -> Any:
    """The newest delivery, once it is in that state."""

    def looked() -> Any:
        sender.run()
        newest = webhooks.deliveries(1)
        return newest[0] if newest and newest[0].state is state else None

    return until(looked, 15, every_s=0.05)


def test_a_job_that_ended_is_told_signed_and_numbered(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    made = webhooks.add(receiver.url, ["job.failed"])
    told = [failed(jobs, tenant="acme"), failed(jobs, tenant="acme")]
    failed(jobs, tenant="other")
    jobs.endings.stop([submitted(jobs, tenant="acme")], State.CANCELLED, "not wanted")
    sent(sender, receiver, 2)
    settled(webhooks, sender, DeliveryState.DELIVERED)
    assert len(receiver.received) == 2
    for one in receiver.received:
        body = Webhook(made.secret.get_secret_value()).verify(one.body, one.headers)
        assert body == one.json()
        assert (body["type"], body["data"]["tenant"], body["data"]["state"]) == ("job.failed", "acme", "failed")
        assert b"secret question" not in one.body
        assert one.path == "/hook?of=test"
    assert sorted((one.json()["number"], one.json()["data"]["job_id"]) for one in receiver.received) == [
        (1, told[0]), (2, told[1]),
    ]  # fmt: skip
    assert client.zcard(WebhookKeys.ended) == 0


def test_a_done_job_a_closed_batch_and_the_operator(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    operator, sender = Webhooks(client, settings), Sender(jobs)
    operator.add(receiver.url)
    jobs.batches.open("b" * 21, tenant="acme")
    lines = [(new_id(), JobRequest(question="why?", tenant="acme")) for _ in range(2)]
    enter(jobs, "b" * 21, lines)
    jobs.admit()
    WalkedJob(jobs, lines[0][0]).to("summarising").done()
    jobs.endings.stop([lines[1][0]], State.EXPIRED, "late")
    sent(sender, receiver, 2)
    jobs.batches.close("b" * 21)
    jobs.batches.close("b" * 21)
    sent(sender, receiver, 3)
    settled(operator, sender, DeliveryState.DELIVERED)
    data = {one.json()["type"]: one.json()["data"] for one in receiver.received}
    assert set(data) == {"job.done", "job.expired", "batch.done"}
    assert (data["batch.done"]["done"], data["batch.done"]["expired"], data["batch.done"]["tenant"]) == (1, 1, "acme")


def test_a_request_names_its_own_url_signed_by_the_secret_of_its_tenant(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    with pytest.raises(InputError, match="ramify webhooks secret --tenant acme"):
        webhooks.check_named(receiver.url)
    secret = webhooks.new_secret().get_secret_value()
    webhooks.check_named(receiver.url)
    job_id = failed(jobs, tenant="acme", webhook=receiver.url)
    failed(jobs, tenant="acme")
    sent(sender, receiver, 1)
    settled(webhooks, sender, DeliveryState.DELIVERED)
    assert [Webhook(secret).verify(one.body, one.headers)["data"]["job_id"] for one in receiver.received] == [job_id]


def test_what_fails_is_tried_again_with_the_same_id_until_it_is_taken(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    receiver.statuses = [500, 302, 429, 200]
    receiver.headers = {"Location": receiver.url, "Retry-After": "0"}
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    webhooks.add(receiver.url)
    failed(jobs, tenant="acme")
    delivery = settled(webhooks, sender, DeliveryState.DELIVERED)
    assert (delivery.tries, delivery.status, delivery.error) == (4, 200, None)
    assert {one.id for one in receiver.received} == {delivery.id}
    assert len({one.body for one in receiver.received}) == 1, "no redirect was followed: that would be a GET"
    endpoint = webhooks.endpoints()[0]
    assert (endpoint.delivered, endpoint.failed, endpoint.failing_since, endpoint.off) == (1, 3, None, None)
    receiver.statuses = [200]
    again = webhooks.redeliver(delivery.id)
    assert again.state is DeliveryState.WAITING
    sent(sender, receiver, 5)
    assert receiver.received[-1].id == delivery.id


@pytest.mark.parametrize("how", ["hang", "dribble"])
def test_a_receiver_that_hangs_takes_one_time_and_keeps_no_other_waiting(
    client: redis.Redis, settings: Settings, how: str, receiver: WebhookReceiver
) -> None:
    jobs = JobStore(client, with_webhooks(settings, timeout_s=0.4, first_wait_s=60))
    sender, hanging, fine = Sender(jobs), Webhooks(client, settings, "slow"), Webhooks(client, settings, "fine")
    with WebhookReceiver(how) as slow:
        hanging.add(slow.url)
        fine.add(receiver.url)
        for _ in range(20):
            failed(jobs, tenant="slow")
        failed(jobs, tenant="fine")
        sent(sender, receiver, 1)
        until(lambda: hanging.endpoints()[0].failed, 10)
        newest = hanging.deliveries(50)
        assert {one.error for one in newest if one.error} == {"no answer within 0.4 s"}
        assert sum(one.tries for one in newest) <= 4, "it is tried by one delivery while it fails"


def test_an_endpoint_that_is_gone_is_switched_off_and_may_be_switched_on(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    receiver.statuses = [410]
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    endpoint = webhooks.add(receiver.url).endpoint
    failed(jobs, tenant="acme")
    sent(sender, receiver, 1)
    until(lambda: webhooks.get(endpoint.id).off)
    assert webhooks.get(endpoint.id).off == "it answered that it is gone (410)"
    (delivery,) = webhooks.deliveries()
    assert delivery.state is DeliveryState.WAITING
    failed(jobs, tenant="acme")
    sender.run()
    assert len(webhooks.deliveries()) == 1
    with pytest.raises(RamifyError, match=f"ramify webhooks enable {endpoint.id}"):
        webhooks.redeliver(delivery.id)
    receiver.statuses = [200]
    assert webhooks.enable(endpoint.id).off is None
    settled(webhooks, sender, DeliveryState.DELIVERED)


def test_an_endpoint_that_keeps_failing_is_switched_off_with_the_reason(
    client: redis.Redis, settings: Settings, receiver: WebhookReceiver
) -> None:
    receiver.statuses = [503]
    settings = with_webhooks(settings, give_up_s=0.3)
    jobs = JobStore(client, settings)
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    endpoint = webhooks.add(receiver.url).endpoint
    for _ in range(4):
        failed(jobs, tenant="acme")

    def is_off() -> str | None:
        sender.run()
        return webhooks.get(endpoint.id).off

    assert "it answered with status 503" in until(is_off, 10, every_s=0.05)
    assert client.hget(WebhookKeys.counts, "switched_off") == b"1"


def test_a_worker_that_dies_between_sending_and_noting_loses_nothing(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    webhooks.add(receiver.url)
    failed(jobs, tenant="acme")
    monkeypatch.setattr(sender, "_settle", lambda *_, **__: None)
    sent(sender, receiver, 1)
    other = Sender(jobs)
    other.run()
    assert len(receiver.received) == 1, "the claim holds"
    delivery = webhooks.deliveries()[0]
    target = webhooks.endpoints()[0].id
    client.zadd(WebhookKeys.waiting + target, {delivery.id: 0})
    client.zadd(WebhookKeys.due, {target: 0})
    sent(other, receiver, 2)
    settled(webhooks, other, DeliveryState.DELIVERED)
    assert len({one.id for one in receiver.received}) == 1


def test_what_ended_while_nobody_sent_is_told_later_and_made_once(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    webhooks = Webhooks(client, settings, "acme")
    webhooks.add(receiver.url)
    job_id = failed(jobs, tenant="acme")
    Sender(JobStore(client, with_webhooks(settings, enabled=False))).run()
    client.zadd(WebhookKeys.ended, {f"job:{job_id}": 1})  # as a worker leaves it that dies before the list is shorter
    senders = [Sender(jobs), Sender(jobs)]
    for sender in senders:
        sender.run()
    settled(webhooks, senders[0], DeliveryState.DELIVERED)
    assert len(receiver.received) == 1
    assert receiver.received[0].json()["number"] == 1


def test_a_tenant_sees_and_changes_its_own_endpoints_and_deliveries(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver
) -> None:
    own, other, operator = (Webhooks(client, settings, name) for name in ("acme", "other", None))
    endpoint = own.add(receiver.url).endpoint
    failed(jobs, tenant="acme")
    Sender(jobs).run()
    delivery = own.deliveries()[0]
    assert other.endpoints() == other.deliveries() == []
    for forbidden in (other.get, other.remove, other.enable):
        with pytest.raises(NotFoundError) as unknown:
            forbidden("we_0000000000000000")
        with pytest.raises(NotFoundError) as foreign:
            forbidden(endpoint.id)
        assert str(foreign.value).replace(endpoint.id, "") == str(unknown.value).replace("we_0000000000000000", "")
    for call in (other.delivery, other.redeliver):
        with pytest.raises(NotFoundError):
            call(delivery.id)
    assert operator.endpoints()[0].id == endpoint.id
    assert operator.deliveries()[0].id == delivery.id
    own.remove(endpoint.id)
    assert own.endpoints() == []


def test_an_endpoint_that_is_removed_while_it_is_called_is_not_called_again(
    client: redis.Redis, settings: Settings, jobs: JobStore, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.statuses = [500]
    webhooks, sender = Webhooks(client, settings, "acme"), Sender(jobs)
    endpoint, settle = webhooks.add(receiver.url).endpoint, Sender._settle

    def removed_first(*given: Any, **more: Any) -> None:
        webhooks.remove(endpoint.id)
        settle(*given, **more)

    monkeypatch.setattr(Sender, "_settle", removed_first)
    failed(jobs, tenant="acme")
    assert settled(webhooks, sender, DeliveryState.FAILED).tries == 1
    sender.run()
    kept = {key for key in client.scan_iter(f"{WebhookKeys.tag}*") if client.ttl(key) == -1}
    assert kept == set(), "what is kept of it ends"
    assert len(receiver.received) == 1


def test_damaged_keys_of_webhooks_keep_no_job_and_no_batch_from_its_end(
    client: redis.Redis, settings: Settings, jobs: JobStore
) -> None:
    client.set(f"{WebhookKeys.wanted}acme", "x")
    client.set(WebhookKeys.ended, "x")
    jobs.batches.open("b" * 21, tenant="acme", webhook="https://hooks.example/")
    enter(jobs, "b" * 21, [(job_id := new_id(), JobRequest(question="why?", tenant="acme"))])
    jobs.endings.stop([job_id], State.FAILED, "no store")
    jobs.batches.close("b" * 21)
    status = jobs.batches.status("b" * 21)
    assert (status.failed, status.open, status.closed_at is not None) == (1, 0, True)
