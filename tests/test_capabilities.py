"""Capabilities: giving, narrowing, ending, and seeing which are not used."""

from typing import Any

import pytest

from remit.clock import DAY, HOUR, from_iso, to_iso
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.organisation.grant import ACTIONS, ResourceKind
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.messaging import mail
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.rights import capability_requests, grants
from remit.services.work import outcomes
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member
from tests.mailing import look, unread
from tests.organisation import work


@pytest.fixture
def lead(company: Company) -> Member:
    return company.agent("lead")


@pytest.fixture
def worker(company: Company, lead: Member) -> Member:
    return company.agent("worker", lead.name)


def level(company: Company, member: Member, file: Answer) -> str:
    """What the agent can really do, found out by doing it."""
    try:
        seen, content = company.read(member.caller, file["id"])
    except RemitError:
        return "none"
    try:
        company.write(member.caller, seen, content)
    except RemitError:
        return "read"
    return "write"


def held(company: Company, member: Member) -> list[Answer]:
    return company.call(member.caller, grants.listing, company=None)


def refused(company: Company, caller: Caller, to: Member, file: Answer, **wish: Any) -> str:
    with pytest.raises(Refused) as refusal:
        company.give(caller, to, file, **wish)
    return refusal.value.reason


# ── giving ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-45", "AG-57")
def test_an_agent_gives_only_what_it_holds(company: Company, lead: Member, worker: Member) -> None:
    file = company.file(company.ceo.caller)
    assert refused(company, lead.caller, worker, file, level="read") == "not_held"
    company.give(company.ceo.caller, lead, file, "read")
    given = company.give(lead.caller, worker, file, "read")
    assert given["granted_by"] == f"agent:{lead.id}"
    assert level(company, worker, file) == "read"


@pytest.mark.requirement("AG-46")
def test_a_grant_may_be_narrower_and_never_wider(
    company: Company, lead: Member, worker: Member
) -> None:
    file = company.file(company.ceo.caller)
    company.give(company.ceo.caller, lead, file, "read")
    assert refused(company, lead.caller, worker, file, level="write") == "not_held"
    company.give(company.ceo.caller, lead, file, "write")
    company.give(lead.caller, worker, file, "read")
    assert (level(company, lead, file), level(company, worker, file)) == ("write", "read")


@pytest.mark.requirement("AG-57", "AG-45")
def test_an_agent_gives_to_its_direct_reports_and_to_nobody_else(
    company: Company, lead: Member, worker: Member
) -> None:
    peer = company.agent("peer")
    file = company.file(lead.caller)
    for other in (company.ceo, peer, lead):
        assert refused(company, lead.caller, other, file, level="read") == "not_your_report"
    own = company.file(company.ceo.caller)
    # Not even the one at the top reaches past a report.
    assert refused(company, company.ceo.caller, worker, own, level="read") == "not_your_report"


@pytest.mark.requirement("AG-46")
def test_a_grant_ends_no_later_than_what_it_comes_from(
    company: Company, lead: Member, worker: Member, clock: VirtualClock
) -> None:
    file = company.file(company.ceo.caller)
    hour, two = clock.now() + HOUR, clock.now() + 2 * HOUR
    company.give(company.ceo.caller, lead, file, "read", expires_at=to_iso(hour))
    clipped = company.give(lead.caller, worker, file, "read")
    assert from_iso(clipped["expires_at"]) == hour
    reason = refused(company, lead.caller, worker, file, level="read", expires_at=to_iso(two))
    assert reason == "outlives_source"
    clock.advance(HOUR - 1)
    assert level(company, worker, file) == "read"
    clock.advance(1)
    assert level(company, worker, file) == "none"
    assert refused(company, lead.caller, worker, file, level="read") == "not_held"


@pytest.mark.parametrize("expires_at", ["yesterday", "2001-01-01", "", 5, "9999-99-99", "2027"])
def test_an_expiry_is_a_time_to_come(company: Company, expires_at: Any) -> None:
    file = company.file(company.board)
    with pytest.raises(BadInput):
        company.give(company.board, company.ceo, file, "read", expires_at=expires_at)


