"""Doctor: what does not work here, and what to do about it."""
