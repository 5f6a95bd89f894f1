"""How a question is read for its search: its route, and whether the dense arm's model reads it. Looks at no corpus."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.language import derived_last
from shared.language.routing import route_by_rules
from shared.language.text import LATIN, SCRIPTS, script_of
from shared.models import Hit
from shared.models.route import Routed

ANY = "multi"
#: What well-known model names say of their languages. First match counts.
_KNOWN = (
    (
        re.compile(
            r"multilingual|bge-m3|gte-multi|qwen|labse|jina-embeddings-v[345]|text-embedding-3|nomic-embed-text-v2|"
            r"arctic-embed-\w+-v2"
        ),
        (ANY,),
    ),
    (re.compile(r"jina-embeddings-v2-base-zh"), ("en", "zh")),
    (re.compile(r"[-_]zh\b|chinese|[-_]zh[-_]"), ("zh",)),
    (
        re.compile(r"minilm|[-_]en\b|[-_]en[-_]|e5-(?:small|base|large)|gte-(?:small|base|large)\b|mpnet|arctic|nomic"),
        ("en",),
    ),
)
_OTHER_SCRIPTS = frozenset(language for languages in SCRIPTS.values() for language in languages)
_COMPARED = 10
# The English MiniLM stays below on 67 % of the eval sets' Chinese questions and on 11 % of the English ones; the
# Chinese ones that pass cost 1.2 nDCG@10 at most.
_MIN_AGREEMENT = 0.3


@derived_last(256)
def question_route(question: str) -> Routed:
    """As `route_by_rules`, once for all stages of a leaf."""
    return route_by_rules(question)


def model_reads(model: str, declared: Sequence[str], question: str) -> bool | None:
    """Whether the model reads the question's language. None: unknown, decide by `arms_agree`.

    `declared` are language codes from the settings ("multi": every language); they win over what the model's name says.
    Only scripts are told apart: a model that reads one language in Latin letters is taken to read all of them, and
    so is a model of which nothing is known.
    """
    script = script_of(question)
    by_name = next((languages for pattern, languages in _KNOWN if pattern.search(model.lower())), ())
    languages = {code if code == ANY else code[:2] for code in map(str.lower, declared or by_name)}
    if not script or ANY in languages:
        return True
    if not languages:
        return True if script == LATIN else None
    if script == LATIN:
        return bool(languages - _OTHER_SCRIPTS)
    return bool(languages.intersection(SCRIPTS.get(script, ())))


def arms_agree(lexical: Sequence[Hit], dense: Sequence[Hit]) -> bool:
    """Whether the dense arm found what shares words with the question, for a model of which nothing is known.

    True when its ten best hits hold 0.3 of the BM25 scores of BM25's own ten best (a hit that BM25 has not found has
    none). A model that cannot read the question finds passages at random. Both lists best first, the longer the better.
    """
    scores = {hit.chunk_id: hit.score for hit in lexical}
    best = sum(hit.score for hit in lexical[:_COMPARED])
    return sum(scores.get(hit.chunk_id, 0.0) for hit in dense[:_COMPARED]) >= _MIN_AGREEMENT * best
