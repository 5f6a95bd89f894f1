"""A corpus of records whose fields stand in front matter, lines, lists, tables or only prose; what is true is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random

_TOWNS = ("Leeds", "Porto", "Riga", "Turku")
_FIRST_DAY = date(2025, 2, 3)


@dataclass(frozen=True)
class Record:
    """One document: its kind, place and day, and the fields that it has."""

    path: str
    kind: str
    title: str
    fields: Mapping[str, str]
    day: date | None = None
    tags: tuple[str, ...] = ()
    body: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Where it lies, with a slash at the end."""
        return f"{self.path.rpartition('/')[0]}/"

    def says(self, name: str, *values: str) -> bool:
        """True when a field has one of these values."""
        return self.fields.get(name) in values

    @property
    def text(self) -> str:
        """The file, in the form of its kind."""
        return _FORMS[self.kind](self)


def records(seed: int = 28) -> list[Record]:
    """All of them, the same for the same seed."""
    random = Random(seed)
    makers = (_trials, _films, _parts, _cases, _holdings, _letters)
    return [record for make in makers for record in make(random)]


def paths_of(corpus: Sequence[Record], fits: Callable[[Record], bool]) -> set[str]:
    """The paths of those that fit."""
    return {one.path for one in corpus if fits(one)}


def _trials(random: Random) -> Iterator[Record]:
    leads = ("Ines Okafor", "Marek Dahl", "Yuki Tan", "Rosa Lindqvist")
    for number in range(20):
        enrolled = 20 + random.randrange(48) * 10
        fields = {
            "phase": random.choice(("Phase 1", "Phase 2", "Phase 3")),
            "sponsor": random.choice(("Halden Biotech", "Merrow University", "Kestrel Trust")),
            "investigator": random.choice(leads),
            "status": random.choice(("recruiting", "completed", "suspended", "withdrawn")),
            "enrolled": f"{enrolled} patients",
            "site": random.choice(_TOWNS),
        }
        if number % 4 == 1:
            del fields["sponsor"]
        tags = tuple(tag for tag in ("blinded", "placebo", "paediatric") if random.random() < 0.4)
        field_of_study = ("asthma", "migraine", "psoriasis")[number % 3]
        folder = ("cardiology", "oncology")[number % 2]
        yield Record(
            f"studies/{folder}/trial-{number:02}.md",
            "trial",
            f"KT-{100 + number} in {field_of_study}",
            fields,
            _FIRST_DAY + timedelta(days=29 * number),
            tags,
            f"A study of {field_of_study} in adults. Visits are every six weeks.",
            {"enrolled": enrolled},
        )


def _films(random: Random) -> Iterator[Record]:
    people = ("Aino Varga", "Tomas Reyes", "Lucia Brandt", "Pavel Mork")
    for number in range(18):
        budget, runtime = random.randrange(2, 40) / 2, random.randrange(72, 166)
        fields = {
            "Director": random.choice(people),
            "Producer": random.choice(("Nadia Frost", "Ivo Castellan", "Greta Hol")),
            "Budget": f"{budget:g} million EUR",
            "Runtime": f"{runtime} minutes",
            "Stage": random.choice(("in development", "shooting", "post-production", "released")),
            "Location": random.choice(_TOWNS),
            "Release": (date(2026, 1, 9) + timedelta(days=random.randrange(500))).isoformat(),
        }
        if number % 3:
            fields["Insurer"] = random.choice(("Nordlys Mutual", "Cove & Sons"))
        yield Record(
            f"films/film-{number:02}.md",
            "film",
            f"Film {number:02}: The {('Quiet', 'Copper', 'Winter', 'Second')[number % 4]} Harbour",
            fields,
            _FIRST_DAY + timedelta(days=31 * number + 3),
            tuple(tag for tag in ("documentary", "night shoots", "stunts") if random.random() < 0.4),
            "The script has been read twice." if number % 2 else "The drone was lost at sea, and found.",
            {"Budget": budget * 1e6, "Runtime": runtime},
        )


def _parts(random: Random) -> Iterator[Record]:
    for number in range(18):
        weight, stock, price = random.randrange(4, 90) * 10, random.randrange(0, 60) * 5, random.randrange(8, 300) / 4
        fields = {
            "Supplier": random.choice(("Ostrava Forge", "Lindqvist Metals", "Bay Castings")),
            "Material": random.choice(("steel", "brass", "nylon")),
            "Weight": f"{weight} g",
            "Stock": str(stock),
            "Price": f"{price:.2f} EUR",
            "Condition": random.choice(("active", "obsolete", "on hold")),
            "Approved by": random.choice(("Dana Whitlock", "Omar Sayegh")),
        }
        yield Record(
            f"parts/{('valves', 'brackets')[number % 2]}/part-{number:02}.md",
            "part",
            f"P-{7000 + 13 * number}",
            fields,
            tags=("spare",) if number % 3 == 0 else (),
            body="Keep it dry." if number % 2 else "Torque the bolts to 12 Nm.",
            numbers={"Weight": weight, "Stock": stock, "Price": price},
        )


