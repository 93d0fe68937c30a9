"""Advice from a model, or from what was measured: which way to take, and what it costs."""
