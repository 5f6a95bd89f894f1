"""What can be asked of Ramify, each thing once: the command line, HTTP and MCP take names, words and types from here.

`registry.OPERATIONS` are all of them. They call the client and nothing below it.
"""
