"""Where FastEmbed keeps the models that it fetches. Loads none."""

from __future__ import annotations

import os
from pathlib import Path


def model_cache() -> str:
    """`FASTEMBED_CACHE_PATH`, else a folder of the user's own: FastEmbed's default in /tmp may be anybody's."""
    own = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.environ.get("FASTEMBED_CACHE_PATH") or str(Path(own, "fastembed").expanduser())
