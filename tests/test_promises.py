"""Promises about spending: a limit in money only where the price is known, in tokens elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from remit.clock import next_day
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.people import companies
from remit.services.spending import budgets, limits, promises
from remit.testing.clock import VirtualClock
from tests.company import Company, Member
from tests.mailing import send
from tests.test_cli import Home, only, remit
from tests.working import claim, end, ready, why_idle

__all__ = ["only", "remit"]  # fixtures
pytestmark = pytest.mark.requirement("FX-65")
SLOTS = 0
MONEY = "It spends at most $50.00 a day; change: remit company set --limit companyCentsPerDay=10000"
LISTED = MONEY.replace("$50.00 a day", "about $50.00 a day, by list prices")
PRICE = "To set a price: remit company set --price MODEL=INPUT/OUTPUT"


def tokens(who: str) -> str:
    most = "takes at most 20 M tokens per agent a day, 100 M tokens in all"
    return f"It {most}: the cost of {who} is not known. {PRICE}"


def set_up(company: Company, who: Member, adapter: str, **config: Any) -> Any:
    changes = {"adapterType": adapter, "adapterConfig": config}
    return company.call(company.board, configuration.change, agent=who.id, changes=changes)


def promised(company: Company) -> list[str]:
    found: list[str] = company.call(company.board, promises.show, company=company.id)["promise"]
    return found


OWN = {"input": 1.0, "output": 2.0}
OLLAMA = {"provider": "ollama", "model": "qwen3"}


@pytest.mark.parametrize(
    ("adapter", "config", "promise"),
    [
        ("scripted", {}, "No agent has a model, so nothing is spent."),
        ("human", {}, "No agent has a model, so nothing is spent."),
        ("claude", {}, MONEY),
        ("codex", {"model": "gpt-5.5"}, LISTED),
        ("codex", {"model": "house-model", "prices": OWN}, MONEY),
        ("codex", {"model": "house-model"}, tokens("codex with house-model")),
        ("codex", {}, tokens("codex with its default model")),
        ("llm", OLLAMA, tokens("llm with qwen3")),
        ("http", {"url": "http://127.0.0.1:9/"}, tokens("http agents that report none")),
    ],
)
def test_only_what_holds_is_promised(
    small: Company, adapter: str, config: dict[str, Any], promise: str
) -> None:
    set_up(small, small.ceo, adapter, **config)
    assert promised(small) == [promise]


def test_a_company_of_both_kinds_is_promised_both_limits(small: Company) -> None:
    set_up(small, small.ceo, "claude")
    set_up(small, small.agent("dev", adapter_type="scripted"), "codex", model="house-model")
    beyond = tokens("codex with house-model").replace("It takes", "Beyond that it takes")
    assert promised(small) == [MONEY, beyond]
    names = ("agentTokensPerDay", "companyUnpricedTokensPerDay", "companyCentsPerDay")
    unlimited = dict.fromkeys(names, 0)
    small.call(small.board, companies.change, company=small.id, limits=unlimited)
    first, second = promised(small)
    assert first == "Nothing limits what it spends in a day."
    assert second.startswith("Beyond that it takes any number of tokens: the cost of codex with")
    # A price makes the promise in money true.
    given = {"house-model": {"input": 1, "output": 2}}
    small.call(
        small.board,
        companies.change,
        company=small.id,
        prices=given,
        limits={"companyCentsPerDay": 5000},
    )
    assert promised(small) == [MONEY]


def test_a_budget_of_money_that_cannot_hold_is_answered_with_what_does(small: Company) -> None:
    dev = small.agent("dev", adapter_type="scripted")
    set_up(small, dev, "codex", model="house-model")

    def budget(**changes: object) -> Any:
        return small.call(small.board, configuration.change, agent=dev.id, changes=changes)

    warning = budget(budgetMonthlyCents=100)["warning"]
    assert warning.startswith("The cost of codex with house-model is not known, so a budget of")
    assert "It may take 20 M tokens a day. Limit them with `remit agent set dev" in warning
    assert small.call(small.board, budgets.show, agent=dev.id)["warning"] == warning
    budget(budgetMonthlyTokens=5_000_000)
    seen = small.call(small.board, budgets.show, agent=dev.id)["warning"]
    assert "It may take 20 M tokens a day and 5 M tokens a month. " in seen
    assert set_up(small, dev, "codex", model="gpt-5.5")["warning"] is None
    assert budget(budgetMonthlyCents=200)["warning"] is None


def test_tokens_of_unknown_cost_have_a_limit_of_the_company(
    company: Company, clock: VirtualClock
) -> None:
    most = {"companyUnpricedTokensPerDay": 1000}
    company.call(company.board, companies.change, company=company.id, limits=most)
    dev = company.agent("dev", adapter_type="scripted", perpetual=True)
    set_up(company, dev, "codex", model="house-model")
    for taken in (600, 600):
        send(company, company.board, f"agent:{dev.id}")
        end(company, claim(company, dev), tokens_in=taken)
    send(company, company.board, f"agent:{dev.id}")
    assert company.call(as_system(), limits.hold, agent=dev.id)
    assert why_idle(company, dev) == "limit"
    assert dev.id not in ready(company)
    # Tokens with a price are held by the limit in money alone.
    clock.advance(next_day(clock.now()) - clock.now())
    set_up(company, dev, "codex", model="house-model", prices=OWN)
    end(company, claim(company, dev), tokens_in=5000)
    send(company, company.board, f"agent:{dev.id}")
    assert not company.call(as_system(), limits.hold, agent=dev.id)


def test_the_command_line_says_what_holds(only: Home) -> None:
    nothing = "Today: $0.00. This month: $0.00.\nNo agent has a model, so nothing is spent.\n"
    assert only("company", "spending").out == nothing
    only("agent", "create", "dev", "--boss", "ceo")
    codex = ("adapterType=codex", 'adapterConfig={"model": "house-model"}')
    only("agent", "set", "dev", *codex)
    assert tokens("codex with house-model") in only("company", "spending").out
    said = only("agent", "set", "dev", "budgetMonthlyCents=100")
    assert (said.code, "a budget of money does not hold it" in said.err) == (0, True)
    assert "a budget of money does not hold it" in only("agent", "budget", "dev").out
    only("company", "set", "--price", "house-model=1/2/0.5")
    assert "house-model: $1 in, $2 out, $0.5 cached" in only("company", "show").out
    assert only("company", "spending").out.splitlines()[1] == MONEY
    for wrong in ("house-model", "house-model=1", "house-model=a/b"):
        refused = only("company", "set", "--price", wrong)
        assert (refused.code, "MODEL=INPUT/OUTPUT" in refused.err) == (2, True)
    only("company", "set", "--price", "house-model=none")
    assert tokens("codex with house-model") in only("company", "spending").out
