"""Links in text, and who is linked to by how many. Code, images and hostile text count for nothing."""

from __future__ import annotations

import pytest

from shared.models import Chunk
from workers.index.links import Key, link_counts, links_of

HERE = "notes/queues/redis.md"


def chunk(name: str, text: str = "", n: int = 0, **more: str) -> Chunk:
    given = {"path": f"notes/{name}.md", "title": name, **more}
    return Chunk.model_validate({"chunk_id": f"{name}{n}", "doc_id": name, "text": text, "ordinal": n, **given})


def likeliest(text: str, path: str = HERE) -> set[str]:
    return {link[-1].name for link in links_of(text, path)}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("see [[The Outbox]].", "the outbox"),
        ("[[The  Outbox|shown]]", "the outbox"),
        ("[[The Outbox#Why]]", "the outbox"),
        ("| [[The Outbox\\|shown]] |", "the outbox"),
        ("[[ＡＤＲ：缓存雪崩]]", "adr:缓存雪崩"),
        ("- ![[The Outbox]]", "the outbox"),
        ("[x](rabbit.md)", "notes/queues/rabbit.md"),
        ("[x](../db/a.md#part 'title')", "notes/db/a.md"),
        ("[x](<../db/a b.md>)", "notes/db/a b.md"),
        ("[a [b] c](../%E7%BC%93%E5%AD%98/a%20b_(c).md)", "notes/缓存/a b_(c).md"),
        ("[`x`](rabbit.md)", "notes/queues/rabbit.md"),
        ("[![badge](x.png)](rabbit.md)", "notes/queues/rabbit.md"),
    ],
)
def test_given_a_link_when_read_then_its_target_is_found(text: str, name: str) -> None:
    assert likeliest(text) == {name}


@pytest.mark.parametrize(
    "text",
    [
        "[[]] [[#part]] [[a\nb]] [a](#part) [a](/etc/a.md) [a]() [a](b c.md",
        "[a](http://x/a.md) [a](HTTPS://x/a.md) [a](mailto:a@b.md) [a](//x/a.md)",
        "[a](../../a.md) [a](../../../etc/passwd) [a](../../notes2/a.md)",
        "![a](b.md)",
        "```\n[[A]]\n```",
        "- ~~~ text\n  [[A]]\n  ```\n  [a](b.md)\n  ~~~",
        "1. ````\n   ```\n   [[A]]\n   ````",
        "> ```\n> [[A]]\n> ```",
        "`[[A]]` and ``[a](b.md) ` [[A]]`` and `x\n[[A]]`",
        "[[A `b` C]]".replace("A", "`[[A]]`"),
    ],
)
def test_given_code_images_and_outer_addresses_when_read_then_there_is_no_link(text: str) -> None:
    known = {Key("title", "a"), Key("path", "notes/queues/b.md"), Key("path", "notes/queues/b c.md")}
    assert not {key for link in links_of(text, HERE) for key in link if key in known or key.kind == "path"}


def test_given_code_that_ends_when_read_then_links_behind_it_count() -> None:
    assert likeliest("```\nx\n```\n[[A]]\n\na ` alone [[B]]\n\n` and [[C]] ``` x ``` [[D]]") == {"a", "b", "c", "d"}


def test_given_a_file_without_a_root_folder_when_it_links_by_path_then_nothing_is_inside() -> None:
    assert links_of("[x](b.md)", "a.md") == set()


def test_given_links_when_counted_then_every_other_document_counts_once() -> None:
    counts = link_counts([
        chunk("a", "[[B]] [[b|again]] [x](b.md)"),
        chunk("a", "[[b]]", n=1),
        chunk("c", "[[b#part]] [[nowhere]]"),
        chunk("b", "[[B]] [x](b.md) [[a]]"),
        chunk("d", "[[b]]", namespace="team"),
    ])  # fmt: skip
    assert counts == {"a": 1, "b": 2, "c": 0, "d": 0}


def test_given_a_name_that_several_documents_share_when_counted_then_none_gets_it() -> None:
    twins = [chunk("a", title="Twin"), chunk("b", title="ＴＷＩＮ"), chunk("c", "[[twin]] [x](a.md)")]
    assert link_counts(twins) == {"a": 1, "b": 0, "c": 0}


def test_given_a_title_with_a_hash_when_linked_then_the_whole_title_comes_first() -> None:
    sharp = [chunk("c", title="C# notes"), chunk("d", title="C"), chunk("e", "[[C# notes]] [[C#part]]")]
    assert link_counts(sharp) == {"c": 1, "d": 1, "e": 0}
    lines = [chunk("j", path="notes/q.jsonl#7"), chunk("k", "[x](q.jsonl#7)")]
    assert link_counts(lines) == {"j": 1, "k": 0}


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "[[",
        "]",
        "](",
        "](a(",
        "![",
        "![](",
        "[[a|",
        "`",
        "` `` ",
        "- ",
        "1. ",
        "(",
        "[[a\u0301\u0323",
        "](<",
        "](  ",
    ],
)
def test_given_hostile_text_when_read_then_it_takes_no_more_than_reading(unit: str) -> None:
    many = unit * (200_000 // len(unit))
    for text in (many, f"[[{many}", f"]({many}", f"```\n{many}"):
        assert len(links_of(text, HERE)) <= 2
