"""`remit folder`: folders of the machine that runs are shown."""

from __future__ import annotations

from remit.entrypoints.cli.options import Group

folder = Group("folder", help="Folders of the machine that agents' runs work in or read.")

folder.rows(
    *("list", "id", "kind", ("agent", lambda _, row: row["agentName"] or "all"), "folder: {title}"),
    ("PATH", lambda _, row: " ".join(row["programs"])),
    empty="There are no folders.",
)
