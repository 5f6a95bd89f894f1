"""What was asked and not found: the answer says so before it quotes what is nearest, and names it for programs."""

from __future__ import annotations

import pytest

from shared.models import Facet, MergedHit
from shared.models.answer import MissingReason
from tests.workers.merge.test_extract import hit, pool, tree
from workers.merge.extract import extract
from workers.merge.pieces import code_blocks, quotable_sentences

TEAMS = "| team | lead | city |\n| --- | --- | --- |\n| Ballast | Ingrid Solheim | Bergen |\n"


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("Where is the Bergen office?", hit(1, TEAMS, title="Teams")),
        ("What is the default of gateway.slot?", hit(1, "Two gateways need different values of gateway.slot.")),
        ("What was the duration of INC-41?", hit(1, "Each rebalance took 40 seconds.", title="INC-41 Late alerts")),
        ("What is the phone number of the box office?", hit(1, "The box office opens at 11:00 on weekdays.")),
        ("When was Dag Sorrel born?", hit(1, "The stage team is led by Dag Sorrel since 2014.")),
        ("上海二号冷库的面积有多大？", hit(1, "上海二号冷库的 46 个探头同时报告 +12 度。", title="上海二号冷库误报")),
        ("安全组有多少人？", hit(1, "安全组的组长是白予安，地点在杭州。", title="小组")),
        ("How heavy is the mirror of Osprey?", hit(1, "The mirror of Osprey is washed every 18 months.")),
        ("How long is MV Corrigan?", hit(1, "MV Corrigan stopped at 07:40. Her draught is 4.1 metres.")),
        ("When was Ada Marsh born?", hit(1, "Commander: Ada Marsh. Date: 2026-07-02")),
        ("杀青机有多重？", hit(1, "二号杀青机停机 4 小时 15 分钟，320 斤鲜叶报废。", title="杀青机停机")),
        ("裴仲恒是哪一年出生的？", hit(1, "观测站由天文学家裴仲恒于 1983 年创建。")),
        (
            "What is the password of the Plover API?",
            hit(1, "The booking API answers on port 8420.", title="Plover API"),
        ),
        ("What was the damage of the blackout?", hit(1, "The damage came to 14,600 EUR.", title="Water in the cellar")),
        ("How much did a night on Wren cost in 2024?", hit(1, "A night on Wren costs 470 EUR.", title="Prices 2026")),
        ("守夜人是谁开发的？", hit(1, "守夜人一夜发了四十条报警短信。", title="守夜人")),
        ("祁思远的电话是多少？", hit(1, "仍不下降，打电话给祁思远，并把种子转移到另一座冷库。")),
        ("三号冷库什么时候建成？", hit(1, "2026-05-09 状态：暂停，等待环评。", title="三号冷库建设日志")),
        (
            "What is the IBU of Mirabelle Sour?",
            hit(
                1, "| beer | 0.3 l | 0.5 l |\n| --- | --- | --- |\n| Mirabelle Sour | 4.20 | 6.40 |\n", title="Taproom"
            ),
        ),
        (
            "What does the observation hive weigh?",
            hit(1, "| article | guests |\n| --- | --- |\n| Observation hive | 25 EUR |\n", title="Hire prices"),
        ),
        (
            "山居图轴的作者是谁？",
            hit(
                1,
                "| 藏品 | 借往 | 保额 |\n| --- | --- | --- |\n| 山居图轴 | 海城美术馆 | 八百万元 |\n",
                title="借展规定",
            ),
        ),
        ("How much must a hive weigh on 1 October?", hit(1, "Hives are weighed on 1 October.", title="Feeding")),
        ("When was the last planning day?", hit(1, "The planning day sorted them all to show ten.")),
        ("规划日是什么时候举行的？", hit(1, "规划日由安全组主持，选出了十个项目。", title="规划日")),
        ("INC-26 影响了多少客户？", hit(1, "缓存的过期时间从 6 小时改为 20 分钟。", title="INC-26 看板空白")),
    ],
)
def test_given_an_attribute_that_no_passage_has_then_that_is_said_before_the_nearest(
    question: str, page: MergedHit
) -> None:
    summary = extract(question, pool(page), tree(question))
    first, nearest = summary.text.split("\n\n")
    assert first in {f"Not found: {question}", f"没有找到：{question}"}
    assert nearest.split("\n")[0] in {"The nearest passages:", "最接近的内容："}
    assert nearest.endswith("[1]")
    assert [(one.asked, one.reason) for one in summary.missing] == [(question, MissingReason.UNSAID)]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long did the drift of the trackers last?", "Drift of the trackers. Duration: 6 hours."),
        (
            "How long are backups kept?",
            "| key | default | meaning |\n| --- | --- | --- |\n| keep | 28 | days that backups are kept |\n",
        ),
        ("备份保留多久？", "| 名称 | 默认值 | 说明 |\n| --- | --- | --- |\n| keep_days | 28 | 备份保留的天数 |\n"),
        ("Why did we choose TimescaleDB?", "We chose TimescaleDB because the fleet team needs joins."),
        ("How much does the radial extractor weigh?", "The radial extractor is of steel. It weighs 86 kg and is new."),
        ("How many millilitres does a medium colony get?", "A weak colony gets 30 ml, a medium colony 40 ml."),
        ("How high is the yearly fee now?", "Yearly fee raised from 36 to 42 euros, from 1 January 2026."),
        ("How much must a double-brood hive weigh on 1 October?", "A double-brood hive should weigh at least 42 kg."),
        ("现在的厂长是谁？", "厂长：罗玉珍，电话 8001。"),
        ("Who wrote the access policy?", "Access policy. Author: Noor Haddad."),
        ("Is a hardware key mandatory?", "Is a hardware key mandatory? Yes, for everybody since 2026."),
        ("When is signing by two people required?", "Signing by two people is required before customs gets it."),
        ("How fast is the ferry Petrel?", "The ferry Petrel carries 210 passengers and does 34 knots."),
        ("How heavy is the anchor of Petrel?", "The anchor of Petrel weighs 350 kg."),
        ("鹊桥的噪声温度是多少？", "鹊桥制冷到零下 253 度，噪声温度为 18 K。"),
        ("安全组有多少人？", "安全组由白予安负责，共有 6 名工程师。"),
        ("看板空白持续了多长时间？", "看板空白，历时 35 分钟。"),
        ("How deep was the water in the cellar?", "The cellar stood 8 cm under water."),
        (
            "How long did the Main House stay dark in February 2026?",
            "2026-02-14: The Main House was dark for 7 minutes.",
        ),
        ("2025年谷雨茶多少钱一斤？", "2025年谷雨茶每斤 460 元。"),
        ("干燥室进水损失了多少钱？", "干燥室进水，损失约八万三千元。"),
        ("主从切换演练上一次是哪天？", "主从切换演练已经举行过：2026-01-21、2026-07-15。"),
        ("How many days is the leave policy of Quillmere?", "The leave policy of Quillmere is 31 days."),
        ("What do we know about the Yamadur depot?", "The Yamadur depot was rated at 4421 bar."),
        ("Tell me more about Okapi", "Okapi ran out of disk on node7."),
        ("What happened to Okapi on node7?", "Okapi ran out of disk on node7."),
        ("What do the notes say about the Yamadur depot?", "The Yamadur depot was rated at 4421 bar."),
        ("关于三号冷库，我们知道些什么？", "三号冷库暂停建设，等待环评。"),
        ("介绍一下三号冷库", "三号冷库暂停建设，等待环评。"),
        ("三号冷库情况怎么样？", "三号冷库暂停建设，等待环评。"),
    ],
)
def test_given_an_answer_in_other_words_then_nothing_is_missing(question: str, text: str) -> None:
    summary = extract(question, pool(hit(1, text)), tree(question))
    assert summary.text.endswith("[1]")
    assert summary.missing == ()


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "How was the Xanadur depot rated in its test?",
            "# Log\n\n```text\nThe Xanadur depot was rated at 4421 bar in its test.\n```\n",
            "The Xanadur depot was rated at 4421 bar in its test. [1]",
        ),
        (
            "三号冷库的验收压力是多少？",
            "# 日志\n\n```\n三号冷库的验收压力是 40 千帕。\n```\n",
            "三号冷库的验收压力是 40 千帕。 [1]",
        ),
        (
            "What is relay.retries?",
            "# Relay\n\n```python\nrelay.retries = 7\n```\n",
            "```python\nrelay.retries = 7\n```\n[1]",
        ),
    ],
)
def test_given_an_answer_between_fences_then_it_is_quoted(question: str, text: str, answer: str) -> None:
    assert extract(question, pool(hit(1, text, title="Log")), tree(question)).text == answer


