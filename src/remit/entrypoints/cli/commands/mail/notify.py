"""`remit notify`: notifications of a person outside of Remit."""

from typing import Any

import click

from remit.entrypoints.cli import process
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Command, Group, option, stated
from remit.entrypoints.cli.session import Session, View, path, pick
from remit.errors import Unsupported
from remit.runtime.delivery import notify_commands


@click.group(cls=Group)
def notify() -> None:
    """Notices that tell you outside Remit what needs you.

    Once for each thing: in a chat or by e-mail where your account is linked (`remit link`), by a
    signed webhook, by a command on the machine of the instance, and by the browser.
    """


@notify.command(cls=Command)
def show(session: Session) -> None:
    """Show how you are notified, and the state of the last notices."""
    answer = session.client.get(session.under_company("notify"))

    def draw(view: View) -> None:
        output.fields(
            {
                "command": view["commandProblem"] or ("set" if view["command"] else "none"),
                "webhook": view["webhook"] or "none",
                "chats": ", ".join(view["chats"]) or "none",
                **_drawn(view["rules"]),
            }
        )
        cells.table(
            *(session, view["latest"], "what: {kind:words}"),
            *("by: {way}", "state: {status}", "why"),
            empty="You have not been told of anything yet.",
        )

    session.show(answer, draw)


@notify.command("set", cls=Command)
@option("--command COMMAND", "Run this command; {text} in it is replaced by what needs you.")
@option("--no-command", "Stop running a command.")
@option("--webhook URL", "Post notices to this address, as signed JSON.")
@option("--no-webhook", "Stop posting notices.")
@option("--user NAME", "Set the command of this person, instead of yours.")
@option("--to KIND=WAY,…", "Channels for a kind of notice; see above.", multiple=True)
@option("--quiet FROM-TO", "Quiet hours, such as 22:00-07:00; or none.")
@option("--urgent KIND,…", "Kinds that are sent in quiet hours, too; or none.")
@option("--time-zone ZONE", "Time zone of these times, such as Europe/Zurich.", field="timeZone")
@option("--digest KIND,…", "Kinds sent together once a day; or none.")
@option("--digest-at TIME", "When the digest is sent, such as 08:00.", field="digestAt")
@option(
    "--after MINUTES", "Notify only of what has waited this long.", field="afterMinutes", type=int
)
@option(
    "--escalate MINUTES",
    "Notify somebody else after this time; 0: never.",
    field="escalateMinutes",
    type=int,
)
@option(
    "--escalate-to NAME",
    "Person to notify; next: the next member of the board.",
    field="escalateTo",
)
def set_(
    session: Session,
    /,
    command: str | None,
    no_command: bool,
    webhook: str | None,
    no_webhook: bool,
    user: str | None,
    **rules: Any,
) -> None:
    """Set how you are notified.

    A command is run by the instance, without a shell, and gets what needs you as JSON on standard
    input. It is kept in a file of the instance, so it can only be set on its machine, by whoever
    runs it.

    --to approval=telegram,webhook sends approvals there; the kind `all` applies to kinds without a
    setting of their own, `escalated` to what somebody else did not decide. Ways are webhook,
    command, browser and kinds of channels; `none` sends a kind nowhere, `usual` removes its
    setting.
    """
    body = _rules(**rules)
    if not (command or no_command or webhook or no_webhook or body):
        raise click.UsageError("Say what to set, such as --command, --webhook or --to; see --help.")
    if command and no_command:
        raise click.UsageError("--command and --no-command exclude each other.")
    if webhook and no_webhook:
        raise click.UsageError("--webhook and --no-webhook exclude each other.")
    if user is not None and (webhook or no_webhook or body):
        raise click.UsageError("Everybody sets their own webhook and rules.")
    answer: View = {}
    if command or no_command:
        _require_here(session)
        who = _user(session, user)
        notify_commands.write(session.settings.home / notify_commands.NOTIFY_FILE, who, command)
        answer["command"] = command is not None
    if webhook or no_webhook:
        hook = {"webhook": webhook}
        answer |= session.client.send("PATCH", session.under_company("notify"), hook)
    if body:
        where = session.under_company("notify", "rules")
        answer["rules"] = session.client.send("PATCH", where, body)
    session.show(answer, _draw)


def _rules(to: tuple[str, ...], **options: Any) -> View:
    """Build the request body of the rules from the options."""
    routes: dict[str, list[str] | None] = {}
    for route in to:
        kind, equals, ways = route.partition("=")
        if not equals:
            raise click.UsageError("Write --to KIND=WAY,WAY, such as --to approval=webhook.")
        routes[kind.strip()] = None if ways.strip() == "usual" else _listed(ways)
    rules = stated({**options, "routes": routes or None})
    for name in ("urgent", "digest"):
        if name in rules:
            rules[name] = _listed(rules[name])
    for name, nothing in (("quiet", "none"), ("escalateTo", "next")):
        if rules.get(name) == nothing:
            rules[name] = None
    return rules


def _listed(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return [] if words == ["none"] else words


def _drawn(rules: dict[str, Any]) -> dict[str, str]:
    """Return the rules by label, without empty ones."""
    ways = "; ".join(
        f"{kind}: {', '.join(to) or 'nowhere'}" for kind, to in rules["routes"].items()
    )
    digest = ", ".join(rules["digest"])
    after, escalate = rules["afterMinutes"], rules["escalateMinutes"]
    fields = {
        "kinds": ways,
        "quiet hours": rules["quiet"] and f"{rules['quiet']} ({rules['timeZone']})",
        "urgent": ", ".join(rules["urgent"]),
        "digest": digest and f"{digest}, at {rules['digestAt']} ({rules['timeZone']})",
        "told after": after and f"{after} min",
        "escalated": escalate
        and f"after {escalate} min to {rules['escalateTo'] or 'the next member of the board'}",
    }
    return {name: value for name, value in fields.items() if value}


@notify.command("test", cls=Command)
def test_(session: Session) -> None:
    """Send a test notice in every way that you use; `show` has its result."""
    answer = session.client.send("POST", session.under_company("notify", "test"))
    ways = " and by ".join(answer["ways"])
    session.show(
        answer, lambda _: output.say(f"A test goes out by {ways}; see `remit notify show`.")
    )


def _draw(done: View) -> None:
    if "command" in done:
        output.say("The command is set." if done["command"] else "No command is run any more.")
    if "webhook" in done:
        where = done["webhook"]
        output.say(f"Notices are posted to {where}." if where else "Nothing is posted.")
    if "rules" in done:
        output.fields(_drawn(done["rules"]) or {"rules": "told of everything at once"})
    if done.get("key"):
        output.say(f"It is signed with this key, which is shown once: {done['key']}")


def _require_here(session: Session) -> None:
    """Refuse unless the instance runs from this home, where the file with the commands is."""
    held = process.holder(session.settings)
    if held.url is None or held.url.rstrip("/") != session.url:
        raise Unsupported(
            f"The instance at {session.url} does not run from {session.settings.home}.",
            "Run this on its machine, as the user that runs it, with its REMIT_HOME.",
        )


def _user(session: Session, name: str | None) -> str:
    if name is None:
        me = session.client.get(path("me"))
        if me["kind"] != "user":
            raise Unsupported("Only people are told.", "Use the token of a person, or --user.")
        return str(me["id"])
    known = session.client.each(session.under_company("users"))
    return str(pick(known, name, "user", "See `remit user list`.")["id"])
