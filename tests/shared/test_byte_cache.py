"""A memory that is bounded in bytes."""

from __future__ import annotations

from shared.byte_cache import ByteCache


def test_given_more_than_its_bytes_when_kept_then_what_was_used_last_stays() -> None:
    memory: ByteCache[int, str] = ByteCache(100)
    for number in range(10):
        memory.keep(number, f"v{number}", 30)
        assert memory.get(0) == "v0"
    assert [number for number in range(10) if memory.get(number)] == [0, 8, 9]
    memory.keep(8, "other", 45)
    assert [memory.get(number) for number in (0, 8, 9)] == [None, "other", "v9"]
    memory.keep(7, "too large", 101)
    assert len(memory) == 0
    memory.keep(7, "again", 100)
    assert memory.get(7) == "again"
    assert memory.find([7, 8]) == {7: "again"}
    memory.clear()
    assert memory.get(7) is None
