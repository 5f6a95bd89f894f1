"""Links in text as the keys of the pages they lead to. Code, images and hostile text count for nothing."""

from __future__ import annotations

import pytest

from shared.language.page_keys import fallbacks, links, page_keys
from workers.index.links import MAX_LINKS, links_of, refs_of

HERE = "notes/queues/redis.md"


def named(text: str, path: str = HERE) -> set[str]:
    """What the links mean at last: a title or path without its part."""
    return {(fallbacks(key) or (key,))[0].partition(":")[2] for key in links_of(text, path)}


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
    assert named(text) == {name}


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
    assert not [key for key in links_of(text, HERE) if key == "title:a" or key.startswith("path:")]


def test_given_code_that_ends_when_read_then_links_behind_it_count() -> None:
    assert named("```\nx\n```\n[[A]]\n\na ` alone [[B]]\n\n` and [[C]] ``` x ``` [[D]]") == {"a", "b", "c", "d"}


def test_given_a_file_without_a_root_folder_when_it_links_by_path_then_nothing_is_inside() -> None:
    assert links_of("[x](b.md)", "a.md") == []


def test_given_a_link_with_two_meanings_when_stored_then_the_likelier_comes_first_and_both_stay_together() -> None:
    assert refs_of("[[C# notes]] [[C]] [x](q.jsonl#7)", HERE) == (
        "title:c# notes", "title:c", "title:c", "path:notes/queues/q.jsonl#7", "path:notes/queues/q.jsonl",
    )  # fmt: skip
    assert links(refs_of("[[C# notes]] [[C]] [x](q.jsonl#7)", HERE)) == [
        ("title:c# notes", "title:c"), ("title:c",), ("path:notes/queues/q.jsonl#7", "path:notes/queues/q.jsonl"),
    ]  # fmt: skip


def test_given_links_of_code_when_read_as_links_of_pages_then_they_are_left_out() -> None:
    assert links(("pkg.mod.f", "title:a", "f")) == [("title:a",)]


@pytest.mark.parametrize(
    ("text", "path", "key"),
    [
        ("[[queues/Redis#why]]", HERE, "title:redis"),
        ("[[redis.md]]", HERE, "title:redis"),
        ("[x](rabbit.html#part)", HERE, "path:notes/queues/rabbit.md"),
        ("[x](rabbit)", HERE, "path:notes/queues/rabbit.md"),
        ("[x](../db/)", HERE, "path:notes/db/README.md"),
        ("see [x][r]\n\n[r]: ../db/a.md 'title'", HERE, "path:notes/db/a.md"),
        (":doc:`The queue <../queue>` and :doc:`other`", "docs/a/b.rst", "path:docs/queue.rst"),
        (":doc:`/async/await`", "flask-3/docs/a/b.rst", "path:flask-3/docs/async/await.rst"),
        (":doc:`The way </cli>`", "flask/docs/source/x.rst", "path:flask/docs/source/cli.rst"),
        (":doc:`/cli`", "manual/x/y.rst", "path:manual/cli.rst"),
    ],
)
def test_given_links_as_people_write_them_when_stored_then_the_page_is_among_their_meanings(
    text: str, path: str, key: str
) -> None:
    assert key in refs_of(text, path)


def test_given_a_page_when_named_then_its_title_its_file_and_its_path_are_keys() -> None:
    assert page_keys("ＡＤＲ: Queue", "notes/adr-1.md") == ("title:adr: queue", "title:adr-1", "path:notes/adr-1.md")
    assert page_keys("Redis", "notes/redis.md") == ("title:redis", "path:notes/redis.md")
    assert page_keys("", "notes/q.jsonl#7") == ("path:notes/q.jsonl#7",)


def test_given_a_page_of_links_when_stored_then_they_are_bounded() -> None:
    text = " ".join(f"[[page {n}]]" for n in range(500))
    assert len(refs_of(text, HERE)) == MAX_LINKS


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
