"""Changes that agents propose to repositories: proposed, published, talked about, ended."""
