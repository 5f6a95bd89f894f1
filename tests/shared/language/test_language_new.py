"""A language that the product has never heard of: routing, planning, lists, dates, names and sentences take it."""

from __future__ import annotations

import re
from datetime import date

import pytest

from orchestrator.planning.intent import intent_by_rules
from orchestrator.planning.lists.reading import read_question
from orchestrator.planning.planner import decompose_by_rules
from shared.language import answer_language, languages, question_language, register, sentence_in
from shared.language.base import DateWords, Language, NameRules, Split, SplitKind, Subquestion, TypedPhrases
from shared.language.names import names_of
from shared.language.routing import asks, route_by_rules
from shared.language.tables import ListPhrases, RoutingTable, WordTable
from shared.language.text import plain, terms, value_key
from shared.models import Facet, Filters, MergedHit, MergedPool, Node, NodeKind, Source
from shared.models.enumeration import Values
from shared.models.request import Session
from shared.models.route import QueryType
from workers.index.blocks import part_of
from workers.index.metadata import facet_of
from workers.merge.answer import no_retrieval
from workers.merge.extract import extract
from workers.search.stages.edge_keys import asked_direction

ROUTING = {
    "words": {"all": ["todas las", "todos los"]},
    "courtesies": [r"(?:hola|gracias)\b"],
    "asks": r"^(?:¿|qué|cómo|lista)",
    "types": [
        {
            "name": "list_all",
            "says": "enumeration",
            "weight": 0.9,
            "pattern": "^lista <all>",
            "when": ["lista"],
            "examples": ["Lista todas las notas"],
        }
    ],
    "intents": [],
}
SAYS = {
    "nothing_found": "El corpus no tiene nada sobre esto.",
    "not_retrieved": "No hay nada que buscar.",
    "how": "Cómo",
    "why": "Por qué",
    "regarding": "Sobre «{}»: {}",
}


class Spanish(Language):
    """So much of Spanish as a page holds."""

    code = "es"
    least_coverage = 0.2
    names = NameRules(runs=re.compile(r"[a-z]+ del [a-z]+"))
    dates = DateWords(
        spans=(re.compile(r"(?P<n>enero|marzo) de (?P<y>20\d\d)"),),
        months={"enero": 1, "marzo": 3},
        ahead=re.compile(r"(?P<word>desde) $"),
        bends={"desde": "from"},
        lead=("en ",),
    )

    def reads(self, text):
        return 0.95 if re.search(r"[¿¡ñáéíóú]|\b(?:lista|qué|cómo|las|los)\b", text.lower()) else 0.0

    def speaks(self, text):
        return self.reads(text)

    def term(self, word):
        return "" if word in {"como", "las", "los", "que", "es", "una"} else word

    def routing_keys(self, text, words):
        return words

    def split(self, question):
        parts = [part.strip("¿? ") for part in question.split(" y ")]
        asked = tuple(Subquestion(facet=Facet.HOW, query=f"¿{part}?", asked=True) for part in parts)
        return Split(kind=SplitKind.COMPOUND, parts=asked) if len(parts) > 1 else Split()

    def names_nothing(self, query):
        return query == "¿qué cambia?"

    def typed_phrases(self, question):
        return TypedPhrases(resource=f"guía: {question}")

    @property
    def routing(self) -> RoutingTable:
        return RoutingTable.model_validate(ROUTING)

    @property
    def lists(self) -> ListPhrases:
        phrases = {
            "frame": ["lista", "todas las", "de"],
            "noun": ["notas?"],
            "about": ["sobre"],
            "tagged": ["etiquetadas"],
        }
        return ListPhrases(phrases=phrases, kinds={"decision": ("decisiones",)})

    @property
    def words(self) -> WordTable:
        return WordTable.model_validate(
            {
                "edges": {"back": [r"qué llama a \w+"]},
                "sections": {"timeline": ["cronología"], "facets": {"result": ["resultado"]}},
                "says": SAYS,
            }
        )


@pytest.fixture
def spanish():
    withdraw = register(Spanish())
    yield languages()[-1]
    withdraw()


def test_given_a_new_language_when_a_text_is_written_in_it_then_it_is_found_and_the_others_stay(spanish):
    assert question_language("¿Cómo funciona la caché?") is spanish
    assert answer_language("¿Cómo funciona la caché?") is spanish
    assert question_language("How does the cache work?").code == "en"
    assert question_language("缓存是怎么工作的？").code == "zh"


def test_given_a_new_language_when_routed_then_its_rules_decide(spanish):
    routed = route_by_rules("Hola, lista todas las notas sobre Redis")
    assert (routed.type, routed.unsure) == (QueryType.ENUMERATION, False)
    assert routed.reasons[0].rule == "es.list_all"
    assert asks("cómo arranca")
    assert route_by_rules("Gracias").type is QueryType.NONE


