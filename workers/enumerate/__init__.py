"""Lists everything that fits: reads whole filters in shards, structures what it reads, joins the shards' rows."""
