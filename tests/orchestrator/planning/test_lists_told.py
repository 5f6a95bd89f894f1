"""A question in the form of a list is never answered without a word of what was not read: by a grammar of questions."""

from __future__ import annotations

from datetime import date

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.planning.lists.closely import read_closely
from orchestrator.planning.lists.planner import listed_or_told, searched_not_listed
from orchestrator.planning.route import possible_list, route_request, whole_list
from shared.models import Filters, JobRequest
from shared.models.enumeration import Scan, Values
from shared.models.route import PlannerName
from shared.settings import load_settings

TODAY = date(2026, 11, 23)
SETTINGS = load_settings()
VALUES = Values(
    kinds={"loan": 20, "mender": 5, "借展": 9},
    tags={"fragile": 4},
    folders=("loans/", "menders/"),
    fields={
        "borrower": {"Halm House": 9, "Tilden Trust": 8},
        "curator": {"Ada Moreau": 9, "Piet Vos": 8},
        "status": {"open": 8, "returned": 9},
        "fee": {"EUR 500": 5, "EUR 1,200": 8},
        "shipped": {"2026-03-02": 5, "2026-05-30": 8},
        "联络人": {"孟春雨": 5, "何守拙": 4},
        "状态": {"展出中": 5, "已归还": 4},
        "保险额": {"3000元": 5, "9000元": 4},
    },
    documents=34,
)
#: Words that nothing in the corpus says.
STRANGE = ("quorbled", "vimpish", "snarvel", "throoped")
STRANGE_HAN = ("蹴鞠", "鳜龠", "犇骉")


def _joined(*parts: object) -> st.SearchStrategy[str]:
    texts = [part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts]
    return st.tuples(*texts).map(lambda found: " ".join(str(each) for each in found if each))


def _one(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


_STRANGE = st.sampled_from(STRANGE)
_CONDITION = st.one_of(
    _one("of Piet Vos", "for the Tilden Trust", "with a fee over 600 EUR", "shipped in May 2026", "that are open", ""),
    _joined("that were", _STRANGE),
    _joined("near the", _STRANGE, "gate"),
    _joined("for the Tilden Trust that are", _STRANGE),
    _joined("that Piet Vos", _STRANGE),
    _joined("which nobody", _STRANGE),
)
_ENGLISH = st.one_of(
    _joined(_one("Which loans", "List all loans", "How many loans", "Are there any loans", "What loans"), _CONDITION),
    _joined(_one("Who", "Which people"), _STRANGE, "the loans", _CONDITION),
    _joined("Whose loans were", _STRANGE),
    _joined("In which loans was a", _STRANGE, "found"),
    _joined("What is the", _one("most expensive", "oldest", "longest"), _STRANGE, "loan", _CONDITION),
    _joined("Which", _STRANGE, "loans", _CONDITION),
    _joined("Which borrower has the most", _STRANGE, "loans"),
)
_HAN = st.sampled_from(STRANGE_HAN)
_CHINESE = st.one_of(
    st.tuples(_one("哪些借展", "有几件借展", "列出所有借展"), _one("是", "被"), _HAN, st.just("过的")).map("".join),
    st.tuples(_one("孟春雨", "展出中的", ""), _HAN, _one("的借展有哪些", "的借展有多少件", "的借展都有谁")).map(
        "".join
    ),
    st.tuples(st.just("谁"), _HAN, _one("了展出中的借展", "过借展")).map("".join),
    st.tuples(_one("保险额最高的", "最贵的", "最早的"), _HAN, st.just("借展是哪件")).map("".join),
)


def answered(question: str) -> tuple[Scan | None, str]:
    """The list, if it is one, and all that is told of how the question was read."""
    route, _ = route_request(JobRequest(question=question), SETTINGS, None, 5)
    possible = possible_list(route)
    if not possible and route.planner is not PlannerName.ENUMERATION:
        return None, " ".join(searched_not_listed(question, route))
    reading, known = read_closely(question, Filters(), lambda _: VALUES, TODAY)
    found = listed_or_told(question, reading, known, possible=possible, whole=whole_list(route))
    return found.scan, " ".join((*found.warnings, *found.unread))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.one_of(_ENGLISH, _CHINESE))
def test_given_any_question_after_a_list_then_it_is_one_or_that_is_said_and_each_strange_word_is_named(
    question: str,
) -> None:
    scan, told = answered(question)
    strange = [word for word in (*STRANGE, *STRANGE_HAN) if word in question]
    if scan is None:
        assert told, f"searched without a word: {question}"
    for word in strange:
        assert word in told or (scan is None and told), f"{word} is not told of: {question} -> {scan}"
