"""Scores by a cross-encoder in this process, through FastEmbed, by model name or from a local folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared.errors import InputError, PermanentError, RamifyError
from shared.providers.model_cache import model_cache
from shared.providers.rerankers.calibration import from_logits
from shared.providers.rerankers.call_batcher import CallBatcher
from shared.providers.rerankers.scoring import Request, fitting
from shared.settings.sections import RerankSettings

_BATCH = 8  # a run cannot be interrupted, so the deadline is checked between small ones
_RETRY_LOAD_AFTER_S = 60.0
_SPECIAL_TOKENS = 4


class _Pair(NamedTuple):
    """One run of the model: a piece of a text; `last` when the text is complete with it."""

    request: Request
    text: str
    piece: str
    last: bool


class CrossEncoderScorer:
    """A local cross-encoder; scores are its logits.

    Requests that come within `batch_ms`, or while the model is at work, go through it together, the most urgent first.
    Texts with more tokens than the model reads are cut further. The model is loaded at the first request, once per
    process; a failed load is tried again after a minute.
    """

    calibrated = staticmethod(from_logits)

    def __init__(self, settings: RerankSettings) -> None:
        self._settings = settings
        self.name = f"fastembed:{settings.model}"
        self._batcher = CallBatcher(self._run, settings.batch_ms / 1000, key=lambda _: None, one_at_a_time=True)
        self._model: Any = None
        self._failed: tuple[float, RamifyError] | None = None

    def score(self, request: Request) -> None:
        """Score every text, a few at a time.

        Raises: PermanentError (not installed, model cannot be loaded or run), TransientError (time is up).
        """
        self._batcher.score(request)

    def close(self) -> None:
        """Release the model; the next request loads it again."""
        self._model = None

    def _run(self, requests: Sequence[Request], deadline: float) -> None:
        """What is not done by `deadline` stays open. `CallBatcher` calls it from one thread at a time."""
        model = self._loaded()
        pairs = list(_pairs(model, sorted(requests, key=lambda request: request.deadline)))
        best: float | None = None
        for start in range(0, len(pairs), _BATCH):
            if time.monotonic() >= deadline:
                return
            batch = pairs[start : start + _BATCH]
            requests[0].calls += 1
            for pair, logit in zip(batch, self._logits(model, batch), strict=True):
                best = logit if best is None else max(best, logit)
                if pair.last:
                    pair.request.scores[pair.text], best = best, None

    def _logits(self, model: Any, batch: Sequence[_Pair]) -> list[float]:
        pairs = [(pair.request.query, pair.piece) for pair in batch]
        try:
            logits = [float(logit) for logit in model.rerank_pairs(pairs, batch_size=_BATCH)]
        except Exception as error:  # onnxruntime raises many types without a root of their own
            raise PermanentError(f"the model {self._settings.model} cannot be run: {error}") from error
        if len(logits) != len(batch):
            raise PermanentError(f"the model {self._settings.model} gave {len(logits)} scores for {len(batch)} texts")
        return logits

    def _loaded(self) -> Any:
        if self._model is None:
            if self._failed and time.monotonic() - self._failed[0] < _RETRY_LOAD_AFTER_S:
                raise self._failed[1]
            try:
                self._model = load_cross_encoder(self._settings.model, self._settings.path)
            except RamifyError as error:
                self._failed = (time.monotonic(), error)
                raise
        return self._model


def _pairs(model: Any, requests: Sequence[Request]) -> Iterator[_Pair]:
    for request in requests:
        for text in request.open():
            pieces = _pieces(model, request.query, text)
            for number, piece in enumerate(pieces, start=1):
                yield _Pair(request, text, piece, number == len(pieces))


def _pieces(model: Any, query: str, text: str) -> list[str]:
    """`text` in pieces that the model can read with the query. A query that takes more than half is cut by it."""
    tokenizer: Any = getattr(getattr(model, "model", None), "tokenizer", None)
    limits = getattr(tokenizer, "truncation", None)
    if not limits:
        return [text]

    def count(part: str) -> int:
        encoding = tokenizer.encode(part, add_special_tokens=False)
        return sum(len(piece.ids) for piece in (encoding, *encoding.overflowing))

    most = int(limits["max_length"])
    return fitting(text, count, max(most // 2, most - count(query)) - _SPECIAL_TOKENS)


def load_cross_encoder(model: str, path: str) -> Any:
    """FastEmbed's cross-encoder `model`, from the folder `path` if one is given (with model.onnx and tokenizer).

    Raises: InputError when `path` is no folder or holds no model; PermanentError when FastEmbed is missing or the model
    cannot be loaded.
    """
    try:
        from fastembed.common.model_description import ModelSource  # noqa: PLC0415 (an extra, and slow to import)
        from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415
    except ImportError as error:
        raise PermanentError('FastEmbed is not installed: run `pip install -e ".[fastembed]"`') from error
    if path and not Path(path).is_dir():
        raise InputError("rerank.path", path, "give the folder that holds the model's .onnx and tokenizer files")
    files = sorted(file.relative_to(path).as_posix() for file in Path(path).rglob("*.onnx")) if path else []
    if path and not files:
        raise InputError("rerank.path", path, "there is no .onnx file in it")
    try:
        if not path:
            return TextCrossEncoder(model, cache_dir=model_cache())
        known = {entry["model"].lower() for entry in TextCrossEncoder.list_supported_models()}
        if model.lower() not in known:
            file = "model.onnx" if "model.onnx" in files else files[0]
            TextCrossEncoder.add_custom_model(model, sources=ModelSource(hf=model), model_file=file)
        return TextCrossEncoder(model, cache_dir=model_cache(), specific_model_path=path)
    except Exception as error:  # hub, file and onnxruntime errors have no common root
        raise PermanentError(f"the cross-encoder {model} cannot be loaded: {error}") from error
