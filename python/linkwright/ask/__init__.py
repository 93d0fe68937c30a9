"""Experiments, their schedules, and the one call that simulates them in the native half."""
