#!/bin/bash
# Measures how four nodes communicate, with every rank in the container: sbatch packaging/slurm.sh
#SBATCH --job-name=linkwright
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -eu

image=${IMAGE:-linkwright.sif}
# The MPI library in the container must understand the launcher of the host: `srun --mpi=list` shows what it speaks.
srun --mpi="${LAUNCHER:-pmix}" --cpu-bind=cores apptainer run "$image" \
    dissect --on mpi --time-budget 20m --runs "$SLURM_SUBMIT_DIR/runs"
