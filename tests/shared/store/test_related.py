"""What stands around hits, on both stores."""

import pytest
from qdrant_client import models

from shared.models import Filters
from shared.models.find import Anchor
from shared.store import to_filter
from workers.search.related import containing_directory, contexts


def page(name):
    return (f"path:{name}", f"title:{name.rpartition('/')[2].removesuffix('.md')}")


@pytest.fixture
def linked(store, built_with, make_point):
    """a links to b and mentions c; d and e link to a; f stands beside them; g is somewhere else."""
    store.create(built_with)
    edges = {
        "n/a.md": {"refs": ("path:n/b.md", "title:b", "path:n/nowhere.md"), "mentions": ("title:c",)},
        "n/b.md": {}, "m/c.md": {}, "n/f.md": {}, "g/g.md": {},
        "m/d.md": {"refs": ("title:a",)}, "m/e.md": {"mentions": ("title:a",)},
    }  # fmt: skip
    points = [
        make_point(f"text of {path}, {n}", path, n, path=path, title=path, defines=page(path), **fields)
        for path, fields in edges.items()
        for n in range(2)
    ]
    points += [
        make_point("two of one title", path, path=path, title=path, defines=("title:twice",))
        for path in ("t/1.md", "t/2.md")
    ]
    points += [
        make_point("all about n", "dir", path="n/", namespace="default:dirs", part="abstract"),
        make_point("long about n", "dir", 1, path="n/", namespace="default:dirs", part="overview"),
        make_point(
            "in another corpus", "x", path="n/x.md", namespace="other", defines=page("n/x.md"), refs=("title:a",)
        ),
    ]
    store.upsert(points)
    return store


def anchor(store, key, value):
    where = models.Filter(must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))])
    return Anchor(**store.lookup(where, 1)[0].model_dump(include=set(Anchor.model_fields)))


def around(store, doc_id, filters=None, most=5, excludes=()):
    one = anchor(store, "doc_id", doc_id)
    found = contexts([one], filters or Filters(), most, store, excludes).get(one.chunk_id)
    return found.abstract if found else "", [(r.how, r.title) for r in found.related] if found else []


def test_given_links_both_ways_when_asked_then_they_come_first_and_siblings_fill_up(linked):
    abstract, related = around(linked, "n/a.md")
    assert abstract == "all about n"
    assert related[:2] == [("links to", "n/b.md"), ("mentions", "m/c.md")]
    assert set(related[2:4]) == {("linked from", "m/d.md"), ("mentioned in", "m/e.md")}
    assert related[4] == ("beside", "n/f.md")


def test_given_fewer_wanted_when_asked_then_the_first_are_kept(linked):
    assert around(linked, "n/a.md", most=1)[1] == [("links to", "n/b.md")]
    assert around(linked, "n/a.md", most=0) == ("all about n", [])


def test_given_a_title_that_two_documents_share_when_linked_then_neither_is_named(linked, make_point):
    linked.upsert([make_point("see", "s", path="s/s.md", title="s", refs=("title:twice",))])
    assert around(linked, "s") == ("", [])


def test_given_a_filter_when_asked_then_nothing_outside_of_it_is_named(linked):
    assert around(linked, "n/a.md", Filters(paths=("n/",)))[1] == [("links to", "n/b.md"), ("beside", "n/f.md")]
    assert around(linked, "n/a.md", Filters(namespace="other"))[1] == [("linked from", "x")]
    assert around(linked, "n/a.md", Filters(tags=("none",))) == ("all about n", [])


def test_given_excluded_paths_when_asked_then_they_are_hidden_unless_asked_for(linked):
    assert ("mentions", "m/c.md") not in around(linked, "n/a.md", excludes=("m/",))[1]
    assert ("mentions", "m/c.md") in around(linked, "n/a.md", Filters(paths=("m/",)), excludes=("m/",))[1]


def test_given_results_beside_each_other_when_asked_then_they_are_not_named_as_siblings(linked):
    both = [anchor(linked, "doc_id", name) for name in ("n/b.md", "n/f.md")]
    found = contexts(both, Filters(), 5, linked)
    assert ("beside", "n/f.md") not in {(r.how, r.title) for r in found[both[0].chunk_id].related}


def test_given_code_when_asked_then_callers_and_callees_are_named_by_symbol(linked, make_point):
    def code(name, ordinal, refs=()):
        defines = (f"pkg.mod.{name}", f"mod.{name}", name)
        return make_point(f"def {name}", "code", ordinal, path="src/mod.py", title="mod.py", part="code",
                          symbol=f"pkg.mod.{name}", defines=defines, refs=refs)  # fmt: skip

    linked.upsert([code("merge", 0, ("pkg.mod.fold",)), code("fold", 1), code("run", 2, ("mod.merge",))])
    one = anchor(linked, "defines", "pkg.mod.merge")
    related = [(r.how, r.title) for r in contexts([one], Filters(), 5, linked)[one.chunk_id].related]
    assert related == [("calls", "pkg.mod.fold"), ("called by", "pkg.mod.run")]


def test_given_no_query_when_asked_then_matching_chunks_come_without_a_score_in_one_batch(linked):
    def asked(key, value, limit):
        only = models.FieldCondition(key=key, match=models.MatchValue(value=value))
        return models.QueryRequest(filter=models.Filter(must=[to_filter(Filters()), only]), limit=limit)

    first, second = linked.query([asked("defines", "path:n/a.md", 9), asked("path", "g/g.md", 1)])
    assert [hit.path for hit in first] == ["n/a.md", "n/a.md"]
    assert [hit.path for hit in second] == ["g/g.md"]


def test_given_paths_when_read_then_a_file_of_records_is_the_directory_of_its_records():
    assert containing_directory("notes/en/a.md") == "notes/en/"
    assert containing_directory("notes/quotes.jsonl#a/3") == "notes/quotes.jsonl/"
    assert containing_directory("a#b.md") == ""
