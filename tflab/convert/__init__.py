"""Convert: traces that were recorded anywhere, as tables, charts and profiles."""
