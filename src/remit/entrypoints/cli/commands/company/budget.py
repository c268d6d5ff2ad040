"""`remit agent budget`: what agents may spend, and what is left."""

import click

from remit.entrypoints import budget_text, cost_text
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.parameters import AGENT
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.model.text import monthly

#: Columns of each kind of budget, by the key of their amounts.
_COLUMNS = {"limit": "limit", "reserved": "reserved", "spentByItself": "spent", "left": "left"}


@click.command(cls=Command)
@click.argument("name", required=False, type=AGENT)
def budget(session: Session, name: str | None) -> None:
    """Show what an agent may spend this month and what is left; of all without NAME.

    Set it with `remit agent set NAME budgetMonthlyCents=5000` or budgetMonthlyTokens=1000000.
    """
    if name is None:
        _all(session)
        return
    answer = session.client.get(path("agents", name, "budget"))

    def draw(view: View) -> None:
        output.say(f"{view['name']}, from {view['month'][:10]} until {view['until'][:10]}:")
        output.say(*(f"  {line}" for line in budget_text.lines(view)))
        output.say(*(f"  {line}" for line in budget_text.limits(view)))
        if view["stoppedAt"]:
            output.say(f"  It stands still for that since {output.when(view['stoppedAt'])}.")

    session.show(answer, draw)


def _all(session: Session) -> None:
    budgets = list(session.client.each(session.under_company("budgets")))

    def draw(rows: list[View]) -> None:
        cells = [
            (
                row["name"],
                *(
                    cost_text.cost(row["cost"]).removeprefix("$")
                    if (kind, field) == ("money", "spentByItself")
                    else budget_text.amount(kind, row[kind][field]).removeprefix("$")
                    for kind in budget_text.KINDS
                    for field in _COLUMNS
                ),
            )
            for row in rows
        ]
        columns = (
            "name",
            *(f"{unit} {word}" for unit in ("$", "tokens") for word in _COLUMNS.values()),
        )
        output.table(columns, cells, empty="Nobody has a budget or spent anything this month.")

    session.show(budgets, draw)


def in_words(session: Session, agent: View) -> str | None:
    """Return an agent's monthly budget, and the rest of it if the caller may see that."""
    monthly_budget = monthly(agent)
    if not monthly_budget:
        return None
    try:
        answer = session.client.get(path("agents", agent["id"], "budget"))
    except RemitError:
        return monthly_budget
    return f"{monthly_budget}; left: {budget_text.short(answer)}"
