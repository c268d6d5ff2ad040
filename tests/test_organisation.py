"""The tree of agents: names, places, supervision, and what each agent keeps."""

import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.organisation.agent import DEEPEST_TREE, TRANSITIONS, AgentStatus
from remit.model.organisation.agent_spec import RESERVED_NAMES
from remit.services.execution import runs
from remit.services.identity import as_system
from remit.services.organisation import agents, reorganise, tree
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcome_walks, outcomes
from tests.company import Company, Member, opened
from tests.organisation import hire, problems, refusal, shown, work
from tests.statements import statements_that_set

SOURCE = Path(__file__).parent.parent / "src" / "remit"


def show(company: Company, agent: Member) -> dict[str, Any]:
    return company.call(company.board, agents.show, agent=agent.id)


def status_of(company: Company, agent: str) -> tuple[str, str]:
    """Of a mandate, and of the agent whose it is."""
    who = company.call(company.board, agents.show, agent=agent)
    return shown(company, agent)["status"], who["status"]


# ── the beginning ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-85", "AG-86", "HH-02", "HH-23")
def test_a_company_begins_with_a_lasting_mandate_and_a_root_agent_below_a_user(
    company: Company,
) -> None:
    root = show(company, company.ceo)
    assert root["status"] == "idle"
    assert root["reports_to"] is None
    assert root["boss_user_id"] is not None
    mandate = shown(company, company.ceo.id)
    assert (mandate["perpetual"], mandate["status"]) == (True, "open")
    assert (mandate["owner_id"], mandate["delegator_id"]) == (company.ceo.id, None)
    assert mandate["parents"] == []


@pytest.mark.requirement("HH-23", "HH-08")
def test_a_second_start_finds_the_tree_as_it_was(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path / "home") as company:
        lead = company.agent("lead")
        company.call(
            company.board,
            reorganise.reorganise,
            company=company.id,
            operations=[{"op": "move", "agent": "lead", "to": "board"}],
        )
        before = company.call(company.board, agents.listing, company=company.id)
    with opened(database_url, tmp_path / "home") as company:
        after = company.call(company.board, agents.listing, company=company.id)
        assert after == before
        assert show(company, lead)["reports_to"] is None
        assert problems(company) == []


def test_no_agent_name_and_no_folder_is_special_in_the_code() -> None:
    """What the root agent may do comes from its place and its capabilities, never from a name."""
    special = re.compile(
        r"""(?ix) ["'](?:manager|hm1nd)["'] | hive[-_]?c0re | topology\.json
            | meta[-_/]repo | HIVE_""",
    )
    hits = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if special.search(line)
    ]
    assert hits == []
    # The first agent is named once, where it is made, and its name is compared with nowhere.
    named = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted((SOURCE).rglob("*.py"))
        if re.search(r"""(?:==|!=|\bin\b)\s*\(?["']ceo["']""", path.read_text())
    ]
    assert named == []


def test_the_root_agent_can_go_and_another_take_its_name(company: Company) -> None:
    first = company.ceo
    company.agent("meanwhile", None)
    company.call(company.board, agents.terminate, agent=first.id)
    second = company.agent("ceo", None)
    assert second.id != first.id
    assert company.call(company.board, agents.show, agent="ceo")["id"] == second.id
    assert company.call(company.board, agents.show, agent=first.id)["status"] == "terminated"


# ── names and places ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-68")
@pytest.mark.parametrize(
    "name",
    [
        "", "-a", "a-", "a--b", "a b", "a_b", "ä", "a" * 65, "a.b", None, 7, "a\n",
        *sorted(RESERVED_NAMES), "BOARD", "Human",
        # Could be taken for an id, and so for somebody else.
        "deadbeef", "0190a0b0-c0d0", "0190a0b0-c0d0-7000-8000-000000000000", "DEAD-BEEF",
    ],
)  # fmt: skip
def test_an_agent_has_a_plain_name_that_is_free_to_use(small: Company, name: Any) -> None:
    with pytest.raises(BadInput):
        small.call(small.board, agents.create, company=small.id, name=name, reports_to="ceo")
    goal = work(small, small.ceo.caller, small.ceo.id)
    assert (
        refusal(small, small.ceo.caller, delegation.delegate, outcome=goal, hire={"name": name})
        == "invalid"
    )


