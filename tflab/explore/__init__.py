"""Explore: a local page with the program on the left and its stages on the right."""
