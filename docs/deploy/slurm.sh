#!/bin/bash
#SBATCH --job-name=vitrail
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue

# sbatch slurm.sh TABLE TARGET: trains on all machines of the job. TABLE, the model and the
# checkpoint lie on a disk that all machines share; a job that was requeued goes on where it was.
set -euo pipefail

table=$1
target=$2
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export VITRAIL_RANK_TIMEOUT=600

srun torchrun \
  --nnodes="$SLURM_NNODES" \
  --nproc-per-node="$SLURM_CPUS_PER_TASK" \
  --max-restarts=3 \
  --rdzv-id="$SLURM_JOB_ID" \
  --rdzv-backend=c10d \
  --rdzv-endpoint="$first:29400" \
  -m vitrail fit "$table" --target "$target" --solver sbp \
  --checkpoint "$table.checkpoint" --output "$table.safetensors"
