"""Lists everything that fits (E3): reads whole filters in shards, structures what it reads, joins the shards' rows."""
