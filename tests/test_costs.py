"""What runs cost: known, estimated and unknown, and the same on every surface."""

from __future__ import annotations

import html
import re
import runpy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import price_table
from remit.adapters.price_table import Served
from remit.adapters.running import Usage
from remit.clock import from_iso
from remit.entrypoints.cost_text import cost
from remit.entrypoints.http.wire.caller import COOKIE
from remit.errors import BadInput
from remit.model.execution.cost import Cost, Price, in_words, tokens_in_words
from remit.services.execution import runs
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.people import companies
from remit.services.spending import budgets
from remit.store.migrations import versions
from tests.browsing import Office
from tests.budgeting import spend
from tests.company import Company, Run, opened
from tests.mailing import send
from tests.test_archive import export, import_
from tests.test_cli import Home
from tests.working import claim, end, shown

pytestmark = pytest.mark.requirement("FX-65")
SLOTS = 0
NOW = from_iso("2026-11-01T00:00:00Z")
#: Dollars for a million tokens of gpt-5.5, as OpenAI lists them.
GPT = (5.0, 30.0, 0.5)
TAKEN = Usage(tokens_in=1_000_000, tokens_out=100_000, tokens_cached=200_000)
#: What each kind of agent says of `TAKEN`, and how that is shown.
KINDS: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "known": ("claude", {}, 1_500_000, "$1.50"),
    "listed": ("codex", {"model": "gpt-5.5"}, 0, "about $7.10"),
    "house": ("codex", {"model": "house-model"}, 0, "? (1.1 M tokens)"),
    "default": ("codex", {}, 0, "? (1.1 M tokens)"),
    "local": ("llm", {"provider": "ollama", "model": "qwen3"}, 0, "? (1.1 M tokens)"),
    "remote": ("http", {"url": "http://127.0.0.1:9/"}, 0, "? (1.1 M tokens)"),
}
ALL = "about $8.60 + 4.4 M tokens of unknown cost"


# ── one cost ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("usd", "estimated", "unpriced", "words"),
    [
        (0.0, False, 0, "$0.00"),
        (1.2, False, 0, "$1.20"),
        (1.2, True, 0, "about $1.20"),
        (1.2, False, 5_300_000, "$1.20 + 5.3 M tokens of unknown cost"),
        (1.2, True, 20_000_000, "about $1.20 + 20 M tokens of unknown cost"),
        (None, False, 42_000, "? (42 k tokens)"),
        (None, False, 0, "?"),
    ],
)
def test_a_cost_is_said_with_what_is_not_known_of_it(
    usd: float | None, estimated: bool, unpriced: int, words: str
) -> None:
    assert in_words(usd, estimated, unpriced) == words


def test_costs_add_up_without_losing_what_is_estimated_or_unknown() -> None:
    whole = Cost(1_000_000) + Cost(500_000, estimated=True) + Cost(unpriced=7)
    assert whole == Cost(1_500_000, estimated=True, unpriced=7)
    assert Cost(unpriced=7).usd is None
    assert (tokens_in_words(1), tokens_in_words(9_999)) == ("1 token", "9,999 tokens")


def test_cached_tokens_have_their_own_price() -> None:
    price = Price("gpt-5.5", *GPT, "a test")
    assert price.of(1_000_000, 100_000, 200_000) == 4_000_000 + 100_000 + 3_000_000
    assert Price.read(price.stored()) == price


# ── prices ──────────────────────────────────────────────────────────────────────────────────────


def test_the_price_list_knows_what_providers_serve_themselves() -> None:
    price = price_table.listed(Served("gpt-5.5", "openai"), NOW)
    assert price is not None
    assert (price.input, price.output, price.cached, price.listed) == (*GPT, True)
    assert price.source.startswith("genai-prices ")
    assert price_table.listed(Served("house-model", "openai"), NOW) is None
    # The same name at another address is another model.
    assert price_table.listed(Served("gpt-5.5"), NOW) is None


