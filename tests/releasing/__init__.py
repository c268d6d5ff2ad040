"""A release as a tested thing: built from a clean clone, compared, installed, and played.

`make release` builds into `dist/` and tries what it built; `make accept` does that and the other
heavy checks, and writes their result to `docs/acceptance.md`. `tests/test_distribution.py` is the
short form, for each `make check`. `docs/releasing.md` has the steps of a release.
"""
