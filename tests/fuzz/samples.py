"""Good inputs to begin with: the sample corpus, the questions of the tests, and one of each form that has no file."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

DECOMPOSITION = """<think>Two parts.</think>Here it is:
<decomposition>
<subquery><dimension>core (核)</dimension><query>What is &lt;back-pressure&gt; in queues?</query>
<needs_refinement>false</needs_refinement></subquery>
<subquery depends_on="1"><dimension>how</dimension><query>如何在 #1 中处理积压的消息？</query>
<needs_refinement>是</needs_refinement><depends_on>1</depends_on></subquery>
<subquery><dimension>因</dimension><query><![CDATA[Why do A & B differ?]]></query></subquery>
</decomposition> done"""
REWRITES = "<rewrites>\n<rewrite>queue latency under load</rewrite><rewrite>队列 延迟 原因</rewrite>\n</rewrites>"
ANSWERS = ("<answer>Marta Kowalski</answer>", "<reasoning>?</reasoning><answer>2026 年 3 月</answer>", "<unknown/>")
PLAN = """<plan><typed_query><query>Redis Streams retention</query><context_type>resource</context_type>
<intent>what is written about it</intent><priority>2</priority></typed_query>
<typed_query><query>编写回滚步骤</query><context_type>技能</context_type><priority>1</priority></typed_query></plan>"""
NO_PLAN = "<plan><none>只是问候, nothing to look up</none></plan>"
ROUTES = (
    "<route><type>complex_reasoning</type><hops>multi_hop</hops><intent>entity</intent></route>",
    "<think>\n</think>```xml\n<route><type>enumeration</type><intent>temporal</intent></route>\n```",
)
ROWS = '<rows><row id="1"><field column="1">2026-03-04</field><field column="2">支付</field></row><row id="3"></row></rows>'
MARKS = '<scores><s id="1">7.5</s><s id="2">0</s><s id="3">10</s></scores>'
SUMMARIES = (
    "<think>hm\n</think>\n```markdown\nThe queue was full [1]. 队列积压了 [2]。\n- a\n- b\n```",
    "One. Two! 三。\n\n```python\nprint(1)\n```\nFour? " * 20,
)
XML_TOKENS = (
    "<decomposition>", "</decomposition>", "<subquery>", "</subquery>", "<query>", "</query>", "<dimension>", "<think>",
    "</think>", "<thinking>", "</reasoning>", "<answer>", "</answer>", "<unknown/>", "<plan>", "</plan>", "<none>", "</none>",
    "<route>", "<rows>", "<row id='2'>", "</row>", "<field column='1'>", "<scores>", "<s id='1'>", "</s>", "<rewrite>",
    "<![CDATA[", "]]>", "<!--", "-->", "<?xml version='1.0'?>", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "<!ENTITY", "&b;", "&amp;",
    "&#x110000;", "&#0;", "&#xD800;", "&lt;", "xmlns='a'", "xmlns:b='c'", "<b:query>", "depends_on='1,2'", " id='٣'", "/>",
    "```xml\n", "```", "\n", "\n<think>", "core", "#1", "1", "<QUERY>", "<ſcores>",
)  # fmt: skip

FRONT = (
    "---\ntitle: Redis Streams\ndate: 2026-03-04\ntags: [redis, 队列]\nkind: memory\n---\n# Heading\n\nText.\n",
    '---\n标题: "缓存：雪崩"\n日期: 2026年3月4日\n标签:\n  - 缓存\n  - a b\ntype: 技能\nfacet: action\n---\n正文。\n',
    "---\nnested: {a: [1, 2, {b: c}]}\nlong: |\n  one\n  two\nfolded: >-\n  three\n...\nbody\n---\n",
    "---\ntags: a, b；c\ncreated_at: May 18, 2026\n---\n---\n\nhr\n",
)
YAML_TOKENS = (
    "---\n", "...\n", "- ", "? ", ": ", "&a ", "*a", "!!python/object:os.system ", "!!binary ", "!t ", "<<: ", "|\n", ">-\n",
    "{", "}", "[", "]", "\t", "%YAML 1.2\n", "%TAG ! a\n", "#", "\n", "\n  ", "'", '"', "\\x", "\\U0010FFFF", "~", "null",
    "title: ", "date: ", "tags: ", "2026-02-30", "31 Feb 2026", "٢٠٢٦-٠٣-٠٤", "20260304", "2026年３月４日", "\x85", "\u2028", "@", "`",
)  # fmt: skip
JSONL = (
    {
        "id": "a-1",
        "title": "Redis",
        "text": "# One\n\nStreams keep order.\n\n- a\n- b",
        "date": "2026-03-04",
        "tags": ["a"],
    },
    {"_id": 7, "text": "缓存雪崩是指大量缓存同时失效。", "kind": "memory", "path": "notes/zh/a.md", "facet": "insight"},
    {
        "id": "c",
        "title": "x",
        "text": "[[Redis]] [y](../b.md#z) `code`",
        "url": "https://a.example/b?c=d",
        "tags": "a, b",
    },
)
MARKDOWN_TOKENS = (
    "# ", "###### ", "\n===\n", "\n---\n", "```\n", "~~~\n", "````", "> ", "- ", "1. ", "* [ ] ", "| a | b |\n|---|---|\n", "| ",
    "[[", "]]", "[a](", ")", "![", "](<", ">)", "[a]: b.md\n", "<div>", "</div>", "<!--", "-->", "<script>", "<a href='", "`",
    "``", "**", "_", "\\", "\n", "\n\n", "    ", "\t", "  \n", "***\n", "&amp;", "&#0;", "<![CDATA[", "<?", "## Timeline\n",
    "Context: ", "行动：", "2026-03-04: ", "——", "。", "…", "! ", "? ", "e.g. ", "A.B.", '"', "'s", "https://a.b/c", ":::", "$$",
)  # fmt: skip
RST = (
    "=====\nTitle\n=====\n\n.. _label:\n\nPart\n----\n\nText with :ref:`label` and ``code``::\n\n    literal\n\n> quoted\n",
    "标题\n====\n\n.. code-block:: python\n   :linenos:\n\n   print(1)\n\n.. note:: a\n\n=== ===\n a   b\n=== ===\n 1   2\n=== ===\n",
    "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n\n* a\n\n  * b :doc:`/x/y` `z <a.rst>`_\n\n>>> 1\n2\n",
)
RST_TOKENS = (
    "====\n", "----\n", "~~~~\n", "::\n", "\n\n", "\n", ".. _a: b\n", ".. _a:\n", ".. _`a b`:\n", ".. note::\n", ".. code:: x\n", ".. ",
    "__ ", "   ", "\t", ":ref:`", ":doc:`", "`", "``", "`_", "<a.rst>", "+--", "+\n", "| ", "= = =\n", "*", "- ", "1. ", "(a) ", "#. ",
    ">>> ", ":a: ", "|a|", "[1]_", "\\", "\\:", ":", "_", "..\n", ".. index:: a\n", ".. a:b:: ", "*" * 9, "\x0b",
)  # fmt: skip
CODE = {
    ".py": 'import os.path as p\nfrom .a import (b, *)\n\n@d\nclass A(B):\n    """Doc."""\n    x: int = 1\n\n'
    "    async def f(self, *a, **k):\n        return p.join(b(), self.g())\n\nlambda: f'{A().f()!r}'\n",
    ".js": "import a, {b as c} from './d';\nexport default class E extends F { #g = 1; static h() { return c(`x${b()}`); } }\n"
    "const i = async (j) => /re[/]x/.test(j);\nmodule.exports = {k: require('l')};\n",
    ".ts": "namespace N { export interface A<T extends B> { f?(x: T): void } }\n@dec abstract class C implements A<D> "
    "{ constructor(private x: E) { super(); } get y(): F { return <G>this.x; } }\nenum H { I = 1 }\ntype J = K | L;\n",
    ".tsx": "export const A: B = () => <C.D x={e()} {...f}>{g.map(h => <I key={h}/>)}</C.D>;\nfunction j<T,>(k: T) { return k }\n",
    ".go": 'package a\n\nimport (\n\tb "c/d"\n\t. "e"\n)\n\ntype F struct { G; h map[string]I }\n\nfunc (f *F) J(k ...L) (m N) '
    "{ defer b.O(); return f.p() }\n\nvar q = func() { R[S]{} }\n",
    ".rs": "use a::{b as c, d::*};\nmod e { pub struct F<'a, T>(G<T>); }\nimpl<T: H> I for e::F<'_, T> "
    '{ fn j(&self) -> K { c!(self.l(), r#"m"#); d::n() } }\nmacro_rules! o { ($p:expr) => {} }\n',
    ".java": "package a.b;\nimport static c.D.*;\n@E public record F<G>(H i) implements J { F { k(); } class L extends M { "
    "int n() { return o.p(() -> q::r); } } }\nenum S { T { } }\n",
}
CODE_TOKENS = (
    "class ", "def ", "fn ", "func ", "function ", "import ", "from ", "use ", "{", "}", "(", ")", "[", "]", "<", ">", ";", ":", ".",
    "::", "=>", "->", "@", "#", "\n", "\n    ", "\t", '"', "'", '"""', "`", "${", "//", "/*", "*/", "\\", "async ", "await ", "impl ", "new ",
    "self.", "this.", "super", "a.b.c()", "__all__ = ", "lambda: ", "...", "?", "match x:\n case ", "if ", "else", "0x", "r#", "\x0c", "变量", "ſ",
)  # fmt: skip
REQUESTS = (
    {"question": "Which incidents were caused by retries?", "mode": "hybrid", "top_n": 10, "summary": True,
     "filters": {"after": "2026-01-01", "tags": ["incident"], "paths": ["notes/en/"]}, "idempotency_key": "q-17"},
    {"question": "列出所有 #redis 笔记", "strategy": "default", "explain": True, "deadline_s": 9.5, "tenant": "a",
     "max_calls": 3, "max_tokens": 1000, "near_symbol": "a.b::c()", "depth": 2},
    {"question": "x", "plan": {"subqueries": [{"query": "Who?"}, {"query": "What of #1?", "depends_on": [1], "dimension": "how"}]}},
    {"question": "y", "subqueries": [{"query": "one"}, {"query": "two", "under": 1}], "lane": "batch", "decompose": False},
)  # fmt: skip
PLANS = (
    'question = "How?"\nstrategy = "multihop"\n[filters]\ntags = ["queue"]\nafter = 2026-01-02\n\n[[subqueries]]\nid = 7\n'
    'query = "Who owns #4?"\n[[subqueries]]\nid = 3\nquery = "有哪些风险？"\ndimension = "note"\n[[subqueries]]\nid = 4\n'
    'query = "Which?"\nunder = 3\ndepends_on = []\n',
    json.dumps(
        {"question": "Why?", "subqueries": [{"query": "a"}, {"query": "b #1", "depends_on": [1]}], "filters": None}
    ),
    '[[subqueries]]\nquery = """\nx\n"""\n[[subqueries]]\nquery = \'y\'\n',
)
TOML_TOKENS = (
    "[", "]", "[[", "]]", "=", '"', '"""', "'''", "\n", "#", ",", "{", "}", ".", "2026-01-02", "2026-13-45T25:61:61Z", "07:32:00",
    "1e400", "nan", "-inf", "0xff", "1_0", "true", "a.b.c = 1\n", "query = ", "[[subqueries]]\n", "[filters]\n", "id = ", "\\u00", "\r", "\x7f",
    "depends_on = ", "under = ", "[a.b]\n", "- a\n", '{"question": ', "null", "\ufeff",
)  # fmt: skip
SESSIONS = (
    json.dumps({"summary": "Queues.", "messages": [{"role": "user", "content": "What is a stream?"},
                                                   {"role": "assistant", "content": "1. A log.\n2. 队列。", "at": 1}]}),
    '{"role": "user", "content": "缓存穿透是什么？"}\n{"role": "assistant", "content": "..."}\n\n{"role": "user", "content": "那雪崩呢？"}',
    json.dumps([{"role": "user", "content": "a"}]),
    json.dumps({"role": "tool", "content": ""}),
)  # fmt: skip
JSON_TOKENS = (
    "{", "}", "[", "]", '"', ":", ",", "null", "true", "NaN", "-Infinity", "1e999", "9" * 5000, "\\u0000", "\\ud800", "\\", "\n", "\r\n",
    '"role": ', '"content": ', '"messages": ', '"question": ', '"plan": ', '"filters": ', "\ufeff", " ", "\u2028", "[" * 3000, '{"a":' * 3000,
)  # fmt: skip


@cache
def notes() -> tuple[str, ...]:
    """The sample notes."""
    files = sorted((ROOT / "examples" / "notes").rglob("*"))
    return tuple(file.read_text(encoding="utf-8") for file in files if file.suffix in {".md", ".txt"})


@cache
def questions() -> tuple[str, ...]:
    """The questions that the tests of rules and routes know, English and Chinese."""
    found = []
    for name, field in (("rules_questions.jsonl", "question"), ("routes.jsonl", "text")):
        lines = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8").splitlines()
        found += [json.loads(line)[field] for line in lines if line.strip()]
    return tuple(found)