@pytest.mark.requirement("AG-44")
@pytest.mark.parametrize("kind", ResourceKind)
def test_a_capability_can_be_about_every_kind_of_resource(
    company: Company, lead: Member, kind: ResourceKind
) -> None:
    names = {
        ResourceKind.KB_FILE: company.file(company.board)["id"],
        ResourceKind.OUTCOME: lead.id,
        ResourceKind.MESSAGE: lead.id,
    }
    ids = sorted(ACTIONS) if kind is ResourceKind.ACTION else [names.get(kind, "main")]
    for name in ids:
        resource = name if kind is ResourceKind.ACTION else f"{kind.value}:{name}"
        used = "read" if kind in (ResourceKind.KB_FILE, ResourceKind.OUTCOME) else "use"
        given = company.call(
            company.board, grants.give, company=company.id, to="lead", resource=resource, level=used
        )
        assert given["resource"] == resource
    assert [grant["resource"] for grant in held(company, lead)] == [
        name if kind is ResourceKind.ACTION else f"{kind.value}:{name}" for name in ids
    ]


@pytest.mark.requirement("AG-44")
@pytest.mark.parametrize(
    ("resource", "level"),
    [
        ("kb_file:nonsense", "read"),
        ("repo:main", "write"),
        ("repo:../../etc", "use"),
        ("repo:", "use"),
        ("action:agent.create", "use"),
        ("everything", "use"),
        ("planet:mars", "use"),
        ("agent.create", "write"),
        ("agent.create", None),
        (None, "use"),
        (["repo:main"], "use"),
    ],
)
def test_nonsense_cannot_be_granted(company: Company, resource: Any, level: Any) -> None:
    with pytest.raises((BadInput, NotFound)):
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to="ceo",
            resource=resource,
            level=level,
        )
    assert held(company, company.ceo) == []


@pytest.mark.requirement("AG-49")
def test_a_new_agent_can_be_given_its_capabilities_in_the_same_call(company: Company) -> None:
    file = company.file(company.ceo.caller)
    resource = f"kb_file:{file['id']}"
    wishes = [{"resource": resource, "level": "read"}, {"resource": "repo:site", "level": "use"}]
    made = company.agent("writer", given=wishes)
    assert {(g["resource"], g["level"]) for g in held(company, made)} == {
        (resource, "read"),
        ("repo:site", "read"),
    }
    assert level(company, made, file) == "read"
    assert {grant["scope"] for grant in held(company, made)} == {made.id}


@pytest.mark.requirement("AG-49")
def test_if_one_of_the_first_capabilities_cannot_be_given_there_is_no_agent(
    company: Company,
) -> None:
    before = company.call(company.board, events.verify, company=company.id)
    wishes = [{"resource": "repo:site", "level": "use"}, {"resource": "repo:site", "level": "x"}]
    with pytest.raises(BadInput):
        company.agent("writer", given=wishes)
    with pytest.raises(NotFound):
        company.call(company.board, agents.show, agent="writer")
    assert company.call(company.board, events.verify, company=company.id) == before
    assert company.agent("writer").name == "writer"


