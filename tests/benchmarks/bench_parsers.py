"""PDF pages a second from bytes to the store beside bare pypdfium2, memory on 2,000 pages, and two parsers beside one.

Run: pytest -m benchmark -s tests/benchmarks/bench_parsers.py
RAMIFY_TEST_PDFS names a folder of PDFs; without it, they are made of the sample notes.

Bare is what pypdfium2 takes in one process to load every page and give its text (`get_text_range`). "made" is what two
parsers take to read the same files, cut them into chunks and make their keyword vectors, "to the store" with the index
worker's part. Each as time on the clock, and as seconds of the processor over two cores, which others' work on the
machine does not stretch.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pypdfium2 as pdfium
import pytest

from shared.models import RawDocument
from shared.settings import Settings
from tests.fakes.stores import in_place
from tests.support.pdf import pdf
from workers.formats.process import ParserPool
from workers.index.keywords import KeywordEncoders
from workers.index.made import asked_of, made_files
from workers.index.pipeline import Indexer, timings
from workers.index.readers.formats import parsers

NOTES = Path(__file__).parents[2] / "examples" / "notes" / "en"
FILES, PAGES, LINES = 12, 40, 40
BATCH, ROUNDS, TIMES = 4, 3, 3
LEAST_OF_TWO, MOST_MB = 1.7, 300

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]


def _lines() -> list[str]:
    words = " ".join(file.read_text(encoding="utf-8") for file in sorted(NOTES.rglob("*.md"))).encode("ascii", "ignore")
    plain = words.decode().replace("(", " ").replace(")", " ").replace("\\", " ").split()
    lines, line = [], ""
    for word in plain:
        line = f"{line} {word}".strip()
        if len(line) > 80:
            lines.append(line)
            line = ""
    return lines


def _file(seed: int, pages: int) -> bytes:
    rng, lines = random.Random(seed), _lines()
    starts = [rng.randrange(len(lines) - LINES) for _ in range(pages)]
    return pdf([lines[start : start + LINES] for start in starts])


class Spent(NamedTuple):
    """Seconds on the clock, and seconds of the processor divided by the cores that may share them."""

    wall: float
    cpu: float


def _spent(work: Callable[[], object], processes: Sequence[int] = (), cores: int = 1) -> Spent:
    """What `work` takes in this process and these."""
    began, before = time.perf_counter(), time.process_time() + sum(map(_cpu, processes))
    work()
    after = time.process_time() + sum(map(_cpu, processes))
    return Spent(time.perf_counter() - began, (after - before) / cores)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bare(files: list[bytes]) -> None:
    for content in files:
        with pdfium.PdfDocument(content) as document:
            for page in document:
                text = page.get_textpage()
                text.get_text_range()
                text.close()
                page.close()


def _raws(files: list[bytes]) -> list[RawDocument]:
    return [
        RawDocument(source="/c", path=f"{n}.pdf", identity=f"/c/{n}.pdf", suffix=".pdf", content=content)
        for n, content in enumerate(files)
    ]


def _made(files: list[bytes], pool: ParserPool) -> Spent:
    """What the pool takes to read, cut and encode all files, asked for at once."""
    sizes, encoders = Settings().chunking, KeywordEncoders.of(250.0, trigrams=True)

    def make(raw: RawDocument) -> None:
        pool.ask("make", *asked_of([raw], 1, sizes, encoders), partial(made_files, [raw]), 120)

    for process in pool._all:  # a process takes a second to start
        asked, content = asked_of(_raws(files[:1]), 1, sizes, encoders)
        process.ask({**asked, "task": "make", "seconds": 120}, content, bytes)
    with ThreadPoolExecutor(len(files)) as threads:
        return _spent(
            lambda: list(threads.map(make, _raws(files))), [process.pid for process in pool._all], len(pool._all)
        )


def _ingested(folder: Path, files: list[bytes], pages: int) -> tuple[Spent, dict[str, float]]:
    """What an ingest takes from bytes to the store, in batches as the index queue takes them, and its parts a page."""
    gc.set_threshold(10_000)  # as in a worker
    store = in_place(folder)
    indexer = Indexer(store, None, Settings())
    indexer._maker._seen = 1 << 30  # as behind the first MB
    raws, every = _raws(files), list[dict[str, float]]()
    indexer.index([raws[0].model_copy(update={"identity": "/c/first.pdf"})])

    def index(start: int) -> None:
        with timings() as parts:
            outcomes, _ = indexer.index(raws[start : start + BATCH])
        assert {outcome.status.value for outcome in outcomes} == {"added"}
        every.append(parts)

    def work() -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(index, range(0, len(raws), BATCH)))

    spent = _spent(work, [process.pid for process in parsers()._all if process.pid], 2)
    store.close()
    return spent, {name: round(1000 * sum(one.get(name, 0) for one in every) / pages, 2) for name in every[0]}


def test_given_pdfs_when_made_by_two_processes_then_they_share_the_work(tmp_path: Path) -> None:
    named = os.environ.get("RAMIFY_TEST_PDFS")
    files = [file.read_bytes() for file in sorted(Path(named).glob("*.pdf"))] if named else []
    files = (files or [_file(seed, PAGES) for seed in range(FILES)]) * TIMES  # the last one leaves a process idle
    pages = sum(len(pdfium.PdfDocument(content)) for content in files)
    pools = {size: ParserPool(size) for size in (1, 2)}
    spent: dict[str, list[Spent]] = {"bare": [], "made by one": [], "made by two": [], "to the store": []}
    parts: dict[str, float] = {}
    for turn in range(ROUNDS + 1):
        whole, parts = _ingested(tmp_path / str(turn), files, pages)
        measured = (_spent(lambda: _bare(files)), _made(files, pools[1]), _made(files, pools[2]), whole)
        for name, found in zip(spent, measured, strict=True):
            spent[name] += [found] if turn else []
    for pool in pools.values():
        pool.close()
    for what in Spent._fields:
        middle = {name: statistics.median(getattr(one, what) for one in found) for name, found in spent.items()}
        print(what, {name: f"{found:.2f} s, {pages / found:.0f} pages/s" for name, found in middle.items()})
        shares = {name: f"{middle['bare'] / found:.2f}" for name, found in middle.items()}
        print(f"{what} of bare pypdfium2, where 0.6 is wanted: {shares}")
    two = statistics.median(one.wall for one in spent["made by one"]) / statistics.median(
        one.wall for one in spent["made by two"]
    )
    print(f"two parsers {two:.2f} x one; ms a page of all threads {parts}; load {os.getloadavg()}")
    assert two >= LEAST_OF_TWO


def test_given_two_thousand_pages_when_parsed_then_the_memory_is_bounded() -> None:
    pool = ParserPool(1)
    try:
        (raw,) = _raws([_file(1, 2_000)])
        encoders = KeywordEncoders.of(250.0, trigrams=True)
        asked = asked_of([raw], 1, Settings().chunking, encoders)
        _, cuts = pool.ask("make", *asked, partial(made_files, [raw]), 120)
        status = Path(f"/proc/{pool._all[0].pid}/status").read_text()
    finally:
        pool.close()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
    (found,) = cuts.values()
    print(f"2,000 pages, {found.size.characters:,} characters: at most {peak:.0f} MB")
    assert {name for chunk in found.chunks for _, name in chunk.places} == {f"p. {n}" for n in range(1, 2_001)}
    assert peak < MOST_MB
