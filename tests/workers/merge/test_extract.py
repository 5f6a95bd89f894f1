"""The extractive summary: verbatim, cited, short, in both languages; and what is shown of untrusted text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.models import Facet, MergedHit, MergedPool, Node, NodeKind, Source
from workers.display import plain_line, safe
from workers.merge.extract import MAX_SENTENCES, extract
from workers.merge.support import best_quote

CITED = re.compile(r"\[(\d+)\]$")


def hit(number: int, text: str, *node_ids: str, title: str = "Notes", score: float = 0.9) -> MergedHit:
    sources = tuple(Source(node_id=one, facet="how", rank=number, score=score) for one in node_ids or ("0.1",))
    return MergedHit(
        chunk_id=f"c{number}", doc_id="d", path=f"n{number}.md", title=title, text=text, score=score, sources=sources
    )


def pool(*hits: MergedHit, reranked_by: str = "lexical:v1") -> MergedPool:
    per_leaf: dict[str, tuple[str, ...]] = {}
    for one in hits:
        for source in one.sources:
            per_leaf[source.node_id] = (*per_leaf.get(source.node_id, ()), one.chunk_id)
    return MergedPool(hits=hits, per_leaf=per_leaf, reranked_by=reranked_by)


def tree(question: str, **children: tuple[Facet, str]) -> dict[str, Node]:
    root = Node(id="0", level=0, facet=Facet.CORE, query=question, kind=NodeKind.BRANCH)
    own = Node(id="0.1", level=1, facet=Facet.ORIGINAL, query=question)
    rest = [Node(id=f"0.{name[1:]}", level=1, facet=facet, query=query) for name, (facet, query) in children.items()]
    return {node.id: node for node in (root, own, *rest)}


def cited_lines(text: str) -> list[str]:
    said = ("### ", "Not found: ", "没有找到：", "The nearest passages:", "最接近的内容：")
    return [line for line in text.split("\n") if line and not line.startswith(said)]


def test_given_a_short_question_then_the_answering_sentence_comes_first_and_is_cited() -> None:
    found = pool(
        hit(1, "PgBouncer sits before Postgres on every host. It listens on port 6432 by default.", title="PgBouncer"),
        hit(2, "The cafeteria opens at noon and closes at three."),
    )
    summary = extract("Which port does PgBouncer listen on?", found, tree("q"))
    assert summary.text.split("\n")[0] == "It listens on port 6432 by default. [1]"
    assert summary.kind == "extractive"
    assert "cafeteria" not in summary.text
    assert (summary.citations[0].number, summary.citations[0].chunk_id, summary.citations[0].path) == (1, "c1", "n1.md")


def test_given_a_broad_question_then_headed_groups_in_its_language() -> None:
    found = pool(
        hit(1, "数据库查询性能主要取决于索引和执行计划的质量。数据库查询性能要先测量再优化。", "0.1"),
        hit(2, "查询变慢的原因通常是缺少索引，数据库只能全表扫描。", "0.2"),
        hit(3, "优化慢查询要先看执行计划，再补合适的联合索引。", "0.3"),
    )
    nodes = tree(
        "如何优化数据库查询性能", _2=(Facet.WHY, "为什么数据库查询会变慢"), _3=(Facet.HOW, "如何分析和优化慢查询")
    )
    text = extract("如何优化数据库查询性能", found, nodes).text
    assert "### 原因 · 为什么数据库查询会变慢\n查询变慢的原因通常是缺少索引，数据库只能全表扫描。 [2]" in text
    assert "### 方法 · 如何分析和优化慢查询\n优化慢查询要先看执行计划，再补合适的联合索引。 [3]" in text
    assert all(CITED.search(line) for line in cited_lines(text))
    english = tree("How do we make queries fast?", _2=(Facet.WHY, "why slow"), _3=(Facet.HOW, "How to index queries"))
    text = extract(
        "How do we make queries fast?",
        pool(
            hit(1, "Queries are fast when their rows are in memory.", "0.1"),
            hit(2, "Slow queries mostly lack an index on the filter.", "0.2"),
            hit(3, "To index queries, read the plan before you add columns.", "0.3"),
        ),
        english,
    ).text
    assert "### How · How to index queries" in text


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("What is the capital of France?", "Nothing on this was found in the corpus."),
        ("法国的首都在哪里？", "语料中没有找到相关内容。"),
    ],
)
def test_given_nothing_relevant_then_that_is_said_and_nothing_is_cited(question: str, verdict: str) -> None:
    for found in (pool(), pool(hit(1, "Queues drain slowly at night."), hit(2, "队列在夜里处理得很慢。"))):
        summary = extract(question, found, tree(question))
        assert (summary.text, summary.citations, summary.kind) == (verdict, (), "extractive")


def test_given_a_reranker_that_reads_meaning_then_other_words_may_answer() -> None:
    found = pool(hit(1, "索引让查询不必扫描整张表，因此更快。", score=0.97), reranked_by="endpoint:m")
    summary = extract("Why does an index help?", found, tree("q"))
    assert summary.text == "索引让查询不必扫描整张表，因此更快。 [1]"


def test_given_fences_tables_headings_questions_then_none_is_torn_or_quoted() -> None:
    text = (
        "# Restore the orders database\n\nHow is the orders database restored?\n\n"
        "```sh\nrestore orders. database --now\n```\n\n| restore | orders. database |\n|---|---|\n\n"
        "To restore the orders database:\n\n- Stop the *orders* service before the **database** is restored.\n"
    )
    summary = extract("How is the orders database restored?", pool(hit(1, text)), tree("q"))
    assert summary.text == "Stop the orders service before the database is restored. [1]"
    assert summary.citations[0].quote == "Stop the *orders* service before the **database** is restored."


def test_given_the_same_statement_twice_then_once() -> None:
    found = pool(hit(1, "Caches expire at night."), hit(2, "Caches expire at night!"))
    assert extract("When do caches expire?", found, tree("q")).text == "Caches expire at night. [1]"


def test_given_many_leaves_then_at_most_ten_sentences() -> None:
    hits = [
        hit(n, f"Queries of kind{n} are slow. Queries with part{n} wait. Queries on disk{n} spill.", f"0.{n}")
        for n in range(2, 13)
    ]
    children = {f"_{n}": (Facet.HOW, f"queries kind{n} part{n} disk{n}") for n in range(2, 13)}
    summary = extract("Why are queries slow?", pool(*hits), tree("q", **children))
    assert 3 < len(cited_lines(summary.text)) <= MAX_SENTENCES


def test_given_a_text_without_stops_then_a_clipped_verbatim_quote() -> None:
    text = "slow queries, " * 200
    (found,) = extract("slow queries", pool(hit(1, text)), tree("q")).citations
    assert found.quote in text
    assert len(found.quote) <= 300


def test_given_control_characters_then_the_sentence_is_not_quoted() -> None:
    text = "Slow queries \x1b[31mlie\x1b[0m here. Slow queries need an index."
    summary = extract("slow queries", pool(hit(1, text)), tree("q"))
    assert summary.text == "Slow queries need an index. [1]"


PROSE = ["Slow queries need an index. ", "See [2] or [x](http://y). ", "查询要有索引。", "e.g. ", "<b>", "\x1b[2J"]
PIECES = st.sampled_from([*PROSE, "```\n", "| a |\n", "\n\n", "- "])


@settings(deadline=None)  # the first one compiles the tables
@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=6))
def test_properties_every_line_is_cited_and_every_quote_is_verbatim(texts: list[str]) -> None:
    hits = [hit(number, text, "0.1", "0.2", "0.3") for number, text in enumerate(texts, start=1)]
    nodes = tree("q", _2=(Facet.WHY, "why slow queries"), _3=(Facet.NOTE, "查询 索引"))
    summary = extract("slow queries index 查询索引", pool(*hits), nodes)
    numbers = {citation.number for citation in summary.citations}
    for citation in summary.citations:
        assert citation.quote
        assert citation.quote in hits[citation.number - 1].text
    if numbers:
        assert len(cited_lines(summary.text)) <= MAX_SENTENCES
        assert {int(CITED.search(line)[1]) for line in cited_lines(summary.text)} == numbers  # type: ignore[index]
    assert "\x1b" not in summary.text


def test_one_line_given_markdown_then_plain_text() -> None:
    assert plain_line("a **bold** and *slanted* [link](http://x) `code`\nover lines [3]") == (
        "a bold and slanted link code over lines (3)"
    )
    assert plain_line("[[adr-007|Streams]] 和 [[adr-9]]，\n下一行") == "Streams 和 adr-9，下一行"
    assert (
        plain_line("2 * 3 * 4 and snake_case_name and List<String>") == "2 * 3 * 4 and snake_case_name and List<String>"
    )


def test_safe_given_escapes_html_images_and_hidden_marks_then_text_remains() -> None:
    assert safe("a\x1b[31mred\x1b[0m\x1b]8;;http://x\x07b\x00\u202ec") == "aredbc"
    assert safe("<script>x</script> <scr<b>ipt> a < b <img src=x onerror=y>") == "x  a < b "
    assert safe("![pixel](http://evil/?q=1) [text](http://x) [2](http://x)") == "pixel text [2]"


def test_best_quote_given_a_claim_then_the_sentence_that_shares_most() -> None:
    chunk = hit(1, "Queues drain at night. Indexes make slow queries fast. Bye now, everyone.")
    assert best_quote(chunk, "Slow queries get fast by indexes [1].") == "Indexes make slow queries fast."
    assert best_quote(chunk, "无关") == "Queues drain at night."
    assert best_quote(hit(1, "```\ncode\n```"), "code") == ""


def test_given_a_fact_in_a_table_then_its_row_is_the_answer_and_quoted_as_it_stands() -> None:
    table = "| Service | Owner |\n| --- | --- |\n| Stockroom | Kofi Mensah |\n| Courier | Nia Clarke |"
    summary = extract("Who owns Stockroom?", pool(hit(1, table, title="Who owns what")), tree("q"))
    assert summary.text.split("\n")[0] == "Stockroom – Owner: Kofi Mensah [1]"
    assert summary.citations[0].quote == "| Stockroom | Kofi Mensah |"


def test_given_a_pool_that_is_all_about_the_question_then_something_is_said() -> None:
    """The pool's own IDF would call every shared word worthless."""
    texts = ["数据库查询慢，先看执行计划。", "优化数据库查询，要给过滤列建索引。", "数据库查询性能差，多半没用上索引。"]
    summary = extract("如何优化数据库查询性能？", pool(*(hit(n, text) for n, text in enumerate(texts, 1))), tree("q"))
    assert summary.citations


