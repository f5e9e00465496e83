"""Measurements that are kept: in files, read again, and compared with one another."""
