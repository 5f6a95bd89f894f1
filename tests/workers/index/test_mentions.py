"""Names of other pages in prose: found where they are meant, and nowhere else."""

from __future__ import annotations

import pytest

from shared.language.page_keys import title_key
from workers.index.mentions import Scanner, Target, TitleForm, names_of, phrase


def found(title: str, text: str) -> bool:
    names = {text: Target(name, title_key(title), "page") for text, name in names_of(title)}
    return bool(Scanner(names).found(text, "other"))


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Query optimization", "how query optimization pays"),
        ("Query optimization", "how Query\noptimization pays"),
        ("Barack Obama", "was sworn in by Barack Obama's friend"),
        ("RabbitMQ", "we moved it to RabbitMQ."),
        ("RabbitMQ", "**Queue** (RabbitMQ, then Redis)"),
        ("Logarithm (mathematics)", "in mathematics, the Logarithm was found"),
        ("Logarithm (mathematics)", "the Logarithm (mathematics) was found"),
        ("Always (2011 film)", 'a remake of the film "Always" of'),
        ("Veep", "in the comedy “Veep” she"),
        ("活着", "他读过《活着》两遍"),
        ("缓存雪崩", "这次是缓存雪崩引起的"),
        ("Redis 持久化", "先看Redis持久化的说明"),
        ("Ｒｅｄｉｓ 持久化", "先看 Redis 持久化 的说明"),
        ("Go语言", "用Go语言写的"),
        ("The Cure", "a song by The Cure that"),
        ("Café de Flore", "met in the Café de Flore twice"),
        ("Die Straße von Wien", "in Die Straße von Wien steht"),
    ],
)
def test_given_a_name_in_prose_when_scanned_then_it_is_found(title: str, text: str) -> None:
    assert found(title, text)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Houston", "a place called houston"),
        ("Houston", "Houston is a city"),
        ("Houston", "so be it. Houston is a city"),
        ("Houston", "a match of Houston Rockets"),
        ("Washington", "led by George Washington"),
        ("Rabbit", "it runs on RabbitMQ"),
        ("Query optimization", "subquery optimizations"),
        ("Query optimization", "see /query optimization"),
        ("The Cure", "they found the cure at last"),
        ("In the End", "in the end it failed"),
        ("Log (mathematics)", "the Log was full"),
        ("Logarithm (mathematics)", "the Logarithm was found"),
        ("Chicago (2002 film)", "a train to Chicago stopped"),
        ("活着", "他还活着"),
        ("Veep", "she met Veep there"),
        ("Paper", "written on paper"),
        ("数据", "数据库很慢"),
        ("To Be", "wants To Be there"),
        ("It", "Here It comes"),
        ("2007", "in 2007 it was"),
        ("", "nothing"),
    ],
)
def test_given_a_word_that_names_nothing_when_scanned_then_it_is_left(title: str, text: str) -> None:
    assert not found(title, text)


def test_given_a_name_inside_a_longer_one_when_scanned_then_only_the_longer_counts() -> None:
    titles = ("York City", "New York City", "York City Council")
    names = {phrase(title): Target(TitleForm(title), title_key(title), title) for title in titles}
    assert Scanner(names).found("moved to New York City for good", "x") == {"new york city"}
    assert Scanner(names).found("moved to New York City for good", "New York City") == set()


@pytest.mark.parametrize("unit", ["ab ", "\u0301\u0323", "x.", "\n\n", "字 ", "(", "A "])
def test_given_hostile_text_when_scanned_then_it_takes_no_more_than_reading(unit: str) -> None:
    assert not found("Query optimization", unit * (200_000 // len(unit)))
    assert len(names_of(unit * 10_000)) == 0