@pytest.mark.requirement("AG-48")
def test_a_missing_capability_flows_down_step_by_step_each_in_its_own_scope(
    company: Company, lead: Member, worker: Member
) -> None:
    """The worker asks its boss, the boss asks the CEO, the CEO asks the board."""
    file = company.file(company.board)
    with pytest.raises(Refused) as refusal:
        company.read(worker.caller, file["id"])
    assert "boss" in refusal.value.step
    assert file["id"] in refusal.value.step
    wish = {"resource": f"kb_file:{file['id']}", "level": "read", "why": "I need it."}
    above = ((worker, lead), (lead, company.ceo))
    asked = []
    for who, boss in above:
        asked.append(company.call(who.caller, capability_requests.request_capability, **wish))
        assert [one["id"] for one in look(company, boss)] == [asked[-1]["id"]]
        # Who does not hold it cannot give it, and asks further up.
        with pytest.raises(Refused) as not_held:
            company.call(boss.caller, capability_requests.grant_request, request=asked[-1]["id"])
        assert not_held.value.reason == "not_held"
    last = company.call(company.ceo.caller, capability_requests.request_capability, **wish)
    assert [one["id"] for one in unread(company, company.board)] == [last["id"]]
    givers = (company.board, company.ceo.caller, lead.caller)
    top, middle, low = (
        company.call(caller, capability_requests.grant_request, request=one["id"])
        for caller, one in zip(givers, (last, *reversed(asked)), strict=True)
    )
    assert level(company, worker, file) == "read"
    assert [g["parent_id"] for g in (top, middle, low)] == [None, top["id"], middle["id"]]
    assert [g["scope"] for g in (top, middle, low)] == [company.ceo.id, lead.id, worker.id]


@pytest.mark.requirement("AG-56")
def test_an_agent_lists_its_own_capabilities_with_the_reason_of_each(
    company: Company, lead: Member, worker: Member
) -> None:
    own = company.file(lead.caller)
    other = company.file(company.ceo.caller)
    company.give(company.ceo.caller, lead, other, "read")
    company.give(company.board, lead, other, "write", mode="deny")
    company.give(company.board, lead, own, "write", mode="ask")
    assert [(g["level"], g["mode"], g["reason"]) for g in held(company, lead)] == [
        ("write", "allow", "made the file"),
        ("read", "allow", "granted by its boss"),
        ("write", "deny", "denied by the board"),
        ("write", "ask", "granted by the board"),
    ]
    assert held(company, worker) == []
    assert company.call(company.ceo.caller, grants.listing, company=None, agent="lead") == held(
        company, lead
    )
    for agent in ("ceo", "lead"):
        with pytest.raises(Refused):
            company.call(worker.caller, grants.listing, company=None, agent=agent)


def test_a_list_names_what_the_caller_may_know_and_leaves_mail_out_if_asked(
    small: Company,
) -> None:
    company, worker = small, small.agent("worker")
    hidden = company.file(company.board, b"plan", "Plan", unlisted=True)
    shown = company.file(company.board, b"price", "Price")
    company.give(company.board, worker, hidden, "write")
    company.give(company.board, worker, shown, "write")
    sent = company.file(company.board, b"x", "Sent", unlisted=True)
    to = f"agent:{worker.name}"
    body: Any = {"body": "Read this.", "attachments": [sent["id"]]}
    company.call(company.board, mail.send, company=company.id, to=to, **body)

    def titles(caller: Caller, **more: Any) -> list[str | None]:
        listed = company.call(
            caller, grants.listing, company=company.id, agent=worker.name, titles=True, **more
        )
        return [grant.get("title") for grant in listed]

    assert titles(company.board, besides_mail=True) == ["Plan", "Price"]
    assert titles(company.ceo.caller, besides_mail=True) == [None, "Price"]
    assert {"Plan", "Price", "Sent"} < set(titles(worker.caller))
    of_company = company.call(
        company.board, grants.listing, company=company.id, titles=True, besides_mail=True
    )
    assert [grant["title"] for grant in of_company] == ["Plan", "Price"]
    assert not any("title" in grant for grant in held(company, worker))


# ── ending ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-01", "AG-47")
def test_what_is_revoked_takes_everything_along_that_was_passed_on_from_it(
    company: Company, lead: Member, worker: Member
) -> None:
    file = company.file(company.ceo.caller)
    first = company.give(company.ceo.caller, lead, file, "write")
    second = company.give(lead.caller, worker, file, "read")
    other = company.give(company.board, worker, company.file(company.board), "read")
    answer = company.call(company.ceo.caller, grants.revoke, grant=first["id"])
    assert answer["revoked"] == sorted([first["id"], second["id"]])
    assert (level(company, lead, file), level(company, worker, file)) == ("none", "none")
    assert [grant["id"] for grant in held(company, worker)] == [other["id"]]
    with pytest.raises(Conflict):
        company.call(company.ceo.caller, grants.revoke, grant=first["id"])


