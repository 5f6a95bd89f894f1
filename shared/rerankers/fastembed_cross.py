"""Rerank by a cross-encoder in this process, through FastEmbed, by model name or from a local folder (D6)."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared.errors import InputError, PermanentError, RamifyError, TransientError
from shared.models import Hit
from shared.rerankers.base import Reranked, document_text, rescored
from shared.settings.sections import Rerank

_BATCH = 8  # a run cannot be broken off, so the clock is looked at between small ones
_RETRY_LOAD_AFTER_S = 60.0
_LOGIT_BOUND = 500.0


class CrossEncoderReranker:
    """A local cross-encoder. Scores are the sigmoid of its logits, so they lie in 0..1.

    The model is loaded at the first rerank, once per process; a failed load is tried again after a minute.
    """

    def __init__(self, settings: Rerank) -> None:
        self._settings = settings
        self._loading = threading.Lock()
        self._model: Any = None
        self._failed: tuple[float, RamifyError] | None = None

    @property
    def name(self) -> str:
        """As "fastembed:MODEL"."""
        return f"fastembed:{self._settings.model}"

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """Score every hit, a few at a time.

        Raises: PermanentError (not installed, model cannot be loaded or run), TransientError (time is up).
        """
        deadline = time.monotonic() + timeout_s
        model = self._loaded(timeout_s)
        texts = [document_text(hit) for hit in hits]
        scores: list[float] = []
        calls = 0
        for start in range(0, len(texts), _BATCH):
            if time.monotonic() >= deadline:
                raise TransientError(f"{len(scores)} of {len(texts)} documents were scored when the time was up")
            batch = texts[start : start + _BATCH]
            try:
                scores.extend(_sigmoid(float(logit)) for logit in model.rerank(query, batch, batch_size=_BATCH))
            except Exception as error:  # onnxruntime raises many types without a root of their own
                raise PermanentError(f"the model {self._settings.model} cannot be run: {error}") from error
            calls += 1
        if len(scores) != len(texts):
            raise PermanentError(f"the model {self._settings.model} gave {len(scores)} scores for {len(texts)} texts")
        return Reranked(hits=rescored(hits, scores), reranker=self.name, calls=calls, documents=len(hits))

    def _loaded(self, timeout_s: float) -> Any:
        if not self._loading.acquire(timeout=timeout_s):
            raise TransientError(f"the model {self._settings.model} is still being loaded")
        try:
            if self._model is None:
                self._model = self._load_once()
            return self._model
        finally:
            self._loading.release()

    def _load_once(self) -> Any:
        if self._failed and time.monotonic() - self._failed[0] < _RETRY_LOAD_AFTER_S:
            raise self._failed[1]
        try:
            return load_cross_encoder(self._settings.model, self._settings.path)
        except RamifyError as error:
            self._failed = (time.monotonic(), error)
            raise


def load_cross_encoder(model: str, path: str) -> Any:
    """FastEmbed's cross-encoder `model`, from the folder `path` if one is given (with model.onnx and tokenizer).

    Raises: InputError when `path` is no folder or holds no model; PermanentError when FastEmbed is missing or the model
    cannot be loaded.
    """
    try:
        from fastembed.common.model_description import ModelSource  # noqa: PLC0415 (an extra, and slow to import)
        from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415
    except ImportError as error:
        raise PermanentError('FastEmbed is not installed: run `pip install "ramify[fastembed]"`') from error
    if path and not Path(path).is_dir():
        raise InputError("rerank.path", path, "give the folder that holds the model's .onnx and tokenizer files")
    file = _model_file(path) if path else ""
    try:
        if not path:
            return TextCrossEncoder(model)
        known = {entry["model"].lower() for entry in TextCrossEncoder.list_supported_models()}
        if model.lower() not in known:
            TextCrossEncoder.add_custom_model(model, sources=ModelSource(hf=model), model_file=file)
        return TextCrossEncoder(model, specific_model_path=path)
    except Exception as error:  # hub, file and onnxruntime errors have no common root
        raise PermanentError(f"the cross-encoder {model} cannot be loaded: {error}") from error


def _model_file(path: str) -> str:
    files = sorted(file.relative_to(path).as_posix() for file in Path(path).rglob("*.onnx"))
    if not files:
        raise InputError("rerank.path", path, "there is no .onnx file in it")
    return "model.onnx" if "model.onnx" in files else files[0]


def _sigmoid(logit: float) -> float:
    """NaN stays NaN, for the guard to refuse; the bound keeps exp from overflowing."""
    return logit if math.isnan(logit) else 1 / (1 + math.exp(-max(-_LOGIT_BOUND, min(_LOGIT_BOUND, logit))))
