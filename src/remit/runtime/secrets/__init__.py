"""Values of secrets: where they come from, and kept in memory."""
