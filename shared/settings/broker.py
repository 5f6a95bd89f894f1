"""Which server carries Celery's messages. The state of every job stays in Redis, whatever it is."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from shared.settings.sections import SettingsSection

_REDIS, _RABBITMQ = ("redis", "rediss"), ("amqp", "amqps")
#: Why a server that Celery or kombu knows cannot be the broker, by words in its scheme; the first one counts.
_REFUSED = {
    "cluster": "Redis Cluster cannot carry queues: one command reads several of them, which lie on different nodes",
    "sentinel": "name Sentinels in redis.sentinels and leave broker.url empty: the broker is then the master they name",
    "sqs": "SQS tells no exact length of a queue, by which lost work is found, and has no remote control",
    "kafka": "Kafka has no acknowledgement of a single message, nor remote control",
}
_ELSE = "other brokers are not supported, since lost work is found by the exact lengths of queues"


class BrokerSettings(SettingsSection):
    """Celery's broker. Empty `url`: the Redis of the job store."""

    url: SecretStr = Field(
        default=SecretStr(""),
        description="amqp://user:password@host:5672/vhost of RabbitMQ, amqps:// for TLS; several nodes with ; between; "
        "or another Redis; empty = the Redis of redis.url",
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=60, description="RabbitMQ: seconds to connect, and to confirm a message"
    )
    heartbeat_s: int = Field(
        default=15, ge=2, le=600, description="RabbitMQ: seconds between heartbeats; without two of them it is away"
    )

    @property
    def rabbitmq(self) -> bool:
        """True when the broker is RabbitMQ."""
        return self.url.get_secret_value().partition("://")[0] in _RABBITMQ

    @field_validator("url")
    @classmethod
    def _known(cls, value: SecretStr) -> SecretStr:
        parts = [one for one in value.get_secret_value().split(";") if one]
        try:
            schemes = [urlsplit(one).scheme for one in parts if (urlsplit(one).port or 1)]
        except ValueError:
            raise ValueError("it is no URL: percent-encode what is special in its login, and check its port") from None
        for scheme in schemes:
            if scheme not in {*_REDIS, *_RABBITMQ}:
                why = next((why for word, why in _REFUSED.items() if word in scheme), _ELSE)
                raise ValueError(f"begin it with amqp://, amqps://, redis:// or rediss://; {why}")
        if len(parts) > 1 and not {*schemes} <= {*_RABBITMQ}:
            raise ValueError("only RabbitMQ may have several nodes")
        return value
