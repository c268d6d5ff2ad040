"""`remit doctor`: findings about this installation, each with its next step."""

from collections.abc import Iterator
from typing import Any

import click

from remit.entrypoints.cli.commands.company import account
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, Session
from remit.errors import RemitError
from remit.runtime import diagnosis
from remit.runtime.diagnosis import Finding
from remit.runtime.runs import conditions


@click.command(cls=Command)
def doctor(session: Session) -> int:
    """Check this installation and say what to do next."""
    findings = [
        *diagnosis.look(session.settings),
        *_instance(session),
        *_conditions(session),
        *_accounts(session),
        *_receivers(session),
    ]

    def draw(_: Any) -> None:
        output.table(("check", "state", "found", "next step"), findings, empty="")

    session.show([finding._asdict() for finding in findings], draw)
    return 1 if any(finding.state == "fail" for finding in findings) else 0


def _instance(session: Session) -> Iterator[Finding]:
    try:
        session.anonymous.get("/health")
    except RemitError as error:
        yield Finding("instance", "warn", error.sentence, error.step)
    else:
        yield Finding("instance", "ok", f"answers at {session.url}")


def _conditions(session: Session) -> Iterator[Finding]:
    """Findings about the programs that runs find here, and the folders that the board shows
    them."""
    search: list[str] = []
    for one in session.visible("folders"):
        if one["path"] is None:
            yield Finding("folder", "ok", f"{one['agentName']} works in {one['title']}")
            continue
        try:
            conditions.looked_at(one["path"], session.settings.home)
        except RemitError as error:
            yield Finding("folder", "fail", error.sentence, error.step)
            continue
        search += [f"{one['path']}/{part}" for part in one["programs"]]
        whose = one["agentName"] or "every run"
        verb = "works in" if one["kind"] == "work" else "reads"
        yield Finding("folder", "ok", f"{whose} {verb} {one['path']}")
    yield Finding("a run has", "ok", ", ".join(conditions.programs(search)) or "no known programs")
    yield Finding("a run has", "ok", f"network {conditions.NETWORK}")


def _receivers(session: Session) -> Iterator[Finding]:
    """Findings about held bindings, and about the receivers of the others."""
    bound = {one["id"]: one for one in session.visible("bindings")}
    for one in bound.values():
        if one["state"] == "held":
            step = f"`remit bind add {one['agentName']} {one['adapterType']} --secret NAME`"
            name = f"{one['adapterType']} of {one['agentName']}"
            yield Finding(name, "warn", one["problem"], step)
    for one in session.visible("receivers"):
        binding = bound.get(one["bindingId"])
        if binding is None:
            continue
        name = f"{binding['adapterType']} of {binding['agentName']}"
        if one["problem"]:
            step = f"See `remit bind channels {binding['adapterType']}`; it is tried again."
            yield Finding(name, "warn", one["problem"], step)
        else:
            yield Finding(name, "ok", one["state"])


def _accounts(session: Session) -> Iterator[Finding]:
    """Findings about closed accounts and set-ups; none if the instance cannot be asked."""
    for one in account.held(session):
        yield Finding(f"{one['kind']} {one['name']}", "warn", one["sentence"], one["step"])
