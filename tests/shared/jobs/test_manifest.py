"""The manifest beside a job: written with the answer, read back, and recognised where somebody has changed it."""

from __future__ import annotations

import pytest
import redis

from shared.errors import RamifyError
from shared.jobs import JobReader, JobStore
from shared.jobs.keys import JobKeys
from shared.models import Hit, JobRequest, SearchResult
from shared.models.manifest import Manifest, Record, RunRecord
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob, answer

MANIFEST = Manifest.of(Record(question="为什么队列会丢消息？", warnings=("w",)), RunRecord(job_id="job-1"))


def test_given_a_job_that_ends_then_its_manifest_is_kept_as_long_as_its_answer(
    store: JobStore, client: redis.Redis, settings: Settings
) -> None:
    store.enqueue([("job-1", JobRequest(question="why?"))])
    store.admit()
    walked = WalkedJob(store, "job-1").to("summarising")
    reader = JobReader(client)
    assert reader.manifest("job-1") is None
    assert store.finish(walked.job, answer(walked.job), manifest=MANIFEST)
    assert reader.manifest("job-1") == MANIFEST
    assert 0 < client.ttl(JobKeys("job-1").manifest) <= settings.jobs.ttl_s


def test_given_a_changed_record_then_its_digest_no_longer_fits() -> None:
    changed = MANIFEST.record.model_copy(update={"question": "why not?"})
    assert MANIFEST.intact
    assert not MANIFEST.model_copy(update={"record": changed}).intact


def test_given_damage_then_one_sentence_says_so(store: JobStore, client: redis.Redis) -> None:
    client.set(JobKeys("job-1").manifest, b"no blob")
    with pytest.raises(RamifyError, match=r"the manifest of job job-1 cannot be read \(ValueError\)"):
        JobReader(client).manifest("job-1")


@pytest.mark.parametrize("keep", ["full", "candidates"])
def test_given_jobs_keep_then_what_each_leaf_chose_from_stays_or_goes(
    client: redis.Redis, settings: Settings, keep: str
) -> None:
    store = JobStore(client, settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"keep": keep})}))
    store.enqueue([("job-1", JobRequest(question="why?"))])
    store.admit()
    walked = WalkedJob(store, "job-1").to("searching")
    hit = Hit(chunk_id="c", doc_id="d", path="p", title="t", text="x", score=1.0, vector=(0.5, 0.25))
    store.put_candidates("job-1", "0.0", SearchResult(mode="default", hits=(hit,)))
    for place in ("merging", "summarising"):
        assert getattr(walked, place)()
    assert walked.done()
    found = store.candidates("job-1", "0.0")
    assert (found.hits if found else ()) == ((hit,) if keep == "candidates" else ())
    assert all(client.ttl(key) > 0 for key in (JobKeys("job-1").candidates, JobKeys("job-1").chunks) if found)
