"""Other MCP servers: who registers them, what that may be, and how agents at work learn of it."""

from pathlib import Path
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import AlreadyExists, BadInput, NotFound, Refused
from remit.services.connections import mcp_servers, secrets
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.record import events
from remit.services.redaction import REMOVED
from remit.services.rights import grants
from remit.services.work import outcomes
from tests.company import Answer, Company, Member, opened
from tests.mailing import look
from tests.working import is_awake, let_sleep


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def add(at: Company, name: str = "up", by: Caller | None = None, **more: Any) -> Answer:
    replace = more.pop("replace", False)
    definition = more or {"command": ["/bin/true"]}
    return at.call(
        by or at.board,
        mcp_servers.add,
        company=at.id,
        name=name,
        definition=definition,
        replace=replace,
    )


def give(
    at: Company, to: Member, name: str = "up", by: Caller | None = None, **more: Any
) -> Answer:
    return at.call(
        by or at.board,
        grants.give,
        company=at.id,
        to=to.id,
        resource=f"mcp_server:{name}",
        level="use",
        **more,
    )


def remove(at: Company, name: str = "up") -> Answer:
    return at.call(at.board, mcp_servers.remove, company=at.id, name=name)


def names(at: Company, caller: Caller) -> list[str]:
    return [seat.server.name for seat in at.call(caller, mcp_servers.usable)]


def use(at: Company, caller: Caller, name: str = "up", **arguments: Any) -> mcp_servers.Seat:
    return at.call(caller, mcp_servers.use, server=name, tool="echo", arguments=arguments)


def told(at: Company, member: Member) -> list[str]:
    return [one["body"] for one in look(at, member) if one["subject"] == "Your tools change"]


def put_secret(at: Company) -> None:
    at.call(at.board, secrets.put, company=at.id, name="key", source="env", place="X")


def test_a_server_is_registered_replaced_listed_and_removed(company: Company) -> None:
    put_secret(company)
    made = add(company, command=["npx", "-y", "pkg"], env={"A": "b"}, secret_env={"T": "key"})
    assert (made["transport"], made["version"], made["secret_env"]) == ("stdio", 1, {"T": "{key}"})
    assert made["env"] == {"A": REMOVED}  # who knows what it is
    with pytest.raises(AlreadyExists):
        add(company)
    changed = add(company, url="https://up.example/mcp", headers={"X-A": "b"}, replace=True)
    assert (changed["id"], changed["version"], changed["command"]) == (made["id"], 2, None)
    assert changed["url"] == "https://up.example/mcp"
    give(company, company.ceo)
    (listed,) = company.call(company.board, mcp_servers.listing, company=company.id)
    assert listed["holders"] == [company.ceo.id]
    assert len(remove(company)["revoked"]) == 1
    assert company.call(company.board, mcp_servers.listing, company=company.id) == []
    with pytest.raises(NotFound):
        remove(company)
    assert add(company)["holders"] == []  # one of the same name is another one


def test_only_operators_on_the_board_register_and_remove(company: Company) -> None:
    add(company)
    member, observer = company.user("member"), company.user("observer", "observer")
    part = company.user("part", scope="ceo")
    for who in (member, observer, part, company.ceo.caller):
        with pytest.raises(Refused) as caught:
            add(company, "other", by=who)
        assert caught.value.reason in ("not_operator", "board_only")
        with pytest.raises(Refused):
            company.call(who, mcp_servers.remove, company=company.id, name="up")
        with pytest.raises(Refused):
            company.call(who, mcp_servers.try_out, company=company.id, name="up")
    assert company.call(member, mcp_servers.listing, company=company.id)
    for who in (observer, part, company.ceo.caller):
        with pytest.raises(Refused):
            company.call(who, mcp_servers.listing, company=company.id)
    with pytest.raises(NotFound):
        company.call(company.second_company().board, mcp_servers.listing, company=company.id)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"command": ["a"], "url": "https://a.example"},
        {"command": "npx it"},
        {"command": []},
        {"command": [""]},
        {"command": ["a", "\0"]},
        {"command": ["a"], "headers": {"A": "b"}},
        {"command": ["a"], "env": {"A B": "c"}},
        {"command": ["a"], "env": {"REMIT_TOKEN": "c"}},
        {"command": ["a"], "env": {"remit_token": "c"}},
        {"command": ["a"], "env": {"A": 7}},
        {"command": ["a"], "env": {"A": "two\nlines"}},
        {"command": ["a"], "env": {f"A{n}": "b" for n in range(65)}},
        {"command": ["a"], "env": {"A": "b"}, "secret_env": {"A": "key"}},
        {"command": ["a"], "secret_env": {"A": "No Name"}},
        {"command": ["a"], "secret_env": {"A": "{"}},
        {"command": ["a"], "inject": "yes"},
        {"url": "ftp://a.example"},
        {"url": "https://user:pass@a.example/mcp"},
        {"url": "https://"},
        {"url": "https://a.example:99999/"},
        {"url": "https://a.example/\n"},
        {"url": "https://a.example/#part"},
        {"url": "file:///etc/passwd"},
        {"url": 7},
        {"url": "https://a.example", "env": {"A": "b"}},
        {"url": "https://a.example", "inject": True},
        {"url": "https://a.example", "headers": {"Host": "b"}},
        {"url": "https://a.example", "headers": {"A:": "b"}},
        {"url": "https://a.example", "headers": {"A": "b\r\nC: d"}},
        {"url": "https://a.example", "headers": {"A": "b"}, "secret_headers": {"a": "key"}},
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        put_secret(company)
        with pytest.raises(BadInput):
            company.call(
                company.board, mcp_servers.add, company=company.id, name="up", definition=wrong
            )


