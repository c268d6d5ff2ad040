"""`remit company`: create, list, show, set; and its permission policy."""

from typing import Any

import click

from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.commands.company.archive import export, import_
from remit.entrypoints.cli.commands.company.hiring import json_object
from remit.entrypoints.cli.commands.company.policy import policy
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.ids import short
from remit.model.execution.limit import WORDS, Limit, amount_shown
from remit.services.declared.templates import TEMPLATES

company = Group("company", help="Companies.")


@company.command()
@click.argument("name")
@click.option("--root", "rootName", metavar="NAME", help="Its root agent; ceo, if left out.")
@click.option(
    "--adapter",
    "adapterType",
    help="Adapter of the root agent; the first that can be used, if left out.",
)
@click.option("--config", metavar="JSON|@FILE", help="Settings of the adapter.")
@click.option(
    "--template",
    type=click.Choice([one.name for one in TEMPLATES]),
    help="A team to begin with, below the root agent.",
)
@pass_session
def create(
    session: Session, /, config: str | None, template: str | None, **given: str | None
) -> None:
    """Create a company with its root agent; you are its board."""
    body: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if config is not None:
        body["adapterConfig"] = json_object(config)
    made = session.client.send("POST", path("companies"), body)

    root = body.get("rootName", "ceo")
    team = next((one for one in TEMPLATES if one.name == template and one.agents), None)
    if team is not None:
        target = path("companies", made["id"], "apply")
        session.client.send("POST", target, {"document": team.document(root), "dryRun": False})
    said = [
        f"{made['name']} is there, with {root}; you are its board.",
        f'Next: remit --company "{made["name"]}" send {root} "…"',
    ]
    session.done(made, said, _draw)


@company.command("list")
@limit_option
@pass_session
def list_(session: Session, limit: int) -> None:
    """List the companies you have a part in."""
    found = session.listed(path("companies"), limit)

    def draw(companies: list[dict[str, Any]]) -> None:
        rows = [
            (one["name"], short(one["id"]), output.when(one.get("createdAt"))) for one in companies
        ]
        output.table(("name", "id", "created"), rows, empty="You have no part in a company.")

    session.show(found, draw)


@company.command()
@click.argument("name", required=False)
@pass_session
def show(session: Session, name: str | None) -> None:
    """Show one company."""
    session.company_option = name or session.company_option
    session.show(session.client.get(session.under_company()), _draw)


@company.command("set")
@click.option("--name", help="Its new name.")
@click.option(
    "--messaging",
    type=click.Choice(["chain", "team", "subtree", "open"]),
    help="Mail that is allowed besides that of bosses and their reports.",
)
@click.option("--approve-hires", type=bool, metavar="yes|no", help="Whether a hire waits for you.")
@click.option(
    "--approve-config",
    type=bool,
    metavar="yes|no",
    help="Whether a configuration that an agent proposes waits for you.",
)
@click.option("--chat-provider", metavar="NAME", help="Adapter of agents that agents create.")
@click.option("--chat-model", metavar="NAME", help="Its model. An empty text takes it back.")
@click.option(
    "--review-hours",
    metavar="HOURS",
    help="After how many hours each what does not move is looked at again, such as 1,4,24.",
)
@click.option(
    "--committer", metavar="NAME <ADDRESS>", help="The committer for its agents. Empty: Remit."
)
@click.option(
    "--co-authors",
    metavar="NAME <ADDRESS>,…",
    help="The co-author of each commit. Empty: nobody.",
)
@click.option(
    "--signing",
    metavar="SECRET",
    help="The secret with the key that signs commits. Empty: none. See `company signing-key`.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A limit, such as agentRunsPerHour=120; none turns it off. Can be repeated.",
)
@pass_session
def set_(
    session: Session,
    name: str | None,
    messaging: str | None,
    approve_hires: bool | None,
    approve_config: bool | None,
    chat_provider: str | None,
    chat_model: str | None,
    review_hours: str | None,
    committer: str | None,
    co_authors: str | None,
    signing: str | None,
    limits: tuple[str, ...],
) -> None:
    """Change a company's settings."""
    given = {
        "name": name,
        "messaging": messaging,
        "requireBoardApprovalForNewAgents": approve_hires,
        "requireApprovalForConfigChanges": approve_config,
        "chatLLMProvider": chat_provider,
        "chatLLMModel": chat_model,
        "reviewHours": review_hours,
        "commitCommitter": committer,
        "commitCoAuthors": co_authors,
        "commitSigning": signing,
        "limits": dict(map(_limit, limits)) or None,
    }
    body = {field: value for field, value in given.items() if value is not None}
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    session.show(session.client.send("PATCH", session.under_company(), body), _draw)


@company.command("signing-key")
@click.option("--new", is_flag=True, help="Make a key, or another one in place of it.")
@pass_session
def signing_key(session: Session, new: bool) -> None:
    """Show the key that commits are signed with, to be registered at the forge."""
    target = session.under_company("signing-key")
    found = session.client.send("POST", target, {}) if new else session.client.get(target)

    def draw(key: dict[str, Any]) -> None:
        if key["publicKey"] is None:
            output.say("Commits are not signed. Make a key with `remit company signing-key --new`.")
            return
        output.say(key["publicKey"])
        output.say(f"{key['fingerprint']}, in the secret {key['secret']}.")

    session.show(found, draw)


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "id": one["id"],
            "messaging": one.get("messaging"),
            "hires": _waits(one.get("requireBoardApprovalForNewAgents")),
            "configuration": _waits(one.get("requireApprovalForConfigChanges")),
            "chat provider": one.get("chatLLMProvider"),
            "chat model": one.get("chatLLMModel"),
            "reviews after": f"{one['reviewHours']} hours" if "reviewHours" in one else None,
            "committer": one.get("commitCommitter"),
            "co-authors": one.get("commitCoAuthors"),
            "commits signed with": one.get("commitSigning"),
            **_limits(one.get("limits") or {}),
            "created": output.when(one.get("createdAt")),
        }
    )


def _limit(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--limit {given}: write NAME=NUMBER, such as agentRunsPerHour=120.")
    return name.strip(), value.strip()


def _limits(given: dict[str, int | None]) -> dict[str, str]:
    """Amounts of limits in words, by the names that the option takes."""
    return {
        limit.spelled: f"{amount_shown(limit, given[limit.spelled])} ({WORDS[limit]})"
        for limit in Limit
        if limit.spelled in given
    }


def _waits(flag: bool | None) -> str | None:
    return None if flag is None else "wait for the board" if flag else "take effect at once"


company.add_command(policy)
company.add_command(export)
company.add_command(import_)
