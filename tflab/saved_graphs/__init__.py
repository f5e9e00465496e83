"""Saved graphs: recognised, read, fed, and given initial values."""
