"""Suites: what is to be found out, expanded to experiments, and the loop that runs them."""
