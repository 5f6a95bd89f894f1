"""Answers without an LLM to questions of several parts: each part has its own sentence, or says that it has none."""

from __future__ import annotations

from shared.models import Facet
from tests.workers.merge.test_extract import hit, pool, tree
from workers.merge.extract import extract
from workers.merge.picker import Picker
from workers.merge.pieces import quotable_sentences


def test_given_a_split_chinese_question_then_each_part_has_the_sentence_of_its_own_kind() -> None:
    question = "开票服务超时后发票被重复开具，金额一共多少，根本原因是什么？"
    about = "关于“开票服务超时后发票被重复开具”："
    found = pool(
        hit(1, "税控接口超时后，开票服务自动重试，2,417 张发票被重复开具，金额共 186 万元。", "0.1", "0.2", "0.3"),
        hit(2, "重试没有带幂等键，税务局把每次请求都当成新发票。", "0.1", "0.2", "0.3").model_copy(
            update={"heading": "根因"}
        ),
    )
    nodes = tree(question, _2=(Facet.CORE, f"{about}金额一共多少？"), _3=(Facet.WHY, f"{about}根本原因是什么？"))
    first, second = extract(question, found, nodes).text.split("\n\n")
    assert "186 万元" in first
    assert "幂等键" in second
    assert "186 万元" not in second


def test_given_a_part_of_which_nothing_is_said_then_the_answer_says_so() -> None:
    question = "How long did the outage of the relay last, and what did it cost us?"
    found = pool(hit(1, "The outage of the relay began in rack 7. The outage of the relay lasted 3 hours."))
    lines = extract(question, found, tree(question)).text.split("\n")
    assert lines[0] == "The outage of the relay lasted 3 hours. [1]"
    assert "Not found: what did it cost us?" in lines


def test_given_a_question_for_several_kinds_that_was_not_split_then_a_sentence_for_each() -> None:
    question = "Who was the commander of INC-7, what did the vendor refund, and which firmware fixed it?"
    found = pool(
        hit(1, "The vendor refunded EUR 9,750. Firmware 3.8.2 fixed it on all trackers.", title="INC-7 drift"),
        hit(2, "The commander was Bram Okonjo.", title="INC-7 drift"),
    )
    lines = [line for line in extract(question, found, tree(question)).text.split("\n") if line]
    assert lines[:3] == [
        "The commander was Bram Okonjo. [2]",
        "The vendor refunded EUR 9,750. [1]",
        "Firmware 3.8.2 fixed it on all trackers. [1]",
    ]


def test_given_a_list_table_then_its_rows_are_read_with_their_heads() -> None:
    text = (
        ".. list-table::\n   :header-rows: 1\n\n   * - code\n     - text\n   * - 409\n     - reading older than the\n"
        "       watermark\n   * - 507\n     - quota used up\n\nBelow it.\n"
    )
    rows = [one.text for one in quotable_sentences([hit(1, text)])]
    assert rows[:2] == ["409 – text: reading older than the watermark", "507 – text: quota used up"]


def test_given_a_csv_table_then_its_rows_are_read_cell_by_cell() -> None:
    text = '.. csv-table:: Limits\n   :header: "plan", "limit"\n\n   "Small", "10, at most"\n   "Large", "90 a day"\n'
    rows = [one.text for one in quotable_sentences([hit(1, text)])]
    assert rows == ["Small – 10, at most", "Large – 90 a day"]


def test_given_parts_that_ask_the_same_of_two_things_then_each_has_the_sentence_of_its_page() -> None:
    question = "Who leads the stage team and who leads front of house?"
    found = pool(
        hit(1, "Tobias Quill leads it. The bar opens at noon.", title="Front of house"),
        hit(2, "It is led by Dag Sorrel and has eleven members.", title="Stage team").model_copy(
            update={"doc_id": "d2"}
        ),
    )
    lines = [line for line in extract(question, found, tree(question)).text.split("\n") if line]
    assert lines[:2] == ["It is led by Dag Sorrel and has eleven members. [2]", "Tobias Quill leads it. [1]"]