@pytest.mark.requirement("AG-47", "BX-01")
@pytest.mark.parametrize("finish", ["complete", "close", "terminate"])
def test_a_grant_ends_with_its_outcome_at_every_level_below(
    company: Company, lead: Member, worker: Member, finish: str
) -> None:
    low = company.agent("low", worker.name)
    helper = company.agent("helper")
    file = company.file(company.ceo.caller)
    company.give(company.ceo.caller, lead, file, "write", scope=helper.id)
    company.give(lead.caller, worker, file, "write")
    company.give(worker.caller, low, file, "read")
    own = company.file(worker.caller)
    company.give(worker.caller, low, own, "read")
    assert level(company, low, file) == "read"
    if finish == "complete":
        company.call(company.board, outcomes.complete, outcome=helper.id)
    elif finish == "close":
        company.call(company.board, outcomes.close, outcome=helper.id, rationale="not needed")
    else:
        company.call(company.board, agents.terminate, agent=helper.id)
    assert [level(company, member, file) for member in (lead, worker, low)] == ["none"] * 3
    assert level(company, low, own) == "read"


@pytest.mark.requirement("AG-47", "BX-01")
def test_nothing_can_be_given_for_an_outcome_that_is_finished(
    company: Company, lead: Member
) -> None:
    file = company.file(company.ceo.caller)
    company.call(company.board, outcomes.complete, outcome=lead.id)
    for caller in (company.board, company.ceo.caller):
        with pytest.raises(Conflict):
            company.give(caller, lead, file, "read")
        with pytest.raises(Conflict):
            company.give(caller, lead, file, "read", scope=lead.id)
    left = company.call(company.board, grants.listing, company=company.id, agent=lead.id)
    assert left == []


def test_a_scope_is_an_open_outcome(small: Company) -> None:
    file, lead = small.file(small.ceo.caller), small.agent("lead")
    over = work(small, lead.caller, lead.id, "Over")
    small.call(lead.caller, outcomes.complete, outcome=over)
    with pytest.raises(Conflict, match="That outcome is finished"):
        small.give(small.board, lead, file, "read", scope=over)
    with pytest.raises(BadInput, match="scope must be an outcome's id"):
        small.give(small.board, lead, file, "read", scope=5)
    assert held(small, lead) == []


def test_who_has_a_part_gives_what_lies_in_it_and_background_jobs(small: Company) -> None:
    lead = small.agent("lead")
    inside = work(small, lead.caller, lead.id, "Inside")
    outside = work(small, small.ceo.caller, small.ceo.id, "Outside")
    partner = small.user("partner", scope="lead")

    def give(resource: str, level: str = "read") -> Answer:
        about: Any = {"company": small.id, "to": lead.id, "resource": resource, "level": level}
        return small.call(partner, grants.give, **about)

    assert give(f"outcome:{inside}")["resource"] == f"outcome:{inside}"
    assert give("message:agent:background", "use")["level"] == "use"
    with pytest.raises(NotFound):
        give(f"outcome:{outside}")
    assert len(held(small, lead)) == 2


def test_a_server_that_is_taken_from_a_boss_goes_from_its_reports(small: Company) -> None:
    lead = small.agent("lead")
    worker = small.agent("worker", "lead")
    server: Any = {"company": small.id, "resource": "mcp_server:search", "level": "use"}
    small.call(small.board, grants.give, **server, to=lead.id)
    small.call(lead.caller, grants.give, **server, to=worker.id)
    assert [one["resource"] for one in held(small, worker)] == ["mcp_server:search"]
    small.call(small.board, grants.give, **server, to=lead.id, mode="deny")
    assert held(small, worker) == []


