"""`remit change`: changes that agents propose to repositories, and decisions about them."""

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, option
from remit.entrypoints.cli.session import Session, View
from remit.model.connections.diff import visible

_LOG_LINES = 20


change = Group("change", help="Changes that agents propose to repositories.")


def _status(_: Session, view: View) -> str:
    decision = view["decision"]
    decided = decision["decision"] if decision and decision["isCurrent"] else ""
    return str(decided if decided and view["status"] == "open" else view["status"])


def _title(_: Session, view: View) -> str:
    return visible(view["title"])


change.rows(
    *("list", "id: {id:short}", ("status", _status), "repo", "into: {target}", ("title", _title)),
    empty="There are no changes.",
)


@change.command()
@click.argument("change")
@option("--diff/--no-diff", "With what it changes.", default=True)
def show(session: Session, change: str, diff: bool) -> None:
    """Show a change: its state and comments, and what it does to files."""
    answer = session.client.get(f"/api/changes/{change}")
    if diff:
        answer["diff"] = session.client.get(f"/api/changes/{answer['id']}/diff")
    session.show(answer, lambda view: _draw(session, view))


def _draw(session: Session, view: View) -> None:
    decision = view["decision"]
    verdict = decision and f"{decision['decision']} {visible(decision['note'])}"
    cells.fields(
        *(session, view, ("title", _title), "id", "repo: {repo}: {branch} into {target}"),
        ("status", lambda _, row: row["status"] + (", it conflicts" if row["conflicts"] else "")),
        *("head", "base", ("decision", lambda *_: verdict), ("request", _request)),
        *("merged as: {mergedCommit}", "to do: {waiting:list}"),
        ("problems", lambda _, row: "; ".join(map(visible, row["problems"]))),
    )
    for mark, paths in view["marks"].items():
        output.say(f"{mark}: {', '.join(map(visible, paths))}")
    for check in view["checks"]:
        output.say(f"check {check['name']}: {check['state']}{_why(check)}")
        if check["state"] == "failed":
            _lines("\n".join((check["log"] or "").splitlines()[-_LOG_LINES:]))
    for about in view["comments"]:
        who = about["agentId"] or about["userId"] or about["outside"]
        line = f":{about['line']}" if about["line"] else ""
        where = f" {visible(about['path'])}{line}" if about["path"] else ""
        output.say(f"{visible(str(who))}{where}:")
        _lines(about["body"])
    for file in view.get("diff", {}).get("files", ()):
        words = ", ".join([*([file["note"]] if file["note"] else ()), *file["marks"]])
        note = f" ({words})" if words else ""
        output.say(f"\n{file['status']} {file['path']}{note}")
        for hunk in file["hunks"]:
            output.say(f"@@ {hunk['heading']}")
            for line in hunk["lines"]:
                number = line["new"] or line["old"]
                output.say(f"{line['kind']} {number:>5} {line['text']}")
    if view.get("diff", {}).get("cut"):
        output.say("It is too large to be shown whole.")


def _why(check: View) -> str:
    needed = " (required)" if check["required"] else ""
    return needed + (f", {visible(check['why'])}" if check["state"] == "broken" else "")


def _request(_: Session, change: View) -> str | None:
    """The state of the request at the forge."""
    request = change["request"]
    if request is None:
        return None
    checks = [f"{visible(each['name'])} {each['state']}" for each in request["checks"]]
    reviews = [
        f"{visible(each['verdict'])} by {visible(each['by'])}" for each in request["reviews"]
    ]
    return ", ".join(
        [f"{request['number']} {request['state']} {request['url']}", *checks, *reviews]
    )


def _lines(text: str) -> None:
    for line in text.splitlines():
        output.say(f"  {visible(line)}")


change.draw = lambda _, view: output.say(f"{visible(view['title'])}: {view['status']}")
