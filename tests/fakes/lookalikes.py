"""Files of two tenants that look alike: the same paths, titles, symbols, tags, links and words, in two languages."""

from __future__ import annotations

import json

#: Tenant -> what stands in each of its texts and in nobody else's.
MARKS = {"alpha": "甲记alphamark", "beta": "乙记betamark"}


def files(tenant: str) -> dict[str, str]:
    """Path -> text. Beta has more files, and other words in the same ones: counts and weights differ."""
    mark, more = MARKS[tenant], tenant == "beta"
    found = {
        "team/README.md": f"# Team\n\nHow {mark} keeps its caches. 缓存手册。",
        "team/en/redis.md": _page(
            "Redis persistence", mark, "The queue broker uses [[Cache avalanche]] and 缓存雪崩.", more
        ),
        "team/en/avalanche.md": _page("Cache avalanche", mark, "See [the broker](redis.md). Owner: Ada", more),
        "team/zh/缓存.md": _page("缓存雪崩", mark, "大量缓存同时失效，见[[Redis persistence]]。负责人：张三", more),
        "team/memories/review.md": "---\nkind: memory\ntags: [review]\n---\n# Review\n\n## Insight\n\n"
        f"{mark} restored redis from snapshots.",
        f"team/{mark}/plan.md": _page(f"Plan {mark}", mark, "The plan of Redis persistence and 缓存雪崩.", more),
        "team/lines.jsonl": "\n".join(
            json.dumps({"id": n, "title": f"Record {n}", "text": f"{mark} incident {n}" + " of redis 缓存" * (n + 1)})
            for n in range(9 if more else 4)
        ),
        "team/shop/cart.py": _CODE.format(mark=mark.translate({ord("甲"): "a", ord("乙"): "b", ord("记"): "_"})),
        "team/shop/checkout.py": f'"""Checkout of {mark}."""\n\nfrom shop.cart import total\n\n\n'
        f'def pay(items):\n    """Pay {mark}."""\n    return total(items)\n',
    }  # fmt: skip
    found |= {
        f"team/incidents/{n}.md": f"---\ntags: [incident, 事故]\ndate: 2026-03-0{n + 1}\n---\n# Incident {n}\n\n"
        f"Redis persistence failed {'again redis 缓存 ' * n}at {mark}. 缓存失效 {n} 次。\n\nOwner: {mark}-{n}\n"
        for n in range(6 if more else 3)
    }
    return found


def _page(title: str, mark: str, text: str, more: bool) -> str:
    extra = "redis redis broker queue 缓存 缓存 " * (5 if more else 1)
    return (
        f"---\ntags: [redis, 缓存, tag-{mark}]\ndate: 2026-03-04\n---\n# {title}\n\n{mark} says: {text}\n\n"
        f"## Compiled truth\n\n{title} holds for {mark}. {extra}\n\n## Timeline\n\n- 2026-03-01 {mark} looked at it\n"
    )


_CODE = '''"""The cart of {mark}."""


def total(items):
    """The total of {mark}."""
    return sum(price(item) for item in items)


def price(item):
    """A price of {mark}."""
    return item.price


def only_{mark}(items):
    """Calls the total of {mark}."""
    return total(items)
'''
