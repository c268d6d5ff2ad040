"""`remit company`: create, list, show, set; and its permission policy."""

from functools import partial
from typing import Any

import click

from remit.entrypoints import cost_text
from remit.entrypoints.cli.commands.company.acceptance import accept
from remit.entrypoints.cli.commands.company.archive import export, import_
from remit.entrypoints.cli.commands.company.hiring import LEVELS
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, limit_option, option, stated
from remit.entrypoints.cli.session import Session, View, path
from remit.model.execution.limit import WORDS, Limit, amount_shown
from remit.services.declared.templates import TEMPLATES

company = Group("company", help="Companies.")


@company.command()
@click.argument("name")
@option("--root NAME", "Its root agent; ceo, if left out.", field="rootName")
@option(
    "--adapter ADAPTER",
    "Adapter of the root agent; the first that can be used, if left out.",
    field="adapterType",
)
@option("--config JSON|@FILE", "Settings of the adapter.", field="adapterConfig")
@option(
    "--template",
    "A team to begin with, below the root agent.",
    type=click.Choice([template.name for template in TEMPLATES]),
)
def create(session: Session, /, template: str | None, **options: Any) -> None:
    """Create a company with its root agent; you are its board."""
    body = stated(options)
    new_company = session.client.send("POST", path("companies"), body)

    root = body.get("rootName", "ceo")
    for team in TEMPLATES:
        if team.name == template and team.agents:
            target = path("companies", new_company["id"], "apply")
            body = {"document": team.document(root)}
            plan = session.client.send("POST", target, {**body, "dryRun": True})
            # Choosing a team accepts it.
            session.client.send("POST", target, {**body, "accepted": plan["digest"]})
    sentences = [
        f"Company {new_company['name']} created, with the agent {root}; you are its board.",
        f'Next: remit --company "{new_company["name"]}" send {root} "…"',
    ]
    session.done(new_company, sentences, partial(_draw, session))


@company.command("list")
@limit_option
def list_(session: Session, limit: int) -> None:
    """List the companies you have a part in."""
    session.show_table(
        session.listed(path("companies"), limit),
        *("name", "id: {id:short}", "created: {createdAt:when}"),
        empty="You have no part in a company.",
    )


@company.command()
@click.argument("name", required=False)
def show(session: Session, name: str | None) -> None:
    """Show one company."""
    session.company_option = name or session.company_option
    session.show(session.client.get(session.under_company()), partial(_draw, session))


@company.command("set")
@option("--name TEXT", "Its new name.")
@option(
    "--messaging chain|team|subtree|open",
    "Mail that is allowed besides that of bosses and their reports.",
)
@option(
    "--approve-hires yes|no",
    "Whether a hire waits for you.",
    field="requireBoardApprovalForNewAgents",
)
@option(
    "--approve-config yes|no",
    "Whether a configuration that an agent proposes waits for you.",
    field="requireApprovalForConfigChanges",
)
@option(
    "--mail-decisions confirm|direct",
    "Whether decisions that come by e-mail wait until they are confirmed elsewhere.",
    field="mailDecisions",
)
@option("--chat-provider NAME", "Adapter of agents that agents create.", field="chatLLMProvider")
@option(
    "--chat-model NAME", "Model of those agents. An empty text removes it.", field="chatLLMModel"
)
@option(
    "--review-hours HOURS",
    "Hours after which an outcome without progress is reviewed again, such as 1,4,24.",
    field="reviewHours",
)
@option(
    "--committer NAME <ADDRESS>",
    "The committer for its agents. Empty: Remit.",
    field="commitCommitter",
)
@option(
    "--co-authors NAME <ADDRESS>,…",
    "The co-author of each commit. Empty: nobody.",
    field="commitCoAuthors",
)
@option(
    "--signing SECRET",
    "The secret with the key that signs commits. Empty: none. See `company signing-key`.",
    field="commitSigning",
)
@option(
    "--limit NAME=NUMBER…",
    "A limit, such as agentRunsPerHour=120; none turns it off. Can be repeated.",
    field="limits",
)
@option(
    "--price MODEL=INPUT/OUTPUT/CACHED…",
    "Dollars for a million tokens, such as gpt-5.5=5/30/0.5; none takes the list price back. "
    "Can be repeated.",
    field="prices",
)
def set_(
    session: Session, /, limits: tuple[str, ...], prices: tuple[str, ...], **options: Any
) -> None:
    """Change a company's settings."""
    named = {"limits": dict(map(_limit, limits)), "prices": dict(map(_price, prices))}
    body = stated({**options, **{name: values or None for name, values in named.items()}})
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    answer = session.client.send("PATCH", session.under_company(), body)
    session.show(answer, partial(_draw, session))


@company.command()
def spending(session: Session) -> None:
    """Show what the company spent, and which limits hold it."""
    answer = session.client.get(session.under_company("spending"))

    def draw(view: View) -> None:
        today, month = cost_text.cost(view["today"]), cost_text.cost(view["month"])
        output.say(f"Today: {today}. This month: {month}.", *view["promise"])

    session.show(answer, draw)


