"""Which of Redis and store is the older after a restore, by the state of the store that jobs know of."""

from __future__ import annotations

import time

import redis

from shared.jobs.corpus_written import SKEW_S, WRITTEN, CorpusWritten, older_one, seconds_of
from shared.settings import Settings
from shared.store.base import BuiltWith
from shared.store.meta import StoreMeta

AT = 1_800_000_000.0


def test_the_older_one_is_named_and_what_is_not_known_is_not_judged() -> None:
    assert older_one(AT, AT) == older_one(0.0, AT) == older_one(AT, 0.0) == ""
    assert "the store is of an earlier backup than Redis" in older_one(AT - 1, AT)
    assert older_one(AT + SKEW_S / 2, AT) == "", "an ingest that has not ended yet"
    assert "Redis may be of an earlier backup" in older_one(AT + 2 * SKEW_S, AT)


def test_a_store_repeats_no_state_after_a_restore_and_its_state_says_when() -> None:
    before = StoreMeta(built_with=BuiltWith(sparse="s", avg_len=1.0), index_version=57)
    lost, again = before.written(), before.written()
    assert 57 < lost.index_version < again.index_version
    assert abs(seconds_of(again.index_version) - time.time()) < 60
    assert seconds_of(before.index_version) == 0.0, "of a release that counted writes"
    ahead = before.model_copy(update={"index_version": again.index_version + 10**12}).written()
    assert ahead.index_version == again.index_version + 10**12 + 1, "a clock that was set back"


def test_what_was_noted_last_is_known_and_what_somebody_else_wrote_is_not(
    client: redis.Redis, settings: Settings
) -> None:
    written = CorpusWritten(client, settings)
    assert written.known() == 0
    written.note(5)
    written.note(7)
    assert written.known() == 7
    assert client.ttl(WRITTEN) > 0
    client.hset(WRITTEN, settings.store.collection, "x")
    assert written.known() == 0
