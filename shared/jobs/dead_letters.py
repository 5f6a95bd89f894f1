"""Dead letters in Redis: bounded in number, with a TTL, until somebody replays or drops them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from redis import Redis

from shared.errors import NotFoundError
from shared.jobs.codec import text
from shared.jobs.keys import PREFIX
from shared.models.status import DeadLetter
from shared.settings import Settings

#: Dead letters that are kept; beyond that the oldest go.
MOST = 10_000
_MOST_CONTENT_BYTES = 16_000_000


class DeadKeys:
    """They share a hash tag."""

    tag = f"{PREFIX}:{{dead}}"
    dead_letters = f"{tag}:letters"  # hash: dead letter id -> dead letter as JSON
    order = f"{tag}:order"  # sorted set: dead letter id -> when
    content = f"{tag}:content:"  # + dead letter id: blob, the document that a dead letter is about


class DeadLetterStore:
    """Reads and writes dead letters. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._ttl = client, settings.jobs.ttl_s

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
        ids = [text(name) for name in self._client.zrevrange(DeadKeys.order, 0, max(0, limit - 1))]
        for raw in self._client.hmget(DeadKeys.dead_letters, ids) if ids else []:
            if (dead_letter := _read(raw)) is not None:
                yield dead_letter

    def count(self) -> int:
        """How many there are."""
        return int(self._client.hlen(DeadKeys.dead_letters))

    def get(self, dead_letter_id: str) -> DeadLetter:
        """One dead letter. Raises: NotFoundError."""
        dead_letter = _read(self._client.hget(DeadKeys.dead_letters, dead_letter_id))
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
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hdel(DeadKeys.dead_letters, dead_letter_id)
            pipe.zrem(DeadKeys.order, dead_letter_id)
            pipe.delete(DeadKeys.content + dead_letter_id)
            dropped, _, _ = pipe.execute()
        return bool(dropped)


def _read(raw: object) -> DeadLetter | None:
    try:
        return DeadLetter.model_validate_json(text(raw)) if raw is not None else None
    except ValidationError:
        return None
