"""Two runs against each other, experiment by experiment."""
