"""Dense vectors from an OpenAI-compatible /v1/embeddings server. Retries live in the HTTP client, not here."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from shared.errors import RamifyError, ReplyError
from shared.providers.encoders.base import Embedded, unit_vector
from shared.providers.gates import Gate
from shared.providers.http import JsonClient, tokens_reported
from shared.providers.metering import paid, token_range
from shared.providers.time_shares import in_turn
from shared.settings import Settings
from shared.settings.server_url import with_login

ATTEMPTS = 3
#: Of a vector whose size is not known yet; Qdrant takes no more.
_MOST_NUMBERS = 65_536
#: Most bytes of a number in JSON, with all its digits and the white space around it, and of what stands around vectors.
_NUMBER_BYTES, _FRAME_BYTES = 40, 64_000


class EndpointEncoder:
    """POST {base_url}/embeddings in batches. Thread-safe."""

    def __init__(self, settings: Settings, attempts: int = ATTEMPTS) -> None:
        """`attempts`: tries of one call on transient errors."""
        self._settings = settings.embedding
        self.name = f"endpoint:{self._settings.model}"
        self._dim = self._settings.dim
        self._asking_dim = threading.Lock()
        url = with_login(self._settings.base_url)
        gate = Gate("embedding", url, settings.providers)
        self._client = JsonClient(url, self._settings.api_key, gate, attempts, attempt_s=self._settings.timeout_s)

    @property
    def dim(self) -> int:
        """Vector size: embedding.dim, or the size of a first vector asked from the server."""
        with in_turn(self._asking_dim, "the embedding server is still being asked for the size of its vectors"):
            if not self._dim:
                self._dim = len(self._embed(["dimension"]).vectors[0])
            return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        """Vectors of questions, `query_prefix` put before each.

        Raises: TransientError and PermanentError of the HTTP client; ReplyError when the reply is unusable.
        """
        return self._embed([self._settings.query_prefix + text for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages, `passage_prefix` put before each. Raises as `embed_queries`.

        They wait for a server whose breaker is open: no question waits, and a document that fails has to be ingested
        again.
        """
        return self._embed([self._settings.passage_prefix + text for text in texts], patient=True)

    def _embed(self, texts: list[str], *, patient: bool = False) -> Embedded:
        vectors: list[tuple[float, ...]] = []
        calls = tokens = 0
        size = self._settings.batch_size
        for start in range(0, len(texts), size):
            batch = texts[start : start + size]
            likely = sum(token_range(text)[1] for text in batch)
            body = {"model": self._settings.model, "input": batch, "encoding_format": "float"}
            try:
                with paid("embedding", self._settings.model, likely) as call:
                    timeout_s = self._settings.timeout_s
                    most = _FRAME_BYTES + len(batch) * (self._dim or _MOST_NUMBERS) * _NUMBER_BYTES
                    reply = self._client.post(
                        "/embeddings", body, timeout_s, call.next_try, patient=patient, most_bytes=most
                    )
                    counted = tokens_reported(reply.body, "total_tokens")
                    call.settle(counted or likely, 0)
                calls, tokens = calls + reply.calls, tokens + counted
                vectors += self._read(reply.body, len(batch))
            except RamifyError as error:  # what the batches before it cost is spent all the same
                error.calls, error.tokens = error.calls + calls, tokens
                raise
        return Embedded(vectors=tuple(vectors), calls=calls, tokens=tokens)

    def _read(self, body: dict[str, object], count: int) -> list[tuple[float, ...]]:
        rows = body.get("data")
        if not isinstance(rows, list) or len(rows) != count:
            given = f"{len(rows)} vectors" if isinstance(rows, list) else "no list of vectors"
            raise ReplyError(f"the embedding server gave {given} for {count} texts")
        placed: dict[int, list[float]] = {}
        for position, row in enumerate(rows):
            vector = row.get("embedding") if isinstance(row, dict) else None
            if not isinstance(vector, list) or not vector:
                raise ReplyError(f"the embedding server gave no list of numbers for text {position}")
            if len(vector) > _MOST_NUMBERS:
                raise ReplyError(f"the embedding server gave {len(vector):,} numbers for text {position}")
            # OpenAI gives every row its index; servers that leave it out answer in order
            index = row.get("index", position)
            placed[index if isinstance(index, int) else -1] = vector
        if sorted(placed) != list(range(count)):
            raise ReplyError(f"the embedding server's indices are not 0 to {count - 1}")
        return [
            unit_vector(placed[index], self._dim, f"the embedding model {self._settings.model}")
            for index in range(count)
        ]
