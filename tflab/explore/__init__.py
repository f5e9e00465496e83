"""Explore: a local page where the program stands at the left and its life at the right."""
