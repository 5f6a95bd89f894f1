"""Standing questions over a real Redis and an embedded store: run, told of, never twice, of one tenant."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from orchestrator.client import Ramify
from orchestrator.local.state import make_folders, make_path_key
from orchestrator.standing.runner import StandingRunner
from orchestrator.standing.telling import Telling
from orchestrator.webhooks.endpoints import Webhooks
from orchestrator.webhooks.sender import Sender
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs.keys import StandingKeys, WebhookKeys
from shared.models.standing import NotifyBy, RunKind, StandingState
from shared.models.webhook import WebhookEvent
from shared.settings import Settings
from shared.tasks import message_faults
from shared.tasks.app import make_app
from tests.fakes.kept_answers import KeptAnswers

PUMP = "# Pump P-100\n\nThe pump P-100 delivers 40 litres a minute.\n"
NEWER = PUMP.replace("40", "55")
QUESTION = "How much does the pump P-100 deliver?"


class Standing:
    """The ops pool's looks, and the pools that run its jobs."""

    def __init__(self, kept: KeptAnswers, app: Celery, client: Ramify) -> None:
        self.kept, self.client = kept, client
        self.runner, self.telling = StandingRunner(app, kept.jobs), Telling(kept.jobs)

    def state(self, standing_id: str) -> StandingState:
        return self.client.standing.get(standing_id).state

    def look(self, times: int = 1) -> None:
        """Look, run what was begun, and look again until nothing is left to do."""
        for _ in range(times):
            self.runner.run()
            for one in self.client.standing.all():
                if (job_id := one.state.running) and not self.kept.jobs.job(job_id).terminal:  # type: ignore[union-attr]
                    self.kept.run(job_id)
        self.runner.run()
        self.telling.run()


@pytest.fixture
def app(settings: Settings) -> Iterator[Celery]:
    app = make_app(settings)
    yield app
    app.close()


def standing_of(client: redis.Redis, settings: Settings, app: Celery, **changes: Any) -> Standing:
    chosen = settings.model_copy(update={"standing": settings.standing.model_copy(update={"sample": 0.0, **changes})})
    make_folders(chosen)
    make_path_key(chosen)
    return Standing(KeptAnswers(client, chosen), app, Ramify(chosen))


@pytest.fixture
def standing(client: redis.Redis, settings: Settings, app: Celery) -> Iterator[Standing]:
    made = standing_of(client, settings, app)
    made.kept.put(pump=PUMP)
    yield made
    made.client.close()
    made.kept.close()


def test_it_is_answered_once_and_told_of_when_what_it_cites_changes(standing: Standing) -> None:
    one = standing.client.watch(QUESTION)
    standing.look()
    first = standing.state(one.id)
    assert (first.answer is not None, first.runs, first.notices) == (True, {"first": 1}, 0)
    standing.look(2)
    assert standing.state(one.id).runs == {"first": 1}, "nothing has changed"
    standing.kept.put(cats="# Cats\n\nCats sleep all day.\n")
    standing.look()
    assert standing.state(one.id).runs == {"first": 1}
    standing.kept.put(pump=NEWER)
    standing.look()
    state = standing.state(one.id)
    assert (state.runs, state.notices, state.changes) == ({"first": 1, "refresh": 1}, 1, 2)
    (notice,) = standing.client.standing.notices(one.id)
    assert ("55" in notice.new[0].text, "40" in notice.gone[0].text, notice.kind) == (True, True, RunKind.REFRESH)
    assert (notice.before, notice.job_id) == (first.answer, state.answer)
    assert standing.kept.jobs.client.zrange(WebhookKeys.ended, 0, -1) is not None


def test_a_change_that_leaves_the_cited_facts_takes_no_job(standing: Standing) -> None:
    one = standing.client.watch(QUESTION)
    standing.look()
    standing.kept.put(pump=f"---\ntags: [x]\ntitle: Pumps\n---\n\n{PUMP}")
    standing.look()
    state = standing.state(one.id)
    assert (state.runs, state.notices, state.changes) == ({"first": 1}, 0, 1)
    assert standing.kept.stale_by(state.answer or "") == {"pump": "changed"}
    standing.kept.put(pump=NEWER)
    standing.look()
    assert standing.state(one.id).notices == 1
    assert standing.kept.jobs.client.hlen(StandingKeys.previews) == 0, "a newer answer stands in its place"


@pytest.mark.parametrize(
    ("question", "film", "director", "told"),
    [
        (
            "Where was the director of The Quiet Harbour born?",
            "# The Quiet Harbour\n\nThe Quiet Harbour is a film of 1951, directed by Ann Marsh.\n",
            "# Ann Marsh\n\nAnn Marsh was born in Hull and lived in Leeds.\n",
            "Hull",
        ),
        (
            "《静港》的导演出生在哪里？",
            "# 静港\n\n《静港》是1951年的电影，由安玛传执导。\n",
            "# 安玛传\n\n安玛传出生于赫尔，后来住在利兹。\n",
            "赫尔",
        ),
    ],
)
def test_a_passage_that_only_a_name_leads_to_is_told_of(
    standing: Standing, question: str, film: str, director: str, told: str
) -> None:
    standing.kept.put(film=film)
    one = standing.client.watch(question)
    standing.look()
    standing.kept.put(director=director, cats="# Cats\n\nCats sleep all day.\n")
    standing.look()
    (notice,) = standing.client.standing.notices(one.id)
    assert any(told in fact.text for fact in notice.new)
    assert standing.state(one.id).runs == {"first": 1, "refresh": 1}


