"""The model's XML: what is taken, what is refused, and with which fault."""

from __future__ import annotations

from contextlib import suppress
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ReplyError
from shared.hidden import without_hidden
from shared.models import Facet, SubQuery
from shared.providers.llm.replies import parse_answer, parse_decomposition, parse_missing, summary_text

ONE = "<dimension>core</dimension><query>What is a bloom filter?</query>"


def xml(*subqueries: str) -> str:
    return f"<decomposition>{''.join(f'<subquery>{s}</subquery>' for s in subqueries)}</decomposition>"


def sub(query: str, rest: str = "", dimension: str = "core") -> str:
    return f"<dimension>{dimension}</dimension><query>{query}</query>{rest}"


def test_given_the_prompts_own_form_then_every_field_is_read():
    text = xml(
        sub("如何实现缓存？", "<needs_refinement>true</needs_refinement>", "how"),
        sub(
            "What goes wrong with caches?",
            "<needs_refinement>false</needs_refinement><depends_on>1</depends_on>",
            "note",
        ),
    )

    assert parse_decomposition(text) == (
        SubQuery(dimension=Facet.HOW, query="如何实现缓存？", needs_refinement=True),
        SubQuery(dimension=Facet.NOTE, query="What goes wrong with caches?", depends_on=(1,)),
    )


@pytest.mark.parametrize(
    "around",
    [
        "```xml\n{}\n```",
        "Sure, here it is:\n{}\nAnything else?",
        "<think>I could say {other}</think>\n{}",
        "I could say {other} </think> {}",
        "Fine. <thinking>{other}</thinking>{}",
        "<think>what does <think> mean? {other}</think>{}",
        "{}<think>{other}</think>",
        "{}\n{other}",
    ],
)
def test_given_fences_chatter_or_thinking_around_then_the_first_real_element_wins(around: str):
    other = xml(sub("Not this question at all"))

    read = parse_decomposition(around.replace("{other}", other).replace("{}", xml(ONE)))

    assert [s.query for s in read] == ["What is a bloom filter?"]


def test_given_an_element_only_inside_thinking_then_there_is_none():
    with pytest.raises(ReplyError, match="no <decomposition>"):
        parse_decomposition(f"<think>{xml(ONE)}</think>\nSorry.")


@pytest.mark.parametrize(
    ("name", "facet"),
    [
        ("CORE", Facet.CORE), (" Why\n", Facet.WHY), ("法", Facet.HOW), ("例", Facet.CASE), ("注", Facet.NOTE),
        ("核", Facet.CORE), ("因", Facet.WHY), ("core（核）", Facet.CORE), ("how (法)", Facet.HOW),
    ],
)  # fmt: skip
def test_given_a_facet_in_any_case_or_in_chinese_then_it_is_known(name: str, facet: Facet):
    assert parse_decomposition(xml(sub("什么是索引", dimension=name)))[0].dimension is facet


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("R&D budget & costs?", "R&D budget & costs?"),
        ("R&amp;D budget", "R&D budget"),
        ("a &lt; b and &#20013;文", "a < b and 中文"),
        ("<![CDATA[a & b < c]]>", "a & b < c"),
        ("  how\n\tmany   rows? ", "how many rows?"),
        ("bell\x07 and null\x00 here", "bell and null here"),
        ("right-to-left \u202eevil", "right-to-left evil"),
        ("什么是索引", "什么是索引"),
    ],
)
def test_given_queries_as_models_write_them_then_they_are_cleaned(written: str, query: str):
    assert parse_decomposition(xml(sub(written)))[0].query == query


@pytest.mark.parametrize(
    ("written", "expected"),
    [("true", True), ("TRUE ", True), ("yes", True), ("false", False), ("", False), ("perhaps", False)],
)
def test_given_needs_refinement_leniently_written_then_it_is_read(written: str, expected: bool):
    flag = f"<needs_refinement>{written}</needs_refinement>"

    assert parse_decomposition(xml(sub("What is it?", flag)))[0].needs_refinement is expected


def test_given_no_needs_refinement_then_it_is_false():
    assert parse_decomposition(xml(ONE))[0].needs_refinement is False


@pytest.mark.parametrize("written", ["1,2", "#1, #2", "1、2", "2，1", "1 2 2"])
def test_given_positions_in_any_form_then_they_are_read_in_order(written: str):
    read = parse_decomposition(
        xml(sub("First question"), sub("Second question"), sub("Third one", f"<depends_on>{written}</depends_on>"))
    )

    assert read[2].depends_on == (1, 2)


@pytest.mark.parametrize("written", ["2", "0", "-1", "x", "999", "1.5", "１"])
def test_given_a_position_that_is_no_earlier_sibling_then_the_fault_names_it(written: str):
    with pytest.raises(ReplyError, match="subquery 2: depends_on"):
        parse_decomposition(xml(sub("First question"), sub("Second one", f"<depends_on>{written}</depends_on>")))


