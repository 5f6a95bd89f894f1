"""Dense vectors from a local ONNX model through FastEmbed, which is an extra and imported only when used."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import PermanentError, SettingsError
from shared.providers.encoders.base import Embedded, unit_vector
from shared.providers.model_cache import model_cache
from shared.providers.time_shares import in_turn
from shared.settings.sections import EmbeddingSettings

if TYPE_CHECKING:
    from fastembed import TextEmbedding

MODEL_FILE = "model.onnx"
#: FastEmbed keeps one table of custom models per process.
_registering = threading.Lock()


class FastEmbedEncoder:
    """A model of FastEmbed's list by name, or the folder `settings.path` under a name of your own.

    Loads on first use, in the process that uses it (an ONNX session does not survive a fork). Thread-safe.
    Dynamic int8 models give repeatable vectors only with embedding.batch_size = 1.
    """

    def __init__(self, settings: EmbeddingSettings, threads: int | None = None) -> None:
        """`threads` of one ONNX session; None = ONNX's own choice.

        Raises: SettingsError when `settings.path` holds no model.onnx; PermanentError without FastEmbed.
        """
        self.name = f"fastembed:{settings.model}"
        self._settings = settings
        self._threads = threads
        self._loading = threading.Lock()
        self._model: TextEmbedding | None = None
        self._dim = settings.dim
        _fastembed()
        if settings.path and not (Path(settings.path) / MODEL_FILE).is_file():
            raise SettingsError("embedding.path", settings.path, f"name a folder that holds {MODEL_FILE}")

    @property
    def dim(self) -> int:
        """Vector size, read from the model; embedding.dim must agree if it is set."""
        self._loaded()
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        """Vectors of questions.

        Raises: PermanentError when the model cannot be loaded or run; ReplyError when its vectors are unusable.
        """
        return self._embed([self._settings.query_prefix + text for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages. Raises as `embed_queries`."""
        return self._embed([self._settings.passage_prefix + text for text in texts])

    def _embed(self, texts: list[str]) -> Embedded:
        model = self._loaded()
        rows, size = self._rows(model, texts), self._settings.batch_size
        count = getattr(model, "token_count", None)  # not in all releases
        return Embedded(
            vectors=tuple(unit_vector(row, self._dim, self.name) for row in rows),
            calls=math.ceil(len(texts) / size),
            tokens=count(texts) if count and texts else 0,
        )

    def _rows(self, model: TextEmbedding, texts: list[str]) -> list[list[float]]:
        try:
            return [row.tolist() for row in model.embed(texts, batch_size=self._settings.batch_size)]
        except Exception as error:
            raise PermanentError(f"the model {self.name} failed: {error}") from error

    def _loaded(self) -> TextEmbedding:
        with in_turn(self._loading, f"the model {self.name} is still being loaded"):
            if self._model is None:
                model = _load(self._settings, self._threads)
                self._dim = len(unit_vector(self._rows(model, ["dimension"])[0], self._settings.dim, self.name))
                self._model = model
            return self._model


def _load(settings: EmbeddingSettings, threads: int | None) -> TextEmbedding:
    options: dict[str, Any] = {"threads": threads, "cache_dir": model_cache()}
    if settings.path:
        _register(settings.model, Path(settings.path))
        options["specific_model_path"] = settings.path
    try:
        model: TextEmbedding = _fastembed().TextEmbedding(settings.model, **options)
    except Exception as error:
        where = settings.path or "FastEmbed's model hub (offline? set embedding.path to a local folder)"
        raise PermanentError(f"the embedding model {settings.model} cannot be loaded from {where}: {error}") from error
    return model


def _register(name: str, folder: Path) -> None:
    """Make `name` known; a name of FastEmbed's own list, or one registered before, stays as it is."""
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415 - an extra

    text_embedding = _fastembed().TextEmbedding
    with _registering:
        if name.lower() in {known["model"].lower() for known in text_embedding.list_supported_models()}:
            return
        text_embedding.add_custom_model(
            name,
            pooling=PoolingType.CLS if _pools_first_token(folder) else PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=1,  # only shown in FastEmbed's list; the true one is read from a vector
            model_file=MODEL_FILE,
        )


def _pools_first_token(folder: Path) -> bool:
    """What a sentence-transformers folder says of its pooling; without that file: mean."""
    try:
        config = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and bool(config.get("pooling_mode_cls_token"))


def _fastembed() -> Any:
    try:
        import fastembed  # noqa: PLC0415 - an extra, 200 MB with onnxruntime
    except ImportError:
        raise PermanentError(
            'embedding.provider "fastembed" needs an extra package: run pip install -e ".[fastembed]"'
        ) from None
    return fastembed
