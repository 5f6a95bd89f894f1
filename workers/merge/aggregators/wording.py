"""What an answer says of itself, in the question's language. Everything else in it is the corpus's own."""

from __future__ import annotations

_SAID = {
    "failed": ("it did not answer: {}", "未得到结果：{}"),
    "nothing": ("it found nothing", "没有找到任何内容"),
    "unrelated": ("it found nothing relevant", "没有找到相关内容"),
    "uncovered": ("no passage speaks of it", "没有段落谈到它"),
    "crowded": ("its passages are not among the results", "它的段落不在结果之中"),
    "in_vain": ("it waited in vain for {}", "没有等到 {} 的结果"),
    "unseen": ("the passage that names {} is not among the results", "提到 {} 的段落不在结果之中"),
    "step": ("step {}", "第 {} 步"),
    "missing": ("Not found: {}", "没有找到：{}"),
    "and": (", ", "、"),
}


def said(name: str, value: str = "", *, chinese: bool) -> str:
    """The phrase of that name with `value` in its place."""
    return _SAID[name][chinese].format(value) if value else _SAID[name][chinese]
