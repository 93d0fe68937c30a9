"""Builders of the sections of a dissected run: each takes a `Run` and gives a `Section`, or None with
nothing to show.

One file per section, one line in ``dissect.SECTIONS``. They share the row-to-cell and row-to-curve
rules in ``values``.
"""