@pytest.mark.requirement("AG-68")
def test_a_name_is_unique_among_the_living_whatever_its_case(company: Company) -> None:
    lead = company.agent("Lead")
    for name in ("lead", "LEAD", "Lead"):
        with pytest.raises(AlreadyExists):
            company.agent(name)
    company.call(company.board, agents.terminate, agent=lead.id)
    again = company.agent("lead")
    assert company.call(company.board, agents.show, agent="LEAD")["id"] == again.id
    assert company.call(company.board, agents.show, agent=lead.id)["name"] == "Lead"


@pytest.mark.requirement("AG-69", "HH-01", "HH-13")
def test_everybody_has_one_boss_an_agent_or_a_user(company: Company) -> None:
    lead = company.agent("lead")
    dev = company.agent("dev", "lead")
    root = company.agent("second", None)
    assert show(company, dev)["reports_to"] == lead.id
    assert show(company, dev)["boss_user_id"] is None
    # Without a boss it is placed below whoever asked.
    assert show(company, root)["reports_to"] is None
    assert show(company, root)["boss_user_id"] is not None
    made = hire(company, dev.caller, work(company, dev.caller, dev.id), "intern")
    assert show(company, made)["reports_to"] == dev.id
    for broken in (
        "UPDATE agents SET boss_id = NULL WHERE id = ?",
        "UPDATE agents SET boss_id = id WHERE id = ?",
    ):
        with pytest.raises(Exception, match=r"(?i)check"):
            company.sql(broken, dev.id)


@pytest.mark.requirement("HH-04", "HH-05", "AG-69")
def test_no_configuration_moves_an_agent_and_no_move_touches_its_configuration(
    company: Company,
) -> None:
    peer = company.agent("peer")
    config = {"command": "peer", "args": ["--boss", "peer", "--reports-to", peer.id]}
    lead = company.agent("lead", adapter_type="process", adapter_config=config, prompt="Lead.")
    goal = work(company, lead.caller, lead.id)
    for field in ("boss", "reports_to", "boss_id"):
        assert (
            refusal(
                company,
                lead.caller,
                delegation.delegate,
                outcome=goal,
                hire={"name": "dev", field: "peer"},
            )
            == "invalid"
        )
    columns = "SELECT adapter_type, adapter_config, prompt FROM agents WHERE id = ?"
    before = company.sql(columns, lead.id)
    assert show(company, lead)["reports_to"] == company.ceo.id
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "move", "agent": "lead", "to": "peer"}],
    )
    assert company.sql(columns, lead.id) == before
    # An agent moves nobody, not even itself.
    assert (
        refusal(
            company,
            lead.caller,
            reorganise.reorganise,
            company=None,
            operations=[{"op": "move", "agent": "lead", "to": "ceo"}],
        )
        == "board_only"
    )


def test_the_tree_is_at_most_32_deep(small: Company) -> None:
    boss = small.ceo
    for level in range(2, DEEPEST_TREE + 1):
        boss = small.agent(f"level-{level}", boss.name)
    with pytest.raises(BadInput):
        small.agent("too-deep", boss.name)
    goal = work(small, boss.caller, boss.id)
    assert refusal(
        small, boss.caller, delegation.delegate, outcome=goal, hire={"name": "too-deep"}
    ) == ("invalid")
    # Neither a move nor a layer gets anybody deeper.
    small.agent("top", None)
    for operation in (
        {"op": "move", "agent": "ceo", "to": "top"},
        {"op": "insert_layer", "agents": ["level-2"], "name": "layer"},
        {"op": "insert_layer", "agents": ["ceo"], "name": "layer"},
    ):
        assert (
            refusal(
                small,
                small.board,
                reorganise.reorganise,
                company=small.id,
                operations=[operation],
            )
            == "invalid"
        )
    # The one at the bottom still has every boss above it.
    assert small.call(small.ceo.caller, agents.pause, agent=boss.id)["status"] == "paused"


