"""Doctor: what works here, and what to do about what does not."""
