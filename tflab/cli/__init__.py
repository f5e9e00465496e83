"""What every command shares: arguments, progress, output folders, and the one error door."""
