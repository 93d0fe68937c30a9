"""Builders of the sections of a dissected run: each takes a `Run` and returns a `Section`, or None if it has no data.

Each section is one file and one line in ``dissect.SECTIONS``. ``values`` holds the shared rules that turn rows into
cells and curves.
"""