def test_people_grant_and_do_not_ask(small: Company) -> None:
    wanted = {"resource": "repo:site", "level": "use", "why": "I need it."}
    with pytest.raises(BadInput, match="Agents ask for capabilities"):
        small.call(small.board, capability_requests.request_capability, **wanted)


@pytest.mark.requirement("AG-47")
def test_finishing_a_mandate_ends_its_agent_and_keeps_the_verdict(
    company: Company, lead: Member
) -> None:
    company.call(company.board, outcomes.complete, outcome=lead.id)
    ended = company.call(company.board, agents.show, agent=lead.id)
    assert ended["status"] == "terminated"
    with pytest.raises(Conflict):
        company.call(company.board, agents.terminate, agent=lead.id)
    assert company.call(company.board, outcomes.show, outcome=lead.id)["status"] == "completed"


def test_a_perpetual_outcome_is_closed_and_never_completed(company: Company) -> None:
    lasting = company.agent("lasting", perpetual=True).id
    with pytest.raises(Conflict):
        company.call(company.board, outcomes.complete, outcome=lasting)
    company.call(company.board, outcomes.close, outcome=lasting, rationale="the end")
    with pytest.raises(Conflict):
        company.call(company.board, outcomes.close, outcome=lasting, rationale="again")


@pytest.mark.requirement("BX-01")
@pytest.mark.parametrize(
    ("mode", "put", "expected"),
    [
        ("deny", "none", "none"),
        ("deny", "read", "none"),
        ("deny", "write", "read"),
        ("ask", "read", "none"),
        ("ask", "write", "read"),
    ],
)
def test_what_the_board_takes_from_an_agent_goes_from_everybody_it_gave_it_to(
    company: Company, lead: Member, worker: Member, mode: str, put: str, expected: str
) -> None:
    low = company.agent("low", worker.name)
    writable, readable = company.file(company.ceo.caller), company.file(company.ceo.caller)
    for file, passed in ((writable, "write"), (readable, "read")):
        company.give(company.ceo.caller, lead, file, "write")
        company.give(lead.caller, worker, file, passed)
        company.give(worker.caller, low, file, passed)
        company.give(company.board, lead, file, put, mode=mode)
    assert level(company, lead, writable) == expected
    # What was given for writing cannot be given any more, so it goes as a whole.
    assert [level(company, member, writable) for member in (worker, low)] == ["none", "none"]
    assert [level(company, member, readable) for member in (worker, low)] == [expected] * 2


@pytest.mark.requirement("BX-01")
def test_an_agent_cannot_lift_what_the_board_put_on_it(
    company: Company, lead: Member, worker: Member
) -> None:
    file = company.file(lead.caller)
    for mode in ("deny", "ask"):
        put = company.give(company.board, lead, file, "write", mode=mode)
        for member in (lead, company.ceo, worker):
            with pytest.raises(NotFound):
                company.call(member.caller, grants.revoke, grant=put["id"])
        assert level(company, lead, file) == "read"
        company.call(company.board, grants.revoke, grant=put["id"])
        assert level(company, lead, file) == "write"


@pytest.mark.requirement("BX-01")
def test_a_right_that_needs_approval_is_passed_on_as_such(
    company: Company, lead: Member, worker: Member
) -> None:
    file = company.file(company.board)
    company.give(company.board, lead, file, "read", mode="ask")
    with pytest.raises(Refused) as refusal:
        company.read(lead.caller, file["id"])
    assert refusal.value.reason == "pending_approval"
    assert company.give(lead.caller, worker, file, "read")["mode"] == "ask"
    with pytest.raises(Refused) as refusal:
        company.read(worker.caller, file["id"])
    assert refusal.value.reason == "pending_approval"


@pytest.mark.parametrize("mode", ["ask", "deny"])
def test_agents_set_no_modes(company: Company, lead: Member, mode: str) -> None:
    file = company.file(company.ceo.caller)
    with pytest.raises(BadInput):
        company.give(company.ceo.caller, lead, file, "read", mode=mode)


