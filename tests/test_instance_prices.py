"""Prices for the whole instance, what an apply says of prices, and what `remit doctor` checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import price_table
from remit.entrypoints.cli.commands.instance import login
from remit.errors import BadInput
from remit.model.execution import prices
from remit.runtime import diagnosis
from remit.services.declared import declared_company
from remit.services.hiring import configuration
from remit.services.people import companies
from remit.settings import Settings, load
from tests.company import Answer, Company, opened
from tests.governance import hire
from tests.test_cli import Home, only, remit
from tests.working import claim

__all__ = ["only", "remit"]  # fixtures
pytestmark = pytest.mark.requirement("FX-65")
SLOTS = 0
HOUSE = {"model": "house-model"}
CODEX: dict[str, Any] = {"adapter_type": "codex", "adapter_config": HOUSE}
DECLARED = {"name": "dev", "adapterType": "codex", "adapterConfig": HOUSE}


def written(folder: Path, text: str) -> Settings:
    """The settings of a home with this `remit.toml`."""
    (folder / "remit.toml").write_text(text)
    return load({"REMIT_HOME": str(folder)})


def price_of_run(company: Company, name: str, config: Mapping[str, Any] = HOUSE) -> Answer | None:
    """The price that a run of a new agent is begun with."""
    dev = company.agent(name, adapter_type="codex", adapter_config=dict(config))
    claim(company, dev)
    ((text,),) = company.sql("SELECT price FROM runs WHERE agent_id = ?", dev.id)
    return None if text is None else dict(json.loads(text))


def apply(at: Company, **sections: Any) -> Answer:
    preview: Answer = at.call(at.board, declared_company.preview, company=at.id, document=sections)
    done: Answer = at.call(
        at.board,
        declared_company.apply,
        company=at.id,
        document=sections,
        accepted=preview["digest"],
    )
    assert preview["warnings"] == done["warnings"]
    return done


def declared(**given: Any) -> dict[str, Any]:
    return {"prices": given}


# ── remit.toml ──────────────────────────────────────────────────────────────────────────────────


def test_prices_of_the_instance_are_read_from_its_file(tmp_path: Path) -> None:
    settings = written(
        tmp_path,
        'url = "https://remit.example"\n[prices]\n"org/house-model" = {input = 1, output = 10}\n'
        "free = {input = 0, output = 0, cached = 0.0}\n",
    )
    assert settings.url == "https://remit.example"
    assert prices.of_instance(settings.prices) == {
        "org/house-model": (1, 10, 1),
        "free": (0, 0, 0),
    }
    assert load({"REMIT_HOME": str(tmp_path / "none")}).prices == {}


@pytest.mark.parametrize(
    "head", ['company = "Acme"\n', "", 'company = """Ac\\\n  me"""\ntoken = """a\\\n  b"""\n']
)
def test_a_login_leaves_the_prices_as_they_are(tmp_path: Path, head: str) -> None:
    table = "[prices]\n# ours\nfree = {input = 0, output = 0.5}\n"
    before = written(tmp_path, head + table)
    login.keep(tmp_path / "remit.toml", {"url": "https://remit.example", "token": "rmt_x"})
    after = load({"REMIT_HOME": str(tmp_path)})
    assert (after.url, after.token) == ("https://remit.example", "rmt_x")
    assert (after.company, after.prices) == (before.company, before.prices)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('prices = "1/2"', "prices must be a table"),
        ("[prices]\nhouse = 5", "remit.toml: prices.house: is no price."),
        ("[prices]\nhouse = {input = 1}", "remit.toml: prices.house: is no price."),
        (
            "[prices]\nhouse = {input = 1, output = 2, euro = 3}",
            "remit.toml: prices.house: is no price.",
        ),
        ("[prices]\nhouse = {input = -1, output = 2}", "remit.toml: prices.house.input: must be"),
        ("[prices]\nhouse = {input = 1, output = nan}", "remit.toml: prices.house.output: must"),
        ('[prices]\nhouse = {input = "1", output = 2}', "remit.toml: prices.house.input: must be"),
        ("price = 5", "unknown setting 'price'"),
    ],
)
def test_wrong_prices_of_the_instance_are_refused_at_the_start(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(BadInput) as caught:
        prices.of_instance(written(tmp_path, text).prices)
    assert sentence in caught.value.sentence
    assert caught.value.step


def test_the_first_price_of_agent_company_instance_and_list_counts(small: Company) -> None:
    small.app.gate.prices = prices.of_instance(
        {"house-model": {"input": 1, "output": 2}, "gpt-5.5": {"input": 0, "output": 0}}
    )
    first = price_of_run(small, "a")
    assert first is not None
    assert (first["source"], first["input"], first["cached"]) == ("the instance's prices", 1, 1)
    # Before the list price, and after what the company says.
    assert (price_of_run(small, "b", {"model": "gpt-5.5"}) or {})["input"] == 0
    of_company = {"house-model": {"input": 3, "output": 4}}
    small.call(small.board, companies.change, company=small.id, prices=of_company)
    assert (price_of_run(small, "c") or {})["source"] == "the company's prices"
    own = {**HOUSE, "prices": {"input": 5, "output": 6}}
    assert (price_of_run(small, "d", own) or {})["source"] == "the agent's own prices"
    assert price_of_run(small, "e", {"model": "another"}) is None
    assert price_of_run(small, "f", {}) is None


def test_an_instance_takes_the_prices_of_its_file(remit: Home) -> None:
    remit.folder.mkdir(parents=True, exist_ok=True)
    (remit.folder / "remit.toml").write_text("[prices]\nhouse-model = {input = 1, output = 2}\n")
    settings = load({"REMIT_HOME": str(remit.folder)})
    with opened(settings.database_url, remit.folder) as company:
        company.app.gate.prices = prices.of_instance(settings.prices)
        assert price_of_run(company, "dev") is not None


# ── warnings ────────────────────────────────────────────────────────────────────────────────────


def test_a_hire_with_a_budget_that_cannot_hold_is_answered_with_a_warning(small: Company) -> None:
    hired = hire(small, small.board, "dev", reports_to="ceo", budget_monthly_cents=100, **CODEX)
    assert hired["warning"].startswith("The cost of codex with house-model is not known")
    assert "`remit company set --price house-model=INPUT/OUTPUT`" in hired["warning"]
    fine = hire(small, small.board, "ops", reports_to="ceo", **CODEX)
    assert "warning" not in fine


def test_the_command_line_warns_at_once(only: Home) -> None:
    model = ("--adapter", "codex", "--config", json.dumps(HOUSE), "--budget", "1")
    for command in ("create", "hire"):
        said = only("agent", command, f"by-{command}", "--boss", "ceo", *model)
        assert said.code == 0, said.err
        assert "warning: The cost of codex with house-model is not known" in said.err
        assert f"`remit agent set by-{command} budgetMonthlyTokens=NUMBER`" in said.err


def test_an_apply_names_the_agents_that_their_budgets_do_not_hold(small: Company) -> None:
    (warning,) = apply(small, agents=[{**DECLARED, "budgetMonthlyCents": 100}])["warnings"]
    assert (warning["agent"], warning["about"]) == ("dev", "budget")
    assert "a budget of money does not hold it" in warning["sentence"]
    assert "remit company set --price house-model" in warning["next_step"]
    # Nothing changes, so nothing is said; a price ends it, and another file takes it back.
    document = {"agents": [{**DECLARED, "budgetMonthlyCents": 100}]}
    assert apply(small, **document)["warnings"] == []
    priced = declared(**{"house-model": {"input": 1, "output": 2}})
    assert apply(small, company=priced, **document)["warnings"] == []
    (again,) = apply(small, company=declared(**{"house-model": None}), **document)["warnings"]
    assert again["agent"] == "dev"


# ── prices in a file that is applied ────────────────────────────────────────────────────────────


def test_an_apply_sets_keeps_and_removes_prices(small: Company) -> None:
    def now() -> Any:
        return small.call(small.board, companies.show, company=small.id)["prices"]

    free = {"input": 0, "output": 0}
    done = apply(small, company=declared(a={"input": 1, "output": 2}, b=free))
    assert (done["changed"], set(now())) == (1, {"a", "b"})
    assert now()["b"] == {"input": 0, "output": 0, "cached": 0}
    # A price of zero is a price.
    assert price_of_run(small, "x", {"model": "b"}) is not None
    # The same again is no change, and what a file does not name stays.
    assert apply(small, company=declared(a={"input": 1, "output": 2}))["changed"] == 0
    assert set(now()) == {"a", "b"}
    assert apply(small, company=declared(a=None, c=free))["changed"] == 1
    assert set(now()) == {"b", "c"}
    assert apply(small, company=declared(a=None))["changed"] == 0


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"input": -1, "output": 2}, "prices.a.input"),
        ({"input": 1, "output": 10_001}, "prices.a.output"),
        ({"input": "1", "output": 2}, "prices.a.input"),
        ({"input": True, "output": 2}, "prices.a.input"),
        ({"input": 1}, "prices.a"),
        ({"input": 1, "output": 2, "perThousand": 3}, "prices.a"),
        ({"input": 1, "output": 2, "currency": "EUR"}, "prices.a"),
        ("1/2", "prices.a"),
        (5, "prices.a"),
    ],
)
def test_an_apply_with_a_wrong_price_says_where_and_changes_nothing(
    small: Company, wrong: Any, where: str
) -> None:
    right = {"input": 1, "output": 2}
    with pytest.raises(BadInput) as caught:
        apply(small, company=declared(b=right, a=wrong))
    assert where in caught.value.sentence
    assert not small.call(small.board, companies.show, company=small.id)["prices"]


# ── doctor ──────────────────────────────────────────────────────────────────────────────────────


def test_doctor_says_how_old_the_price_list_is(monkeypatch: pytest.MonkeyPatch) -> None:
    (now,) = diagnosis._prices(load({}))
    assert now.found.startswith("genai-prices ")
    for days, state in ((10, "ok"), (400, "warn")):
        old = timedelta(days=days)
        monkeypatch.setattr(price_table, "newest", lambda today, old=old: today - old)
        (found,) = diagnosis._prices(load({}))
        assert found.state == state
        assert bool(found.next_step) == (state == "warn")


def test_doctor_names_models_in_use_that_have_no_price(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path) as company:
        settings = company.app.settings

        def found() -> diagnosis.Finding:
            (one,) = diagnosis.models(settings)
            return one

        assert found().state == "ok"
        dev = company.agent("dev", **CODEX)
        assert found().state == "warn"
        assert "not known of codex with house-model" in found().found
        assert "[prices] in remit.toml" in found().next_step
        given = {"house-model": {"input": 1, "output": 2}}
        company.call(company.board, companies.change, company=company.id, prices=given)
        assert found().state == "ok"
        changes: dict[str, Any] = {"adapterConfig": {}}
        company.call(company.board, configuration.change, agent=dev.id, changes=changes)
        assert "codex with its default model" in found().found
