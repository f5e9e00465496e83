"""Graphs from files: recognised, read, fed and given their first values."""