def _cases(random: Random) -> Iterator[Record]:
    for number in range(20):
        amount = random.randrange(3, 90) * 5
        fields = {
            "案由": random.choice(("买卖合同纠纷", "民间借贷纠纷", "劳动争议", "物业纠纷")),
            "承办法官": random.choice(("韩雪梅", "曹立峰", "孟庆云", "罗晓东")),
            "原告": random.choice(("远洲贸易", "林国栋", "恒泰物业")),
            "被告": random.choice(("海岳建材", "宋玉兰", "锦程物流")),
            "标的额": f"{amount}万元",
            "审理状态": random.choice(("审理中", "已结案", "已中止", "待开庭")),
            "法庭": random.choice(("第一法庭", "第三法庭", "第五法庭")),
        }
        if number % 5 == 2:
            del fields["承办法官"]
        yield Record(
            f"卷宗/{('民一庭', '民二庭')[number % 2]}/案件{number:02}.md",
            "案件",
            f"（2026）民初{300 + number}号",
            fields,
            _FIRST_DAY + timedelta(days=30 * number + 6),
            tuple(tag for tag in ("调解", "涉外", "简易程序") if random.random() < 0.4),
            "双方提交了鉴定意见。" if number % 3 else "本案附有录音证据。",
            {"标的额": amount},
        )


def _holdings(random: Random) -> Iterator[Record]:
    for number in range(20):
        volumes = random.randrange(1, 40)
        fields = {
            "书库": random.choice(("古籍库", "特藏室", "地方文献库")),
            "版本": random.choice(("明刻本", "清抄本", "民国铅印本")),
            "册数": f"{volumes}册",
            "捐赠人": random.choice(("陆文渊", "袁静仪", "方国华")),
            "借阅状态": random.choice(("可借", "外借中", "修复中", "仅供阅览")),
            "保管员": random.choice(("苏婉清", "段志远", "贺一鸣")),
        }
        if number % 4 == 3:
            del fields["捐赠人"]
        yield Record(
            f"馆藏/书目{number:02}.md",
            "馆藏",
            f"书目{number:02} {('江河志', '草木谱', '驿路图', '盐法考')[number % 4]}",
            fields,
            _FIRST_DAY + timedelta(days=28 * number + 11),
            tuple(tag for tag in ("孤本", "善本", "虫蛀") if random.random() < 0.4),
            "书页有水渍。" if number % 2 else "封面完好。",
            {"册数": volumes},
        )


def _letters(random: Random) -> Iterator[Record]:
    for number in range(12):
        town = random.choice(_TOWNS)
        yield Record(
            f"letters/letter-{number:02}.md",
            "letter",
            f"Letter {number:02}",
            {},
            _FIRST_DAY + timedelta(days=40 * number),
            ("archive",) if number % 2 else (),
            f"We met in {town} and spoke for a while. "
            + ("The freezer had failed again." if number % 3 == 0 else "The weather was kind to us."),
        )


def _front(one: Record, names: tuple[str, str, str] = ("kind", "date", "tags"), more: str = "") -> str:
    lines = [f"{names[0]}: {one.kind}"]
    lines += [f"{names[1]}: {one.day}"] if one.day else []
    lines += [f"{names[2]}: [{', '.join(one.tags)}]"] if one.tags else []
    return "---\n" + "\n".join(lines) + f"\n{more}---\n\n# {one.title}\n\n"


def _in_front_matter(one: Record) -> str:
    chinese = not one.kind.isascii()
    more = "".join(f"{name}: {value}\n" for name, value in one.fields.items())
    return f"{_front(one, ('类型', '日期', '标签') if chinese else ('kind', 'date', 'tags'), more)}{one.body}\n"


def _in_bullets(one: Record) -> str:
    lines = "\n".join(f"- **{name}:** {value}" for name, value in one.fields.items())
    return f"{_front(one)}{lines}\n\n{one.body}\n"


def _in_table(one: Record) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in one.fields.items())
    return f"{_front(one)}| Field | Value |\n| --- | --- |\n{rows}\n\n{one.body}\n"


def _in_lines(one: Record) -> str:
    lines = "\n\n".join(f"{name}：{value}" for name, value in one.fields.items())
    return f"{_front(one, ('类型', '日期', '标签'))}{lines}\n\n{one.body}\n"


def _in_prose(one: Record) -> str:
    return f"{_front(one)}{one.body}\n"


_FORMS: Mapping[str, Callable[[Record], str]] = {
    "trial": _in_front_matter,
    "film": _in_bullets,
    "part": _in_table,
    "案件": _in_lines,
    "馆藏": _in_front_matter,
    "letter": _in_prose,
}

RECORD_CODE = {
    "labkit/base.py": """from abc import ABC
import functools


class Assay(ABC):
    def run(self):
        return prepare(self)

    @property
    def label(self):
        return "x"


class BloodAssay(Assay):
    def run(self):
        return 1


def prepare(assay):
    return assay
""",
    "labkit/tasks.py": """import functools
from labkit.base import Assay, prepare
from queueing import job


@job
def weigh(sample):
    return prepare(sample)


@job
async def spin(sample):
    return sample


@functools.lru_cache
def density_of(name):
    return 1


class UrineAssay(Assay):
    @property
    def tint(self):
        return 2
""",
    "labkit/errors.py": """class LabError(Exception):
    pass


class SampleError(LabError):
    pass


class ScaleError(LabError):
    pass
""",
    "labkit/tests/test_tasks.py": """from labkit.tasks import weigh


def test_weigh():
    assert weigh(1)


def test_weigh_twice():
    assert weigh(weigh(1))
""",
}
