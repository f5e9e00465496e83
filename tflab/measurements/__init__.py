"""Measurements in files: written, read, and compared."""
