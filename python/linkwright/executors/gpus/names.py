"""Names that experiments use for what only this executor has, and the fewest GPUs that it takes."""

# How experiments name the library's collective.
NCCL = "nccl"
# Paths of an experiment: with access to each other's memory, or through the host.
PEER, STAGED = "peer", "staged"
# A single GPU has no partner.
LEAST = 2
