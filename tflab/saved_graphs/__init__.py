"""Saved graphs: recognised, read, fed and given their first values."""
