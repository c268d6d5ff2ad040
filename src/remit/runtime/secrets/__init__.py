"""Values of secrets: their sources, and the vault that caches them in memory."""
