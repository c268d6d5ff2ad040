"""Messages and notices to the outside."""
