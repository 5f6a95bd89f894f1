"""Follow-ups that ask the last question of something else: what stood in its place goes, words do not stand twice."""

from __future__ import annotations

import pytest

from orchestrator.planning.follow_up import follow_up
from shared.models.request import ChatMessage, Session


def standalone(before: str, answer: str, question: str) -> str:
    said = [ChatMessage(role="user", content=before), ChatMessage(role="assistant", content=answer)]
    return follow_up(question, question, Session(messages=said)).standalone


@pytest.mark.parametrize(
    ("before", "question", "expected"),
    [
        ("Who leads the Harbour team?", "what about the Ballast team?", "Who leads the Ballast team?"),
        (
            "How much is a student ticket for the Main House?",
            "What about the Cellar Stage instead?",
            "How much is a student ticket for the Cellar Stage?",
        ),
        (
            "How long does it take to restore Plover?",
            "No, I meant Hobnail.",
            "How long does it take to restore Hobnail?",
        ),
        ("session_timeout 的默认值是多少？", "不对，我问的是 backup_keep_days", "backup_keep_days 的默认值是多少？"),
        ("开票服务怎么重启？", "换成冷库数据库呢", "冷库数据库怎么重启？"),
        ("国内单位的种子分发多少钱一份？", "国外的呢？", "国外的种子分发多少钱一份？"),
        ("采集组的队长是谁？", "那设备组呢？", "设备组的队长是谁？"),
        ("INC-2102 的原因是什么？", "INC-2126 呢？", "INC-2126 的原因是什么？"),
        ("平时什么时候可以入库？", "夏天呢？", "夏天什么时候可以入库？"),
        ("How much is a night on Wren in 2026?", "Sorry, I meant 2024.", "How much is a night on Wren in 2024?"),
        ("How much is a night on Wren in 2026?", "And on Osprey?", "How much is a night on Osprey in 2026?"),
        ("What did hosting cost in March 2026?", "And in April?", "What did hosting cost in April 2026?"),
        ("Which port does relay 2.6 use?", "And in 2.5?", "Which port does relay 2.5 use?"),
        ("Why was batch 213 dumped?", "what about batch 212 instead?", "Why was batch 212 dumped?"),
        ("Why did INC-41 happen?", "And INC-63?", "Why did INC-63 happen?"),
        ("Who leads Data?", "Sorry, not Data, Mechanics.", "Who leads Mechanics?"),
        ("What is the draught of Corrigan?", "And in 2024?", "And in 2024 (draught Corrigan)"),
        ("Which port did the relay use in 2.3?", "What was it in 2.2?", "What was in 2.2 (port relay use)"),
        ("2026年全阵列每小时多少钱？", "不对，我是说2024年", "2024年全阵列每小时多少钱？"),
        ("2026年全阵列每小时多少钱？", "那单天线呢？", "2026年单天线每小时多少钱？"),
        ("2026年3月的机房费用是多少？", "4月呢？", "2026年4月的机房费用是多少？"),
        ("北坡园由谁负责？", "不是，我问石门园", "石门园由谁负责？"),
        ("排程器max_parallel的默认值是多少？", "rfi_threshold呢？", "排程器rfi_threshold的默认值是多少？"),
        (
            "What is the default of uplink.batch_size?",
            "And uplink.retry_limit?",
            "What is the default of uplink.retry_limit?",
        ),
        ("What is the default of max_seats?", "and for refund_hours", "What is the default of refund_hours?"),
        ("What does `acks_late` do?", "and `task_lost`?", "What does `task_lost` do?"),
        ("Who led the stage team after Ada?", "And before her?", "Who led the stage team before Ada?"),
        (
            "How do I restart the billing service?",
            "What about the search service?",
            "How do I restart the search service?",
        ),
        ("How much does Copper cost per month?", "per year?", "How much does Copper cost per year?"),
        ("How long are backups kept?", "And logs?", "How long are logs kept?"),
        ("Who leads Data?", "and mechanics?", "mechanics (leads Data)"),
        ("Why did the run on 2026-03-04 fail?", "and the one on 2026-03-11?", "Why did the run on 2026-03-11 fail?"),
        ("张三负责哪些项目？", "李四呢？", "李四负责哪些项目？"),
        ("备份保留多久？", "日志呢？", "日志保留多久？"),
        ("二号冷库的温度是多少？", "那三号的呢？", "三号冷库的温度是多少？"),
        ("Redis 集群怎么扩容？", "缩容呢？", "Redis 集群怎么缩容？"),
        ("灰度网关为什么停机？", "后来呢？", "后来呢（灰度网关 停机）"),
        ("INC-2126 是什么原因造成的？", "后来怎么样了？", "后来怎么样了 (INC-2126)"),
        ("什么是可见性超时？", "默认是多少？", "默认是多少（可见性超时）"),
        ("Where is the Porto office?", "how many people work there?", "how many people work (Porto office)"),
    ],
)
def test_given_a_swap_or_a_correction_then_the_last_question_of_the_new_thing(
    before: str, question: str, expected: str
) -> None:
    assert standalone(before, "So it is.", question) == expected


@pytest.mark.parametrize(
    ("before", "answer", "question", "holds"),
    [
        ("2026年有哪些事故？", "1. 二号冷库升温\n2. 干燥室进水", "最后一个损失了多少？", "干燥室进水"),
        ("7号天线为什么卡死？", "润滑脂冻硬了。", "后来怎么处理的？", "7号天线"),
        ("三号冷库为什么停工？", "没钱了。", "什么时候恢复的？", "三号冷库"),
        ("Is the lift still on hold?", "Yes.", "Why?", "why (lift"),
        ("Which incidents were there?", "1. Dome jammed\n2. Power lost", "Why did the second happen?", "Power lost"),
        ("谁是冷库工程师？", "祁思远。", "他是哪年入职的？", "冷库工程师"),
        ("看板出过哪些故障？", "两次。", "英文文档里有吗？", "看板"),
    ],
)
def test_given_words_that_point_back_then_what_they_mean_is_in_the_question(
    before: str, answer: str, question: str, holds: str
) -> None:
    assert holds in standalone(before, answer, question)


@pytest.mark.parametrize("question", ["其他人怎么申请年假？", "第三个月的费用是多少？"])
def test_given_a_question_that_stands_alone_then_nothing_is_put_into_it(question: str) -> None:
    assert standalone("开票服务怎么重启？", "1. 先通知\n2. 再重启\n3. 检查", question) == question
