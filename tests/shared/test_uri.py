"""Addresses: there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InputError
from shared.models import Chunk, PagePart
from shared.uri import page_uri, read_target, uri_of


def chunk(path, **fields):
    return Chunk(chunk_id="c", doc_id="d", path=path, title="t", text="x", ordinal=3, **fields)


def test_given_a_chunk_when_addressed_then_namespace_path_and_ordinal_stand_in_it():
    assert uri_of(chunk("notes/a.md", namespace="work")) == "ramify://work/notes/a.md#3"
    assert uri_of(chunk("笔记/查询 优化.md")) == "ramify://default/笔记/查询%20优化.md#3"


def test_given_a_directory_when_addressed_then_it_is_of_the_corpus_and_has_no_ordinal():
    assert uri_of(chunk("notes/", namespace="work:dirs", part=PagePart.ABSTRACT)) == "ramify://work/notes/"


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_given_any_path_when_its_address_is_read_then_the_path_comes_back(path):
    assert read_target(page_uri(chunk(path))) == ("default", path)
    assert read_target(uri_of(chunk(path))) == ("default", path)
    assert not any(c.isspace() for c in uri_of(chunk(path)))


@pytest.mark.parametrize(
    ("target", "read"),
    [
        ("ramify://ns", ("ns", "")),
        ("ramify://ns/", ("ns", "")),
        ("ramify://ns/a/", ("ns", "a/")),
        ("a/b#1", (None, "a/b#1")),
    ],
)
def test_given_a_target_when_read_then_it_is_a_namespace_and_a_prefix(target, read):
    assert read_target(target) == read


@pytest.mark.parametrize(
    "target", ["", "  ", "http://x/y", "viking://resources/", "ramify://", "ramify:///a", "/etc/passwd"]
)
def test_given_no_target_of_ours_when_read_then_one_sentence_says_what_to_write(target):
    with pytest.raises(InputError, match=r"target_uri.*write ramify://NAMESPACE/FOLDER/"):
        read_target(target)
