"""Files and texts of other tools, read and written."""
