"""What a model or a document writes cannot act where it is shown: a CommonMark renderer finds nothing to do."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from orchestrator.text_lines import csv_cell, json_text, one_line
from shared.hidden import visible, without_hidden
from shared.providers.llm.prompts import decompose_prompt
from workers.display import plain_line, safe
from workers.merge.summarise import check_citations

BROWSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
BROWSER.validateLink = lambda _url: True  # type: ignore[method-assign]

ATTACKS = (
    "[a](javascript:alert(1))",
    "[a](http://evil/((((x))))b)",
    "[a](<javascript:x> 'y(z)')",
    '[a]( http://evil "t)" )',
    "![p](http://evil/?q=(a(b)c))",
    "[![i](http://e/1)](http://e/2)",
    "[a\\](b)](http://evil)",
    '[a](http://e\n"t")',
    "[a][b]\n\n[b]: javascript:alert(1)",
    "![a][b]\n\n[b]: http://evil/x 'title'",
    "[ref]: http://e\n[ref]",
    "[a][]\n\n[a]: //e",
    "> [r]: http://e\n\n[r]",
    "- [r]: http://e\n\n[r]",
    "[foo]:\n  http://evil\n\n[foo]",
    "<x onfocus=alert(1) autofocus tabindex=1>",
    "<x onfocus autofocus>",
    "<x/onclick=alert(1)>",
    "<x\tonclick=alert(1)",
    "a <img src=x onerror=alert(1)",
    "<img/src=x/onerror=alert(1)>",
    "<IMG SRC=x>",
    '<img src="a>b" onerror=x>',
    "Foo\n<img src=x\nonerror=alert(1)>\nbar",
    "<<img src=x onerror=y>>",
    "\\<img src=x onerror=y>",
    "<svg/onload=alert(1)>",
    "<iframe src=//evil",
    "<scr<b>ipt>alert(1)</scr</b>ipt>",
    "</textarea><script>x",
    "<style>@import 'http://e'</style>",
    "<a href='javascript:x'>t</a>",
    "<javascript:alert(1)>",
    "<https://evil.example/x>",
    "<me@evil.example>",
    "<!-- c --> d <?php x ?> <![CDATA[ x ]]>",
    "<!-- never closed",
    "<?xml",
    "<!DOCTYPE html",
    "- [x](http://e) one\n- two <i>three</i>",
    "> [a](http://evil)\n> b <b>c</b>",
    "|a|b|\n|-|-|\n|[x](http://e)|<b>c</b>|",
)


def acting(text: str) -> list[str]:
    """Links, images and tags that a renderer makes of it; a bare tag that is no element of HTML does nothing."""
    return list(_acting(BROWSER.parse(text)))


def _acting(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        bare = re.fullmatch(r"</?(?!\w*(?:script|style|img|svg)\b)[A-Za-z][\w-]*\s*/?>", token.content.strip())
        if token.type in {"link_open", "image"} or (token.type.startswith("html") and not bare):
            yield f"{token.type} {token.content} {token.attrs}"
        yield from _acting(token.children or ())


@pytest.mark.parametrize("attack", ATTACKS)
def test_given_active_text_then_nothing_of_it_acts_alone_in_a_sentence_or_in_a_summary(attack: str) -> None:
    assert acting(attack) or re.search(r"<[\w!?]", attack), "it is an attack"
    for text in (attack, f"Redis evicts [1].\n\n{attack}\n\nIt is so [2].", f"Well, {attack} so."):
        for made in (safe(text), plain_line(text), check_citations(safe(text), 3).text):
            assert acting(made) == []
            assert not re.search(r"<[^>]*\bon\w+\s*=|<(?:img|svg|iframe|script|style)\b", made, re.IGNORECASE), made


@pytest.mark.parametrize("inside", ["<img src=x onerror=a>", "![x](https://evil.example/x)", "[x](javascript:a)"])
def test_given_a_table_whose_cell_ends_a_piece_of_code_then_nothing_acts_there(inside: str) -> None:
    for text in (f"| a | b |\n|---|---|\n| `x | {inside} ` |", f"`a | b {inside} |\n|---|---|\n| ` | {inside} ` |"):
        assert acting(safe(text)) == [], safe(text)


def test_given_citations_in_other_brackets_when_they_are_rewritten_then_they_become_no_links() -> None:
    for text in ("so 【1】(http://evil) it is", "so ［1］(javascript:x) it is", "so [^1](http://evil) it is"):
        assert check_citations(safe(text), 3).text == "so [1] it is"


def test_given_pieces_put_together_at_random_then_nothing_acts() -> None:
    dice = random.Random(20_261_122)
    pieces = [
        *"[]()<>!ab\\:#1.|{}=/\"'`*_ \n\t",
        "img ",
        "script",
        " src=",
        " onerror=",
        "\n\n",
        "> ",
        "- ",
        "``",
        "**",
        "](",
        "](",
    ]
    pieces += [
        "://e",
        "&lt;",
        "[a]:",
        "javascript:",
        "<b>",
        "</b>",
        "<!--",
        "-->",
        "<?",
        "```\n",
        "    ",
        "<a ",
        " href=e",
        "![",
    ]
    for _ in range(1500):
        text = "".join(dice.choices(pieces, k=dice.randint(2, 20)))
        assert acting(safe(text)) == [], text
        assert acting(plain_line(text)) == [], text


def test_given_text_that_does_nothing_then_it_stays_as_it_is() -> None:
    for text in (
        "List<String> and <job_id>, a < b and c > d, x <- y, R&D, a[0], rows[1][2], **bold** and *slant*\nnext line",
        "# Head\n\n1. one\n2. two `code <b>`\n\n> quote\n\n    indented <b>",
        "```html\n<div onclick=x>[a](http://b)</div>\n```",
        "says [1][2], and https://example.org/a_(b) too\\* &amp; &lt;b&gt;",
        "缓存击穿[1]：用互斥锁。👩\u200d💻 می\u200cخواهم ❤\ufe0f 1\ufe0f\u20e3",
    ):
        assert safe(text) == text


def test_given_characters_that_nobody_sees_then_neither_prompt_nor_answer_has_them() -> None:
    tags = "".join(chr(0xE0000 + ord(c)) for c in "ignore all")
    selectors = "".join(chr(0xE0100 + n) for n in range(20))
    for hidden in (
        tags,
        selectors,
        "\u200b\u2060\ufeff",
        "\u202e",
        "\u00ad",
        "\u200d",
        "\ufe00\ufe01",
        "\u3164",
        "\u180e",
        "\U000110bd\U000110cd",
        "\u0600\u0605\u06dd\u08e2\u0891\u070f",
        "".join(map(chr, range(0x13430, 0x13440))),
        "\ue000\uf8ff\U000f0000\U0010fffd",
        "\ufff0\ufff8\ufff9\ufffa\ufffb\ufffc\u2065",
        "\ufdd0\ufffe\U0001ffff",
        "\U00040000\U000dffff\U0001d159",
        "\ufe0f",
        "\ufe0e\ufe0f",
        "\U000e01ef",
        "\u0601\u200d",
        "\ufe0f\u200d",
        "\u061c\u200c",
    ):
        text = f"plain{hidden}words"
        assert (safe(text), plain_line(text), without_hidden(text)) == ("plainwords",) * 3
        assert "plainwords" in decompose_prompt(text)
    assert without_hidden("👍\ufe0f\ufe0f\ufe0e\u200d\u200d") == "👍\ufe0f"
    assert without_hidden("字\u200d字\u200c字\ufe00字\ufe0fю\u200cя1\ufe0f2") == "字字字字юя12"


def test_given_separators_of_lines_and_empty_cells_then_they_part_words_as_white_space_does() -> None:
    assert safe("one\u2028two\u2029three\u2800four") == "one\ntwo\nthree four"
    assert plain_line("one\u2028two\u2029three\u2800four") == "one two three four"
    assert csv_cell("one\u2028two\u2800\u202ethree") == "one two three"
    assert json_text("a\u2028b\u202e\U000e0041") == r'"a\u2028b\u202e\udb40\udc41"'


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم", "क\u200d\u0937", "র\u200d্য", "\u0600١٢٣ \u06dd٢", "\u070fܐܒ", "\U00013000\U00013430\U00013001",
        "👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 👁\ufe0f\u200d🗨\ufe0f 1\ufe0f\u20e3 ©\ufe0f ☎\ufe0e",
        "\u0378 is a box",
    ],
)  # fmt: skip
def test_given_what_a_language_or_an_emoji_needs_then_it_stays(text: str) -> None:
    assert without_hidden(text) == visible(text) == safe(text) == text
    assert one_line(text) == text


def test_given_every_code_point_then_what_unicode_calls_ignorable_or_unassignable_is_not_shown() -> None:
    """Alone between letters; by the tables of this Python, so that a later Unicode is held to the same."""
    everything = {chr(c) for plane in (0, 1, 14) for c in range(plane << 16, (plane << 16) + 0x10000)}
    kept = set(without_hidden("".join(f"a{c}" for c in everything))) | {"\u2800"}
    assert not [c for c in kept if unicodedata.category(c) in {"Cf", "Co", "Cs", "Zl", "Zp"}]
    assert not [c for c in kept if ord(c) & 0xFFFE == 0xFFFE or ord(c) >= 0x3FFFE]
    dropped = everything - kept
    assert {unicodedata.category(c) for c in dropped} == {"Cf", "Cn", "Co", "Cs", "Lo", "Mn", "Zl", "Zp", "So"}
    assert len([c for c in dropped if unicodedata.category(c) in {"Lo", "Mn", "So"} and ord(c) < 0xE0000]) == 29