@pytest.mark.parametrize(
    ("config", "source"),
    [
        ({"model": "gpt-5.5"}, "genai-prices"),
        ({"model": "gpt-5.5", "prices": {"input": 1.0, "output": 2.0}}, "the agent's own prices"),
        ({"model": "ours"}, "the company's prices"),
        ({"model": "ours", "baseUrl": "http://127.0.0.1:9/v1"}, "the company's prices"),
        ({"model": "gpt-5.5", "baseUrl": "http://127.0.0.1:9/v1"}, None),
        ({"model": "gpt-5.5", "env": {"OPENAI_BASE_URL": "http://127.0.0.1:9"}}, None),
        ({"model": "gpt-5.5", "provider": "gateway"}, None),
        ({}, None),
    ],
)
def test_a_run_keeps_the_price_with_which_it_began(
    small: Company, config: dict[str, Any], source: str | None
) -> None:
    given = {"ours": {"input": 3, "output": 4}}
    small.call(small.board, companies.change, company=small.id, prices=given)
    run = began(small, "codex", config)
    price = shown(small, run)["price"]
    assert (price and price["source"].split(" 0")[0]) == source
    # Another price later changes nothing.
    small.call(small.board, companies.change, company=small.id, prices={"ours": None})
    assert shown(small, run)["price"] == price


def test_prices_of_a_company_travel_and_are_checked(small: Company, tmp_path: Path) -> None:
    given = {"ours": {"input": 3, "output": 4.5, "cached": 0.5}}
    small.call(small.board, companies.change, company=small.id, prices=given)
    with opened(f"sqlite:///{tmp_path}/there.db", tmp_path / "there") as there:
        made = import_(there, export(small), name="Arrived")
        copy = there.call(there.board, companies.show, company=made["id"])
        assert copy["prices"] == given
    refused: list[Any] = [
        5,
        {"ours": 5},
        {"ours": {"input": 1}},
        {"ours": {"input": -1, "output": 1}},
        {"ours": {"input": float("nan"), "output": 1}},
        {"ours": {"input": 1, "output": 1, "more": 1}},
    ]
    for wrong in refused:
        with pytest.raises(BadInput, match="prices"):
            small.call(small.board, companies.change, company=small.id, prices=wrong)


# ── the ledger ──────────────────────────────────────────────────────────────────────────────────


def began(company: Company, adapter: str, config: dict[str, Any]) -> Run:
    """A run of somebody new with this adapter."""
    dev = company.agent("dev", adapter_type="scripted", perpetual=True)
    changes = {"adapterType": adapter, "adapterConfig": config}
    company.call(company.board, configuration.change, agent=dev.id, changes=changes)
    send(company, company.board, f"agent:{dev.id}")
    return claim(company, dev)


def test_tokens_without_a_price_are_counted_as_that_and_not_as_nothing(company: Company) -> None:
    run = began(company, "codex", {"model": "house-model"})
    spend(company, run, tokens=300)
    live = shown(company, run)
    assert (live["cost_usd"], live["tokens_unpriced"]) == (None, 0)  # it may still be told
    end(company, run, tokens_in=500)
    found = shown(company, run)
    assert (found["cost_usd"], found["tokens_unpriced"]) == (None, 500)
    spend(company, run, tokens=700)  # told of after its end
    totals = company.sql("SELECT money_micros, tokens, tokens_unpriced FROM spending")
    assert totals == [(0, 700, 700)]
    # What it did cost is believed, whenever that is said.
    spend(company, run, tokens=700, cents=3)
    assert company.sql("SELECT money_micros, tokens_unpriced FROM spending") == [(30_000, 0)]


def test_an_upgrade_finds_the_tokens_that_were_charged_as_nothing(company: Company) -> None:
    one = began(company, "codex", {"model": "house-model"})
    end(company, one, tokens_in=500)
    known = company.sql("SELECT tokens_unpriced, money_estimated FROM spending")
    company.sql("UPDATE spending SET tokens_unpriced = 0")
    (file,) = Path(versions.__path__[0]).glob("*_prices.py")
    company.sql(runpy.run_path(str(file))["FILL"])
    assert company.sql("SELECT tokens_unpriced, money_estimated FROM spending") == known


def test_a_run_that_was_cut_off_is_priced_by_its_model(company: Company) -> None:
    run = began(company, "claude", {"model": "claude-sonnet-4-5"})
    total = {"tokens_in": 1000, "tokens_out": 100, "tokens_cached": 800}
    answer = company.call(as_system(), budgets.spend, run=run.id, total=total)
    micros = 200 * 3 + 800 * 0.3 + 100 * 15
    assert answer["about_micros"] == micros
    assert shown(company, run)["cost_usd"] is None  # its program says it at its end
    company.call(company.board, runs.cancel, run=run.id)
    found = shown(company, run)
    assert (found["cost_usd"], found["cost_estimated"]) == (micros / 1e6, True)
    assert company.sql("SELECT money_micros, money_estimated FROM spending") == [(micros, micros)]