PRICES = """Prices per night, without travel.

| Year | Wren | Student |
| --- | --- | --- |
| 2024 | 410 EUR | 20 % |
| 2025 | 450 EUR | 25 % |
"""


def test_given_the_answer_of_another_page_than_the_one_that_is_named_then_it_is_missing() -> None:
    question = "What does Hobnail cost a month?"
    pages = [
        hit(1, "Plover costs 350 EUR a month.", title="Plover"),
        hit(2, "Hobnail is the cue server. It replaced Plover's lamps.", title="Hobnail"),
        hit(3, "Hobnail has a lamp.", title="Hobnail"),
    ]
    assert extract(question, pool(*pages), tree(question)).text.startswith(f"Not found: {question}")


def test_given_a_row_that_says_all_that_is_asked_then_it_answers_however_low_its_table_scored() -> None:
    tour = hit(1, "A guided tour costs 12 euros.", title="Visitors", score=0.9)
    summary = extract(
        question := "How much does a night on Wren cost in 2025?",
        pool(tour, hit(2, PRICES, title="Telescope time", score=0.01)),
        tree(question),
    )
    assert summary.text == "2025 – Wren: 450 EUR – Student: 25 % [2]"


def test_given_two_rows_that_are_named_then_both_and_no_other_one() -> None:
    question = "How does the price of a night on Wren in 2025 compare with 2024?"
    rows = PRICES + "| 2026 | 470 EUR | 30 % |\n"
    summary = extract(question, pool(hit(1, rows, title="Telescope time")), tree(question))
    assert [line[:4] for line in summary.text.splitlines()] == ["2025", "2024"]
    assert summary.missing == ()


