"""API keys: what they are let do, by which processes, and what is kept of them."""

from __future__ import annotations

import hashlib
import time
from multiprocessing.dummy import Pool

import pytest
import redis
from pydantic import SecretStr

from orchestrator.access.caller import Scope
from orchestrator.access.keys import KeyStore, NewKey
from orchestrator.permits import KeyPermits
from shared.errors import InputError, NotFoundError, TooManyRequestsError, UnknownCallerError
from shared.jobs import JobStore
from shared.jobs.keys import ACTIVE, BatchKeys
from shared.settings import Settings


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> KeyStore:
    return KeyStore(client, settings)


def test_a_key_lets_in_for_its_tenant_and_scopes(store: KeyStore) -> None:
    made = store.create("acme", ["ask", "read"], name="web")
    used = store.use(made.secret)
    assert used.model_copy(update={"used_at": None}) == made.key
    assert (used.tenant, used.scopes, used.name) == ("acme", (Scope.READ, Scope.ASK), "web")


def test_redis_holds_a_digest_and_nothing_that_could_be_sent(store: KeyStore, client: redis.Redis) -> None:
    made = store.create("acme")
    presented = made.secret.get_secret_value()
    secret = presented.split("_")[2]
    kept = {key: client.hgetall(key) for key in client.scan_iter("ramify:key:*")}
    assert hashlib.sha256(secret.encode()).hexdigest() in str(kept)
    assert secret not in str(kept)
    assert secret not in f"{made!r} {made.key!r} {store.list()!r}"


@pytest.mark.parametrize("change", ["", "rmf_", "x", "other secret", "other id", "upper case", "short"])
def test_what_is_no_key_is_refused_in_the_same_words(store: KeyStore, change: str) -> None:
    presented = store.create("acme").secret.get_secret_value()
    flipped = presented[:-1] + ("0" if presented[-1] != "0" else "1")
    wrong = {
        "other secret": flipped, "other id": presented.replace(presented[4:20], "0" * 16),
        "upper case": presented.upper(), "short": presented[:-1],
    }  # fmt: skip
    with pytest.raises(UnknownCallerError, match="there is no such key"):
        store.use(SecretStr(wrong.get(change, change)))


def test_a_wrong_secret_takes_nothing_of_the_rate_of_the_key(store: KeyStore) -> None:
    made = store.create("acme", requests_per_minute=1)
    presented = made.secret.get_secret_value()
    for _ in range(3):
        with pytest.raises(UnknownCallerError):
            store.use(SecretStr(presented[:-1] + ("0" if presented[-1] != "0" else "1")))
    store.use(made.secret)


def test_a_key_that_is_revoked_or_expires_stops_at_once(store: KeyStore) -> None:
    revoked, short = store.create("acme"), store.create("acme", days=0.2 / 86_400)
    store.use(revoked.secret)
    assert store.still_holds(revoked.key.id)
    store.revoke(revoked.key.id)
    with pytest.raises(UnknownCallerError, match="revoked"):
        store.use(revoked.secret)
    assert not store.still_holds(revoked.key.id)
    time.sleep(0.25)
    with pytest.raises(UnknownCallerError, match="expired"):
        store.use(short.secret)
    assert not store.any_active()
    assert {key.id for key in store.list()} == {revoked.key.id, short.key.id}


def test_a_key_is_revoked_by_its_own_tenant_alone(store: KeyStore) -> None:
    made = store.create("acme")
    for wrong in (made.key.id, "0" * 16, "*", "../x"):
        with pytest.raises(NotFoundError, match="there is no such key"):
            store.revoke(wrong, "other")
    assert store.list("other") == []
    store.use(made.secret)


def test_the_rate_holds_across_processes_and_says_when_to_come_again(settings: Settings, client: redis.Redis) -> None:
    stores = [KeyStore(redis.Redis.from_url(settings.redis.url.get_secret_value()), settings) for _ in range(2)]
    made = stores[0].create("acme", requests_per_minute=30)

    def ask(number: int) -> float:
        try:
            stores[number % 2].use(made.secret)
        except TooManyRequestsError as error:
            return error.retry_after
        return 0.0

    with Pool(4) as pool:
        waits = pool.map(ask, range(60))
    assert 30 <= waits.count(0.0) <= 32
    assert all(0 < wait <= 2.0 for wait in waits if wait)


def test_the_use_is_noted_once_a_minute(store: KeyStore, client: redis.Redis) -> None:
    made = store.create("acme")
    store.use(made.secret)
    first = client.hget(f"ramify:key:{made.key.id}", "used_at")
    assert first
    client.hset(f"ramify:key:{made.key.id}", "used_at", int(first) - 30)
    store.use(made.secret)
    assert client.hget(f"ramify:key:{made.key.id}", "used_at") == str(int(first) - 30).encode()
    client.hset(f"ramify:key:{made.key.id}", "used_at", int(first) - 61)
    store.use(made.secret)
    assert int(client.hget(f"ramify:key:{made.key.id}", "used_at") or 0) >= int(first)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("tenant", {"tenant": "a b"}),
        ("scopes", {"scopes": ["root"]}),
        ("scopes", {"scopes": []}),
        ("days", {"days": 0}),
        ("days", {"days": float("inf")}),
        ("name", {"name": "a\x1b[2J"}),
        ("requests_per_minute", {"requests_per_minute": 0}),
        ("open_jobs", {"open_jobs": 10_001}),
    ],
)
def test_a_key_that_cannot_be_is_refused_by_the_name_of_the_field(store: KeyStore, field: str, given: dict) -> None:
    with pytest.raises(InputError) as caught:
        store.create(**({"tenant": "acme"} | given))
    assert caught.value.field == field
    assert store.list() == []


@pytest.fixture
def made(store: KeyStore) -> NewKey:
    return store.create("acme", open_jobs=2)


def test_a_key_has_so_many_open_jobs_and_batches(client: redis.Redis, settings: Settings, made: NewKey) -> None:
    permits = KeyPermits(JobStore(client, settings), made.key.id, 2)
    with permits.take() as permit:
        client.zadd(ACTIVE, {"job": 1})
        permit.job("job")
    with permits.take() as permit:
        client.hset(BatchKeys("batch").batch, mapping={"open": 3})
        permit.batch("batch")
    with pytest.raises(TooManyRequestsError), permits.take():
        pass
    client.zrem(ACTIVE, "job")
    with permits.take() as permit:
        client.zadd(ACTIVE, {"job": 1})
        permit.job("job")
    client.hset(BatchKeys("batch").batch, mapping={"open": 0})
    with pytest.raises(TooManyRequestsError), permits.take():
        pass  # it may get more lines
    client.hset(BatchKeys("batch").batch, mapping={"closed_at": 1})
    with permits.take():
        pass


def test_a_permit_whose_job_was_refused_is_free_again(client: redis.Redis, settings: Settings, made: NewKey) -> None:
    permits = KeyPermits(JobStore(client, settings), made.key.id, 1)
    for _ in range(3):
        with pytest.raises(ValueError), permits.take():
            raise ValueError
    with permits.take(), pytest.raises(TooManyRequestsError), permits.take():
        pass
