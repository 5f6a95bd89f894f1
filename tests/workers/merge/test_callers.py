"""The text for a named symbol: definition, callers in order, each cited, in the question's language."""

from __future__ import annotations

from shared.models import MergedHit, MergedPool
from shared.models.hits import Via
from workers.merge.extract import extract


def hit(number: int, symbol: str, how: str, precedence: int | None, callers: int | None = None) -> MergedHit:
    path = "tests/test_a.py" if precedence == 2 else f"lib/m{number}.py"
    via = Via(chunk_id="c1", bridge="Segment.apply", hop=1, how=how, precedence=precedence, callers=callers)
    text = f"def {symbol}():\n    line of another thing\n    Segment.apply(1)\n"
    return MergedHit(
        chunk_id=f"c{number}", doc_id=f"d{number}", path=path, title="m", text=text, symbol=symbol, score=0.01, via=via
    )


def pool(*hits: MergedHit) -> MergedPool:
    return MergedPool(hits=hits, per_leaf={"0.1": tuple(one.chunk_id for one in hits)}, reranked_by="lexical:v1")


def test_given_a_symbol_then_its_definition_and_callers_are_named_and_no_code_is_quoted() -> None:
    found = pool(
        hit(1, "Segment.apply", "symbol", 0, callers=2),
        hit(2, "Console.render", "called by", 1),
        hit(3, "test_apply", "called by", 2),
        hit(4, "other", "call", 5),
    )
    summary = extract("what breaks if this changes", found, {})
    assert summary.text == (
        "`Segment.apply` is defined in lib/m1.py. [1]\n\nCalled by 2 definitions:\n"
        "- `Console.render`, lib/m2.py [2]\n- `test_apply`, tests/test_a.py (test) [3]"
    )
    assert [one.number for one in summary.citations] == [1, 2, 3]
    assert summary.citations[1].quote == "Segment.apply(1)", "the line that calls it"
    assert extract("谁调用了 Segment.apply", found, {}).text == (
        "`Segment.apply` 定义于 lib/m1.py。 [1]\n\n调用它的定义有 2 个：\n"
        "- `Console.render`, lib/m2.py [2]\n- `test_apply`, tests/test_a.py（测试） [3]"
    )


def test_given_more_callers_than_results_or_none_then_the_text_says_how_many() -> None:
    definition, caller = hit(1, "Segment.apply", "symbol", 0, callers=40), hit(2, "render", "called by", 1)
    text = extract("who calls Segment.apply?", pool(definition, caller), {}).text
    assert "Called by 40 definitions, of which 1 are shown:" in text
    text = extract("who calls Segment.apply?", pool(hit(1, "Segment.apply", "symbol", 0, callers=0)), {}).text
    assert text.endswith("No definition was found that calls it.")


def test_given_callers_that_are_not_sure_then_they_stand_apart_and_what_is_called_first_where_asked() -> None:
    found = pool(
        hit(1, "Segment.apply", "symbol", 0, callers=0),
        hit(2, "inner", "call", 1),
        hit(3, "maybe", "called by", 4),
        hit(4, "lib.m4", "called by", 5),
    )
    lines = extract("What does Segment.apply call?", found, {}).text.split("\n")
    assert lines.index("It calls:") + 1 == lines.index("- `inner`, lib/m2.py [2]")
    assert lines.index("- `maybe`, lib/m3.py [3]") > lines.index("- `inner`, lib/m2.py [2]")
    assert lines[lines.index("Imported by:") + 1] == "- `lib.m4`, lib/m4.py [4]"
