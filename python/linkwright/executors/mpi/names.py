"""Names that experiments use for the collectives of the library itself."""

# How experiments name the collectives of the library itself.
NATIVE = "mpi-native"
NATIVE_IN_PLACE = "mpi-native-in-place"
