"""Two runs against each other, and results against published values and physical limits."""
