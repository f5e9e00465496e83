"""Views: a record in, blocks out. One file a subject; nothing here draws."""
