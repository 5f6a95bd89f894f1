"""Questions to vectors, each text once for all jobs and workers."""

from __future__ import annotations

from shared.cache import Cache
from shared.encoders.base import DenseEncoder, Embedded

_WAIT_S = 30.0


def embed_queries(encoder: DenseEncoder, cache: Cache | None, texts: list[str], tenant: str) -> Embedded:
    """Vectors in order; calls and tokens are those that were really spent now. Raises: what the encoder raises."""
    if cache is None:
        return encoder.embed_queries(texts)
    spent: list[Embedded] = []

    def compute(missing: list[int]) -> list[Embedded]:
        found = encoder.embed_queries([texts[place] for place in missing])
        spent.append(found)
        return [Embedded(vectors=(vector,)) for vector in found.vectors]

    keys = [{"tenant": tenant, "text": text, "model": encoder.name, "side": "query"} for text in texts]
    entries = cache.get_or_compute_many("embedding", keys, Embedded, compute, wait_s=_WAIT_S)
    return Embedded(
        vectors=tuple(entry.vectors[0] for entry, _ in entries),
        calls=sum(found.calls for found in spent),
        tokens=sum(found.tokens for found in spent),
    )
