"""Every directory of a corpus gets an abstract (L0) and an overview (L1), made from its documents."""

from workers.index.directories.renew import Directories

__all__ = ["Directories"]
