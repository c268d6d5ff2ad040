"""`remit doctor`: findings about this installation, each with its next step."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import click

from remit.entrypoints.cli.client import Client
from remit.entrypoints.cli.commands.company import account
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.session import Session, View
from remit.errors import RemitError
from remit.model.connections.folder import FolderKind
from remit.runtime import diagnosis
from remit.runtime.diagnosis import Finding
from remit.runtime.runs import conditions, key_files
from remit.runtime.sandbox import sandbox_policy

#: Hidden files that are named.
_MOST_NAMED = 10


@click.command(
    cls=Command,
    forgiving=True,
    examples=(
        "remit doctor",
        "remit doctor --json",
    ),
)
def doctor(session: Session) -> int:
    """Check this installation and say what to do next."""
    findings = [
        *_settings(session),
        *diagnosis.look(session.settings),
        *_instance(session),
        *_outside(session),
        *_conditions(session),
        *_accounts(session),
        *_receivers(session),
    ]

    columns = ("check", "state", "found", "next step")
    rows = [finding._asdict() for finding in findings]
    session.show(rows, lambda _: output.table(columns, findings, empty=""))
    return 1 if any(finding.state == "fail" for finding in findings) else 0


def _settings(session: Session) -> Iterator[Finding]:
    """Findings about wrong settings; the other checks go on with the defaults."""
    for wrong in session.wrong_settings:
        yield Finding("settings", "fail", wrong.sentence, wrong.step)


def _instance(session: Session) -> Iterator[Finding]:
    try:
        session.anonymous.get("/health")
    except RemitError as error:
        yield Finding("instance", "warn", error.sentence, error.step)
    else:
        yield Finding("instance", "ok", f"answers at {session.url}")


def _outside(session: Session) -> Iterator[Finding]:
    """Findings about how others reach the instance of this home, if it has one."""
    settings = session.settings
    if not settings.board_token_file.exists():
        return
    from remit.entrypoints import outside_check

    yield from diagnosis.look(settings, (outside_check.look,))
    for address in session.here.outside:
        try:
            with closing(Client(address, None)) as client:
                client.get("/health")
        except RemitError as error:
            yield Finding("from outside", "warn", error.sentence, error.step)
        else:
            yield Finding("from outside", "ok", f"answers at {address}")


def _conditions(session: Session) -> Iterator[Finding]:
    """Findings about the programs that runs find here, and the folders that the board shows
    them."""
    search: list[str] = []
    for folder in session.visible("folders"):
        if folder["path"] is None:
            yield Finding("folder", "ok", f"{folder['agentName']} works in {folder['title']}")
            continue
        try:
            kind = FolderKind(folder["kind"])
            place = conditions.looked_at(folder["path"], session.settings.home, kind)
            covered = key_files.found(place) if folder["hides"] else []
        except RemitError as error:
            yield Finding("folder", "fail", error.sentence, error.step)
            continue
        search += [f"{folder['path']}/{part}" for part in folder["programs"]]
        whose = folder["agentName"] or "every run"
        verb = "works in" if folder["kind"] == "work" else "reads"
        yield Finding("folder", "ok", f"{whose} {verb} {folder['path']}")
        if covered:
            yield _hidden(place, covered)
    yield Finding("a run has", "ok", ", ".join(conditions.programs(search)) or "no known programs")
    yield Finding("a run has", "ok", f"network {conditions.NETWORK}")


def _hidden(place: Path, covered: Sequence[Path]) -> Finding:
    """Return the finding about files with keys in a folder that an agent works in."""
    names = ", ".join(str(path.relative_to(place)) for path in covered[:_MOST_NAMED])
    more = f" and {len(covered) - _MOST_NAMED} more" if len(covered) > _MOST_NAMED else ""
    try:
        sandbox_policy.refuse_to_cover(covered)
    except RemitError as error:
        return Finding("folder", "fail", error.sentence, error.step)
    return Finding("folder", "ok", f"hidden from runs in {place}, as keys: {names}{more}")


def _receivers(session: Session) -> Iterator[Finding]:
    """Findings about held bindings, and about the receivers of the others."""
    bound: dict[str, tuple[str, str]] = {}
    for binding in session.visible("bindings"):
        agent, channel = binding["agentName"], binding["adapterType"]
        bound[binding["id"]] = f"{channel} of {agent}", channel
        if binding["state"] == "held":
            step = f"`remit bind add {agent} {channel} --secret NAME`"
            yield Finding(f"{channel} of {agent}", "warn", binding["problem"], step)
        yield from _webhook(session, binding)
    for receiver in session.visible("receivers"):
        if receiver["bindingId"] not in bound:
            continue
        name, channel = bound[receiver["bindingId"]]
        if receiver["problem"]:
            step = f"See `remit bind channels {channel}`; it is tried again."
            yield Finding(name, "warn", receiver["problem"], step)
        else:
            yield Finding(name, "ok", receiver["state"])


def _webhook(session: Session, binding: View) -> Iterator[Finding]:
    """A finding about an address that a channel posts to, if it is none of this instance."""
    address, outside = binding["adapterConfig"].get("webhookUrl"), session.here.outside
    if address and session.is_here and address.rstrip("/") not in outside:
        name = f"{binding['adapterType']} of {binding['agentName']}"
        sentence = f"posts to {address}, which is no address of this instance"
        yield Finding(name, "warn", sentence, "Add it to REMIT_URL.")


def _accounts(session: Session) -> Iterator[Finding]:
    """Findings about closed accounts and set-ups; none if the instance cannot be asked."""
    for closed in account.held(session):
        name = f"{closed['kind']} {closed['name']}"
        yield Finding(name, "warn", closed["sentence"], closed["step"])
