"""Commands about outcomes, files, runs, approvals and the record."""
