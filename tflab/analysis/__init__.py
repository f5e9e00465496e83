"""Analysis: ledgers, timelines, tables and statistics of what ran. No TensorFlow in here."""