def test_what_the_rule_misses_is_measured_by_samples(client: redis.Redis, settings: Settings, app: Celery) -> None:
    made = standing_of(client, settings, app, sample=1.0, ranks=1)
    made.kept.put(pump=PUMP)
    one = made.client.watch(QUESTION)
    made.look()
    made.kept.put(cats="# Cats\n\nCats sleep all day.\n")
    made.look()
    assert (made.state(one.id).samples, made.state(one.id).missed) == (1, 0)
    made.kept.put(second="# Pump P-100 again\n\nAbout the pump: it delivers water.\n")
    made.kept.stale.note_preview(made.state(one.id).answer or "", differs=False)
    made.look()
    found = made.client.standing.get(one.id)
    assert (found.state.runs["sample"], found.state.missed, found.miss_rate, found.state.notices) == (2, 1, 0.5, 1)


def test_a_kill_between_a_submission_and_its_note_makes_no_second_job(standing: Standing) -> None:
    one = standing.client.watch(QUESTION)
    before = standing.state(one.id)
    standing.runner.run()
    begun = standing.state(one.id).running
    standing.client.standing.save(one.id, before)  # as if the worker had died before it kept this
    standing.runner.run()
    assert standing.state(one.id).running == begun
    standing.look()
    answered = standing.state(one.id)
    standing.kept.put(pump=NEWER)
    standing.runner.run()
    refreshed = standing.state(one.id).running
    standing.client.standing.save(one.id, answered)
    standing.runner.run()
    assert standing.state(one.id).running is None, "its answer is refreshed: that is waited for"
    standing.kept.run(refreshed or "")
    standing.look()
    assert (standing.state(one.id).answer, standing.state(one.id).notices) == (refreshed, 1)


def test_only_one_worker_looks_at_a_time(standing: Standing) -> None:
    standing.client.watch(QUESTION)
    standing.kept.jobs.client.set(StandingKeys.lock, "another", px=5000)
    standing.runner.run()
    assert standing.client.standing.all()[0].state.running is None


def test_a_tenants_hour_and_the_jobs_under_way_are_bounded_and_tenants_take_turns(
    client: redis.Redis, settings: Settings, app: Celery
) -> None:
    made = standing_of(client, settings, app, at_once=2, jobs_per_hour=2)
    for n in range(3):
        made.client.watch(f"{QUESTION} {n}")
    other = made.client.watch(QUESTION, tenant="acme")
    made.runner.run()
    running = [one.question.tenant for one in made.client.standing.all() if one.state.running]
    assert sorted(running) == ["acme", "default"]
    waiting = [one.state.waits_for for one in made.client.standing.all() if not one.state.running]
    assert all("standing.at_once" in one for one in waiting)
    made.look(4)
    states = [one.state for one in made.client.standing.all() if one.question.tenant == "default"]
    assert sum(state.answer is not None for state in states) == 2
    assert "standing.jobs_per_hour" in states[-1].waits_for
    assert made.state(other.id).answer


def test_by_the_clock_it_is_asked_anew(standing: Standing) -> None:
    one = standing.client.watch(QUESTION, every_s=3600.0)
    standing.look()
    standing.look()
    assert standing.state(one.id).runs == {"first": 1}
    due = standing.state(one.id).model_copy(update={"next_at": 1.0})
    standing.client.standing.save(one.id, due)
    standing.look()
    assert standing.state(one.id).runs == {"first": 1, "full": 1}
    assert (standing.state(one.id).next_at or 0) > 1e9


def test_a_job_that_fails_is_tried_again_later(standing: Standing) -> None:
    one = standing.client.watch(QUESTION)
    standing.runner.run()
    standing.client.cancel(standing.state(one.id).running or "")
    standing.runner.run()
    state = standing.state(one.id)
    assert (state.failed, state.running, "cancelled" in state.error) == (1, None, True)
    standing.runner.run()
    assert standing.state(one.id).running is None


def test_notices_go_to_a_file_of_the_user_and_to_programs_without_a_shell(
    client: redis.Redis, settings: Settings, app: Celery, tmp_path: Path
) -> None:
    out, given = tmp_path / "notices.jsonl", tmp_path / "given"
    code = f"import sys; open({str(given)!r}, 'w').write(sys.argv[1] + sys.stdin.read())"
    made = standing_of(client, settings, app, commands={"told": (sys.executable, "-c", code, "$(id);*")})
    made.kept.put(pump=PUMP)
    made.client.watch(QUESTION, notify={"by": NotifyBy.FILE, "target": str(out)})
    made.client.watch(QUESTION, notify={"by": NotifyBy.COMMAND, "target": "told"})
    made.look()
    made.kept.put(pump=NEWER)
    made.look()
    made.telling.run()
    (line,) = out.read_text().splitlines()
    assert "55" in json.loads(line)["new"][0]["text"]
    assert given.read_text().startswith('$(id);*{"id":"sq_')
    assert client.llen(StandingKeys.to_tell) == 0


