"""The job store and a client on the empty Redis of the tests."""

from tests.support.fixtures import ramify, store

__all__ = ["ramify", "store"]