def incident(number: int, name: str, text: str, score: float) -> MergedHit:
    return hit(number, text, title=name, score=score).model_copy(update={"doc_id": f"d{number}"})


def test_given_an_identifier_in_the_question_then_only_its_pages_are_quoted() -> None:
    found = pool(
        incident(
            1, "INC-2078 Lost alerts", "The duration was 3 hours. The cause was a full disk, as in INC-2041.", 0.9
        ),
        incident(
            2, "INC-2041 Chill alerts", "Each rebalance took long because of eager assignment in the group.", 0.02
        ),
    )
    for question in ("What is the cause of INC-2041?", "INC-2041 的原因是什么？", "What was the duration of INC-2041?"):
        summary = extract(question, found, tree(question))
        quoted = [line for line in summary.text.split("\n") if line.endswith("]")]
        assert quoted[0].endswith("[2]"), "its own page first"
        assert bool(summary.missing) is ("duration" in question), "no page of its own says how long"
        assert "3 hours" not in summary.text
    question = "INC-2041 duration hours cause full disk lost alerts"
    other = hit(3, "The budget approver is the supplier.", title="INC-2041 Budget", score=0.5)
    assert not extract(question, pool(found.hits[0], other), tree(question)).citations, "only another page covers it"


def test_given_a_subquestion_with_an_identifier_then_its_group_quotes_no_other_page() -> None:
    found = pool(
        hit(1, "The remedy was a new disk for every host.", "0.1", "0.2", "0.3", title="INC-2085 Disk"),
        hit(2, "The remedy was static membership of the group.", "0.1", "0.2", "0.3", title="INC-2041 Alerts"),
    )
    nodes = tree(
        "Compare INC-2041 and INC-2085", _2=(Facet.HOW, "remedy of INC-2041"), _3=(Facet.HOW, "remedy of INC-2085")
    )
    text = extract("Compare INC-2041 and INC-2085", found, nodes).text
    assert "new disk" not in text.partition("remedy of INC-2041")[2].partition("###")[0]
    assert "membership" not in text.partition("remedy of INC-2085")[2]
