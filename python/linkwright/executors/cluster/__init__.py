"""A cluster of network namespaces on this host, for tests and tutorials: real TCP over links of known rate.

    spec.py        the file: shape, rates, faults; the same cluster as a machine file
    namespaces.py  make it, run a command in it, remove it

Everything it makes has a name that begins with `lw-NAME-`, and is removed with these names.
"""
