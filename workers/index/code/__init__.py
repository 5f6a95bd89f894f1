"""Code as chunks: one a definition, named, with the keys of what it calls and imports. Never runs or imports a file.

`languages` says what a language's trees mean, `outline` finds the definitions, `occurrences` what they use, `resolve`
turns a use into the key of its definition, `chunking` cuts the lines and puts the chunks together.
"""
