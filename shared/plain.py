"""The form in which names and words are compared: case, width, traditional characters and plural do not count. Pure."""

from __future__ import annotations

import re

from shared.language import simplified
from shared.text import fold

_JOINERS = re.compile(r"[\s_\-]+")
_ES = ("sses", "xes", "ches", "shes", "zes")
_NOT_PLURAL = ("ss", "us", "is")
_LEAST_WORD = 3
#: Traditional characters of tags, kinds and questions beyond those of the phrase tables.
_MORE = str.maketrans(
    "緩籤筆記錄檔檢會議幾總將發嗎麼舉統計條項從屬單聯繫裡裏賬產變關係當負責與圖書頁詞類種隊訊庫網絡務測試導備復啟優續線"
    "誌開庫團隊張號門點軟體資訊連線佈協議證號鑰鎖鏈權賬戶價錢",
    "缓签笔记录档检会议几总将发吗么举统计条项从属单联系里里账产变关系当负责与图书页词类种队讯库网络务测试导备复启优续线"
    "志开库团队张号门点软体资讯连线布协议证号钥锁链权账户价钱",
)


def plain(text: str) -> str:
    """Folded and, for Chinese, simplified as far as the tables go."""
    folded = fold(text)
    return folded if folded.isascii() else simplified(folded).translate(_MORE)


def singular(word: str) -> str:
    """An English word without its plural ending; other words as they are."""
    if len(word) <= _LEAST_WORD or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > _LEAST_WORD + 1:
        return f"{word[:-3]}y"
    if word.endswith(_ES):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(_NOT_PLURAL) else word


def key(value: str) -> str:
    """Equal for the spellings of one value: case, width, "redis-streams" and "Redis Streams", singular and plural."""
    return " ".join(singular(word) for word in _JOINERS.split(plain(value).strip()) if word)
