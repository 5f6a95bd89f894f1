"""Who calls over a network, and what it may: callers, their scopes and keys. Reads no job and knows no route."""
