"""The command line: one file per verb, nothing heavy imported before it is needed."""
