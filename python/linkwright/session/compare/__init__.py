"""Runs against each other, experiment by experiment; predictions against published values."""
