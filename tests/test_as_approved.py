"""What was approved is what is done: field by field, for every type of approval.

The tests read the rows themselves and hash them themselves, so they share nothing with the code
that asks, approves and applies.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from remit.clock import HOUR, to_iso
from remit.errors import AwaitsApproval, BadInput, Conflict, Refused
from remit.model.organisation.approval import ApprovalType
from remit.services.governance import approval_engine, approvals
from remit.services.hiring import configuration, helper_creation
from remit.services.knowledge import files
from remit.services.record import events
from remit.services.rights import grants
from remit.services.screens import needs_you
from remit.services.work import delegation, outcomes
from tests.company import Answer, Company, Member
from tests.governance import (
    approve,
    ask,
    count,
    hire,
    hired,
    letters,
    propose,
    reject,
    resubmit,
    send_back,
)
from tests.organisation import dump, refusal, tables, work
from tests.selection import histories

LEVELS = {"read": 1, "write": 2, "use": 3}
#: What a level bundles, as the documents say: whether it hires, what it holds, what it is denied.
BUNDLES: dict[str, tuple[bool | None, set[str], set[str]]] = {
    "restricted": (False, set(), {"full_access", "instance.configure", "approval.decide"}),
    "standard": (None, set(), set()),
    "privileged": (True, set(), set()),
    "boss": (True, {"approval.decide", "instance.configure"}, set()),
}
COLUMNS = {
    "name": "name",
    "role": "role",
    "title": "title",
    "capabilities": "capabilities",
    "prompt": "prompt",
    "adapterType": "adapter_type",
    "adapterConfig": "adapter_config",
    "runtimeConfig": "runtime_config",
    "budgetMonthlyCents": "budget_monthly_cents",
    "budgetMonthlyTokens": "budget_monthly_tokens",
    "metadata": "metadata",
}
DOCUMENTS = {"adapterConfig", "runtimeConfig", "metadata"}


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


def digest(payload: object) -> str:
    text = json.dumps(payload, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def stored(company: Company, approval: str) -> Answer:
    """What is asked for, from the row; every revision must be what was hashed and recorded."""
    ((text, hashed, number),) = company.sql(
        "SELECT payload, digest, revision FROM approvals WHERE id = ?", approval
    )
    revisions = company.sql(
        "SELECT number, payload, digest FROM approval_revisions WHERE approval_id = ?"
        " ORDER BY number",
        approval,
    )
    assert [one[0] for one in revisions] == list(range(1, number + 1))
    assert revisions[-1][1:] == (text, hashed)
    for _, said, its_digest in revisions:
        assert digest(json.loads(said)) == its_digest
    recorded = [
        json.loads(details)["digest"]
        for (details,) in company.sql(
            "SELECT details FROM events WHERE resource = ? AND action IN"
            " ('approval.request', 'approval.resubmit') ORDER BY seq",
            f"approval:{approval}",
        )
    ]
    assert recorded == [one[2] for one in revisions]
    payload: Answer = json.loads(text)
    return payload


def configured(company: Company, agent: str) -> Answer:
    """The configuration of an agent, from its row."""
    (row,) = company.sql(
        f"SELECT {', '.join(COLUMNS.values())} FROM agents WHERE id = ?",  # noqa: S608
        agent,
    )
    found = dict(zip(COLUMNS, row, strict=True))
    return {key: json.loads(one) if key in DOCUMENTS else one for key, one in found.items()}


def held(company: Company, agent: str) -> list[tuple[Any, ...]]:
    return sorted(
        company.sql(
            "SELECT kind, resource_id, level, mode, scope_id, expires_at, granted_by_agent"
            " FROM grants WHERE holder_id = ? AND revoked_at IS NULL",
            agent,
        ),
        key=repr,
    )


def examples_of(
    examples: int,
    strategy: st.SearchStrategy[Any],
    check: Callable[[Any], None],
    always: Sequence[Any] = (),
) -> None:
    """Try `check` with so many things of a kind; of a few the one that fails is short enough."""
    few = examples < 20
    tried = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=few,
        phases=[Phase.explicit, Phase.generate] if few else list(Phase),
        suppress_health_check=list(HealthCheck),
    )
    test = given(strategy)(check)
    for one in always:
        test = example(one)(test)
    tried(test)()


# ── what can be asked for ───────────────────────────────────────────────────────────────────────

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)
AMOUNTS = st.integers(1, 10_000)
FLAT = st.dictionaries(WORDS, st.one_of(WORDS, st.integers(0, 9), st.booleans()), max_size=3)
ADAPTERS = st.one_of(
    st.just({"adapterType": "scripted", "adapterConfig": {}}),
    st.builds(
        lambda command, args, env: {
            "adapterType": "process",
            "adapterConfig": {"command": command, "args": args, "env": env},
        },
        WORDS,
        st.lists(WORDS, max_size=2),
        st.dictionaries(WORDS.map(str.upper), WORDS, max_size=2),
    ),
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["general", "engineer", "designer", "qa"]),
        "title": WORDS,
        "capabilities": WORDS,
        "prompt": WORDS,
        "runtimeConfig": FLAT,
        "budgetMonthlyCents": AMOUNTS,
        "budgetMonthlyTokens": AMOUNTS,
        "metadata": FLAT,
    },
)


def described(config: Answer) -> Answer:
    """The same as the arguments of a hire are called."""
    return {COLUMNS[key]: value for key, value in config.items()}


WISHES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["read", "write"]),
        st.sampled_from([None, "allow", "ask"]),
        st.one_of(st.none(), st.integers(1, 50)),
    ),
    unique_by=lambda wish: wish[0],
    max_size=3,
)


def named(
    company: Company, wishes: Any, until: Callable[[int], str], by_board: bool
) -> list[Answer]:
    """The same as a hire names them, about files of the CEO; only the board sets conditions."""
    known = [company.file(company.ceo.caller, description=f"file {one}")["id"] for one in range(4)]
    return [
        {
            "resource": f"kb_file:{known[which]}",
            "level": level,
            "mode": mode if by_board or mode != "ask" else None,
            "expires_at": None if hours is None else until(hours),
        }
        for which, level, mode, hours in wishes
    ]


def micros(company: Company, text: str | None) -> int | None:
    """A time of a wish as rows have it; wishes name whole hours from now."""
    if text is None:
        return None
    now = company.clock.now()
    return next(now + n * HOUR for n in range(51) if to_iso(now + n * HOUR) == text)


# ── hires ───────────────────────────────────────────────────────────────────────────────────────

SCRIPTED: Answer = {"adapterType": "scripted", "adapterConfig": {}}
HIRE_PARTS: dict[str, st.SearchStrategy[Any]] = {
    "config": st.builds(lambda one, more: {**one, **more}, ADAPTERS, SETTINGS),
    "wishes": WISHES,
    "for_outcome": st.booleans(),
    "level": st.sampled_from([None, *BUNDLES]),
    "hires": st.sampled_from([None, True, False]),
    "aside": st.one_of(st.none(), AMOUNTS),
    "again": st.one_of(st.none(), SETTINGS),
    "other_wishes": st.one_of(st.none(), WISHES),
}
HIRES = st.fixed_dictionaries(HIRE_PARTS)
DEFAULTS: Answer = {
    "role": "general",
    "title": "",
    "capabilities": "",
    "prompt": "",
    "runtimeConfig": {},
    "budgetMonthlyCents": None,
    "budgetMonthlyTokens": None,
    "metadata": {},
}


@pytest.mark.requirement("BX-10", "PC-32")
@histories(3, 150)
def test_who_is_hired_is_who_was_approved_with_what_was_approved(
    small: Company, examples: int
) -> None:
    """The agent, its configuration, place, permission, level, grants and budget."""

    def check(asked: Answer) -> None:
        ceo = small.ceo
        name = f"agent-{small.app.ids.new()}"
        config = {**DEFAULTS, "name": name, **asked["config"]}
        until = lambda hours: to_iso(small.clock.now() + hours * HOUR)  # noqa: E731
        # The board sets levels, the CEO hands over an outcome or lets somebody hire.
        level = asked["level"]
        wishes = named(small, asked["wishes"], until, level is not None)
        for_outcome = asked["for_outcome"] and level is None
        may = asked["hires"] if level is None and not for_outcome else None
        arguments = {**described(asked["config"]), "given": wishes}
        aside: Answer = {}
        outcome = None
        if for_outcome:
            outcome = work(small, ceo.caller, ceo.id)
            if asked["aside"]:
                aside = {"setAside": {"tokens": asked["aside"]}}
            made = small.call(
                ceo.caller,
                delegation.delegate,
                outcome=outcome,
                hire={"name": name, **described(asked["config"])},
                given=wishes,
                budget={"tokens": asked["aside"]} if aside else None,
            )
        elif level is not None:
            made = hire(small, small.board, name, reports_to="ceo", level=level, **arguments)
        else:
            permissions = None if may is None else {"canCreateAgents": may}
            made = hire(small, ceo.caller, name, permissions=permissions, **arguments)
        agent, approval = made["agent"]["id"], made["approval"]["id"]
        purpose = config["title"] or f"Act as {config['role']}"
        if outcome is not None:
            ((purpose,),) = small.sql("SELECT title FROM outcomes WHERE id = ?", outcome)

        def as_asked() -> Answer:
            return {
                "agentId": agent,
                "requestedByAgentId": None if level else ceo.id,
                "name": name,
                "role": config["role"],
                "title": config["title"],
                "reportsTo": ceo.id,
                "outcomeId": outcome,
                "purpose": purpose,
                "perpetual": outcome is None,
                "permissions": {} if may is None else {"canCreateAgents": may},
                "grants": [{**wish, "scope": agent} for wish in wishes],
                "requestedConfigurationSnapshot": config,
                "permissionLevel": level,
                **aside,
            }

        assert stored(small, approval) == as_asked()
        if asked["again"] is not None or asked["other_wishes"] is not None:
            send_back(small, made["approval"])
            changes: Answer = dict(asked["again"] or {})
            config |= changes
            if asked["other_wishes"] is not None:
                changes["grants"] = wishes = named(small, asked["other_wishes"], until, bool(level))
            resubmit(small, small.board if level else ceo.caller, made["approval"], **changes)
            assert stored(small, approval) == as_asked()
        assert held(small, agent) == []
        approve(small, made["approval"])
        assert stored(small, approval) == as_asked()

        assert configured(small, agent) == config
        ((status, boss, permitted, given_level),) = small.sql(
            "SELECT status, boss_id, permissions, permission_level FROM agents WHERE id = ?", agent
        )
        assert (status, boss, given_level) == ("idle", ceo.id, level or "standard")
        may_hire, allowed, denied = BUNDLES[level] if level else (may, set[str](), set[str]())
        assert json.loads(permitted).get("canCreateAgents") == may_hire
        expected = [
            (
                "kb_file",
                wish["resource"].removeprefix("kb_file:"),
                LEVELS[wish["level"]],
                wish["mode"] or "allow",
                agent,
                micros(small, wish["expires_at"]),
                None if level else ceo.id,
            )
            for wish in wishes
        ]
        expected += [("action", one, 3, "allow", agent, None, None) for one in allowed]
        expected += [("action", one, 3, "deny", agent, None, None) for one in denied]
        assert held(small, agent) == sorted(expected, key=repr)
        set_aside = small.sql("SELECT kind, amount FROM reservations WHERE agent_id = ?", agent)
        assert set_aside == ([("tokens", asked["aside"])] if aside else [])
        ((owner, title, perpetual),) = small.sql(
            "SELECT owner_id, title, perpetual FROM outcomes WHERE id = ?", agent
        )
        assert (owner, outcome or agent) == (agent, agent)
        assert (title, bool(perpetual)) == (purpose, outcome is None)

    plain: Answer = {**dict.fromkeys(HIRE_PARTS), "config": SCRIPTED, "wishes": []}
    always = [{**plain, "level": level, "wishes": [(0, "read", "ask", None)]} for level in BUNDLES]
    always += [
        {**plain, "for_outcome": True, "aside": 17, "wishes": [(1, "read", "allow", 7)]},
        {**plain, "hires": True, "wishes": [(0, "read", None, 5), (1, "write", None, None)]},
        {**plain, "again": {"prompt": "b", "role": "qa"}, "other_wishes": [(2, "write", None, 3)]},
    ]
    examples_of(examples, HIRES, check, always)


@pytest.mark.requirement("BX-10")
def test_an_agent_is_hired_for_the_purpose_that_was_approved(small: Company) -> None:
    ceo = small.ceo.caller

    def rename(outcome: str, title: str) -> None:
        ((version,),) = small.sql("SELECT version FROM outcomes WHERE id = ?", outcome)
        small.call(small.board, outcomes.change, outcome=outcome, version=version, title=title)

    made = hire(small, ceo, "designer", purpose="Draw the logo", perpetual=False)
    agent, approval = made["agent"]["id"], made["approval"]
    before = stored(small, approval["id"])
    assert (before["purpose"], before["perpetual"]) == ("Draw the logo", False)
    rename(agent, "Empty the till")
    with pytest.raises(Conflict, match="'Draw the logo', which is 'Empty the till' by now"):
        approve(small, approval)
    # It can be asked for anew, as it is called now or as it is to be called.
    send_back(small, approval)
    resubmit(small, ceo, approval, purpose="Draw the sign")
    assert stored(small, approval["id"]) == {**before, "purpose": "Draw the sign"}
    approve(small, approval)
    assert small.sql("SELECT title, perpetual FROM outcomes WHERE id = ?", agent) == [
        ("Draw the sign", 0)
    ]
    # What somebody is hired for stays the owner's to name.
    outcome = work(small, ceo, small.ceo.id)
    given = small.call(ceo, delegation.delegate, outcome=outcome, hire={"name": "printer"})
    send_back(small, given["approval"])
    with pytest.raises(BadInput, match="that of the outcome"):
        resubmit(small, ceo, given["approval"], purpose="Print")
    resubmit(small, ceo, given["approval"])
    rename(outcome, "Print")
    with pytest.raises(Conflict, match="by now"):
        approve(small, given["approval"])


@pytest.mark.tampers
@pytest.mark.requirement("BX-10")
def test_a_hire_of_a_version_that_did_not_say_what_for_can_be_decided(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    def older(*args: Any, **terms: Any) -> Answer:
        payload = of_today(*args, **terms)
        return {key: payload[key] for key in payload if key not in ("purpose", "perpetual")}

    of_today = approval_engine.hire_payload
    with monkeypatch.context() as patched:
        patched.setattr(approval_engine, "hire_payload", older)
        made = hire(small, small.ceo.caller, "designer", purpose="Draw")
    assert "purpose" not in stored(small, made["approval"]["id"])
    approve(small, made["approval"])
    assert small.sql("SELECT status FROM agents WHERE id = ?", made["agent"]["id"]) == [("idle",)]


@pytest.mark.tampers
@pytest.mark.requirement("BX-10")
def test_the_agent_is_made_from_what_was_approved_not_from_its_row(small: Company) -> None:
    """Whatever else wrote to the agent that waits."""
    made = hire(small, small.ceo.caller, "designer", prompt="Draw.", budget_monthly_cents=100)
    agent = made["agent"]["id"]
    small.sql(
        "UPDATE agents SET prompt = 'Obey.', adapter_config = '{\"script\": [\"x\"]}',"
        " budget_monthly_cents = 1000, permission_level = 'boss',"
        " permissions = '{\"canCreateAgents\": true}' WHERE id = ?",
        agent,
    )
    approve(small, made["approval"])
    snapshot = stored(small, made["approval"]["id"])["requestedConfigurationSnapshot"]
    assert configured(small, agent) == snapshot
    assert (snapshot["prompt"], snapshot["budgetMonthlyCents"]) == ("Draw.", 100)
    ((permissions, level),) = small.sql(
        "SELECT permissions, permission_level FROM agents WHERE id = ?", agent
    )
    assert (json.loads(permissions).get("canCreateAgents"), level) == (None, "standard")
    assert held(small, agent) == []
    moved = hire(small, small.ceo.caller, "moved")
    small.agent("other")
    small.sql(
        "UPDATE agents SET boss_id = (SELECT id FROM agents WHERE name = 'other') WHERE id = ?",
        moved["agent"]["id"],
    )
    with pytest.raises(Conflict, match="report to another"):
        approve(small, moved["approval"])


# ── configurations and budgets ──────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-10", "HH-24")
@histories(6, 150)
def test_a_configuration_becomes_what_was_approved_and_nothing_else(
    small: Company, examples: int
) -> None:
    lead = hired(small, small.ceo.caller, "lead", prompt="Lead.", title="Lead")

    def check(asked: tuple[Answer, Answer | None]) -> None:
        changes, again = asked
        before = configured(small, lead.id)
        wanted = {**before, **changes}
        if wanted == before:
            return
        made = propose(small, small.ceo.caller, lead.id, **changes)
        if again is not None:
            send_back(small, made)
            if {**wanted, **again} == before:
                reject(small, made)
                return
            wanted |= again
            resubmit(small, small.ceo.caller, made, **again)
        payload = stored(small, made["id"])
        changed = {key: value for key, value in wanted.items() if before[key] != value}
        assert payload["configuration"] == changed
        assert set(payload["changed"]) == set(changed)
        assert (payload["agentId"], payload["reason"]) == (lead.id, "why")
        approve(small, made)
        assert configured(small, lead.id) == wanted
        revisions = small.call(small.board, configuration.revisions, agent=lead.id)
        assert revisions[0]["approval_id"] == made["id"]

    config = st.builds(
        lambda one, more: {**one, **more}, st.one_of(ADAPTERS, st.just({})), SETTINGS
    )
    examples_of(examples, st.tuples(config, st.one_of(st.none(), SETTINGS)), check)


@pytest.mark.requirement("BX-10")
@histories(4, 100)
def test_a_budget_becomes_what_was_approved_and_nothing_else(small: Company, examples: int) -> None:
    lead = hired(small, small.ceo.caller, "lead", budget_monthly_cents=5)

    def check(asked: tuple[Answer, Answer | None]) -> None:
        wanted, again = asked
        before = configured(small, lead.id)
        made = small.call(
            small.ceo.caller,
            approvals.request,
            company=None,
            kind="budget",
            payload={"agentId": lead.id, **wanted},
        )
        assert stored(small, made["id"]) == {"agentId": lead.id, **wanted}
        if again is not None:
            send_back(small, made)
            resubmit(small, small.ceo.caller, made, **again)
            wanted = {**wanted, **again}
            assert stored(small, made["id"]) == {"agentId": lead.id, **wanted}
        approve(small, made)
        assert configured(small, lead.id) == {**before, **wanted}

    amounts = st.fixed_dictionaries(
        {"budgetMonthlyCents": AMOUNTS}, optional={"budgetMonthlyTokens": AMOUNTS}
    )
    examples_of(examples, st.tuples(amounts, st.one_of(st.none(), amounts)), check)


@pytest.mark.parametrize("kind", ["approve_ceo_strategy", "request_board_approval"])
def test_what_has_no_effect_of_its_own_has_none(small: Company, kind: str) -> None:
    payload = {"title": "Grow", "agentId": small.ceo.id, "budgetMonthlyCents": 1, "grants": ["x"]}
    made = small.call(small.ceo.caller, approvals.request, company=None, kind=kind, payload=payload)
    assert stored(small, made["id"]) == payload
    # The answer is the point: it is told and recorded, and nobody is or has anything else.
    kept = {"agents", "budget_accounts", "config_revisions", "reservations", "tokens"}
    before = dump(small, set(tables(small)) - kept)
    assert set(before) == kept
    approve(small, made)
    assert dump(small, set(tables(small)) - kept) == before
    # It may read the letter that says so.
    assert {(kind, level) for kind, _, level, *_ in held(small, small.ceo.id)} == {("kb_file", 1)}


# ── calls ───────────────────────────────────────────────────────────────────────────────────────


def gate(company: Company, who: Member, resource: str, level: str = "use") -> None:
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to=who.id,
        resource=resource,
        level=level,
        mode="ask",
    )


def parked(attempt: Callable[[], Any]) -> Answer:
    with pytest.raises(AwaitsApproval) as waits:
        attempt()
    return {"id": waits.value.details["approval_id"]}


@pytest.mark.requirement("BX-10", "AG-121")
@histories(5, 150)
def test_the_message_that_is_sent_is_the_one_that_was_approved(
    small: Company, examples: int
) -> None:
    lead = hired(small, small.ceo.caller, "lead")
    peer = hired(small, small.ceo.caller, "peer")
    for other in (small.ceo, peer):
        gate(small, lead, f"message:{other.id}")
    attachments = [small.file(lead.caller, description=f"paper {one}")["id"] for one in range(2)]

    def check(asked: tuple[Any, ...]) -> None:
        to, body, subject, attached, hours, once = asked
        receiver = {"ceo": small.ceo, "peer": peer}[to]
        at = None if hours is None else small.clock.now() + hours * HOUR
        waiting = parked(
            lambda: small.wait(
                small.app.library.send(
                    lead.caller,
                    to=f"agent:{to}",
                    body=body,
                    subject=subject,
                    attachments=attachments[:attached],
                    deliver_at=None if at is None else to_iso(at),
                    at_most_once=once,
                )
            )
        )
        arguments = stored(small, waiting["id"])["arguments"]
        assert arguments["to"] == f"agent:{to}"
        assert (arguments["body"], arguments["subject"]) == (body, subject)
        before = count(small, "messages", "sender_agent_id = ?", lead.id)
        done = approve(small, waiting)
        assert count(small, "messages", "sender_agent_id = ?", lead.id) == before + 1
        ((address, said, files_of, sender, promise, file),) = small.sql(
            "SELECT address, subject, attachments, sender_agent_id, at_most_once, body_file_id"
            " FROM messages WHERE id = ?",
            done["result"]["id"],
        )
        assert (said, sender, bool(promise)) == (subject, lead.id, once)
        assert address == f"agent:{receiver.id}"
        assert json.loads(files_of) == attachments[:attached]
        ((reader, due),) = small.sql(
            "SELECT agent_id, deliver_at FROM deliveries WHERE message_id = ?",
            done["result"]["id"],
        )
        assert reader == receiver.id
        assert due == (at or small.clock.now())
        assert small.read(small.board, file)[1].decode() == body
        letters(small, receiver)

    asked = st.tuples(
        st.sampled_from(["ceo", "peer"]),
        WORDS,
        WORDS,
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(1, 50)),
        st.booleans(),
    )
    examples_of(examples, asked, check)


@pytest.mark.requirement("BX-10")
def test_the_content_that_is_written_is_the_one_that_was_approved(small: Company) -> None:
    lead = hired(small, small.ceo.caller, "lead")
    file = small.file(small.board, b"old", "plan")
    gate(small, lead, f"kb_file:{file['id']}", "write")
    other = small.file(small.board, b"other", "other")
    waiting = parked(lambda: small.write(lead.caller, file, b"new"))
    payload = stored(small, waiting["id"])
    arguments = payload["arguments"]
    assert (arguments["file"], arguments["seen_hash"]) == (file["id"], file["hash"])
    assert arguments["sha256"] == hashlib.sha256(b"new").hexdigest()
    approve(small, waiting)
    assert small.read(small.board, file["id"])[1] == b"new"
    assert small.read(small.board, other["id"])[1] == b"other"
    first, *_ = small.call(small.board, files.history, file=file["id"])
    assert (first["number"], first["agent_id"]) == (2, lead.id)


@pytest.mark.requirement("BX-10")
def test_the_helper_that_is_created_is_the_one_that_was_approved(small: Company) -> None:
    asked = {"name": "helper", "role": "reads aloud", "auto_reply": False, "next_agent": "ceo"}
    waiting = parked(lambda: small.call(small.ceo.caller, helper_creation.create_agent, **asked))
    arguments = stored(small, waiting["id"])["arguments"]
    assert arguments == asked
    done = approve(small, waiting)
    found = configured(small, done["result"]["agent"]["id"])
    assert (found["name"], found["title"]) == ("helper", "reads aloud")
    assert found["runtimeConfig"] == {"type": "default", "autoReply": False, "nextAgent": "ceo"}


# ── what was altered ────────────────────────────────────────────────────────────────────────────


def of_every_type(company: Company) -> dict[str, Answer]:
    """One undecided approval of each type."""
    lead = hired(company, company.ceo.caller, "lead")
    gate(company, lead, f"message:{company.ceo.id}")
    ceo = company.ceo.caller

    def asks(kind: str, **payload: Any) -> Answer:
        return company.call(
            ceo, approvals.request, company=None, kind=kind, payload={"title": "T", **payload}
        )

    return {
        "hire_agent": hire(company, ceo, "designer")["approval"],
        "config_change": propose(company, ceo, lead.id, title="Other"),
        "capability_use": parked(
            lambda: company.wait(company.app.library.send(lead.caller, to="agent:ceo", body="Hi"))
        ),
        "budget": asks("budget", agentId=lead.id, budgetMonthlyCents=5),
        "approve_ceo_strategy": asks("approve_ceo_strategy"),
        "request_board_approval": asks("request_board_approval"),
    }


HARM = {
    "the payload": "UPDATE approvals SET payload = '{\"x\": 1, ' || substr(payload, 2)",
    "the payload and its revision": (
        "UPDATE approval_revisions SET payload = '{\"x\": 1}'; "
        "UPDATE approvals SET payload = '{\"x\": 1}'"
    ),
    "the payload and its digest": (
        "UPDATE approvals SET payload = '{\"x\": 1}', digest ="
        " '5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5aeaffcb720918b22'"
    ),
    "the digest": "UPDATE approvals SET digest = 'other'",
    "the revision": "UPDATE approval_revisions SET payload = '{}'",
    "the digest of the revision": "UPDATE approval_revisions SET digest = 'other'",
    "there is no revision": "DELETE FROM approval_revisions",
    # With the password of the database; the digest in the record stays.
    "all rows together": (
        "UPDATE approval_revisions SET payload = '{\"x\": 1}', digest ="
        " '5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5aeaffcb720918b22'; "
        "UPDATE approvals SET payload = '{\"x\": 1}', digest ="
        " '5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5aeaffcb720918b22'"
    ),
}


@pytest.mark.tampers
@pytest.mark.requirement("BX-10")
@pytest.mark.parametrize("harm", sorted(HARM))
def test_what_was_altered_is_never_carried_out(small: Company, harm: str) -> None:
    """It is refused with a next step, recorded, told to who decides, and can be rejected."""
    waiting = of_every_type(small)
    assert set(waiting) == {kind.value for kind in ApprovalType}
    whole = small.call(small.board, events.verify, company=small.id)
    assert whole["ok"]
    if harm != "the payload":  # the types are told apart by what they say, so one is enough
        waiting = {"capability_use": waiting["capability_use"]}
    for statement in HARM[harm].split("; "):
        column = "id" if statement.startswith("UPDATE approvals") else "approval_id"
        for one in waiting.values():
            small.sql(f"{statement} WHERE {column} = ?", one["id"])
    for kind, one in waiting.items():
        before = dump(small, {"events", "event_heads"})
        for verb in (approvals.approve, approvals.request_revision):
            with pytest.raises(Refused) as refused:
                small.call(small.board, verb, approval=one["id"])
            assert refused.value.reason == "altered", kind
            assert "Reject it" in refused.value.step
        assert dump(small, {"events", "event_heads"}) == before, kind
        ((allowed, reason),) = set(
            small.sql(
                "SELECT allowed, reason FROM events WHERE resource = ? AND reason = 'altered'",
                f"approval:{one['id']}",
            )
        )
        assert (bool(allowed), reason) == (False, "altered")
        assert small.call(small.board, approvals.show, approval=one["id"])["altered"], kind
    found = small.call(small.board, events.verify, company=small.id)
    asked = {
        seq
        for one in waiting.values()
        for (seq,) in small.sql(
            "SELECT seq FROM events WHERE resource = ? AND action = 'approval.request'",
            f"approval:{one['id']}",
        )
    }
    assert {(fault["seq"], fault["kind"]) for fault in found["faults"]} == {
        (seq, "altered") for seq in asked
    }
    told = small.call(small.board, needs_you.listing, company=small.id)
    causes = {one["id"]: one["cause"] for one in told}
    if harm in ("the payload", "the digest", "the payload and its revision", "all rows together"):
        assert all("The request was altered" in causes[one["id"]] for one in waiting.values())
    if "there is no" not in harm:
        for one in waiting.values():
            assert reject(small, one)["status"] == "rejected"


@pytest.mark.tampers
def test_what_was_altered_while_it_is_revised_is_not_resubmitted(small: Company) -> None:
    made = ask(small, small.ceo.caller)
    send_back(small, made)
    small.sql("UPDATE approvals SET payload = '{}' WHERE id = ?", made["id"])
    assert (
        refusal(small, small.ceo.caller, approvals.resubmit, approval=made["id"], payload={})
        == "altered"
    )


@pytest.mark.tampers
@pytest.mark.requirement("BX-10", "AG-121")
def test_a_reading_is_the_very_one_that_was_approved(company: Company) -> None:
    """It is made when the reader comes back; until then somebody may have written to the row."""
    lead = hired(company, company.ceo.caller, "lead")
    plain, secret = company.file(company.board, b"plain"), company.file(company.board, b"secret")
    for one in (plain, secret):
        gate(company, lead, f"kb_file:{one['id']}", "read")
    approved_one = parked(lambda: company.read(lead.caller, plain["id"]))
    other = parked(lambda: company.read(lead.caller, secret["id"]))
    approve(company, approved_one)
    ((wanted,),) = company.sql("SELECT call_digest FROM approvals WHERE id = ?", other["id"])
    reject(company, other)
    # The ticket for the plain file is passed off as one for the secret.
    company.sql("UPDATE approvals SET call_digest = NULL WHERE id = ?", other["id"])
    ((own,),) = company.sql("SELECT call_digest FROM approvals WHERE id = ?", approved_one["id"])
    company.sql("UPDATE approvals SET call_digest = ? WHERE id = ?", wanted, approved_one["id"])
    asked_anew = parked(lambda: company.read(lead.caller, secret["id"]))
    assert asked_anew["id"] not in (approved_one["id"], other["id"])
    assert count(company, "access_log", "file_id = ? AND access = 'read'", secret["id"]) == 0
    company.sql("UPDATE approvals SET call_digest = ? WHERE id = ?", own, approved_one["id"])
    ((payload,),) = company.sql("SELECT payload FROM approvals WHERE id = ?", approved_one["id"])
    company.sql("UPDATE approvals SET payload = '{}' WHERE id = ?", approved_one["id"])
    asked_anew = parked(lambda: company.read(lead.caller, plain["id"]))
    assert asked_anew["id"] != approved_one["id"]
    assert count(company, "events", "reason = 'altered' AND allowed = false") == 2
    reject(company, asked_anew)
    company.sql("UPDATE approvals SET call_digest = NULL WHERE id = ?", asked_anew["id"])
    company.sql("UPDATE approvals SET payload = ? WHERE id = ?", payload, approved_one["id"])
    assert company.read(lead.caller, plain["id"])[1] == b"plain"