@pytest.mark.requirement("BX-01")
def test_a_holder_gives_up_a_right_with_all_that_rests_on_it(
    company: Company, lead: Member, worker: Member
) -> None:
    file = company.file(company.ceo.caller)
    given = company.give(company.ceo.caller, lead, file, "write")
    company.give(lead.caller, worker, file, "read")
    with pytest.raises(NotFound):
        company.call(worker.caller, grants.revoke, grant=given["id"])
    company.call(lead.caller, grants.revoke, grant=given["id"])
    assert (level(company, lead, file), level(company, worker, file)) == ("none", "none")


def test_a_terminated_agent_is_given_nothing(company: Company, lead: Member) -> None:
    file = company.file(company.board)
    company.call(company.board, agents.terminate, agent=lead.id)
    with pytest.raises(Conflict, match="lead is terminated"):
        company.give(company.board, lead, file, "read")


def test_an_agent_with_reports_is_not_terminated_before_them(
    company: Company, lead: Member, worker: Member
) -> None:
    with pytest.raises(Conflict):
        company.call(company.board, agents.terminate, agent=lead.id)
    company.call(company.board, agents.terminate, agent=worker.id)
    company.call(company.board, agents.terminate, agent=lead.id)
    with pytest.raises(AlreadyExists):
        company.agent("ceo", None)
    assert company.agent("lead").id != lead.id


# ── unused ──────────────────────────────────────────────────────────────────────────────────────


def unused(company: Company, **options: Any) -> list[str]:
    found = company.call(company.board, grants.listing, company=company.id, unused=True, **options)
    return [grant["id"] for grant in found]


@pytest.mark.requirement("BX-19")
def test_a_grant_that_was_never_used_is_reported_until_it_is_used(
    company: Company, lead: Member, worker: Member, clock: VirtualClock
) -> None:
    file = company.file(company.ceo.caller)
    first = company.give(company.ceo.caller, lead, file, "write")
    assert unused(company) == unused(company, agent="lead") == [first["id"]]
    second = company.give(lead.caller, worker, file, "read")
    # Passing it on is a use.
    assert unused(company) == unused(company, agent="worker") == [second["id"]]
    assert unused(company, agent="lead") == []
    company.call(worker.caller, files.show, file=file["id"])
    assert unused(company) == [second["id"]]
    company.read(worker.caller, file["id"])
    assert unused(company) == []
    used_at = held(company, worker)[0]["used_at"]
    assert from_iso(used_at) == clock.now()
    clock.advance(DAY)
    company.read(worker.caller, file["id"])
    assert from_iso(held(company, worker)[0]["used_at"]) == clock.now()


@pytest.mark.requirement("BX-19")
def test_unused_grants_can_be_revoked_as_they_are_reported(
    company: Company, lead: Member, clock: VirtualClock
) -> None:
    used, idle, brief = (company.file(company.ceo.caller) for _ in range(3))
    company.give(company.ceo.caller, lead, used, "read")
    company.give(company.ceo.caller, lead, idle, "read")
    company.give(company.ceo.caller, lead, brief, "read", expires_at=to_iso(clock.now() + HOUR))
    company.give(company.board, lead, used, "write", mode="deny")
    company.read(lead.caller, used["id"])
    clock.advance(HOUR)
    reported = unused(company)
    assert len(reported) == 1
    for grant in reported:
        company.call(company.board, grants.revoke, grant=grant)
    assert unused(company) == []
    assert level(company, lead, idle) == "none"
    assert level(company, lead, used) == "read"


@pytest.mark.requirement("BX-19")
def test_a_refused_use_is_not_a_use(company: Company, lead: Member) -> None:
    file = company.file(company.ceo.caller)
    given = company.give(company.ceo.caller, lead, file, "read")
    with pytest.raises(Refused):
        company.write(lead.caller, file, b"x")
    assert unused(company) == [given["id"]]
