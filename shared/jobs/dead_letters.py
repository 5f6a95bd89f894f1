"""Dead letters in Redis: bounded in number, with a TTL, until somebody replays or drops them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pydantic import ValidationError
from redis import Redis

from shared.connections.key_types import declare
from shared.errors import NotFoundError
from shared.jobs.codec import text
from shared.jobs.keys import PREFIX
from shared.models.status import DeadLetter
from shared.settings import Settings

#: Dead letters that are kept; beyond that the oldest go.
MOST = 10_000
_MOST_CONTENT_BYTES = 16_000_000
_PAGE = 500


class DeadKeys:
    """They share a hash tag."""

    tag = f"{PREFIX}:{{dead}}"
    dead_letters = f"{tag}:letters"  # hash: dead letter id -> dead letter as JSON
    order = f"{tag}:order"  # sorted set: dead letter id -> when
    content = f"{tag}:content:"  # + dead letter id: blob, the document that a dead letter is about


declare({DeadKeys.dead_letters: "hash", DeadKeys.order: "zset", f"{DeadKeys.content}*": "string"})


class DeadLetterStore:
    """Reads and writes dead letters; reads and drops those of one tenant only, where one is named.

    May raise redis.exceptions.RedisError.
    """

    def __init__(self, client: Redis, settings: Settings, tenant: str | None = None) -> None:
        self._client, self._ttl, self._tenant = client, settings.jobs.ttl_s, tenant

    def add(self, dead_letter: DeadLetter, content: bytes = b"") -> bool:
        """Keep a dead letter; the same id again changes nothing. `content`: what it is about, if not too large."""
        kept = bool(content) and len(content) <= _MOST_CONTENT_BYTES
        dead_letter = dead_letter.model_copy(update={"has_content": kept})
        if not self._client.hsetnx(DeadKeys.dead_letters, dead_letter.id, dead_letter.model_dump_json()):
            return False
        with self._client.pipeline(transaction=True) as pipe:
            pipe.zadd(DeadKeys.order, {dead_letter.id: dead_letter.at})
            if kept:
                pipe.set(DeadKeys.content + dead_letter.id, content, ex=self._ttl)
            pipe.expire(DeadKeys.dead_letters, self._ttl)
            pipe.expire(DeadKeys.order, self._ttl)
            pipe.execute()
        for oldest in self._client.zrange(DeadKeys.order, 0, -MOST - 1):
            self.drop(text(oldest))
        return True

    def list(self, limit: int = 100) -> Iterator[DeadLetter]:
        """The newest first. What another release wrote, or somebody by hand, is passed over."""
        return islice(self._all(), max(1, limit))

    def _all(self) -> Iterator[DeadLetter]:
        for start in range(0, MOST, _PAGE):
            ids = [text(name) for name in self._client.zrevrange(DeadKeys.order, start, start + _PAGE - 1)]
            for raw in self._client.hmget(DeadKeys.dead_letters, ids) if ids else []:
                if (dead_letter := self._own(raw)) is not None:
                    yield dead_letter
            if len(ids) < _PAGE:
                return

    def count(self) -> int:
        """How many there are."""
        if self._tenant is not None:
            return sum(1 for _ in self._all())
        return int(self._client.hlen(DeadKeys.dead_letters))

    def get(self, dead_letter_id: str) -> DeadLetter:
        """One dead letter. Raises: NotFoundError."""
        dead_letter = self._own(self._client.hget(DeadKeys.dead_letters, dead_letter_id))
        if dead_letter is None:
            fix = "there is no such dead letter, or it has expired; `ramify dead list` shows them"
            raise NotFoundError("dead letter id", dead_letter_id, fix)
        return dead_letter

    def content(self, dead_letter_id: str) -> bytes | None:
        """The document of a dead letter, if it was kept."""
        found = self._client.get(DeadKeys.content + dead_letter_id)
        return found if isinstance(found, bytes) else None

    def drop(self, dead_letter_id: str) -> bool:
        """Forget a dead letter. False when there was none."""
        if self._tenant is not None and self._own(self._client.hget(DeadKeys.dead_letters, dead_letter_id)) is None:
            return False
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hdel(DeadKeys.dead_letters, dead_letter_id)
            pipe.zrem(DeadKeys.order, dead_letter_id)
            pipe.delete(DeadKeys.content + dead_letter_id)
            dropped, _, _ = pipe.execute()
        return bool(dropped)

    def _own(self, raw: object) -> DeadLetter | None:
        """A dead letter as it is kept; None for one that cannot be read, or that is another tenant's."""
        try:
            dead_letter = DeadLetter.of_record(text(raw)) if raw is not None else None
        except ValidationError:
            return None
        return dead_letter if dead_letter and self._tenant in {None, dead_letter.tenant} else None