@company.command("signing-key")
@option("--new", "Make a key, or another one in place of it.")
def signing_key(session: Session, new: bool) -> None:
    """Show the key that commits are signed with, to be registered at the forge."""
    target = session.under_company("signing-key")
    answer = session.client.send("POST", target, {}) if new else session.client.get(target)

    def draw(key: View) -> None:
        if key["publicKey"] is None:
            output.say("Commits are not signed. Make a key with `remit company signing-key --new`.")
            return
        output.say(key["publicKey"])
        output.say(f"{key['fingerprint']}, in the secret {key['secret']}.")

    session.show(answer, draw)


def _draw(session: Session, view: View) -> None:
    hires, configuration = "requireBoardApprovalForNewAgents", "requireApprovalForConfigChanges"
    reviews = f"{view['reviewHours']} hours" if "reviewHours" in view else None
    cells.fields(
        *(session, view, "name", "id", "messaging: {messaging}"),
        ("hires", lambda *_: _waits(view.get(hires))),
        ("configuration", lambda *_: _waits(view.get(configuration))),
        ("decisions by e-mail", lambda *_: _BY_MAIL.get(view.get("mailDecisions", ""))),
        *("chat provider: {chatLLMProvider}", "chat model: {chatLLMModel}"),
        ("reviews after", lambda *_: reviews),
        *("committer: {commitCommitter}", "co-authors: {commitCoAuthors}"),
        *("commits signed with: {commitSigning}", *_limits(view.get("limits") or {})),
        ("prices", lambda *_: _prices(view.get("prices") or {})),
        "created: {createdAt:when}",
    )


def _limit(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--limit {text}: write NAME=NUMBER, such as agentRunsPerHour=120.")
    return name.strip(), value.strip()


def _price(text: str) -> tuple[str, dict[str, float] | None]:
    model, equals, value = text.rpartition("=")
    if equals and model and value.strip() == "none":
        return model.strip(), None
    try:
        amounts = [float(amount) for amount in value.split("/")]
    except ValueError:
        amounts = []
    if not model or len(amounts) not in (2, 3):
        raise click.UsageError(
            f"--price {text}: write MODEL=INPUT/OUTPUT or MODEL=INPUT/OUTPUT/CACHED, "
            "such as gpt-5.5=5/30/0.5."
        )
    return model.strip(), dict(zip(("input", "output", "cached"), amounts, strict=False))


def _prices(prices: dict[str, dict[str, float]]) -> str:
    return "; ".join(
        f"{model}: ${price['input']:g} in, ${price['output']:g} out, ${price['cached']:g} cached"
        for model, price in prices.items()
    )


def _limits(amounts: dict[str, int | None]) -> list[str]:
    """Cells of the amounts of limits in words, by the names that the option takes."""
    return [
        f"{limit.spelled}: {amount_shown(limit, amounts[limit.spelled])} ({WORDS[limit]})"
        for limit in Limit
        if limit.spelled in amounts
    ]


_BY_MAIL = {"confirm": "wait for a confirmation", "direct": "take effect at once"}


def _waits(flag: bool | None) -> str | None:
    return None if flag is None else "wait for the board" if flag else "take effect at once"


company.add_command(export)
company.add_command(import_)
company.add_command(accept)

policy = Group("policy", help="Permission levels, and the actions that each bundles.")
company.add_command(policy)

_CREATES = {"yes": True, "no": False, "default": None}
_SAYS = {None: "the CEO may", True: "yes", False: "no"}


@policy.command("set")
@click.argument("level", type=click.Choice(LEVELS))
@option(
    "--create-agents",
    "Whether it hires; default: the CEO alone.",
    type=click.Choice(sorted(_CREATES)),
)
@option("--allow ACTION…", "All that it allows; repeat it.")
@option("--deny ACTION…", "All that it denies; repeat it.")
@option("--no-allow", "It allows nothing.")
@option("--no-deny", "It denies nothing.")
@option("--governs nobody|below|company", "Over whom the level boss has a say.")
@option("--shipped", "As Remit ships it, instead.")
def set_policy(
    session: Session, /, level: str, create_agents: str | None, shipped: bool, **options: Any
) -> None:
    """Change what a permission level bundles; whoever has the level follows."""
    nothing: dict[str, Any] = {name: [] for name in ("allow", "deny") if options.pop(f"no_{name}")}
    body = nothing | stated(options) | ({"shipped": True} if shipped else {})
    if create_agents is not None:
        body["canCreateAgents"] = _CREATES[create_agents]
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    target = session.under_company("permission-policy")
    done = session.client.send("PATCH", target, {"level": level, **body})

    def draw(view: View) -> None:
        _draw_policy(session, view)
        if view["agentsChanged"]:
            output.say(f"Changed with it: {', '.join(view['agentsChanged'])}.")

    session.show(done, draw)


def _draw_policy(session: Session, view: View) -> None:
    levels = [{"level": level, **bundle} for level, bundle in view["levels"].items()]
    cells.table(
        *(session, levels, "level"),
        ("creates agents", lambda _, row: _SAYS[row["canCreateAgents"]]),
        ("allows", lambda _, row: ", ".join(row["allow"]) or "-"),
        ("denies", lambda _, row: ", ".join(row["deny"]) or "-"),
        *("governs", "agents", ("", lambda _, row: "" if row["shipped"] else "changed")),
        empty="There are no levels.",
    )


policy.draw = _draw_policy
