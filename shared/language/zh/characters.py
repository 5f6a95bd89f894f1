"""Traditional and simplified characters, by OpenCC's dictionaries. They load at the first Chinese text."""

from __future__ import annotations

import re
from functools import cache

from opencc import OpenCC

#: OpenCC sees nothing else: it takes no lone surrogates, and must not touch what is not Chinese.
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")


def simplified(text: str) -> str:
    """`text` in simplified characters; other text as it is."""
    return _HAN.sub(lambda run: _converter("t2s").convert(run[0]), text)


def traditional(text: str) -> str:
    """`text` in the traditional characters of Taiwan, which are Hong Kong's but for a few."""
    return _HAN.sub(lambda run: _converter("s2tw").convert(run[0]), text)


@cache
def _converter(name: str) -> OpenCC:
    return OpenCC(name)
