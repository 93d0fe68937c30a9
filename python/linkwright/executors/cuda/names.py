"""Names that experiments use for what only this executor has."""

# How experiments name the allreduce of native.py.
NATIVE = "cuda-native"
