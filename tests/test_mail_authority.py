"""Who may write to whom, read, cancel and answer: the rules a second time, and every pair.

The decision function is asked in every tree of up to 4 agents, under every setting and with every
shape of a message capability. Then every pair of senders and receivers of a real company is tried
under each setting.
"""

import itertools
from dataclasses import replace

import pytest

from remit.authority import Action, Facts, Relation, decide
from remit.clock import SystemClock
from remit.ids import AgentId, CompanyId, GrantId, UserId
from remit.model.messaging.mail import Messaging
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.grant import Grant, Level, Mode, Resource, ResourceKind
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.organisation.user import Membership, UserRole
from remit.services.identity import Caller
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.rights import grants
from tests.company import Company, Member
from tests.mailing import bodies, look, messaging, refused, send
from tests.test_authority import AGENTS, COMPANY, NOW, an_agent, chain, trees

ALIVE = {"idle", "running", "paused", "error"}


def about(receiver: AgentId) -> Resource:
    return Resource(ResourceKind.MESSAGE, receiver)


def a_capability(
    mode: Mode,
    *,
    holder: AgentId = AGENTS[0],
    to: AgentId = AGENTS[1],
    expires_at: int | None = None,
    revoked_at: int | None = None,
) -> Grant:
    return Grant(
        id=GrantId("grant"),
        company_id=COMPANY,
        holder_id=holder,
        kind=ResourceKind.MESSAGE,
        resource_id=to,
        level=Level.USE,
        mode=mode,
        scope_id=None,
        parent_id=None,
        granted_by_agent=None,
        granted_by_user=UserId("user"),
        created_at=0,
        expires_at=expires_at,
        revoked_at=revoked_at,
        used_at=None,
    )


def by_rule(
    setting: str, bosses: tuple[int | None, ...], people: tuple[int, ...], a: int, b: int
) -> bool:
    """D-16, without a capability: may agent number `a` write to agent number `b`?"""
    if a == b or bosses[b] == a or bosses[a] == b:
        return True
    if setting == "chain":
        return False
    # Root agents are siblings when they report to the same person.
    siblings = bosses[a] == bosses[b] and (bosses[a] is not None or people[a] == people[b])
    if siblings:
        return True
    if setting == "team":
        return False
    if AGENTS[a] in chain(bosses, b):
        return True
    return setting == "open"


@pytest.mark.requirement("AG-50", "AG-52", "AG-61", "HH-17", "HH-18", "BX-02", "AG-41")
@pytest.mark.slow
def test_who_may_write_to_whom_follows_the_rules_in_every_tree() -> None:
    shapes: list[tuple[str, dict[str, int]]] = [
        ("allow", {}),
        ("ask", {}),
        ("deny", {}),
        ("allow", {"expires_at": NOW}),
        ("deny", {"revoked_at": 5}),
    ]
    asked = 0
    for size in range(1, 5):
        for bosses in trees(size):
            for people, a, b, setting in itertools.product(
                ((0, 0, 0, 0), (0, 1, 2, 3)), range(size), range(size), Messaging
            ):
                above_a, above_b = bosses[a], bosses[b]
                facts = {
                    "place": chain(bosses, b),
                    "target_boss": None if above_b is None else AGENTS[above_b],
                    "own_boss": None if above_a is None else AGENTS[above_a],
                    "same_boss": above_a == above_b
                    and (above_a is not None or people[a] == people[b]),
                    "messaging": setting,
                }
                expected = by_rule(setting.value, bosses, people, a, b)
                who = an_agent(agent=AGENTS[a])
                plain = decide(who, Action.MESSAGE_SEND, about(AGENTS[b]), Facts(NOW, **facts))  # type: ignore[arg-type]
                assert plain.allowed == expected, (setting, bosses, a, b)
                asks = Facts(NOW, awaits_answer=True, **facts)  # type: ignore[arg-type]
                assert decide(who, Action.MESSAGE_SEND, about(AGENTS[b]), asks).allowed
                for mode, more in shapes:
                    held = a_capability(Mode(mode), holder=AGENTS[a], to=AGENTS[b], **more)
                    decision = decide(
                        who,
                        Action.MESSAGE_SEND,
                        about(AGENTS[b]),
                        Facts(NOW, held=(held,), **facts),  # type: ignore[arg-type]
                    )
                    # Explicit beats derived, deny beats allow; what is over counts for nothing.
                    effect = mode if not more else ("allow" if expected else "deny")
                    assert decision.effect.value == effect, (setting, mode, more)
                    if not more:
                        answering = replace(asks, held=(held,))
                        decision = decide(who, Action.MESSAGE_SEND, about(AGENTS[b]), answering)
                        assert decision.effect.value == mode
                    asked += 1
    assert asked >= 60_000


