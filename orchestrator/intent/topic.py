"""What a conversation is about, in the words that it used, for questions that refer back to it. Pure, linear."""

from __future__ import annotations

import re

from orchestrator.intent.smalltalk import needs_nothing
from orchestrator.planning.same import folded
from shared.models.session import Message, Session
from shared.text import fold, terms

_MAX_WORDS, _MAX_CHARS, _MAX_OWN = 8, 120, 4
#: So much of a long message is read for its words.
_READ_CHARS = 1000
_HAN = "\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}](?:[\w.+#'-]*[\w+#])?")
_FUNCTION_ZH = re.compile(
    "什么时候|为什么|是什么|什么是|有什么|为何|什么|怎么样|怎么办|怎样|怎么|如何|哪一个|有哪些|哪个|哪些|哪里|哪|是多少|多少|"
    "是不是|是否|有没有|可以|应该|需要|以及|或者|我们|你们|他们|它们|一个|一种|一下|这个|那个|这些|那些|这种|那种|请问|帮我|告诉我|"
    "介绍|第[一二三四五六七八九十两0-9]{1,3}[个种条点项步]|前者|后者|上面|上述|刚才|还有|那么|另外|"
    "(?<!目)的(?!确)|了(?!解)|吗|呢|吧|啊|是|与|和|谁|我|你|它|他|她|那|请"
)
_GENERIC = frozenset(
    ["one", "ones", "first", "second", "third", "fourth", "fifth", "last", "next", "former", "latter", "same", "other"]
)
_OPENS = re.compile(
    r"^(?:and|but|also|what about|how about|what of|what else|why not|which one|which of)\b|"
    "^(?:那么?|还有|另外|然后|以及|而且|再说说|再讲讲|具体)"
)
_REFERS = re.compile(
    r"\b(?:it|its|itself|they|them|their|theirs|he|him|his|she|hers|those|these|the (?:former|latter|same|others?)|"
    r"(?:first|second|third|fourth|fifth|last|next|other|another|that|this|which) (?:one|option|point|item|approach)|"
    r"(?:about|with|of|for|to|like|in|than|do|does|is|was|did|on|after|before|why|how) (?:that|this)|"
    r"above|previously mentioned|you (?:said|mentioned))\b|"
    "它们?|他们|她们|这个|那个|这些|那些|这种|那种|上面|上述|刚才|前者|后者|第[一二三四五六七八九十两0-9]{1,3}[个种条点项步]|呢[?？]?$"
)
_DUMMY = re.compile(r"\bit (?:is )?(?:possible|better|worth|ok|okay|safe|necessary|true|make sense|take)\b")
_ITEM = re.compile(r"[ \t]{0,8}(?:\d{1,2}[.)、．:]|[-*•])[ \t]{0,4}(\S[^\n]{0,200})")
_ORDINALS = {name: n for n, name in enumerate(("first", "second", "third", "fourth", "fifth", "sixth", "seventh"))}
_ORDINALS |= {f"第{name}": place for place, name in enumerate("一二三四五六七八九十")} | {"第两": 1}
_ORDINAL = re.compile(rf"\b({'|'.join(name for name in _ORDINALS if name.isascii())})\b|(第[一二三四五六七八九十两])")


def words(text: str) -> list[str]:
    """The words of `text` that say something, as they are written, in order, without repeats."""
    found: dict[str, str] = {}
    for token in _TOKEN.findall(text[:_READ_CHARS]):
        for word in _FUNCTION_ZH.split(token) if _is_han(token) else [token]:
            if (len(word) > 1 or not _is_han(word or "x")) and terms(word) and fold(word) not in _GENERIC:
                found.setdefault(fold(word), word)
    return list(found.values())


def refers_back(text: str) -> bool:
    """True when a question cannot be understood alone: it says nothing itself, or points at what was said."""
    asked, own = fold(text).strip(), words(text)
    if not own:
        return True
    if len(own) > _MAX_OWN:
        return False
    return bool(_OPENS.match(asked) or _REFERS.search(_DUMMY.sub("", asked)))


def topic_of(session: Session, question: str) -> str:
    """What `question` refers back to: the item that it counts out of the last list, words of the last user messages.

    "" when the conversation says nothing. At most 120 characters.
    """
    said = [message for message in session.recent if folded(message.content[:_READ_CHARS]) != folded(question)]
    found = [*_item(said, question)]
    for message in reversed(said):
        if message.role == "user" and not needs_nothing(message.content):
            found += words(message.content)
            if not refers_back(message.content):
                break
    found = found or words(session.summary)
    own = {fold(word) for word in words(question)}
    chosen = [word for word in dict.fromkeys(found) if fold(word) not in own][:_MAX_WORDS]
    return " ".join(chosen)[:_MAX_CHARS].strip()


def pointless(text: str) -> str:
    """`text` without the words that point back, to be read together with the topic; "" when no others say anything."""
    rest = " ".join(_REFERS.sub(" ", _OPENS.sub("", text, count=1)).split()).strip(" ?？.。,，")
    return rest if words(rest) else ""


def _item(said: list[Message], question: str) -> list[str]:
    """Words of the item that the question counts out of the assistant's last list ("the second one", 第二个)."""
    counted = _ORDINAL.search(fold(question))
    answer = next((message.content for message in reversed(said) if message.role == "assistant"), "")
    if counted is None:
        return []
    items = [match[1] for match in map(_ITEM.match, answer.split("\n")) if match]
    place = _ORDINALS[counted[1] or counted[2]]
    return words(items[place])[:_MAX_WORDS] if place < len(items) else []


def _is_han(text: str) -> bool:
    return "\u3400" <= text[0] <= "\u9fff" or "\uf900" <= text[0] <= "\ufaff"
