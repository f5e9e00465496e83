"""CLI: what every command shares: arguments, progress, output folders, errors."""