def test_given_repeated_queries_then_one_is_kept_and_positions_follow():
    read = parse_decomposition(
        xml(
            sub("First question"),
            sub("FIRST  question"),
            sub("Another one"),
            sub("The last one", "<depends_on>2,3</depends_on>"),
        )
    )

    assert [s.query for s in read] == ["First question", "Another one", "The last one"]
    assert read[2].depends_on == (1, 2)


def test_given_more_than_most_then_it_is_a_fault_and_a_larger_most_takes_them():
    seven = xml(*(sub(f"Question number {n}") for n in range(7)))

    with pytest.raises(ReplyError, match="holds 7 subqueries, at most 5"):
        parse_decomposition(seven)
    assert len(parse_decomposition(seven, most=10)) == 7


BOMB = (
    '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY c "&a;&a;&a;&a;&a;&a;">]>'
    "<decomposition><subquery><dimension>core</dimension><query>&c;</query></subquery></decomposition>"
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no <decomposition>"),
        ("I cannot do that.", "no <decomposition>"),
        ("<result><subquery/></result>", "no <decomposition>"),
        ("<decomposition/>", "holds no <subquery>"),
        ("<decomposition></decomposition>", "holds no <subquery>"),
        ("<decomposition><query>What is it?</query></decomposition>", "holds no <subquery>"),
        (xml(ONE)[:-20], "cut off"),
        (xml(ONE).replace("</query>", ""), "not well-formed"),
        (xml(sub("when is a < b true?")), "not well-formed"),
        (xml(sub("&lol9; and more")), "not well-formed"),
        (xml(sub("null &#0; here")), "not well-formed"),
        (BOMB, "document type or entities"),
        (BOMB.replace("<decomposition>", "").replace("<!DOCTYPE", "<decomposition><!DOCTYPE"), "document type"),
        (xml(sub("<b>bold</b> question")), "holds further elements"),
        (xml("<query>What is it?</query>"), "subquery 1 has no <dimension>"),
        (xml(ONE, "<dimension>core</dimension>"), "subquery 2 has no <query>"),
        (xml(sub("What is it?", dimension="what")), "dimension 'what' is none of core, why, how, case, note"),
        (xml(sub("What is it?", dimension="original")), "none of core"),
        (xml(sub("中文四字")), "has 4 characters, 5 to 300"),
        (xml(sub("长" * 301)), "has 301 characters"),
        (xml(sub("x" * 70_000)), "larger than 65536 bytes"),
        (xml(sub("很" * 30_000)), "larger than 65536 bytes"),
    ],
)
def test_given_an_unusable_reply_then_the_fault_is_named(text: str, fault: str):
    with pytest.raises(ReplyError, match=fault):
        parse_decomposition(text)


def test_given_300_chinese_characters_then_the_length_counts_characters_not_bytes():
    assert len(parse_decomposition(xml(sub("长" * 300)))[0].query) == 300


