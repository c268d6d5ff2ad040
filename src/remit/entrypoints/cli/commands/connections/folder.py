"""`remit folder`: folders of the machine that runs are shown."""

from __future__ import annotations

from typing import Any

from remit.entrypoints.cli.options import Group, Session

folder = Group("folder", help="Folders of the machine that runs work in or read.")


@folder.rows("list", "id", "kind", "agent", "folder", "PATH", empty="There are no folders.")
def _row(_: Session, one: dict[str, Any]) -> tuple[object, ...]:
    whose = one["agentName"] or "all"
    return one["id"], one["kind"], whose, one["title"], " ".join(one["programs"])
