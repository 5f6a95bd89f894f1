"""What Redis answers when it cannot do what it is asked, as one sentence with what to do about it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from redis import exceptions
from redis.exceptions import RedisError
from redis.sentinel import MasterNotFoundError

from shared.errors import shown

_DOCTOR = "`ramify doctor` says more"


@dataclass(frozen=True)
class RedisFault:
    """One kind of fault: how its error looks, and what is said of the Redis that gave it."""

    #: Error classes, of which one is enough, or words of Redis. The words stand inside a longer text when it was a
    #: command of a script that was refused, and redis-py then knows no class for it.
    kinds: tuple[type[RedisError], ...]
    words: str
    said: str


#: The first that fits counts: what is special stands before what is general.
_FAULTS = (
    RedisFault((), r"\bNOAUTH\b|Authentication required", "asks for a password: put it into redis.url"),
    RedisFault((exceptions.AuthenticationError,), r"\bWRONGPASS\b", "refuses the password: check redis.url"),
    RedisFault(
        (exceptions.NoPermissionError, exceptions.AuthorizationError),
        r"\bNOPERM\b",
        "does not let its user do this: give the user of redis.url all commands and the keys `*` (ACL SETUSER)",
    ),
    RedisFault(
        (exceptions.BusyLoadingError,),
        r"\bLOADING\b",
        "is loading its file after a start: try again in a moment; `ramify doctor` shows how far it is",
    ),
    RedisFault(
        (exceptions.MasterDownError,),
        r"\bMASTERDOWN\b",
        "is a replica that has lost its master: set redis.url to the master, or see why that is away",
    ),
    RedisFault(
        (exceptions.ClusterDownError,), r"\bCLUSTERDOWN\b", "says that its cluster is down: `redis-cli cluster info`"
    ),
    RedisFault(
        (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterCrossSlotError),
        r"\b(MOVED|ASK|TRYAGAIN|CROSSSLOT) ",
        "is a node of a Redis Cluster: set redis.url to a Redis that stands alone, or use redis.sentinels",
    ),
    RedisFault(
        (exceptions.ReadOnlyError,),
        r"\bREADONLY\b",
        "is a read-only replica: set redis.url to its master, or let redis.sentinels find it",
    ),
    RedisFault(
        (exceptions.OutOfMemoryError,),
        r"\bOOM\b|used memory > 'maxmemory'",
        "is out of memory: raise its maxmemory or let old jobs expire",
    ),
    RedisFault(
        (),
        r"\bMISCONF\b",
        "cannot write to its disk and takes no changes: make room there; its log and `ramify doctor` say more",
    ),
    RedisFault(
        (),
        r"\bNOREPLICAS\b",
        "has too few replicas that follow it, and takes no changes: start them, or lower min-replicas-to-write",
    ),
    RedisFault(
        (),
        r"\bBUSY Redis is busy|\bBUSY\b.*script",
        "is busy with a script that does not end: wait, or end it with `redis-cli script kill`",
    ),
    RedisFault(
        (), r"max number of clients reached", "has no connection left: raise its maxclients, or stop some programs"
    ),
    RedisFault((), r"unknown (sub)?command", "is too old: Ramify needs Redis 6.2 or later"),
    RedisFault(
        (),
        r"CERTIFICATE_VERIFY_FAILED",
        "has a certificate that is not trusted here: name its authority, redis.url = rediss://...?ssl_ca_certs=FILE",
    ),
    RedisFault(
        (), r"SSL: WRONG_VERSION_NUMBER", "does not speak TLS: write redis:// instead of rediss:// in redis.url"
    ),
    RedisFault(
        (MasterNotFoundError,),
        r"No master found for",
        "is not found: no Sentinel of redis.sentinels knows a living master of that name; a failover takes some "
        "seconds, else check redis.sentinels and redis.sentinel_master",
    ),
    RedisFault(
        (exceptions.MaxConnectionsError,),
        r"",
        "is not asked: this program has used up its connections; ask for less at a time",
    ),
    RedisFault(
        (),
        r"Connection closed by server",
        "closed the connection: it was restarted, or killed this client (client-output-buffer-limit, CLIENT KILL); "
        f"try again, {_DOCTOR}",
    ),
    RedisFault((exceptions.InvalidResponse,), r"", "is no Redis: check redis.url"),
)


def redis_fault(error: BaseException) -> str | None:
    """What is said of the Redis that gave `error`, as the end of a sentence; None when it is no fault of Redis.

    An error of another library counts by the Redis error that it was raised from (kombu's OperationalError).
    """
    cause = error if isinstance(error, RedisError) else error.__cause__
    if not isinstance(cause, RedisError):
        return None
    text = f"{getattr(cause, 'status_code', None) or ''} {cause}"
    for known in _FAULTS:
        if isinstance(cause, known.kinds) or (known.words and re.search(known.words, text)):
            return known.said
    if isinstance(cause, exceptions.ConnectionError | exceptions.TimeoutError):
        name = type(cause).__name__
        return f"does not answer ({name}): start it with `ramify up -d`, or check redis.url; {_DOCTOR}"
    return None


def unforeseen_fault(error: Exception) -> str:
    """What is said of an error that nobody foresaw."""
    return f"refused a command ({type(error).__name__}: {shown(str(error))}): {_DOCTOR}; --debug shows where"
