"""Where requests come in: translate, nothing else."""
