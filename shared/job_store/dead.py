"""Where dead letters are kept (A5, G10): bounded, with a TTL, until somebody replays or drops them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from redis import Redis

from shared.errors import NotFoundError
from shared.job_store.codec import text
from shared.job_store.keys import PREFIX
from shared.models.dead import DeadLetter
from shared.settings import Settings

#: Letters that are kept; beyond that the oldest go.
MOST = 10_000
_MOST_CONTENT_BYTES = 16_000_000


class DeadKeys:
    """They share a hash tag."""

    tag = f"{PREFIX}:{{dead}}"
    letters = f"{tag}:letters"  # hash: letter id -> letter as JSON
    order = f"{tag}:order"  # sorted set: letter id -> when
    content = f"{tag}:content:"  # + letter id: blob, the document that a letter is about


class DeadLetters:
    """Reads and writes letters. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._ttl = client, settings.jobs.ttl_s

    def add(self, letter: DeadLetter, content: bytes = b"") -> bool:
        """Keep a letter; the same id again changes nothing. `content`: what it is about, if not too large."""
        kept = bool(content) and len(content) <= _MOST_CONTENT_BYTES
        letter = letter.model_copy(update={"has_content": kept})
        if not self._client.hsetnx(DeadKeys.letters, letter.id, letter.model_dump_json()):
            return False
        with self._client.pipeline(transaction=True) as pipe:
            pipe.zadd(DeadKeys.order, {letter.id: letter.at})
            if kept:
                pipe.set(DeadKeys.content + letter.id, content, ex=self._ttl)
            pipe.expire(DeadKeys.letters, self._ttl)
            pipe.expire(DeadKeys.order, self._ttl)
            pipe.execute()
        self._trim()
        return True

    def _trim(self) -> None:
        old = [text(name) for name in self._client.zrange(DeadKeys.order, 0, -MOST - 1)]
        for letter_id in old:
            self.drop(letter_id)

    def list(self, limit: int = 100) -> Iterator[DeadLetter]:
        """The newest first. What another release wrote, or somebody by hand, is passed over."""
        ids = [text(name) for name in self._client.zrevrange(DeadKeys.order, 0, max(0, limit - 1))]
        for raw in self._client.hmget(DeadKeys.letters, ids) if ids else []:
            letter = _read(raw)
            if letter is not None:
                yield letter

    def count(self) -> int:
        """How many there are."""
        return int(self._client.hlen(DeadKeys.letters))

    def get(self, letter_id: str) -> DeadLetter:
        """One letter. Raises: NotFoundError."""
        letter = _read(self._client.hget(DeadKeys.letters, letter_id))
        if letter is None:
            fix = "there is no such dead letter, or it has expired; `ramify dead list` shows them"
            raise NotFoundError("letter id", letter_id, fix)
        return letter

    def content(self, letter_id: str) -> bytes | None:
        """The document of a letter, if it was kept."""
        found = self._client.get(DeadKeys.content + letter_id)
        return found if isinstance(found, bytes) else None

    def drop(self, letter_id: str) -> bool:
        """Forget a letter. False when there was none."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hdel(DeadKeys.letters, letter_id)
            pipe.zrem(DeadKeys.order, letter_id)
            pipe.delete(DeadKeys.content + letter_id)
            dropped, _, _ = pipe.execute()
        return bool(dropped)


def _read(raw: object) -> DeadLetter | None:
    try:
        return DeadLetter.model_validate_json(text(raw)) if raw is not None else None
    except ValidationError:
        return None
