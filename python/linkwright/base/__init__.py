"""What everything stands on: errors, units, declared keys of files, rows, statistics, names."""