def test_a_model_that_costs_nothing_has_a_price(small: Company) -> None:
    free = {"input": 0.0, "output": 0.0}
    run = began(small, "codex", {"model": "house-model", "prices": free})
    end(small, run, tokens_in=500)
    found = shown(small, run)
    assert (found["cost_usd"], found["cost_estimated"], found["tokens_unpriced"]) == (0, False, 0)


def test_a_budget_says_what_it_does_not_see(small: Company) -> None:
    run = began(small, "codex", {"model": "house-model"})
    end(small, run, tokens_in=500)
    budget = small.call(small.board, budgets.show, agent=run.agent_id)
    assert cost(budget["cost"]) == "? (500 tokens)"


# ── every surface ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def worked(office: Office) -> dict[str, Any]:
    """Agents by kind that took the same tokens; beside them a scripted one that took none."""
    made: dict[str, Any] = {}
    for kind, (adapter, config, micros, _) in KINDS.items():
        agent = office.agent(kind)
        change = {"adapterType": adapter, "adapterConfig": config}
        office.board.must("PATCH", f"/api/agents/{agent['id']}", change)
        run = office.begin(agent)
        price = office.board.must("GET", f"/api/runs/{run.id}")["price"]
        taken = {**asdict(TAKEN), "cost_micros": micros}
        if kind == "listed":
            taken = asdict(TAKEN.priced_at(Price(**price, listed=True)))
        else:
            assert price is None
        office.do(office.running.app.gate(as_system(), budgets.spend, run=run.id, total=taken))
        office.end(run)
        made[kind] = {**agent, "run": run.id}
    idle = office.agent("scripted")
    office.end(office.begin(idle))
    return made


def test_every_surface_says_the_same_of_every_kind_of_agent(
    office: Office, worked: dict[str, Any], tmp_path: Path
) -> None:
    token = office.running.board.token
    assert token is not None
    home = Home(tmp_path, {"REMIT_URL": office.url, "REMIT_TOKEN": token})

    def cli(*words: str) -> str:
        done = home("--company", office.company, *words)
        assert done.code == 0, done
        return " ".join(done.out.split())

    def page(path: str) -> str:
        headers = {"Cookie": f"{COOKIE}={cookie}"}
        answer = office.running.client()("GET", path, headers=headers)
        assert answer.status == 200, (path, answer.status)
        text = re.sub(r"<(script|style).*?</\1>", "", answer.body.decode(), flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<title>|<[^>]*>", " ", text)).split())

    cookie = office.session(office.board)
    api = {run["id"]: run for run in office.board.must("GET", office.path("runs"))}
    listed, board_page, org = cli("run", "list"), page("/runs"), page("/org")
    for kind, (_, _, _, words) in KINDS.items():
        agent, run = worked[kind], worked[kind]["run"]
        assert cost(api[run]) == words, kind
        assert api[run]["costUsd"] is None or not words.startswith("?")
        assert f"{words} " in listed, kind
        assert f" cost {words} " in cli("run", "show", run), kind
        assert words in cli("agent", "budget", kind), kind
        for path in (f"/runs/{run}", f"/agents/{agent['id']}", f"/agents/{agent['id']}?tab=runs"):
            assert words in page(path), (kind, path)
        budget = office.board.must("GET", f"/api/agents/{agent['id']}/budget")
        assert cost(budget["cost"]) == words, kind
        assert words in board_page, kind
        assert words in org, kind
    assert ALL in cli("top", "--once")
    assert f"has spent {ALL} today; $50.00" in cli("agent", "budget", "known")
    first = page("/")
    assert first.count(ALL) >= 3  # today, this month, and the chart
    assert f"{ALL} of $50.00 today" in first
    assert ALL in board_page
    assert ALL in org  # the root, with everybody below it
    budgets_page = page("/setup/budgets")
    for _, _, _, words in KINDS.values():
        assert words in budgets_page
