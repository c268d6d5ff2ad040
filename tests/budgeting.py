"""Budgets in tests: how they are set and spent, and whether the books agree, by plain SQL."""

from collections import defaultdict

from remit.clock import month_of, next_month
from remit.model.execution.budget import CENT
from remit.services.execution import runs
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.spending import budgets
from tests.company import Answer, Company, Member, Run

KINDS = ("money", "tokens")


def set_budget(company: Company, who: Member, **limits: int | None) -> None:
    names = {"cents": "budgetMonthlyCents", "tokens": "budgetMonthlyTokens"}
    changes = {names[key]: value for key, value in limits.items()}
    company.call(company.board, configuration.change, agent=who.id, changes=changes)


def budget_of(company: Company, who: Member) -> Answer:
    return company.call(company.board, budgets.show, agent=who.id)


def left(company: Company, who: Member, kind: str = "tokens") -> int | None:
    rest: int | None = budget_of(company, who)[kind]["left"]
    return rest


def spend(company: Company, run: Run, tokens: int = 0, cents: int = 0) -> Answer:
    """What a run has taken so far, in all."""
    total = {"tokens_in": tokens, "cost_micros": cents * CENT}
    return company.call(as_system(), budgets.spend, run=run.id, total=total)


def work_off(company: Company, who: Member, tokens: int = 0, cents: int = 0) -> Answer:
    """A run by hand that takes so much."""
    run = company.run(who)
    answer = spend(company, run, tokens, cents)
    company.call(as_system(), runs.end, run=run.id)
    return answer


class Books:
    """Accounts and reservations as the database has them."""

    def __init__(self, company: Company) -> None:
        self.month = month_of(company.clock.now())
        self.boss: dict[str, str | None] = {}
        self.limit: dict[tuple[str, str], int] = {}
        for agent, boss, status, cents, tokens in company.sql(
            "SELECT id, boss_id, status, budget_monthly_cents, budget_monthly_tokens FROM agents"
        ):
            self.boss[agent] = boss
            if status == "terminated":
                continue
            if cents is not None:
                self.limit[agent, "money"] = cents * CENT
            if tokens is not None:
                self.limit[agent, "tokens"] = tokens
        self.accounts: dict[tuple[str, str], tuple[int, int, int]] = {
            (agent, kind): (amount, reserved, charged if month == self.month else 0)
            for agent, kind, amount, reserved, month, charged in company.sql(
                "SELECT agent_id, kind, amount, reserved, month, charged FROM budget_accounts"
            )
        }
        self.open: list[tuple[str, str, str | None, int, int, int]] = [
            (agent, kind, account, amount, spent, before if month == self.month else spent)
            for agent, kind, account, amount, spent, month, before in company.sql(
                "SELECT agent_id, kind, account_id, amount, spent, month, spent_before"
                " FROM reservations WHERE closed_at IS NULL"
            )
        ]
        self.spent: dict[str, int] = dict.fromkeys(KINDS, 0)
        for money, tokens in company.sql(
            "SELECT money_micros, tokens FROM spending WHERE day >= ? AND day < ?",
            self.month,
            next_month(self.month),
        ):
            self.spent["money"] += money
            self.spent["tokens"] += tokens

    def above(self, agent: str, kind: str) -> str | None:
        """The nearest above that has a budget of its own."""
        boss = self.boss[agent]
        while boss is not None and (boss, kind) not in self.limit:
            boss = self.boss[boss]
        return boss

    def set_aside(self, agent: str, kind: str) -> int:
        return sum(
            amount - before
            for _, its, account, amount, _, before in self.open
            if (account, its) == (agent, kind)
        )

    def left(self, agent: str, kind: str) -> int:
        amount, reserved, charged = self.accounts[agent, kind]
        return amount - reserved - self.set_aside(agent, kind) - charged

    def wrong(self, overshoot: int = 0) -> list[str]:
        """Where the books do not agree with the tree, or more is promised than there is."""
        problems = []
        if {key: row[0] for key, row in self.accounts.items()} != self.limit:
            problems.append(f"accounts {self.accounts} are not the limits {self.limit}")
        promised: dict[tuple[str, str], int] = defaultdict(int)
        for (agent, kind), amount in self.limit.items():
            if (above := self.above(agent, kind)) is not None:
                promised[above, kind] += amount
        for (agent, kind), (amount, reserved, charged) in self.accounts.items():
            if reserved != promised[agent, kind]:
                problems.append(f"{agent} reserves {reserved}, below are {promised[agent, kind]}")
            passed_on = reserved + self.set_aside(agent, kind)
            if passed_on > amount:
                problems.append(f"{agent} passes {passed_on} of {amount} {kind} on")
            top = self.above(agent, kind) is None
            if passed_on + charged > amount + (overshoot if top else 0):
                problems.append(
                    f"{agent} has {amount} {kind}, {passed_on} passed on, {charged} spent"
                )
        for agent, kind, account, amount, spent, before in self.open:
            if not 0 <= before <= spent <= amount:
                problems.append(f"{spent} of {amount} {kind} set aside for {agent} is spent")
            if account != self.above(agent, kind):
                problems.append(f"what {agent} has for an outcome comes out of {account}'s account")
        return problems

    def counted(self, kind: str) -> int:
        """Everything that was paid this month, by whoever."""
        paid = sum(charged for (_, its), (_, _, charged) in self.accounts.items() if its == kind)
        return paid + sum(
            spent - before for _, its, _, _, spent, before in self.open if its == kind
        )
