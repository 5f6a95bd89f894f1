"""Caches with single flight in Redis: embeddings, rewrites, reranks and leaves are computed once (G5)."""

from shared.cache.cache import LEAF, Cache
from shared.cache.outcome import CacheStats, How, Outcome

__all__ = ["LEAF", "Cache", "CacheStats", "How", "Outcome"]
