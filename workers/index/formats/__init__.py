"""Formats that are not text: one file each, bytes to text with places. Run by the parser's process alone."""
