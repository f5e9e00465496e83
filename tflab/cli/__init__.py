"""What every command shares: arguments, progress, output folders, and where errors leave."""
