"""The endpoint's replies and the cross-encoder's loading and scoring, without a server or a model."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from shared.errors import InputError, PermanentError, ReplyError, TransientError
from shared.models import Hit
from shared.providers.rerankers import fastembed_cross
from shared.providers.rerankers.endpoint import read_scores
from shared.providers.rerankers.fastembed_cross import CrossEncoderScorer, load_cross_encoder
from shared.providers.rerankers.scoring import ScoringReranker
from shared.settings.sections import RerankSettings

SETTINGS = RerankSettings(provider="fastembed", model="some/model", batch_ms=0)


def hits(count: int) -> list[Hit]:
    return [
        Hit(chunk_id=str(i), doc_id="d", path="p", title="T", heading="H", text=f"text {i}", score=1.0)
        for i in range(count)
    ]


class FakeModel:
    def __init__(self, logits: Sequence[float]) -> None:
        self.logits, self.batches = list(logits), []

    def rerank_pairs(self, pairs: list[tuple[str, str]], batch_size: int) -> Iterator[float]:
        self.batches.append(pairs)
        for _ in pairs:
            yield self.logits.pop(0)


def cross_encoder() -> ScoringReranker:
    return ScoringReranker(CrossEncoderScorer(SETTINGS), 2000)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, '"results"'),
        ({"results": {"index": 0}}, '"results"'),
        ({"results": [{"index": 2, "relevance_score": 1}]}, "document 2 of 2"),
        ({"results": [{"index": -1, "relevance_score": 1}]}, "document -1 of 2"),
        ({"results": [{"index": True, "relevance_score": 1}]}, "document true of 2"),
        ({"results": ["x"]}, "document null of 2"),
        ({"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}, "document 0 twice"),
        ({"results": [{"index": 0, "relevance_score": math.nan}]}, "score nan"),
        ({"results": [{"index": 0, "relevance_score": "1"}]}, "score '1'"),
        ({"results": [{"index": 0}]}, "score null"),
        ({"results": [{"index": 0, "relevance_score": 10**400}]}, "score 1000"),
        ({"results": [{"index": 0, "relevance_score": -math.inf}]}, "score -inf"),
    ],
)
def test_reply_given_a_fault_then_it_is_named(body: dict[str, Any], fault: str) -> None:
    with pytest.raises(ReplyError, match="rerank server") as caught:
        read_scores(body, 2)
    assert fault in str(caught.value)


def test_reply_given_scores_in_any_order_then_they_are_read_by_index() -> None:
    body = {
        "results": [{"index": 1, "relevance_score": 0.5, "document": {"text": "x"}}, {"index": 0, "relevance_score": 1}]
    }
    assert read_scores(body, 3) == {1: 0.5, 0: 1.0}


def test_cross_encoder_given_logits_then_sigmoids_in_small_batches_on_whole_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = FakeModel([float(i) for i in range(10)])
    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: model)
    ranked = cross_encoder().rerank("q", hits(10), 5)
    assert [h.chunk_id for h in ranked.hits] == [str(i) for i in reversed(range(10))]
    assert ranked.hits[-1].score == 0.5
    assert (ranked.calls, ranked.documents) == (2, 10)
    assert model.batches[0][0] == ("q", "T\nH\ntext 0")


@pytest.mark.parametrize(("logits", "score"), [([1e9], 1.0), ([-1e9], 0.0), ([0.0], 0.5)])
def test_cross_encoder_given_extreme_logits_then_scores_stay_in_range(
    monkeypatch: pytest.MonkeyPatch, logits: list[float], score: float
) -> None:
    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: FakeModel(logits))
    assert cross_encoder().rerank("q", hits(1), 5).hits[0].score == pytest.approx(score)


class Words:
    """Stands in for a tokenizer: a token is a word."""

    truncation: ClassVar = {"max_length": 64}

    def encode(self, text: str, add_special_tokens: bool) -> SimpleNamespace:
        words = text.split()
        return SimpleNamespace(ids=words[:64], overflowing=[SimpleNamespace(ids=words[64:])])


def test_cross_encoder_given_more_tokens_than_it_reads_then_the_best_piece_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Finder:
        model = SimpleNamespace(tokenizer=Words())

        def rerank_pairs(self, pairs: list[tuple[str, str]], batch_size: int) -> Iterator[float]:
            assert all(len(piece.split()) <= 60 for _, piece in pairs)
            return (1.0 if "needle" in piece else -1.0 for _, piece in pairs)

    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: Finder())
    hay = [hit.model_copy(update={"text": "hay is dry. " * 100}) for hit in hits(3)]
    hay[2] = hay[2].model_copy(update={"text": hay[2].text + "needle"})
    ranked = cross_encoder().rerank("where is it", hay, 5)
    assert [(h.chunk_id, h.parts["rerank_raw"]) for h in ranked.hits] == [("2", 1.0), ("0", -1.0), ("1", -1.0)]


def test_cross_encoder_given_time_for_some_then_these_are_ranked_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SlowModel(FakeModel):
        def rerank_pairs(self, pairs: list[tuple[str, str]], batch_size: int) -> Iterator[float]:
            time.sleep(0.6)
            return super().rerank_pairs(pairs, batch_size)

    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: SlowModel([float(i) for i in range(20)]))
    ranked = cross_encoder().rerank("q", hits(20), 0.5)
    assert [h.chunk_id for h in ranked.hits] == [*"76543210", *map(str, range(8, 20))]
    assert "rerank" not in ranked.hits[8].parts
    assert "left out 12 of 20 documents" in ranked.warnings[0]
    assert "8 of 20 texts were scored when the time was up" in ranked.warnings[0]
    assert (ranked.calls, ranked.documents) == (1, 8)


def test_cross_encoder_given_a_failed_load_then_it_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def load(model: str, path: str) -> Any:
        tries.append(model)
        raise PermanentError("no such model")

    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", load)
    reranker = cross_encoder()
    for _ in range(3):
        with pytest.raises(PermanentError, match="no such model"):
            reranker.rerank("q", hits(1), 5)
    assert tries == ["some/model"]


def test_cross_encoder_given_no_time_left_then_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: FakeModel([]))
    with pytest.raises(TransientError, match="0 of 1 texts"):
        cross_encoder().rerank("q", hits(1), 0)


def test_cross_encoder_given_a_model_that_breaks_then_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: FakeModel([]))
    with pytest.raises(PermanentError, match="some/model cannot be run"):
        cross_encoder().rerank("q", hits(1), 5)


def test_loading_given_no_fastembed_then_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed.common.model_description", None)
    with pytest.raises(PermanentError, match=r'pip install -e "\.\[fastembed\]"'):
        load_cross_encoder("m", "")


def test_loading_given_a_bad_folder_then_the_setting_is_named(tmp_path: Path) -> None:
    pytest.importorskip("fastembed")
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError, match=r"rerank\.path"):
            load_cross_encoder("some/model", str(path))


def test_loading_given_a_broken_model_file_then_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("fastembed")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(PermanentError, match="some/broken cannot be loaded"):
        load_cross_encoder("some/broken", str(tmp_path))