@pytest.mark.requirement("HH-18", "AG-52")
@pytest.mark.parametrize(
    "held",
    [
        a_capability(Mode.ALLOW, holder=AGENTS[2]),
        a_capability(Mode.ALLOW, to=AGENTS[2]),
        a_capability(Mode.ALLOW, expires_at=NOW),
        a_capability(Mode.ALLOW, revoked_at=1),
    ],
    ids=["of another", "to another", "expired", "revoked"],
)
def test_a_capability_that_does_not_fit_opens_nothing(held: Grant) -> None:
    facts = Facts(NOW, held=(held,), place=(AGENTS[1],))
    assert not decide(an_agent(), Action.MESSAGE_SEND, about(AGENTS[1]), facts).allowed


@pytest.mark.requirement("AG-52")
@pytest.mark.parametrize("status", AgentStatus)
def test_an_agent_that_cannot_act_cannot_write(status: AgentStatus) -> None:
    facts = Facts(NOW, receiver_is_board=True)
    decision = decide(an_agent(status), Action.MESSAGE_SEND, None, facts)
    assert decision.allowed == (status.value in ALIVE)


@pytest.mark.requirement("HH-16", "HH-38", "HH-39", "HH-40", "HH-30")
@pytest.mark.slow
def test_owners_and_those_above_cancel_and_only_owners_plan_in_every_tree() -> None:
    for size in range(1, 5):
        for bosses in trees(size):
            for a, b, status in itertools.product(range(size), range(size), AgentStatus):
                who = an_agent(status, AGENTS[a])
                above = bosses[b]
                facts = Facts(
                    NOW,
                    place=chain(bosses, b),
                    target_boss=None if above is None else AGENTS[above],
                )
                alive = status.value in ALIVE
                cancel = decide(who, Action.THREAD_CANCEL, None, facts)
                assert cancel.allowed == (alive and AGENTS[a] in chain(bosses, b))
                for action in (Action.SCHEDULE_CHANGE, Action.QUESTION_ASK, Action.MESSAGE_READ):
                    assert decide(who, action, None, facts).allowed == (alive and a == b)
                answer = decide(who, Action.QUESTION_ANSWER, None, facts)
                assert answer.allowed == (alive and above == a)
                # Passed on upward, everybody who was asked one after the other may answer.
                for passed_to in range(size):
                    known = replace(facts, asked=AGENTS[passed_to])
                    answer = decide(who, Action.QUESTION_ANSWER, None, known)
                    bosses_up = chain(bosses, b)[1:]
                    among = AGENTS[passed_to] in bosses_up and AGENTS[a] in bosses_up
                    asked = among and AGENTS[passed_to] in chain(bosses, a)
                    assert answer.allowed == (alive and (above == a or asked))


@pytest.mark.parametrize("role", UserRole)
@pytest.mark.parametrize("scope", [None, AGENTS[0], AGENTS[1]])
def test_a_person_over_a_part_writes_into_it_and_to_the_board_over_it(
    role: UserRole, scope: AgentId | None
) -> None:
    membership = Membership(CompanyId("company"), UserId("user"), role, scope, 0)
    person = Principal(ActorKind.USER, "user", "user")
    for place, up in itertools.product(((), (AGENTS[0],), (AGENTS[2], AGENTS[0])), (False, True)):
        facts = Facts(NOW, membership, place=place, receiver_is_board=up)
        inside = scope is None or scope in place
        allowed = decide(person, Action.MESSAGE_SEND, None, facts).allowed
        assert allowed == (role is UserRole.BOARD and (inside or up))


def test_what_was_sent_to_a_person_can_be_read_and_no_more() -> None:
    membership = Membership(COMPANY, UserId("user"), UserRole.BOARD, AGENTS[0], 0)
    person = Principal(ActorKind.USER, "user", "user")
    facts = Facts(NOW, membership, listed=False, received=True)
    allowed = {action.value for action in Action if decide(person, action, None, facts).allowed}
    assert allowed == {"company.read", "file.see", "file.read"}


@pytest.mark.parametrize("actor", [an_agent(), Principal(ActorKind.USER, "user", "user")])
def test_what_remit_keeps_is_changed_by_nobody_and_hidden_from_the_same(actor: Principal) -> None:
    membership = Membership(COMPANY, UserId("user"), UserRole.BOARD, None, 0)
    for action in Action:
        if not action.value.startswith("outcome."):
            continue
        for relation in Relation:
            facts = Facts(NOW, membership, relation=relation, listed=False)
            kept = Facts(NOW, membership, relation=relation, listed=False, kept_by_remit=True)
            plain, decision = (decide(actor, action, None, known) for known in (facts, kept))
            if action is Action.OUTCOME_READ or not plain.allowed:
                assert decision == plain
            else:
                assert decision.reason == "kept_by_remit"


