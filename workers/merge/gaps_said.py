"""What the LLM says is missing in what was found. Asked once a job where `gaps.ask` is set and there is an LLM."""

from __future__ import annotations

from functools import partial

from shared.errors import DeadlineError, RamifyError
from shared.models import Cost
from shared.models.gaps import Gap, GapSignal
from shared.providers.fallbacks import fell_back
from shared.providers.llm.client import LLM, spent
from shared.providers.llm.prompts import missing_prompt
from shared.providers.llm.replies import MAX_MISSING_TOKENS, parse_missing
from shared.providers.time_shares import seconds_for
from workers.merge.gaps import FIRST, GapQuery, SearchedTree, is_worth_while


def said_gaps(tree: SearchedTree, llm: LLM, left_s: float) -> tuple[tuple[GapQuery, ...], Cost, tuple[str, ...]]:
    """Queries for what the LLM misses, the most needed first; what asking has cost, and what went wrong.

    Nothing is asked where no round may follow. Never raises for a fault of the LLM: the signals stand alone then.
    """
    if tree.searched_again or not is_worth_while(tree):
        return (), Cost(), ()
    most = tree.options.max_leaves
    passages = [(hit.title, hit.text) for hit in tree.hits[:FIRST]]
    try:
        if not (timeout_s := seconds_for("binding", left_s)):
            raise DeadlineError("no time was left for it")
        read = partial(parse_missing, most=most)
        prompt = missing_prompt(tree.question, passages, most)
        reply = llm.complete(prompt, timeout_s=timeout_s, max_tokens=MAX_MISSING_TOKENS, check=read)
    except RamifyError as error:
        fell_back("llm", error)
        fault = str(error).rstrip(".")
        return (), spent(error).cost, (f"What is missing was not asked of the LLM ({fault}): the rules alone say it.",)
    queries = parse_missing(reply.text, most)
    said = (GapQuery(Gap(signal=GapSignal.SAID, what=one, gain=1 / place), one) for place, one in enumerate(queries, 1))
    return tuple(said), reply.cost, ()