def test_given_the_answer_ranked_low_then_it_is_quoted_first() -> None:
    question = "Who approved the modem change?"
    many = [hit(n, f"The modem change is planned in step {n} of the rollout.", score=0.9) for n in range(1, 8)]
    last = hit(8, "The modem change on the tugs was approved by Tomasz Lindqvist.", score=0.2)
    assert extract(question, pool(*many, last), tree(question)).text.startswith("The modem change on the tugs was")


def test_given_facts_of_which_one_is_nowhere_then_that_one_is_named() -> None:
    question = "Who commanded INC-7, and how long did the outage last?"
    found = pool(
        hit(1, "Commander: Bram Okonjo. The outage began with a full disk.", "0.2", "0.3", title="INC-7 drift")
    )
    parts = {"_2": (Facet.CORE, "Who commanded INC-7?"), "_3": (Facet.CORE, "How long did the outage last?")}
    summary = extract(question, found, tree(question, **parts))
    assert "Commander: Bram Okonjo. [1]" in summary.text
    assert "Not found: How long did the outage last?" in summary.text
    assert [one.asked for one in summary.missing] == ["How long did the outage last?"]


CODE = "Load it first.\n\n```python\nfrom booth import Board\n\nwith Board() as b:\n    b.go(cues[12])\n```\n"


def test_given_a_question_for_an_example_then_the_block_of_code_is_quoted_whole_and_verbatim() -> None:
    question = "How do I use the Board of booth from Python?"
    other = hit(2, "```\nlamp.on()\n```", title="Lamps")
    text = extract(question, pool(hit(1, CODE, title="Booth"), other), tree(question)).text
    inside = "from booth import Board\n\nwith Board() as b:\n    b.go(cues[12])"
    assert text.startswith(f"```python\n{inside}\n```\n[1]")
    assert "lamp" not in text


def test_given_code_of_restructuredtext_then_it_loses_its_indent_alone() -> None:
    text = "示例：\n\n.. code-block:: python\n\n   with ColdProbe(1) as p:\n       print(p.read())\n\n之后关闭。\n"
    assert [one.text for one in code_blocks([hit(1, text)])] == [
        "```\nwith ColdProbe(1) as p:\n    print(p.read())\n```"
    ]
    assert extract("ColdProbe 怎么用，给个例子", pool(hit(1, text, title="ColdProbe")), {}).text.startswith("```\nwith")


def test_given_long_code_or_control_characters_then_no_block() -> None:
    long = "```\n" + "x = 1\n" * 80 + "```"
    assert code_blocks([hit(1, long), hit(2, "```\nprint('\x1b[31m')\n```")]) == []


def test_given_an_answer_behind_its_question_then_it_stands_below_that() -> None:
    (answer,) = quotable_sentences([hit(1, "Is MFA mandatory? Yes, for everybody.")])
    assert {"mfa", "mandatory"} <= answer.lead


RUNBOOK = "1. Tell the stage manager.\n2. Switch the desk to manual.\n3. Hold the button of Hobnail for six seconds.\n"


def test_given_a_case_of_a_runbook_then_its_steps_and_not_what_the_thing_is() -> None:
    found = pool(
        hit(1, "Hobnail is the cue server: it sends light cues to the stage.", title="Hobnail"),
        hit(2, RUNBOOK, title="Runbook: Hobnail freezes during a show", score=0.8).model_copy(update={"doc_id": "r"}),
    )
    question = "What should I do when Hobnail freezes during a show?"
    text = extract(question, found, tree(question)).text
    assert text.startswith("1. Tell the stage manager. [2]\n2. Switch the desk to manual. [2]\n3. Hold the button")


def test_given_fields_of_a_page_then_the_one_that_is_asked_for_and_no_other_first() -> None:
    fields = "- Severity: high\n- Owner: Dag Sorrel\n\n"
    page = f"{fields}The Cellar Stage stood under water.\n\nCause: a float switch was stuck.\n"
    question = "Why did the Cellar Stage flood?"
    first = extract(question, pool(hit(1, page, title="INC-9 Water")), tree(question)).text.split("\n")[0]
    assert first == "Cause: a float switch was stuck. [1]"


def test_given_a_day_in_the_question_then_the_page_of_that_day() -> None:
    found = pool(
        hit(1, "涉及种子一千二百份。", title="事故2026-01-19：升温"),
        hit(2, "有64份水稻种子贴错了标签。", title="事故2026-04-08：标签", score=0.4),
    )
    text = extract("事故2026-04-08涉及多少份种子？", found, tree("q")).text
    assert text.endswith("有64份水稻种子贴错了标签。 [2]")
    assert "[1]" not in text
