"""The job store and a client on the empty Redis of the tests."""

from tests.support.jobs import ramify, store

__all__ = ["ramify", "store"]