# ── what an agent keeps ─────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-68", "AG-118", "HH-15")
def test_a_state_document_is_written_by_its_agent_and_read_by_its_bosses(
    company: Company,
) -> None:
    lead = company.agent("lead")
    dev = company.agent("dev", "lead")
    peer = company.agent("peer")
    below = company.agent("below", "dev")
    state = show(company, dev)["state_file_id"]
    seen, content = company.read(dev.caller, state)
    assert content == b""
    company.write(dev.caller, seen, b"Remember this.")
    for boss in (lead, company.ceo):
        seen, content = company.read(boss.caller, state)
        assert content == b"Remember this."
        with pytest.raises(RemitError):
            company.write(boss.caller, seen, b"Think this.")
    for other in (peer, below, company.second_company().agent):
        with pytest.raises(NotFound):
            company.read(other.caller, state)
    assert company.read(company.board, state)[1] == b"Remember this."
    assert company.read(dev.caller, state)[0]["version"] == 2


@pytest.mark.requirement("AG-68", "AG-84", "HH-15")
def test_an_activity_log_is_appended_by_submitting_and_by_nothing_else(company: Company) -> None:
    lead = company.agent("lead")
    dev = company.agent("dev", "lead")
    peer = company.agent("peer")
    run = company.run(dev)
    company.call(run.caller, agents.submit_log, summary="Found the cause.")
    company.call(as_system(), runs.end, run=run.id)
    company.call(dev.caller, agents.submit_log, summary="Fixed it.")
    log = show(company, dev)["log_file_id"]
    for reader in (dev, lead, company.ceo):
        text = company.read(reader.caller, log)[1].decode()
        assert text.index("Fixed it.") < text.index("Found the cause.")
        entries = company.call(reader.caller, agents.read_log, agent=dev.id)["entries"]
        assert [entry["run_id"] for entry in entries] == [None, run.id]
    for caller in (dev.caller, lead.caller):
        with pytest.raises(RemitError):
            company.write(caller, company.read(caller, log)[0], b"Nothing happened.")
    assert refusal(company, peer.caller, agents.read_log, agent=dev.id) == "not_found"
    for summary in ("", "x" * 20_001, None):
        with pytest.raises(BadInput):
            company.call(dev.caller, agents.submit_log, summary=summary)  # type: ignore[arg-type]


@pytest.mark.requirement("AG-68", "AG-115", "AG-118")
def test_an_agent_that_left_is_kept_with_all_that_it_was(company: Company) -> None:
    lead = company.agent("lead")
    part = work(company, lead.caller, lead.id, "Part")
    company.call(lead.caller, agents.submit_log, summary="Did a part.")
    company.call(company.board, agents.terminate, agent=lead.id)
    view = show(company, lead)
    assert (view["status"], view["name"]) == ("terminated", "lead")
    assert "Did a part." in company.read(company.ceo.caller, view["log_file_id"])[1].decode()
    assert company.call(company.ceo.caller, outcomes.show, outcome=part)["history"]
    assert company.call(company.ceo.caller, outcomes.listing, owner=lead.id)
    everybody = company.call(company.board, agents.listing, company=company.id, terminated=True)
    assert lead.id in {agent["id"] for agent in everybody}


