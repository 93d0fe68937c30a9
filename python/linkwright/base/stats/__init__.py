"""Statistics of samples: medians with exact intervals, modes, convergence, bandwidth."""
