"""Reorganisation from the command line, with a report of whose authority changes."""

from typing import Any

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import option
from remit.entrypoints.cli.session import Session, View
from remit.ids import short

#: Most names that are listed for one right; the rest is counted.
_MOST_NAMED = 12

dry_run_option = option("--dry-run", "Only tell whose authority would change.")


def carry_out(session: Session, dry_run: bool, **body: Any) -> None:
    target = session.under_company("reorganise")
    answer = session.client.send("POST", target, {**body, "dryRun": dry_run})
    session.show(answer, draw)


def move(session: Session, agent: str, boss: str, dry_run: bool) -> None:
    carry_out(session, dry_run, operations=[{"op": "move", "agent": agent, "to": boss}])


def draw(answer: View) -> None:
    output.say("This would change (nothing was changed):" if answer["dryRun"] else "Done:")
    output.say("")
    people: dict[str, list[View]] = {}
    for change in answer["changes"]:
        people.setdefault(change["who"], []).append(change)
    if not people:
        output.say("Nobody's authority changes.")
    for who, changes in sorted(people.items(), key=lambda item: item[1][0]["whoName"].casefold()):
        name = changes[0]["whoName"]
        output.say(f"{name} (a person)" if who.startswith("user:") else name)
        for verb in ("gains", "loses"):
            _draw_side(verb, [change for change in changes if change["change"] == verb])
    if answer["eventId"]:
        output.say("", f"Take it back with `remit org undo {short(answer['eventId'])}`.")


def _draw_side(verb: str, changes: list[View]) -> None:
    rights: dict[str, list[str]] = {}
    for change in changes:
        rights.setdefault(change["right"], []).append(change["overName"])
    for right, over in sorted(rights.items()):
        names = [output.shortened(name) for name in sorted(over, key=str.casefold)]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        output.say(f"  {verb}  {right} {', '.join(names[:_MOST_NAMED])}{more}")
