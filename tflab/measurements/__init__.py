"""Measurements that are kept: in files, read again, and held against one another."""
