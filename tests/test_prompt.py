"""What an agent is told: the same bytes while nothing changes, then its memory, then the turn."""

import json
import re
from importlib import resources
from types import SimpleNamespace
from typing import Any

import jinja2
import jinja2.meta
import pytest

from remit.clock import DAY, HOUR, SystemClock, from_iso
from remit.ids import AgentId, CompanyId
from remit.runtime.runs import prompt
from remit.services.execution.run_queue import keep_session
from remit.services.execution.run_start import resumable
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.organisation import agents, permissions
from remit.store.execution.runs import Session
from tests.company import Company, Member
from tests.mailing import send
from tests.working import at_work, claim, listed, over, program


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def company(small: Company) -> Company:
    return small


#: Keeps what it was told where its next run finds it.
KEEPS = 'cat > "$HOME/$REMIT_RUN"'


def tasks(company: Company, member: Member) -> list[dict[str, Any]]:
    """What each run of an agent was given, oldest first."""
    home = company.home / "agents" / member.id
    runs = [run["id"] for run in reversed(listed(company, member))]
    return [json.loads((home / run).read_text()) for run in runs]


def remember(company: Company, member: Member, text: str) -> None:
    file = company.call(company.board, agents.show, agent=member.id)["state_file_id"]
    seen, _ = company.read(member.caller, file)
    company.write(member.caller, seen, text.encode())


@pytest.mark.requirement("AG-75", "AG-82", "AG-119", "HB-23", "FX-16")
def test_the_beginning_is_the_same_in_every_run_and_memory_comes_after_it(
    company: Company,
) -> None:
    dev = program(company, "dev", KEEPS, title="Developer", prompt="Be  kind.\n\nAlways {{so}}.")
    for number, memory in enumerate(("", "I did one thing.", "I did another thing.")):
        if memory:
            remember(company, dev, memory)
        send(company, company.board, "agent:dev", f"letter {number}")
        at_work(company, over(company, dev, number + 1))
    first, second, third = tasks(company, dev)
    assert first["instructions"] == second["instructions"] == third["instructions"]
    told = first["instructions"]
    assert "Be  kind.\n\nAlways {{so}}.\n" in told  # to the byte
    sections = [line for line in told.splitlines() if line.startswith("# ")]
    assert sections == ["# Who you are", "# What you can do", "# How to work"]
    assert "one thing" not in told
    assert "letter" not in told
    assert "# Your memory" not in first["turn"]
    assert second["turn"].startswith(
        "# Your memory\n\nWhat you wrote yourself, your state document:\n| I did one thing.\n\n"
    )
    assert third["turn"].index("I did another thing.") < third["turn"].index("letter 2")
    # What is stable and changes, changes it.
    company.call(company.board, configuration.change, agent="dev", changes={"title": "Engineer"})
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev, 4))
    assert tasks(company, dev)[3]["instructions"] != told


@pytest.mark.requirement("AG-76", "AG-77", "AG-79", "AG-119", "FX-16")
def test_it_says_how_to_work_and_is_short() -> None:
    told = prompt.instructions(
        agent={
            "id": "0",
            "name": "dev",
            "role": "engineer",
            "title": "",
            "capabilities": "",
            "prompt": "",
            "state_file_id": "2",
        },
        boss={"kind": "agent", "name": "lead", "outcome": "1"},
        company={"name": "Acme"},
        mandate={"title": "Sell more", "purpose": "Twice as much as last year."},
    )
    assert "What it says: Sell more\n\nTwice as much as last year.\n" in told
    assert "Nobody reads your final message." in told
    assert "your state document kb://2 " in told
    assert told.index("Inbox first") < told.index("urgent and important first")
    assert "No deep work yet." in told
    assert told.index("When nothing is left") < told.index("When your outcome is reached")
    for tool in ("kb_write", "log_submit", "mail_send", "capability_request", "delegate"):
        assert tool in told
    assert "You are responsible for outcome:0: make it true." in told
    assert "Your boss is agent:lead, responsible for outcome:1." in told
    # Four steps, and eight rules of which each says something of its own.
    steps, rules = told[told.index("# How to work") :].split("\nRules\n")
    rules, last = rules.split("\n\nWhen your outcome is reached: ")
    for part, words in (
        (steps, ("Inbox", "matters most", "until it is done", "nothing is left")),
        (
            rules,
            (
                *("knowledge base", "state document", "submit what you did", "exactly the rights"),
                *("close it with the reason", "Never fall silent", "Mail before work"),
                "tools changed",
            ),
        ),
    ):
        numbered = re.findall(r"^(\d)\. (.+)$", part, re.MULTILINE)
        assert [int(number) for number, _ in numbered] == list(range(1, len(words) + 1))
        for (_, said), word in zip(numbered, words, strict=True):
            assert word in said
    assert "tell your boss. Never fall silent." in rules
    closing = [step.strip() for step in last.partition("\n")[0].split(";")]
    assert [step.split()[0] for step in closing] == ["see", "update", "submit", "hand"]
    assert "never an instruction from Remit" in last
    assert len(told.encode()) / 4 < 1200  # tokens, roughly


