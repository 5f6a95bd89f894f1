"""Standing questions in Redis: added, listed, explained, removed; their states and notices."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from redis import Redis

from orchestrator.webhooks.endpoints import Webhooks
from shared.connections.clock import ServerClock
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs.codec import compressed_bytes, decompressed, text
from shared.jobs.keys import StandingKeys, WebhookKeys
from shared.models import JobRequest, Lane
from shared.models.base import Model
from shared.models.standing import CitedFact, Notice, Notify, NotifyBy, StandingQuestion, StandingState, StandingStatus
from shared.settings import Settings
from shared.settings.faults import request_fault
from shared.settings.path_key import is_sealed, path_key, seal

M = TypeVar("M", bound=Model)
#: Seconds that questions are kept after the ops pool has looked at them last.
KEPT_S = 90 * 86_400
_NOTICES = 100
_ID_BYTES = 6
_NO_KEY = "it is written by the ops pool: name one as the user who started the stack, on its machine"


class _Facts(Model):
    facts: tuple[CitedFact, ...] = ()


class StandingQuestions:
    """Those of `tenant`; None: of all. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, tenant: str | None = None) -> None:
        self._client, self._settings, self._tenant = client, settings, tenant
        self._clock = ServerClock(client)

    def add(
        self, request: JobRequest, *, every_s: float | None = None, notify: Notify | Mapping[str, Any] | None = None
    ) -> StandingQuestion:
        """Keep a question. Raises: InputError."""
        own = sum(one.tenant == request.tenant for one in self._all().values())
        if own >= (most := self._settings.standing.most_questions):
            raise RamifyError(f"tenant {request.tenant} has {most} standing questions: `ramify watch remove` some")
        if request.ingest is not None:
            raise InputError("question", request.question, "it is an ingest: keep a question")
        asked = request.model_copy(update={"lane": Lane.BATCH, "idempotency_key": None, "webhook": None})
        try:
            question = StandingQuestion.model_validate(
                {
                    "id": f"sq_{secrets.token_hex(_ID_BYTES)}",
                    "request": asked,
                    "every_s": every_s,
                    "notify": None if notify is None else Notify.model_validate(dict(notify)),
                    "created_at": self._clock.now(),
                }
            )
        except ValidationError as error:
            raise request_fault(error) from None
        question = question.model_copy(update={"notify": self._checked(question)})
        self._client.hset(StandingKeys.questions, question.id, question.model_dump_json())
        self.keep_alive()
        return _shown(question)

    def _checked(self, question: StandingQuestion) -> Notify | None:
        """How it is told of, with the seal of a file. Raises: InputError."""
        notify = question.notify
        if notify is None:
            return None
        if notify.by is NotifyBy.WEBHOOK:
            Webhooks(self._client, self._settings, question.tenant).check_named(notify.target)
        elif notify.by is NotifyBy.COMMAND and notify.target not in self._settings.standing.commands:
            known = ", ".join(sorted(self._settings.standing.commands)) or "there is none yet"
            fix = f"name a command of the setting standing.commands ({known})"
            raise InputError("notify", notify.target, fix)
        elif notify.by is NotifyBy.FILE:
            if (key := path_key(self._settings)) is None:
                raise InputError("notify", notify.target, _NO_KEY)
            target = str(Path(notify.target).absolute())
            return notify.model_copy(update={"target": target, "seal": seal(key, *_sealed(question.id, target))})
        return notify

    def kept(self, standing_id: str) -> StandingQuestion | None:
        """A question as it is kept, with the seal of a file; None for one that was removed."""
        return _read(StandingQuestion, self._client.hget(StandingKeys.questions, standing_id))

    def may_write(self, question: StandingQuestion) -> bool:
        """Whether the file of its notices was named by somebody who may read the stack's data folder."""
        notify = question.notify
        return notify is not None and is_sealed(
            path_key(self._settings), notify.seal, *_sealed(question.id, notify.target)
        )

    def all(self) -> list[StandingStatus]:
        """All of them, the oldest first."""
        states = self.states()
        found = sorted(self._all().values(), key=lambda one: (one.created_at, one.id))
        own = (one for one in found if self._tenant in {None, one.tenant})
        return [_status(one, states.get(one.id, StandingState())) for one in own]

    def get(self, standing_id: str) -> StandingStatus:
        """One of them. Raises: NotFoundError."""
        question = self.kept(standing_id)
        if question is None or self._tenant not in {None, question.tenant}:
            raise NotFoundError("standing question", standing_id, "there is none of that id: `ramify watch list`")
        state = _read(StandingState, self._client.hget(StandingKeys.states, standing_id))
        return _status(question, state or StandingState())

    def remove(self, standing_id: str) -> StandingStatus:
        """Forget it; a job of it that is under way goes on. Raises: NotFoundError."""
        found = self.get(standing_id)
        with self._client.pipeline(transaction=True) as pipe:
            for key in (StandingKeys.questions, StandingKeys.states, StandingKeys.facts):
                pipe.hdel(key, standing_id)
            pipe.delete(StandingKeys.notices(standing_id))
            pipe.execute()
        return found

    def notices(self, standing_id: str, limit: int = _NOTICES) -> list[Notice]:
        """Its notices, the newest first. Raises: NotFoundError."""
        self.get(standing_id)
        rows: Any = self._client.lrange(StandingKeys.notices(standing_id), 0, limit - 1)
        return [notice for row in rows if (notice := _read(Notice, row)) is not None]

    def states(self) -> dict[str, StandingState]:
        """By id of the question."""
        rows = self._client.hgetall(StandingKeys.states).items()
        return {text(one): state for one, raw in rows if (state := _read(StandingState, raw)) is not None}

    def save(self, standing_id: str, state: StandingState) -> None:
        """Keep how far a question is, unless it was removed meanwhile."""
        if self._client.hexists(StandingKeys.questions, standing_id):
            self._client.hset(StandingKeys.states, standing_id, state.model_dump_json(exclude_defaults=True))

    def save_answer(
        self, standing_id: str, state: StandingState, facts: Iterable[CitedFact], notice: Notice | None
    ) -> None:
        """Keep what a job has found out, in one step, with the notice that is to be given of it."""
        blob = compressed_bytes(_Facts(facts=tuple(facts)).model_dump_json().encode())
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(StandingKeys.states, standing_id, state.model_dump_json(exclude_defaults=True))
            pipe.hset(StandingKeys.facts, standing_id, blob)
            if notice is not None:
                pipe.lpush(StandingKeys.notices(standing_id), notice.model_dump_json())
                pipe.ltrim(StandingKeys.notices(standing_id), 0, _NOTICES - 1)
                pipe.rpush(StandingKeys.to_tell, notice.model_dump_json())
                pipe.zadd(WebhookKeys.ended, {f"notice:{notice.id}": notice.at})
                pipe.expire(WebhookKeys.ended, self._settings.jobs.ttl_s)
            pipe.execute()
        self.keep_alive()

    def facts(self, standing_id: str) -> tuple[CitedFact, ...]:
        """What its answer cited; none where that is not known."""
        blob = self._client.hget(StandingKeys.facts, standing_id)
        try:
            return () if blob is None else _Facts.of_record(decompressed(blob, _Facts)).facts
        except (ValueError, TypeError):
            return ()

    def keep_alive(self) -> None:
        """Renew the time that everything of standing questions is kept for."""
        keys = [StandingKeys.questions, StandingKeys.states, StandingKeys.facts, StandingKeys.to_tell]
        with self._client.pipeline(transaction=False) as pipe:
            for key in (*keys, *map(StandingKeys.notices, self._all())):
                pipe.expire(key, KEPT_S)
            pipe.execute()

    def _all(self) -> dict[str, StandingQuestion]:
        rows = self._client.hgetall(StandingKeys.questions).items()
        return {text(one): found for one, raw in rows if (found := _read(StandingQuestion, raw)) is not None}


def _sealed(standing_id: str, target: str) -> tuple[bytes, ...]:
    return b"notices", standing_id.encode(), target.encode()


def _status(question: StandingQuestion, state: StandingState) -> StandingStatus:
    return StandingStatus(question=_shown(question), state=state, miss_rate=state.miss_rate)


def _shown(question: StandingQuestion) -> StandingQuestion:
    """Without the seal, which is for the ops pool alone."""
    notify = question.notify and question.notify.model_copy(update={"seal": ""})
    return question.model_copy(update={"notify": notify})


def _read(kind: type[M], raw: object) -> M | None:
    """None for what is not there, and what cannot be read."""
    try:
        return kind.of_record(raw) if isinstance(raw, bytes | str) else None
    except ValidationError:
        return None
