"""Suites that run, runs that are compared, and why a simulation takes its time."""
