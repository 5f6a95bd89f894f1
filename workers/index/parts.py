"""What a section is of its page (F8): compiled truth, timeline or neither. Read from headings and rules alone.

The page model is GBrain's (seed 004): what holds now stands above, how it came to be stands below, by date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.models.hits import Part
from workers.index.blocks import Block, Kind
from workers.index.facets import labels

_TRUTH = frozenset({
    "compiled truth", "current truth", "truth", "summary", "executive summary", "tl;dr", "tldr", "in short",
    "key facts", "facts", "conclusion", "conclusions", "current state", "current status", "state of play",
    "takeaways", "key takeaways",
    "结论", "现状", "事实", "关键事实", "已知事实", "摘要", "总结", "小结", "概要", "要点", "当前状态",
    "目前状态", "当前结论", "一句话总结",
})  # fmt: skip
_TIMELINE = frozenset({
    "timeline", "log", "activity log", "event log", "work log", "worklog", "history", "revision history",
    "version history", "changelog", "change log", "release history", "release notes", "journal", "chronology",
    "updates",
    "时间线", "时间轴", "记录", "日志", "历史", "历史记录", "变更记录", "变更日志", "更新记录", "更新日志",
    "修订记录", "修订历史", "工作记录", "工作日志", "大事记", "发布记录",
})  # fmt: skip
#: A line of its own that opens the timeline whatever follows.
_SENTINELS = frozenset({"<!-- timeline -->", "--- timeline ---"})
_DATED = re.compile(
    r"(?:[-*+]|\d{1,3}[.)]|>)?\s{0,3}(?:\*\*|__|\[|【|\|)?\s?"
    r"(?:\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{4}年\d{1,2}月(?:\d{1,2}日)?)(?!\d)"
)


def part_of(title: str, headings: Sequence[str]) -> Part | None:
    """The part that a heading path names, the deepest heading first; None when no heading says so.

    The document's own title may make it all a timeline ("Changelog"), never all truth.
    """
    for heading in reversed(headings):
        if part := _named(heading):
            return part
    return Part.TIMELINE if _named(title) is Part.TIMELINE else None


def timeline_start(blocks: Sequence[Block]) -> int | None:
    """The index of the block with which the page's timeline begins, None when nothing parts it from the rest.

    That is a rule (`---`) with a timeline heading or a dated entry right behind it, or a line `<!-- timeline -->`.
    Everything above is compiled truth then.
    """
    for place, block in enumerate(blocks):
        if block.kind is Kind.TEXT and block.text.strip().casefold() in _SENTINELS:
            return place
        if block.kind is Kind.RULE and place + 1 < len(blocks) and _opens_timeline(blocks[place + 1]):
            return place
    return None


def _opens_timeline(block: Block) -> bool:
    if block.kind is Kind.HEADING:
        return _named(block.text) is Part.TIMELINE or bool(_DATED.match(block.text))
    return block.kind is Kind.TEXT and bool(_DATED.match(block.text))


def _named(heading: str) -> Part | None:
    for label in labels(heading):
        if label in _TRUTH:
            return Part.TRUTH
        if label in _TIMELINE:
            return Part.TIMELINE
    return None
