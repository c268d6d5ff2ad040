"""Schema migrations, applied in order at the start."""