@pytest.mark.requirement("AG-71")
def test_an_agent_has_at_most_one_live_run(company: Company) -> None:
    lead = company.agent("lead")
    run = company.run(lead)
    with pytest.raises(Conflict):
        company.run(lead)
    with pytest.raises(Exception, match=r"(?i)unique"):
        company.sql(
            "INSERT INTO runs (id, company_id, agent_id, status, started_at)"
            " VALUES (?, ?, ?, 'running', 0)",
            company.app.ids.new(),
            company.id,
            lead.id,
        )
    # Pausing and resuming meanwhile does not open a door to a second one.
    company.call(company.board, agents.pause, agent=lead.id)
    company.call(company.board, agents.resume, agent=lead.id)
    assert show(company, lead)["status"] == "running"
    with pytest.raises(Conflict):
        company.run(lead)
    company.call(as_system(), runs.end, run=run.id)
    assert show(company, lead)["status"] == "idle"
    company.run(lead)


# ── supervision ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HH-12", "HH-38", "HH-41", "PC-22")
def test_any_ancestor_and_nobody_else_controls_an_agent(company: Company) -> None:
    lead = company.agent("lead")
    dev = company.agent("dev", "lead")
    peer = company.agent("peer")
    stranger = company.second_company().agent
    for boss in (lead, company.ceo):
        assert company.call(boss.caller, agents.pause, agent=dev.id)["status"] == "paused"
        with pytest.raises(Conflict):
            company.run(dev)
        assert company.call(boss.caller, agents.resume, agent=dev.id)["status"] == "idle"
        assert company.call(boss.caller, outcomes.listing, owner="dev")
    for verb in (agents.pause, agents.resume, agents.terminate):
        for who, whom in (
            (dev, dev), (dev, lead), (dev, company.ceo), (lead, lead), (peer, dev),
            (company.ceo, company.ceo), (lead, peer),
        ):  # fmt: skip
            assert refusal(company, who.caller, verb, agent=whom.id) == "not_below_you"
        assert refusal(company, stranger.caller, verb, agent=dev.id) == "not_found"
    with pytest.raises(Conflict):
        company.call(company.ceo.caller, agents.resume, agent=dev.id)
    with pytest.raises(Conflict):
        company.call(company.ceo.caller, agents.terminate, agent=lead.id)
    company.call(company.ceo.caller, agents.terminate, agent=dev.id)
    company.call(company.ceo.caller, agents.terminate, agent=lead.id)
    for verb in (agents.pause, agents.resume, agents.terminate):
        assert refusal(company, company.ceo.caller, verb, agent=dev.id) == "conflict"


@pytest.mark.requirement("PC-22")
def test_a_status_becomes_only_what_the_table_says() -> None:
    for status, wanted in product(AgentStatus, AgentStatus):
        agent: Any = SimpleNamespace(name="dev", status=status)
        if wanted in TRANSITIONS[status]:
            tree.check_transition(agent, wanted)
        else:
            with pytest.raises(Conflict, match=r"cannot be made|already"):
                tree.check_transition(agent, wanted)
    # And one service alone writes it, by one statement.
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}
    writers = {name for name, text in texts.items() if "SET_AGENT_STATUS" in text}
    assert writers == {"store/organisation/agents.py", "services/organisation/tree.py"}
    writing = statements_that_set("agents", "status")
    assert writing == {"remit.store.organisation.agents.SET_AGENT_STATUS"}
    ways = ("update(agents)", "Rows(Agent)")
    updates = {
        name.split("/")[0] for name, text in texts.items() if any(one in text for one in ways)
    }
    assert updates == {"store"}


