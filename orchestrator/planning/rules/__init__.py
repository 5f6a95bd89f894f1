"""Decomposes questions by rules, in English and Chinese, where no LLM is at hand. Prefers not to split when unsure."""

from orchestrator.planning.rules.decomposer import decompose_by_rules, read

__all__ = ["decompose_by_rules", "read"]
