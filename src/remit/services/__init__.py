"""The verbs, one noun a file: each is identify, decide, change, record, in one transaction."""