@pytest.mark.parametrize("name", ["", "Up", "a__b", "_a", "a_", "a.b", "a" * 33, "remit", 7, "ü"])
def test_a_server_has_a_plain_name(tmp_path: Path, name: Any) -> None:
    with (
        opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company,
        pytest.raises(BadInput),
    ):
        add(company, name)


def test_a_server_cannot_name_a_secret_that_is_not_there(company: Company) -> None:
    with pytest.raises(NotFound, match="no secret"):
        add(company, command=["a"], secret_env={"T": "key"})
    assert company.call(company.board, mcp_servers.listing, company=company.id) == []


# ── who may use them ────────────────────────────────────────────────────────────────────────────


def test_a_use_is_decided_and_recorded_without_its_arguments(company: Company) -> None:
    add(company)
    dev = company.agent("dev")
    assert names(company, dev.caller) == []
    with pytest.raises(Refused) as caught:
        use(company, dev.caller, text="private words")
    assert (caught.value.reason, "mcp_server:up and level use" in caught.value.step) == (
        "no_capability",
        True,
    )
    give(company, dev)
    assert names(company, dev.caller) == ["up"]
    run = company.run(dev)
    seat = use(company, run.caller, text="private words")
    assert (seat.agent_id, seat.run_id, seat.server.version) == (dev.id, run.id, 1)
    kept = company.call(company.board, events.listing, company=company.id, limit=50)
    calls = [one for one in kept if one["action"] == "mcp_server.call"]
    assert [(one["allowed"], one["resource"]) for one in calls] == [
        (True, "mcp_server:up"),
        (False, "mcp_server:up"),
    ]
    assert calls[0]["details"] == {"tool": "echo", "version": 1}
    assert "private words" not in str(company.sql("SELECT * FROM events"))
    assert company.call(company.board, events.verify, company=company.id)["ok"]


def test_nobody_uses_what_is_not_registered_or_is_another_companys(company: Company) -> None:
    add(company)
    with pytest.raises(Refused) as caught:
        use(company, company.board)
    assert caught.value.reason == "agents_only"
    neighbour = company.second_company()
    give(company, company.ceo, "unknown")
    assert names(company, company.ceo.caller) == []
    with pytest.raises(NotFound):
        use(company, company.ceo.caller, "unknown")
    assert names(company, neighbour.agent.caller) == []
    with pytest.raises(Refused):
        use(company, neighbour.agent.caller)
    company.call(
        neighbour.board,
        grants.give,
        company=neighbour.id,
        to=neighbour.agent.id,
        resource="mcp_server:up",
        level="use",
    )
    with pytest.raises(NotFound):
        use(company, neighbour.agent.caller)


def test_a_server_is_passed_on_and_ends_with_its_source(company: Company) -> None:
    add(company)
    dev = company.agent("dev")
    with pytest.raises(Refused):
        give(company, dev, by=company.ceo.caller)  # it holds nothing itself
    source = give(company, company.ceo)
    give(company, dev, by=company.ceo.caller)
    assert names(company, dev.caller) == ["up"]
    company.call(company.board, grants.revoke, grant=source["id"])
    assert names(company, dev.caller) == []


