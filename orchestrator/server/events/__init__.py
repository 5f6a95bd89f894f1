"""Server-sent events: one reader of Redis a process for all listeners. Changes nothing."""
