"""Views: each turns a record into blocks. One file per subject; views never draw."""