def test_given_a_new_language_when_decomposed_then_its_parts_are_searched_and_a_bare_one_gets_its_context(spanish):
    found = decompose_by_rules("¿Cómo se instala Redis y qué cambia?", 5)
    assert [sub.query for sub in found.subqueries] == [
        "¿Cómo se instala Redis?",
        "Sobre «¿Cómo se instala Redis»: ¿qué cambia?",
    ]


def test_given_a_new_language_when_a_list_is_asked_for_then_its_words_and_dates_are_read(spanish):
    values = Values(kinds={"decision": 2}, tags={"redis": 3})
    reading = read_question(
        "Lista todas las decisiones etiquetadas redis desde marzo de 2026", Filters(), values, date(2026, 11, 20)
    )
    assert reading.scan.understood == "kind = decision, dated 2026-03-01 or later, tag = redis"


def test_given_a_new_language_when_a_question_is_phrased_by_type_then_it_says_how(spanish):
    queries = intent_by_rules("¿Cómo funciona la caché?", Session()).queries
    assert "guía: ¿Cómo funciona la caché" in [query.query for query in queries]


def test_given_a_new_language_when_text_is_read_then_its_stop_words_headings_and_edges_count(spanish):
    assert terms("cómo es la caché") == ["la", "cach"]
    assert part_of("", ["Cronología"]) == "timeline"
    assert facet_of(["Resultado"]) == "result"
    assert asked_direction("¿Qué llama a conclude?") == "back"
    assert names_of("", "vive en la casa del lago") == ("casa del lago",)


def test_given_a_new_language_when_an_answer_is_written_then_our_sentences_are_in_it(spanish):
    question = "¿Cómo funciona la caché?"
    assert no_retrieval(question).text == "No hay nada que buscar."
    assert extract(question, MergedPool(), {}).text == "El corpus no tiene nada sobre esto."
    found = _summary(question, ("¿Cómo se llena la caché?", "¿Cómo se vacía la caché?"))
    assert found.count("### Cómo · ") == 2
    assert (
        sentence_in(spanish, "partial") == "The list is not complete."
    )  # what it does not say, the first language says


def test_given_a_language_that_is_withdrawn_when_asked_again_then_nothing_of_it_is_left(spanish):
    register(again := Spanish())()
    assert again not in languages()
    assert spanish in languages()


def test_given_a_language_that_states_nothing_when_registered_then_nothing_changes():
    class Nothing(Language):
        code = "xx"

    questions = ("List all notes tagged redis", "如何优化数据库查询性能？", "Thanks!", "")
    before = [(route_by_rules(one), decompose_by_rules(one, 5), terms(one)) for one in questions]
    withdraw = register(Nothing())
    after = [(route_by_rules(one), decompose_by_rules(one, 5), terms(one)) for one in questions]
    withdraw()
    assert after == before


def test_given_traditional_characters_when_compared_then_they_are_the_simplified_ones_and_nothing_else_changes():
    assert value_key("樂觀鎖") == value_key("乐观锁")
    assert value_key("緩存標籤") == "缓存标签"
    assert plain("皇后在後面") == "皇后在后面"
    assert plain("\ud800データベース") == "\ud800データベース"
    parts = decompose_by_rules("為什麼服務會超時？", 5).subqueries
    assert parts[0].query == "服務會超時的常見原因有哪些？"


def _summary(question: str, asked: tuple[str, ...]) -> str:
    texts = (
        "La caché funciona como memoria rápida. Nadie la ve.\n\nLa caché se llena con cada lectura nueva. Esto tarda.",
        "La caché funciona por claves cortas. Nadie las lee.\n\nLa caché se vacía cuando vence su plazo. Esto basta.",
    )
    root = Node(id="0", level=0, facet=Facet.CORE, query=question, kind=NodeKind.BRANCH)
    leaves = [Node(id=f"0.{n}", level=1, facet=Facet.HOW, query=query) for n, query in enumerate(asked, 1)]
    hits = tuple(
        MergedHit(
            chunk_id=f"c{n}", doc_id="d", path=f"n{n}.md", title="Caché", text=text, score=0.9,
            sources=(Source(node_id=f"0.{n}", facet="how", rank=1, score=0.9),),
        )
        for n, text in enumerate(texts, 1)
    )  # fmt: skip
    pool = MergedPool(hits=hits, per_leaf={f"0.{n}": (f"c{n}",) for n in (1, 2)}, reranked_by="lexical:v1")
    return extract(question, pool, {node.id: node for node in (root, *leaves)}).text
