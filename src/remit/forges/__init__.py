"""Forges: GitHub, GitLab, Gitea and Forgejo behind one interface, through their APIs."""
