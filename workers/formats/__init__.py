"""Formats that are not text: one file each, bytes to text with places, parsed by a process of its own (`process`)."""
