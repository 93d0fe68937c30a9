"""Machine files from what systems say about themselves."""