def test_given_thousands_of_nested_elements_then_it_is_a_fault_and_no_crash():
    deep = "<a>" * 9000 + "</a>" * 9000

    with pytest.raises(ReplyError, match="further elements"):
        parse_decomposition(xml(ONE + deep))


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<decomposition>", "<![CDATA[", "&", "\n ", "```\n"])
def test_given_a_megabyte_of_one_mark_then_reading_ends(piece: str):
    text = piece * (1_000_000 // len(piece))

    with pytest.raises(ReplyError):
        parse_decomposition(text)
    with pytest.raises(ReplyError):
        parse_decomposition(f"<decomposition>{text}</decomposition>")


MARKUP = st.sampled_from(
    [
        "<decomposition>", "</decomposition>", "<subquery>", "</subquery>", "<query>", "</query>", "<dimension>core",
        "</dimension>", "<think>", "</think>", "&", "&amp;", "<![CDATA[", "]]>", "<!DOCTYPE x>", "<?x?>", "<!--", "-->",
        "<depends_on>1", "</depends_on>", "\x00", "\ud800", "问题是什么呢",
    ]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.one_of(MARKUP, st.text(max_size=5)), max_size=30).map("".join)))
def test_given_any_text_then_nothing_but_reply_error_is_raised(text: str):
    for wrapped in (text, f"<decomposition>{text}</decomposition>", xml(sub(text))):
        with suppress(ReplyError):
            assert 1 <= len(parse_decomposition(wrapped)) <= 5


REMOVED = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\ufffe\uffff"
CLEAN = (
    st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=REMOVED), min_size=5, max_size=300)
    .map(lambda text: " ".join(without_hidden(text).split()))
    .filter(lambda text: len(text) >= 5)
)
FIVE = [facet for facet in Facet if facet.planned]


@given(
    st.lists(
        st.tuples(st.sampled_from(FIVE), CLEAN, st.booleans()),
        min_size=1,
        max_size=5,
        unique_by=lambda s: s[1].casefold(),
    )
)
def test_given_any_clean_subqueries_then_writing_and_reading_gives_them_back(subqueries):
    text = xml(
        *(
            sub(escape(query), f"<needs_refinement>{refine}</needs_refinement>", facet.value)
            for facet, query, refine in subqueries
        )
    )

    read = parse_decomposition(text)

    assert [(s.dimension, s.query, s.needs_refinement) for s in read] == subqueries


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("  Use an index [1].\n", "Use an index [1]."),
        ("<think>hmm</think>\n\nUse an index [1].", "Use an index [1]."),
        ("so I will say\n</think>\n\nUse an index [1].", "Use an index [1]."),
        ("```markdown\nUse `x` [1].\n```", "Use `x` [1]."),
        ("```\nUse an index [1].\n```", "Use an index [1]."),
        ("```sql\nselect 1\n```", "```sql\nselect 1\n```"),
        ("```\na\n```\nand [1]\n```\nb\n```", "```\na\n```\nand [1]\n```\nb\n```"),
        ("The mark `</think>` ends it [1].", "The mark `</think>` ends it [1]."),
        ("bell\x07 null\x00\r\nline", "bell null\nline"),
    ],
)
def test_given_a_summary_reply_then_only_the_summary_is_kept(text: str, summary: str):
    assert summary_text(text) == summary


def test_given_a_summary_that_is_too_long_then_it_is_cut_at_a_sentence():
    assert summary_text("First one [1]. Second one is long [2].", most_chars=20) == "First one [1]. …"
    assert summary_text("第一句[1]。第二句很长很长[2]。", most_chars=10) == "第一句[1]。 …"


@pytest.mark.parametrize("text", ["", " \n", "<think>all thought", "\x00", "```markdown\n\n```"])
def test_given_no_summary_then_it_is_a_fault(text: str):
    with pytest.raises(ReplyError, match="no summary"):
        summary_text(text)


def test_given_dependencies_as_an_attribute_then_they_are_read_and_an_element_goes_before_it():
    inner = "<dimension>core</dimension><query>Who leads team #1?</query>"
    first = "<dimension>core</dimension><query>Which team is it?</query>"
    text = f'<subquery>{first}</subquery><subquery depends_on="1">{inner}</subquery>'
    both = f'<subquery depends_on="1,2">{inner}<depends_on>2</depends_on></subquery>'.replace("#1", "#2 there")
    read = parse_decomposition(f"<decomposition>{text}{both}</decomposition>")
    assert [subquery.depends_on for subquery in read] == [(), (1,), (2,)]
    with pytest.raises(ReplyError, match="depends_on '7' is no earlier"):
        parse_decomposition(f"<decomposition>{text.replace(chr(34) + '1', chr(34) + '7')}</decomposition>")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<answer>James Cameron</answer>", "James Cameron"),
        ("<think><answer>no</answer></think>Sure:\n<answer>\n北京\u202e大学\n</answer> done", "北京大学"),
        ("<answer>AT&amp;T & co</answer>", "AT&T & co"),
        ("<unknown/>", None),
        ("I do not know: <Unknown />", None),
    ],
)
def test_given_an_answer_or_none_then_it_is_read_on_one_line(reply: str, answer: str | None):
    assert parse_answer(reply) == answer


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("James Cameron", "holds no <answer>"),
        ("<answer>James", "cut off"),
        ("<answer> </answer>", "0 characters"),
        (f"<answer>{'x' * 201}</answer>", "201 characters"),
        ("<answer><b>x</b></answer>", "further elements"),
        ("<answer><unknown/></answer>", "further elements"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><answer>&b;</answer>', "document type"),
    ],
)
def test_given_a_reply_that_is_no_answer_then_the_fault_is_named(reply: str, fault: str):
    with pytest.raises(ReplyError, match=fault):
        parse_answer(reply)


@pytest.mark.parametrize(
    ("reply", "queries"),
    [
        ("<missing><query>Ann Marsh birth</query><query>ann marsh birth</query></missing>", ("Ann Marsh birth",)),
        ("<missing><query>one two</query><query>three</query><query>seven</query></missing>", ("one two", "three")),
        ("Nothing: <none/>", ()),
    ],
)
def test_given_what_is_missing_then_its_queries_are_read_once_each_in_order(reply: str, queries: tuple[str, ...]):
    assert parse_missing(reply, 2) == queries


@pytest.mark.parametrize("reply", ["all is there", "<missing></missing>", "<missing><query>x</query></missing>"])
def test_given_a_reply_that_names_nothing_missing_then_it_is_refused(reply: str):
    with pytest.raises(ReplyError):
        parse_missing(reply, 2)


@given(st.text(max_size=300))
def test_given_any_text_then_an_answer_is_bounded_or_refused(text: str):
    with suppress(ReplyError):
        answer = parse_answer(f"<answer>{text}</answer>")
        assert answer is not None
        assert 1 <= len(answer) <= 200
        assert "\n" not in answer
