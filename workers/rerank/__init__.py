"""The rerank pool: orders a leaf's candidates, and the merged pool, against a question. Never touches the store."""
