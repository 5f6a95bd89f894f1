"""What is said when Redis is not what it should be."""

from __future__ import annotations

import pytest
from redis import exceptions

from shared.errors import NotRunningError
from shared.job_store.connect import reachable
from shared.settings import Settings

URL = "redis://:pass-word@127.0.0.1:6399/0"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (exceptions.ConnectionError("refused"), "does not answer"),
        (exceptions.TimeoutError("slow"), "does not answer"),
        (exceptions.AuthenticationError("WRONGPASS"), "refuses the password"),
        (exceptions.InvalidResponse("Protocol Error: b'HTTP/1.1 400 Bad Request'"), "is no Redis"),
        (exceptions.ReadOnlyError("You can't write against a read only replica."), "read-only replica"),
        (exceptions.OutOfMemoryError("command not allowed"), "out of memory"),
    ],
)
def test_a_redis_that_cannot_be_used_is_one_sentence_with_its_place_and_no_password(
    error: Exception, sentence: str
) -> None:
    with pytest.raises(NotRunningError, match=sentence) as caught, reachable(Settings(redis={"url": URL})):
        raise error
    assert "127.0.0.1:6399" in str(caught.value)
    assert "pass-word" not in str(caught.value)
