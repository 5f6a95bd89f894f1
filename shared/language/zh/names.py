"""Chinese names: foreign ones, 加布里埃尔·加西亚·马尔克斯. Others are found by the marks around them."""

from __future__ import annotations

import re

from shared.language.base import NameRules
from shared.language.text import CJK

NAMES = NameRules(transcribed=re.compile(rf"[{CJK}]{{1,8}}+(?:[·・][{CJK}]{{1,8}}+){{1,4}}"))
