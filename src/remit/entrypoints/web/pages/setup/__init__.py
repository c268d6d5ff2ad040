"""Set-up: what the command line sets up, on pages, with pickers and a test before saving."""