def test_given_parts_that_one_sentence_answers_then_it_is_quoted_for_both() -> None:
    question = "标签为什么贴错了，影响了多少份种子？"
    found = pool(hit(1, "有64份水稻种子贴错了标签。", "0.2", "0.3"), hit(2, "种子分发每份25元。", "0.2", "0.3"))
    nodes = tree(question, _2=(Facet.WHY, "标签为什么贴错了？"), _3=(Facet.CORE, "标签影响了多少份种子？"))
    assert extract(question, found, nodes).text.count("有64份水稻种子贴错了标签。 [1]") == 2


def test_given_parts_of_which_none_is_found_then_the_nearest_and_not_that_nothing_is_there() -> None:
    question = "Who designed the pump, and what did the pump cost?"
    found = pool(hit(1, "The pump is tested on every dark night.", "0.2", "0.3"))
    nodes = tree(question, _2=(Facet.CORE, "Who designed the pump?"), _3=(Facet.CORE, "What did the pump cost?"))
    summary = extract(question, found, nodes)
    assert summary.text.startswith(f"Not found: {question}")
    assert summary.text.endswith("The pump is tested on every dark night. [1]")


def test_given_a_line_of_a_command_over_several_lines_then_the_whole_command() -> None:
    code = "```bash\ncurl -X POST http://booth/holds \\\n  -d '{\"seat\": 4}'\n```\n"
    question = "How do I hold a seat at the booth?"
    text = extract(question, pool(hit(1, code, title="Hold a seat")), tree(question)).text
    assert text.startswith(f"{code.rstrip()}\n[1]")


def test_given_a_part_for_a_way_to_do_something_then_its_list_is_quoted_whole() -> None:
    text = (
        "1. Find the backup.\n2. Freeze writing: `obsdb freeze`.\n3. Restore the database:\n\n   ```bash\n"
        "   obsdb restore --target standby\n   ```\n\n4. Compare the rows.\n5. Thaw it.\n\nRestores take 50 minutes.\n"
    )
    picker = Picker("How do I restore the database, and how long does it take?", [hit(1, text, title="Databases")])
    found = [one.text for one in picker.part("How do I restore the database?", None, 8, ["How long does it take?"])]
    assert found[:6] == [
        "1. Find the backup.",
        "2. Freeze writing: obsdb freeze.",
        "3. Restore the database:",
        "`obsdb restore --target standby`",
        "4. Compare the rows.",
        "5. Thaw it.",
    ]
    grouped = Picker("The main disk is full.", [hit(1, text, "0.1", title="Databases")])
    steps = [
        one.text for one in grouped.group("Regarding “The main disk is full”: How do I restore the database?", "0.1", 8)
    ]
    assert steps[:6] == found[:6]


def test_given_steps_that_are_mostly_commands_then_a_chinese_part_has_them_all() -> None:
    text = "1. 用 `obsdb list-backups` 找到备份。\n2. 停止写入：`obsdb freeze --all --now`。\n3. 恢复并核对。\n"
    picker = Picker("怎么恢复数据库，要多久？", [hit(1, text, "0.1", title="恢复数据库")])
    assert len(picker.part("怎么恢复数据库？", "0.1", 8, ["要多久？"])) == 3


def test_given_a_part_of_one_word_then_the_sentence_that_answers_the_rest_is_quoted_for_it_too() -> None:
    question = "Who changed the battery of the valve controller and when?"
    text = "The valve controller is a Hunter X2, near the door. Its battery was changed by Tomasz on 3 May 2026."
    table = "\n\n| bed | crop | sown |\n| --- | --- | --- |\n| A1 | basil | 2026-02-14 |"
    first, second, *_ = extract(question, pool(hit(1, text + table)), tree(question)).text.split("\n\n")
    assert first == "Notes: Its battery was changed by Tomasz on 3 May 2026. [1]"
    assert second == "Its battery was changed by Tomasz on 3 May 2026. [1]"


def test_given_a_heading_that_asks_why_then_the_cause_may_stand_in_any_words() -> None:
    question = "Why did the frost alarm stay silent on 7 April?"
    text = "On 7 April the temperature fell and no frost alarm rang. The sensor had been unplugged for cleaning."
    titled = hit(1, text).model_copy(update={"heading": "Why the frost alarm stayed silent"})
    assert "unplugged" in extract(question, pool(titled), tree(question)).text
    assert "unplugged" not in extract(question, pool(titled.model_copy(update={"heading": "Log"})), tree(question)).text
