"""The pools: search, rerank, merge and index. Never imports orchestrator."""
