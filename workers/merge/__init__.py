"""The merge pool: merges the tree of leaves and writes the summary. Never searches."""
