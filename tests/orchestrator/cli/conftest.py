"""Commands run in an empty folder."""

from tests.support.fixtures import empty_folder

__all__ = ["empty_folder"]
