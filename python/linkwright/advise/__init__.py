"""What models answer: why, how long, what would be faster; no pages."""
