"""Text to vectors: sparse (BM25, always) and dense (optional). Never searches and never stores."""

from __future__ import annotations

from shared.providers.encoders.base import DenseEncoder, Embedded, SparseVector
from shared.providers.encoders.sparse import Bm25Encoder
from shared.settings import Settings

__all__ = ["Bm25Encoder", "DenseEncoder", "Embedded", "SparseVector", "dense_encoder"]


def dense_encoder(settings: Settings) -> DenseEncoder | None:
    """The encoder of `[embedding]`; None for provider "none". Its packages are imported only when it is chosen.

    Raises: SettingsError or PermanentError with one sentence when it cannot be set up.
    """
    match settings.embedding.provider:
        case "fastembed":
            from shared.providers.encoders.local import FastEmbedEncoder  # noqa: PLC0415

            return FastEmbedEncoder(settings.embedding)
        case "endpoint":
            from shared.providers.encoders.endpoint import EndpointEncoder  # noqa: PLC0415

            return EndpointEncoder(settings)
        case _:
            return None
