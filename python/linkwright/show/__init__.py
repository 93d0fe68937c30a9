"""Pages, pictures and tables."""
