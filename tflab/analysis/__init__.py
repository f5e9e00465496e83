"""Analysis: ledgers, timelines, tables and statistics of what ran."""
