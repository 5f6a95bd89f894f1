"""Names in passages, in English and Chinese."""

from __future__ import annotations

import time

import pytest

from shared.language.names import MAX_NAME, MAX_NAMES, bare, names_of


@pytest.mark.parametrize(
    ("title", "text", "wanted"),
    [
        (
            "Jump for Glory",
            "Jump for Glory is a 1937 British film directed by Raoul Walsh and starring Douglas Fairbanks, Jr.",
            {"Jump for Glory", "British", "Raoul Walsh", "Douglas Fairbanks"},
        ),
        ("", "She studied at the University of Oxford. It was founded late.", {"University of Oxford"}),
        ("", "The film by J. R. R. Tolkien's son won.", {"J. R. R. Tolkien"}),
        ("", "He wrote “Rhapsody in Blue” there.", {"Rhapsody in Blue"}),
        ("", "Charles de Gaulle met Ludwig van Beethoven.", {"Charles de Gaulle", "Ludwig van Beethoven"}),
        ("红高粱", "《红高粱》由张艺谋执导，改编自莫言的「红高粱家族」。", {"红高粱", "红高粱家族"}),
        ("", "配置由 Redis Cluster 提供，参见“分片设计”。", {"Redis Cluster", "分片设计"}),
    ],
)
def test_given_a_passage_when_read_then_its_names_are_found(title: str, text: str, wanted: set[str]) -> None:
    assert wanted <= set(names_of(title, text))


@pytest.mark.parametrize(
    "text",
    ["The cat sat. However it left.", "Before noon they ate. While they ate, bells rang.", "no names here at all", ""],
)
def test_given_plain_sentences_when_read_then_there_are_no_names(text: str) -> None:
    assert names_of("", text) == ()


def test_given_a_word_that_stands_there_in_small_too_when_it_begins_a_sentence_then_it_is_no_name() -> None:
    assert names_of("", "Bridges lead on. He built bridges for years.") == ()


def test_given_a_title_with_a_bracket_when_read_then_the_name_goes_without_it() -> None:
    assert names_of("Log (mathematics)", "")[0] == "Log"
    assert bare("函数（数学）") == "函数"
    assert bare("(untitled)") == "(untitled)"


def test_given_a_flood_of_names_when_read_then_their_number_and_length_are_bounded_and_it_stays_quick() -> None:
    flood = " ".join(f"Name{n} Other{n}." for n in range(50_000)) + "《" * 100_000 + "A " * 100_000
    begun = time.thread_time()

    found = names_of("T" * 10_000, flood)

    assert len(found) <= MAX_NAMES
    assert all(len(name) <= MAX_NAME for name in found)
    assert time.thread_time() - begun < 5