@pytest.mark.requirement("HH-19", "HH-02")
def test_being_at_the_root_gives_no_right_by_itself(company: Company) -> None:
    """D-10: rights over the instance come from a capability, never from having no boss."""
    root = company.agent("second", None)
    attempts: list[tuple[Any, dict[str, Any]]] = [
        (events.listing, {"company": None}),
        (agents.create, {"company": None, "name": "more"}),
        (reorganise.reorganise, {"company": None, "operations": [{"op": "seat", "agent": "ceo"}]}),
        (agents.terminate, {"agent": company.ceo.id}),
        (grants.give, {"company": None, "to": "ceo", "resource": "instance.configure",
                       "level": "use"}),
    ]  # fmt: skip
    for verb, arguments in attempts:
        with pytest.raises(Refused):
            company.call(root.caller, verb, **arguments)
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to="second",
        resource="instance.configure",
        level="use",
    )


def test_a_paused_agent_still_finishes_what_it_has_under_way(company: Company) -> None:
    lead = company.agent("lead")
    run = company.run(lead)
    company.call(company.ceo.caller, agents.pause, agent=lead.id)
    company.call(run.caller, agents.submit_log, summary="Winding up.")
    company.call(as_system(), runs.end, run=run.id)
    assert show(company, lead)["status"] == "paused"


# ── damage ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HH-06", "HH-20", "AG-69")
def test_a_damaged_tree_gives_nobody_a_say_and_hangs_nothing(
    database_url: str, tmp_path: Path
) -> None:
    with opened(database_url, tmp_path / "home") as company:
        lead = company.agent("lead")
        dev = company.agent("dev", "lead")
        tester = company.agent("tester", "dev")
        secret = work(company, tester.caller, tester.id, "Secret")
        state = show(company, tester)["state_file_id"]
        company.sql("UPDATE agents SET boss_id = ? WHERE id = ?", tester.id, lead.id)
        for boss in (lead, dev, company.ceo):
            for verb in (agents.pause, agents.terminate):
                assert refusal(company, boss.caller, verb, agent=tester.id) == "not_below_you"
            with pytest.raises(NotFound):
                company.read(boss.caller, state)
            assert refusal(company, boss.caller, outcomes.show, outcome=secret) in (
                "not_found",
                "delegated_away",
            )
        # Nobody is their own ancestor, either.
        assert refusal(company, tester.caller, agents.pause, agent=tester.id) == "not_below_you"
        for operation in (
            {"op": "move", "agent": "dev", "to": "ceo"},
            {"op": "move", "agent": "ceo", "to": "dev"},
            {"op": "insert_layer", "agents": ["dev"], "name": "layer"},
        ):
            with pytest.raises(RemitError):
                company.call(
                    company.board,
                    reorganise.reorganise,
                    company=company.id,
                    operations=[operation],
                )
        assert company.call(company.board, outcome_walks.subtree, outcome=lead.id)["children"]
        company.agent("successor", None)
        company.call(company.board, outcomes.close, outcome=company.ceo.id, rationale="A mess.")
        assert company.call(company.board, events.verify, company=company.id)["ok"]


@pytest.mark.requirement("AG-88", "AG-86")
def test_the_boss_of_an_agent_may_be_a_person_or_a_program(company: Company) -> None:
    """Whoever calls with the boss's token is the boss; what answers behind it does not matter."""
    adapters: dict[str, dict[str, Any]] = {
        "human": {},
        "process": {"command": "true"},
        "http": {"url": "https://example.org/hook"},
        "llm": {},
        "scripted": {},
    }
    for number, (adapter, config) in enumerate(adapters.items()):
        boss = company.agent(f"boss-{number}", adapter_type=adapter, adapter_config=config)
        report = company.call(
            boss.caller,
            delegation.delegate,
            outcome=work(company, boss.caller, boss.id),
            hire={"name": f"report-{number}", "adapter_type": "human"},
        )
        assert report["agent"]["reports_to"] == boss.id
        company.call(boss.caller, outcomes.complete, outcome=report["agent"]["id"])
        assert status_of(company, report["agent"]["id"]) == ("completed", "terminated")
    person = company.agent("root-of-a-person", None)
    company.call(company.board, outcomes.complete, outcome=person.id)
    assert status_of(company, person.id) == ("completed", "terminated")
