"""The MCP server: the operations as tools and the corpus as resources, over stdio or HTTP. Made for models to read."""
