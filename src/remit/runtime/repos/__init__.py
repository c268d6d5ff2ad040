"""Copies of repositories for runs, through git as a child process."""
