"""Turns values into what a terminal shows. Pure: prints nothing, asks nobody. All text passes through `text` first."""