# ── every pair of a real company ────────────────────────────────────────────────────────────────

#: name → boss; `second` reports to another person.
STAFF = {"a": "ceo", "b": "ceo", "c": "a", "d": "a", "e": "c", "twin": None, "second": None}


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


#: For rules that no database has a part in.
rules = pytest.mark.parametrize("company", ["sqlite"], indirect=True)


def staff(company: Company) -> dict[str, Member]:
    found = {"ceo": company.ceo}
    other = company.user("other")
    for name, boss in STAFF.items():
        if name == "second":
            made = company.call(other, agents.create, company=company.id, name=name)
            key = company.call(company.board, agents.create_key, agent=made["id"])
            found[name] = Member(made["id"], name, Caller(key["token"]))
        else:
            found[name] = company.agent(name, boss)
    return found


CHAIN = {
    *((name, name) for name in ("ceo", *STAFF)),
    *(pair for name, boss in STAFF.items() if boss for pair in ((name, boss), (boss, name))),
}
#: The ceo and its twin have the same person above them; `second` has somebody else.
TEAM = CHAIN | {
    pair
    for one, other in (("a", "b"), ("c", "d"), ("ceo", "twin"))
    for pair in ((one, other), (other, one))
}
SUBTREE = TEAM | {("ceo", "c"), ("ceo", "d"), ("ceo", "e"), ("a", "e")}
OPEN = set(itertools.product(("ceo", *STAFF), repeat=2))


@pytest.mark.requirement("AG-50", "AG-52", "AG-61", "HH-17", "HH-18")
@pytest.mark.parametrize(
    ("setting", "allowed"),
    [("chain", CHAIN), ("team", TEAM), ("subtree", SUBTREE), ("open", OPEN)],
)
@pytest.mark.campaign_on_postgresql("who may write to whom is decided without a database")
def test_every_pair_under_every_setting(
    company: Company, setting: str, allowed: set[tuple[str, str]]
) -> None:
    who = staff(company)
    messaging(company, setting)
    for sender, receiver in itertools.product(who, repeat=2):
        if (sender, receiver) in allowed:
            send(company, who[sender].caller, f"agent:{receiver}", f"from {sender}")
        else:
            assert refused(company, who[sender].caller, f"agent:{receiver}") == "not_in_reach"
    for receiver in who:
        expected = [f"from {sender}" for sender in who if (sender, receiver) in allowed]
        assert bodies(look(company, who[receiver])) == expected


@pytest.mark.requirement("AG-50", "AG-51")
@rules
def test_a_new_company_lets_agents_write_along_the_chain_only(company: Company) -> None:
    shown = company.call(company.board, companies.show, company=company.id)
    assert shown["messaging"] == "chain"


@pytest.mark.requirement("AG-51")
@rules
def test_an_agent_can_write_to_its_boss_from_the_start_and_its_capabilities_say_so(
    company: Company,
) -> None:
    worker = company.agent("worker")
    listed = company.call(worker.caller, grants.listing, company=None, derived=True)
    reasons = {right["resource"]: right["reason"] for right in listed}
    assert reasons[f"message:{company.ceo.id}"] == "its boss"
    listed = company.call(company.ceo.caller, grants.listing, company=None, derived=True)
    reasons = {right["resource"]: right["reason"] for right in listed}
    assert reasons[f"message:{worker.id}"] == "its report worker"
    send(company, worker.caller, "agent:ceo")
    send(company, company.ceo.caller, "agent:worker")


@pytest.mark.requirement("HH-18")
def test_a_message_capability_opens_one_pair_in_one_direction(company: Company) -> None:
    a, b = company.agent("a"), company.agent("b")
    assert refused(company, a.caller, "agent:b") == "not_in_reach"
    given = company.call(
        company.board,
        grants.give,
        company=None,
        to="a",
        resource=f"message:{b.id}",
        level="use",
    )
    send(company, a.caller, "agent:b", "hello")
    assert bodies(look(company, b)) == ["hello"]
    assert refused(company, b.caller, "agent:a") == "not_in_reach"
    company.call(company.board, grants.revoke, grant=given["id"])
    assert refused(company, a.caller, "agent:b") == "not_in_reach"


@pytest.mark.requirement("AG-61")
@pytest.mark.parametrize(
    ("mode", "reason"), [("deny", "denied_by_grant"), ("ask", "pending_approval")]
)
@rules
def test_what_was_said_explicitly_goes_before_the_tree(
    company: Company, mode: str, reason: str
) -> None:
    worker = company.agent("worker")
    company.call(
        company.board,
        grants.give,
        company=None,
        to="worker",
        resource=f"message:{company.ceo.id}",
        level="use",
        mode=mode,
    )
    assert refused(company, worker.caller, "agent:ceo") == reason
    assert look(company, company.ceo) == []
    send(company, worker.caller, "board")