def test_where_each_use_is_asked_for_the_same_call_is_made_again_once_approved(
    company: Company,
) -> None:
    add(company)
    give(company, company.ceo, mode="ask")
    assert names(company, company.ceo.caller) == ["up"]  # it may know of it
    with pytest.raises(Refused) as caught:
        use(company, company.ceo.caller, text="a")
    assert caught.value.reason == "pending_approval"
    waiting = caught.value.details["approval_id"]
    with pytest.raises(Refused):
        use(company, company.ceo.caller, text="a")
    shown = company.call(company.board, approvals.show, approval=waiting)
    assert shown["payload"]["arguments"]["arguments"] == {"text": "a"}
    company.call(company.board, approvals.approve, approval=waiting)
    with pytest.raises(Refused) as other:
        use(company, company.ceo.caller, text="b")  # another call
    assert other.value.details["approval_id"] != waiting
    assert use(company, company.ceo.caller, text="a").server.name == "up"
    with pytest.raises(Refused):
        use(company, company.ceo.caller, text="a")  # once


def test_a_prohibition_beats_every_grant_and_outlives_the_server(company: Company) -> None:
    add(company)
    give(company, company.ceo)
    give(company, company.ceo, mode="deny")
    assert names(company, company.ceo.caller) == []
    remove(company)
    add(company)
    give(company, company.ceo)
    with pytest.raises(Refused) as caught:
        use(company, company.ceo.caller)
    assert caught.value.reason == "denied_by_grant"


# ── agents at work ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-54", "AG-55")
def test_an_agent_at_work_is_told_after_the_change_and_started_again_when_it_ends(
    company: Company,
) -> None:
    add(company)
    dev = company.agent(
        "dev", perpetual=True, adapter_type="process", adapter_config={"command": "x"}
    )
    idle = company.agent("idle", perpetual=True)
    give(company, idle)
    assert told(company, idle) == []  # its next run will have it anyway
    run = company.run(dev)
    given = give(company, dev)
    assert names(company, run.caller) == ["up"]  # what is in the database counts at once
    (text,) = told(company, dev)
    assert "You may use the MCP server up now" in text
    assert "Save your state and end your run" in text
    let_sleep(company, dev)
    company.call(as_system(), runs.end, run=run.id, status="completed")
    assert is_awake(company, dev)
    second = company.run(dev)
    company.call(company.board, grants.revoke, grant=given["id"])
    with pytest.raises(Refused):
        use(company, second.caller)
    assert any("was taken from you" in text for text in told(company, dev))


@pytest.mark.requirement("AG-54")
def test_it_is_told_of_whatever_else_takes_a_server_or_changes_it(company: Company) -> None:
    add(company)
    dev = company.agent("dev")
    task = company.call(company.board, outcomes.create, parent=dev.id, title="one thing")
    run = company.run(dev)
    give(company, dev, scope=task["id"])
    company.call(company.board, outcomes.close, outcome=task["id"], rationale="not needed")
    assert names(company, run.caller) == []
    assert sum("was taken from you" in text for text in told(company, dev)) == 1
    give(company, dev)
    add(company, command=["/bin/false"], replace=True)
    assert sum("set up anew" in text for text in told(company, dev)) == 1
    give(company, dev, mode="deny")
    assert sum("may not use" in text for text in told(company, dev)) == 1
    remove(company)
    assert sum("was taken from you" in text for text in told(company, dev)) == 1  # it was denied


def test_who_keeps_another_right_to_a_server_is_not_told_that_it_is_gone(company: Company) -> None:
    add(company)
    dev = company.agent("dev")
    first = give(company, dev)
    give(company, dev)
    company.run(dev)
    company.call(company.board, grants.revoke, grant=first["id"])
    assert told(company, dev) == []


def test_what_nobody_needs_any_more_is_found(company: Company) -> None:
    add(company)
    dev = company.agent("dev")
    given = give(company, dev)
    run = company.run(dev)
    (seat,) = company.call(run.caller, mcp_servers.usable)

    def gone() -> bool:
        return bool(company.call(as_system(), mcp_servers.vacated, seats=[seat]))

    assert not gone()
    company.call(company.board, grants.revoke, grant=given["id"])
    assert gone()
    give(company, dev)
    assert not gone()
    add(company, command=["/bin/false"], replace=True)
    assert gone()
    with pytest.raises(NotFound):
        company.call(company.board, mcp_servers.vacated, seats=[seat])
    with pytest.raises(NotFound):
        company.call(company.board, mcp_servers.find, company=company.id, name="up")
    with pytest.raises(NotFound):
        company.call(dev.caller, mcp_servers.injected, company=company.id, agent=dev.id)


def test_variables_are_given_only_where_each_use_is_allowed(company: Company) -> None:
    add(company, command=["a"], env={"A": "b"}, inject=True)
    dev = company.agent("dev")

    def given() -> list[str]:
        found = company.call(as_system(), mcp_servers.injected, company=company.id, agent=dev.id)
        return [server.name for server in found]

    assert given() == []
    give(company, dev)
    assert given() == ["up"]
    give(company, dev, mode="ask")
    assert given() == []
