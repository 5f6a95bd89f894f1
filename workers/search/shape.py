"""What a fused list goes through, with or without any model (F10): source boosts; no document fills it alone (F9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shared.models import Hit


def boost_sources(hits: Sequence[Hit], boosts: Mapping[str, float]) -> list[Hit]:
    """Multiply scores by the factor of the longest path prefix that fits (F6). Ties are broken by id."""
    if not boosts:
        return list(hits)
    boosted = []
    for hit in hits:
        prefix = max((p for p in boosts if hit.path.startswith(p)), key=len, default=None)
        if prefix is not None:
            factor = boosts[prefix]
            update = {"score": hit.score * factor, "parts": {**hit.parts, "source_boost": factor}}
            boosted.append(hit.model_copy(update=update))
        else:
            boosted.append(hit)
    return sorted(boosted, key=lambda hit: (-hit.score, hit.chunk_id))


def thin_out(hits: Sequence[Hit], per_doc: int) -> list[Hit]:
    """Keep the best `per_doc` chunks of each document, and one of each identical text."""
    seen: Counter[str] = Counter()
    texts: set[str] = set()
    kept = []
    for hit in hits:
        text = " ".join(hit.text.split())
        if seen[hit.doc_id] >= per_doc or text in texts:
            continue
        seen[hit.doc_id] += 1
        texts.add(text)
        kept.append(hit)
    return kept