@pytest.mark.requirement("HB-28")
def test_the_template_says_which_variables_it_has() -> None:
    source = resources.files("remit.prompts").joinpath("system/base.md").read_text()
    documented = source[: source.index("-#}")]
    used = set(jinja2.meta.find_undeclared_variables(jinja2.Environment().parse(source)))  # noqa: S701
    assert used == {"agent", "boss", "company", "mandate", "can"}
    text = source[source.index("-#}") :]
    for variable in used:
        assert variable in documented
    for owner, field in re.findall(r"\b(agent|boss|company|mandate)\.(\w+)(?!\w|\()", text):
        assert field in documented, f"{owner}.{field}"
    for field in re.findall(r"get\(\"(\w+)\", {}\)", text):
        assert field in documented
    for word in re.findall(r"\"(\w+)\" in can", text):
        assert word in documented
    # What is used and not given is an error, not an empty place.
    with pytest.raises(jinja2.UndefinedError):
        prompt.instructions(agent={}, boss={}, company={}, mandate={})


@pytest.mark.requirement("HH-36", "HB-26")
def test_it_is_rendered_from_what_the_agent_may(company: Company) -> None:
    lead = program(company, "lead", KEEPS)
    special = {
        *("hire_agent", "create_agent", "agent_configurations"),
        *("agent_control", "approval_decide"),
    }
    everybody = {"create_agent"}

    def told(run: int) -> set[str]:
        send(company, company.board, "agent:lead", "go on")
        at_work(company, over(company, lead, run))
        text = tasks(company, lead)[-1]["instructions"]
        return {tool for tool in special if tool in text}

    assert told(1) == everybody
    company.agent("worker", boss="lead", adapter_type="human")
    assert told(2) == everybody | {"agent_control"}
    company.call(company.board, permissions.change, agent=lead.id, can_create=True)
    assert told(3) == special - {"approval_decide"}
    company.call(company.board, permissions.change, agent=lead.id, level="boss")
    assert told(4) == special


@pytest.mark.requirement("HB-23")
def test_memory_is_bounded_in_bytes_and_says_where_it_was_cut() -> None:
    for letter in ("x", "é", "😀", "\n", "\x85", "a\n"):
        notes = prompt.Written("your notes of today", letter * 10_000, 1000)
        told = prompt.turn("", situation="", mail=True, memory=[notes])
        heading, _, shown = told.partition(":\n")
        assert heading.endswith("your notes of today (cut; the whole is in its file)")
        assert 500 < len(shown.partition("\n# Situation")[0].encode()) <= 1000
        assert "\ufffd" not in shown
        whole = [prompt.Written("one", letter * 10_000), prompt.Written("other", "y" * 9_000)]
        assert len(prompt.turn("", situation="", mail=True, memory=whole).encode()) < 8500
    written = [prompt.Written("your state document", "x")]
    told = prompt.turn("mail", situation="why-this-run: mail\n", mail=True, memory=written)
    assert told == (
        "# Your memory\n\nWhat you wrote yourself, your state document:\n| x\n\n"
        "# Situation\n\nwhy-this-run: mail\nmail"
    )
    assert prompt.turn("", situation="", mail=False).endswith(
        "no new mail. Go on with what is due.\n"
    )


NOW = from_iso("2026-05-01T12:00:00Z")


def policy(**given: Any) -> Any:
    names = ("max_age", "idle_time", "max_context_tokens", "daily_reset_at")
    return SimpleNamespace(**{name: given.get(name) for name in names})


@pytest.mark.requirement("HB-31", "HB-56")
def test_a_session_goes_on_as_long_as_its_policy_lets_it() -> None:
    session = Session(
        AgentId(""), CompanyId(""), "claude", "s", NOW - 3 * HOUR, NOW - HOUR, context_tokens=50_000
    )

    def goes_on(given: Any, kind: str = "claude") -> bool:
        return resumable(session, given, kind, NOW)

    assert goes_on(policy())
    assert not goes_on(None)
    assert not resumable(None, policy(), "claude", NOW)
    assert not goes_on(policy(), "codex")
    for yes, no in (
        (policy(max_age="3h"), policy(max_age="2h")),
        (policy(idle_time="60m"), policy(idle_time="3599s")),
        (policy(max_context_tokens=50_000), policy(max_context_tokens=49_999)),
        (policy(daily_reset_at="10:59"), policy(daily_reset_at="11:30")),
        (policy(daily_reset_at="12:01"), policy(daily_reset_at="12:00")),
    ):
        assert goes_on(yes)
        assert not goes_on(no)
    assert not resumable(session, policy(daily_reset_at="12:01"), "claude", NOW + DAY)


@pytest.mark.requirement("HB-31")
def test_what_a_run_leaves_to_go_on_with_is_kept_and_forgotten(company: Company) -> None:
    dev = program(company, "dev", "exit 0")
    send(company, company.board, "agent:dev")
    run = claim(company, dev)
    given: dict[str, Any] = {"adapter_type": "process", "begun_at": NOW, "context_tokens": 7}
    company.call(as_system(), keep_session, run=run.id, session_id="one", **given)
    company.call(as_system(), keep_session, run=run.id, session_id="two", **given)
    assert company.sql("SELECT session_id, context_tokens FROM agent_sessions") == [("two", 7)]
    company.call(as_system(), keep_session, run=run.id, session_id=None, **given)
    assert company.sql("SELECT count(*) FROM agent_sessions") == [(0,)]
