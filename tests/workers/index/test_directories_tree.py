"""Directories from paths: what each holds, its digest, and where the search of a kind starts. Pure."""

from __future__ import annotations

import random

import pytest

from shared.store.directories import directory_of, lineage, parent_of
from workers.index.directories.tree import Directory, DirectoryEntry, tree_of


def entry(path: str, content: str = "1", kind: str = "resource", title: str = "") -> DirectoryEntry:
    return DirectoryEntry(f"id-{path}", f"hash-{path}-{content}", path, title or path, kind)


def tree(*entries: DirectoryEntry, most: int = 32, writer: str = "extractive") -> dict[str, Directory]:
    return tree_of(entries, most, writer)


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("notes/en/a.md", "notes/en/"),
        ("a.md", "/"),
        ("notes/all.jsonl#7", "notes/all.jsonl#"),
        ("all.NDJSON#a/b#c", "all.NDJSON#"),
        ("notes/缓存/雪崩.md", "notes/缓存/"),
        ("notes/a#b.md", "notes/"),
    ],
)
def test_given_a_path_when_its_directory_is_asked_then_it_is_a_prefix_of_it(path: str, directory: str) -> None:
    assert directory_of(path) == directory
    assert directory == "/" or path.startswith(directory)


def test_given_a_directory_when_its_lineage_is_asked_then_it_ends_at_the_top() -> None:
    assert list(lineage("a/b.jsonl#")) == ["a/b.jsonl#", "a/", "/"]
    assert parent_of("/") is None


def test_given_a_path_of_a_thousand_levels_when_the_tree_is_made_then_its_depth_is_bounded() -> None:
    made = tree(entry("x/" * 1000 + "a.md"))
    assert max(directory.depth for directory in made.values()) == 32


def test_given_paths_when_the_tree_is_made_then_parents_come_after_children_and_know_them() -> None:
    made = tree(entry("n/a/1.md"), entry("n/a/2.md"), entry("n/b/c/3.md"), entry("n/all.jsonl#1"))
    assert list(made) == ["n/b/c/", "n/a/", "n/all.jsonl#", "n/b/", "n/", "/"]
    assert made["n/"].below == ["n/a/", "n/all.jsonl#", "n/b/"]
    assert (made["n/"].count, made["n/"].subdirectories, made["n/a/"].count) == (0, 3, 2)


def test_given_one_changed_document_when_digests_are_compared_then_only_its_directory_and_those_above_differ() -> None:
    paths = ["n/a/1.md", "n/a/2.md", "n/b/3.md", "m/4.md"]
    before = tree(*map(entry, paths))
    after = tree(*(entry(path, "2" if path == "n/a/2.md" else "1") for path in paths))
    assert {path for path in before if before[path].digest != after[path].digest} == {"n/a/", "n/", "/"}


def test_given_another_writer_when_digests_are_compared_then_all_differ() -> None:
    one, other = tree(entry("n/1.md")), tree(entry("n/1.md"), writer="llm:m")
    assert all(one[path].digest != other[path].digest for path in one)


def test_given_a_large_directory_when_sampled_then_the_sample_does_not_depend_on_the_order_and_keeps_the_readme() -> (
    None
):
    entries = [entry(f"n/{number}.md") for number in range(500)] + [entry("n/README.md")]
    shuffled = random.Random(1).sample(entries, len(entries))
    one, other = tree(*entries, most=8), tree(*shuffled, most=8)
    assert one["n/"].sample == other["n/"].sample
    assert one["n/"].digest == other["n/"].digest
    assert len(one["n/"].sample) == 8
    assert len(one["n/"].named) == 24
    assert one["n/"].sample[0].path == "n/README.md"
    assert one["n/"].count == 501


def test_given_a_sampled_directory_when_a_document_outside_the_sample_changes_then_nothing_is_to_do() -> None:
    entries = [entry(f"n/{number}.md") for number in range(100)]
    made = tree(*entries, most=4)
    read = {one.path for one in made["n/"].sample}
    changed = next(one for one in entries if one.path not in read)
    after = tree(*(entry(one.path, "2") if one is changed else one for one in entries), most=4)
    assert after["n/"].digest == made["n/"].digest


def test_given_kinds_when_roots_are_set_then_they_are_the_highest_directories_of_one_kind_and_the_top() -> None:
    made = tree(
        entry("n/memories/a/1.md", kind="memory"),
        entry("n/memories/2.md", kind="memory"),
        entry("n/skills/3.md", kind="skill"),
        entry("n/4.md"),
        entry("n/mixed/5.md", kind="skill"),
        entry("n/mixed/6.md"),
    )
    roots = {path: directory.roots for path, directory in made.items() if directory.roots}
    assert roots == {"n/memories/": ["memory"], "n/skills/": ["skill"], "/": ["resource", "skill"]}
    assert made["n/"].kinds == {"memory", "skill", "resource"}


def test_given_one_kind_when_roots_are_set_then_the_top_is_the_only_root() -> None:
    made = tree(entry("n/a/1.md"), entry("m/2.md"))
    assert {path: directory.roots for path, directory in made.items() if directory.roots} == {"/": ["resource"]}
