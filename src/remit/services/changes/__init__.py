"""Changes that agents propose to repositories: proposal, publication, review, checks, ending."""