def test_a_file_that_somebody_wrote_into_redis_is_not_opened(standing: Standing, tmp_path: Path) -> None:
    one = standing.client.watch(QUESTION, notify={"by": "file", "target": str(tmp_path / "mine")})
    raw = json.loads(standing.kept.jobs.client.hget(StandingKeys.questions, one.id))
    raw["notify"]["target"] = str(tmp_path / "theirs")
    standing.kept.jobs.client.hset(StandingKeys.questions, one.id, json.dumps(raw))
    standing.look()
    standing.kept.put(pump=NEWER)
    standing.look()
    for _ in range(4):
        standing.telling.run()
    assert list(tmp_path.glob("theirs")) == []
    assert standing.kept.jobs.client.llen(StandingKeys.to_tell) == 0, "it is given up"


def test_what_cannot_be_kept_is_refused(standing: Standing) -> None:
    for notify in ({"by": "command", "target": "unknown"}, {"by": "webhook", "target": "ftp://x"}, {"by": "mail"}):
        with pytest.raises(InputError):
            standing.client.watch(QUESTION, notify=notify)
    for every_s in (1.0, 1e9):
        with pytest.raises(InputError):
            standing.client.watch(QUESTION, every_s=every_s)
    few = standing.client.settings.standing.model_copy(update={"most_questions": 1})
    standing.client.settings = standing.client.settings.model_copy(update={"standing": few})
    standing.client.watch(QUESTION)
    with pytest.raises(RamifyError, match="has 1 standing questions"):
        standing.client.watch(QUESTION)


def test_another_tenants_question_is_like_none(standing: Standing, settings: Settings) -> None:
    own = standing.client.watch(QUESTION, tenant="acme")
    with Ramify(settings, tenant="other") as other:
        assert other.standing.all() == []
        for call in (other.standing.get, other.standing.notices, other.standing.remove):
            with pytest.raises(NotFoundError):
                call(own.id)
    with Ramify(settings, tenant="acme") as acme:
        assert acme.standing.remove(own.id).question.id == own.id
        assert acme.standing.all() == []


def test_every_key_expires(standing: Standing) -> None:
    standing.client.watch(QUESTION)
    standing.look()
    standing.kept.put(pump=NEWER)
    standing.look()
    client = standing.kept.jobs.client
    keys = [key for key in client.keys("ramify:{standing}*") if client.ttl(key) < 0]
    assert keys == []


def test_a_notice_is_sent_to_the_url_of_its_question_and_to_endpoints_that_want_it(
    standing: Standing, settings: Settings
) -> None:
    client = standing.kept.jobs.client
    hooks = Webhooks(client, settings, "default")
    hooks.new_secret()
    endpoint = hooks.add("https://example.org/all", ["standing.notice"]).endpoint
    standing.client.watch(QUESTION, notify={"by": "webhook", "target": "https://example.org/one"})
    standing.look()
    client.delete(WebhookKeys.ended)
    standing.kept.put(pump=NEWER)
    standing.look()
    (entry,) = [one.decode() for one in client.zrange(WebhookKeys.ended, 0, -1) if one.startswith(b"notice:")]
    Sender(standing.kept.jobs)._make(entry)
    found = hooks.deliveries()
    assert {one.url for one in found} == {"https://example.org/one", "https://example.org/all"}
    assert {one.event for one in found} == {WebhookEvent.NOTICE}
    assert endpoint.id in {one.endpoint for one in found}
    body = json.loads(client.hget(WebhookKeys.delivery + found[0].id, "body"))
    assert (body["data"]["standing_id"], body["data"]["new"]) == (found[0].subject.partition(" ")[0], 1)
    assert not {"question", "text", "seal"} & set(json.dumps(body["data"]).split('"'))


def test_what_ended_behind_a_check_is_asked_for_with_a_message_that_the_index_pool_takes(standing: Standing) -> None:
    client = standing.kept.jobs.client
    walked = standing.kept.begin(QUESTION)
    standing.kept.put(pump=NEWER)
    standing.runner.run()
    assert client.llen("index") == 0, "it is under way"
    standing.kept.end(walked)
    standing.runner._rechecked_at = -1e9
    standing.runner.run()
    message, fault = message_faults.read_message(client.rpop("index"))
    body = base64.b64decode(message["body"])
    assert (fault, message["headers"]["task"]) == ("", "index.check")
    assert (json.loads(body)[0], message_faults.read_task(message["headers"], body)[1]) == ([{"tenant": "default"}], "")
