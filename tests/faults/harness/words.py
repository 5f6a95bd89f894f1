"""The words that the corpus and the questions of the fault suite are made of, English and Chinese."""

from __future__ import annotations

from typing import NamedTuple


class Service(NamedTuple):
    """One made-up service: what notes say of it, and questions ask for."""

    name: str
    owner: str
    store: str
    cause: str
    fix: str


ENGLISH = tuple(
    Service(*row.split("|"))
    for row in """
Atlas Checkout|Mara Lindholm|PostgreSQL|a retry storm of the payment client|a budget for retries and jittered backoff
Borealis Search|Tomas Okafor|Qdrant|an index that no longer fitted into memory|quantised vectors and one more replica
Cinder Billing|Ines Carvalho|MySQL|a long transaction that held row locks|smaller batches and a lock timeout
Delta Ledger|Yusuf Demir|CockroachDB|clock skew between two regions|a tighter time source and a lease check
Ember Mailer|Hanna Virtanen|RabbitMQ|a queue without a length limit|a bounded queue and a dead letter exchange
Fathom Metrics|Oscar Nwosu|ClickHouse|a dashboard that scanned a whole year|a rollup table and a query limit
Granite Uploads|Lena Baumann|object storage|a part size below the minimum|multipart uploads with larger parts
Harbor Gateway|Pavel Novak|Redis|one hot key on a single shard|a local cache in front and key splitting
Indigo Login|Aisha Rahman|LDAP|an expired certificate of the directory|renewal sixty days ahead and an alarm
Juniper Catalog|Marco Bianchi|Elasticsearch|a mapping explosion of free attributes|a flattened field and a limit
Keystone Orders|Sofia Petrova|Kafka|a consumer group that rebalanced for ever|static membership and longer time-outs
Lantern Config|Daniel Kim|etcd|a watch that was never cancelled|leases and a cap on watches per client
""".strip().splitlines()
)

CHINESE = tuple(
    Service(*row.split("|"))
    for row in """
云杉支付|张伟|PostgreSQL|重试风暴压垮了下游接口|为重试设定预算并加入随机退避
青鸟搜索|李娜|Qdrant|索引超出内存后频繁换页|向量量化并增加一个副本
赤霞账单|王强|MySQL|长事务长期持有行锁|拆小批次并设置锁超时
白塔账本|刘洋|TiDB|两个机房之间的时钟偏移|收紧授时误差并检查租约
星河邮件|陈静|RabbitMQ|没有长度上限的队列|限制队列长度并配置死信交换机
海潮监控|杨帆|ClickHouse|看板一次扫描了整年的数据|预聚合表与查询上限
磐石上传|赵磊|对象存储|分片小于最小尺寸|加大分片并行上传
渡口网关|黄敏|Redis|单个分片上的热点键|本地缓存与键拆分
靛蓝登录|周杰|LDAP|目录服务的证书过期|提前六十天续期并告警
松柏目录|吴桐|Elasticsearch|自由属性导致映射爆炸|使用扁平字段并限制字段数
""".strip().splitlines()
)

#: Sections of a note, and what they say: `{}` fields are those of Service.
ENGLISH_SECTIONS = {
    "Overview": "{name} keeps its state in {store}. {owner} owns the service and its on-call rota since {year}.",
    "Incident": "On {date} {name} was down for {minutes} minutes. The cause was {cause}. Alerts fired after {late} s.",
    "Fix": "{owner} put {fix} in place. Since then {name} has stayed under {late} ms at the 99th percentile.",
    "Decision": "The team of {other} reviewed it: {name} stays on {store}, and every change is rehearsed first.",
    "Runbook": "When {name} is slow, look at {store} first, then at {other}, then page {owner}.",
}
CHINESE_SECTIONS = {
    "概述": "{name}的数据存放在{store}中。自{year}年起由{owner}负责，并承担值班。",
    "故障": "{date}，{name}中断了{minutes}分钟。根本原因是{cause}。告警在{late}秒后触发。",
    "修复": "{owner}上线了{fix}。此后{name}的第九十九百分位延迟低于{late}毫秒。",
    "决策": "{other}团队评审后决定：{name}继续使用{store}，每次变更先演练。",
    "手册": "当{name}变慢时，先检查{store}，再检查{other}，最后联系{owner}。",
}

#: What is asked of a service; the number makes each question one of its own.
ENGLISH_ASKS = (
    "Why was {name} down, case {n}?",
    "Who owns {name} and its rota, case {n}?",
    "How was {name} fixed after {cause}, case {n}?",
    "Which store does {name} use, case {n}?",
    "What does the runbook of {name} say, case {n}?",
    "What was decided about {name}, case {n}?",
    "How long was {name} down and when, case {n}?",
)
CHINESE_ASKS = (
    "{name}为什么会中断，案例{n}？",
    "谁负责{name}的值班，案例{n}？",
    "{name}在{cause}之后如何修复，案例{n}？",
    "{name}使用什么存储，案例{n}？",
    "{name}变慢时手册怎么说，案例{n}？",
    "关于{name}做了什么决策，案例{n}？",
    "{name}中断了多久，案例{n}？",
)
#: A chain: the second waits for the first, the third for both.
ENGLISH_CHAIN = ("Which service had {cause}, case {n}?", "Who owns #1?", "What was decided about #1 and #2?")
CHINESE_CHAIN = ("哪个系统因为{cause}而中断，案例{n}？", "谁负责#1？", "关于#1和#2做了什么决策？")
#: Questions that the rules split by themselves.
ENGLISH_SPLIT = "Compare {name} and {other}: why were they down, how were they fixed, and who owns them in case {n}?"
CHINESE_SPLIT = "比较{name}和{other}：为什么会中断，如何修复，以及由谁负责，案例{n}？"
