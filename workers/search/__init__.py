"""The search pool: finds a leaf's candidates. Embedded, its process owns the store."""
