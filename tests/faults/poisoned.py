"""A `sitecustomize` for the workers of a test: whatever holds the word below kills the process that works on it."""

from __future__ import annotations

from pathlib import Path

WORD = "xpoisonx"

_SOURCE = """
import importlib.abc, importlib.util, os, signal, sys

WORD = "xpoisonx"

def die_of(text):
    if WORD in text:
        os.kill(os.getpid(), signal.SIGKILL)

def in_search(module):
    real = module.run_search_stages
    def run_search_stages(ask, *rest):
        die_of(ask.text)
        return real(ask, *rest)
    module.run_search_stages = run_search_stages

def in_index(module):
    real = module.read_documents
    def read_documents(raw, *rest):
        die_of(raw.content.decode("utf-8", "replace"))
        return real(raw, *rest)
    module.read_documents = read_documents

PATCHES = {"workers.search.tasks": in_search, "workers.index.readers": in_index}

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in PATCHES:
            return None
        patch = PATCHES.pop(name)
        spec = importlib.util.find_spec(name)
        real = spec.loader.exec_module
        def exec_module(module):
            real(module)
            patch(module)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


def write_poison(folder: Path) -> Path:
    """The folder to put in front of the workers' PYTHONPATH."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_SOURCE, encoding="utf-8")
    return folder
