"""An agent's daily notes: files of the knowledge base with the description
`memories/YYYY-MM-DD.md`."""

import re

from remit.authority import Action
from remit.errors import BadInput
from remit.services import lookup
from remit.services.command import Context, query
from remit.store.organisation import workload as statements

MOST_DAYS = 30
_NAME = re.compile(r"memories/(\d{4}-\d\d-\d\d)\.md")


@query("notes.recent")
def recent(ctx: Context, *, days: int) -> list[tuple[str, str]]:
    """Return the caller's notes of the latest days that have any: day and file, latest first."""
    lookup.company_of_caller(ctx, None)
    me = ctx.actor.agent_id
    if me is None:
        raise BadInput("Only agents have notes.", "Look into the knowledge base.")
    ctx.require(Action.MESSAGE_READ, on="notes", place=(me,))
    files: dict[str, str] = {}
    for file, description in ctx.tx.all(statements.NOTES, agent=me, limit=4 * MOST_DAYS):
        if name := _NAME.fullmatch(description):
            files.setdefault(name[1], file)
    return list(files.items())[: min(max(days, 0), MOST_DAYS)]
