"""Rights on outcomes against the rules, over every relation, action and shape of grants.

The rules are written down here a second time, from the decisions, sharing no code with what they
judge. Both are asked about every combination within these bounds:

- every relation of an agent to an outcome, delegated or not, and every action;
- every shape of a grant (level, mode, expired, revoked, whose, on what), alone and with every
  other; and every shape that counts, three at a time;
- every kind of person, in and out of their part of the company.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from remit.authority import Action, Facts, Relation, decide
from remit.authority import outcome as rules
from remit.ids import AgentId, CompanyId, GrantId, OutcomeId, UserId
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.grant import Grant, Level, Mode, Resource, ResourceKind
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.organisation.user import Membership, UserRole

NOW = 1_000
COMPANY = CompanyId("company")
ME, OTHER = AgentId("me"), AgentId("other")
THIS, THAT = OutcomeId("this"), OutcomeId("that")
ACTIONS = ("read", "create", "change", "finish", "submit", "delegate", "reclaim")


# ── the rules, a second time ────────────────────────────────────────────────────────────────────

#: D-05, D-09 and AG-99..109: what follows from where somebody stands.
BY_PLACE = {
    "owner": {"read", "create", "change", "finish", "submit", "delegate"},
    "delegator": {"read", "change", "finish", "reclaim"},
    "judge": {"read", "finish"},
    "boss": {"read"},
    "above": {"read"},
    "reason": {"read"},
    "none": set(),
}
#: AG-102 and BX-11: a mandate is read and worked below, and judged by somebody else.
NOT_ON_A_MANDATE = {"change", "finish", "delegate"}
#: Rights that can be granted; the others come with responsibility alone.
GRANTABLE = {"read", "change", "finish"}
WHY_NOT = {
    "delegator": "delegated_away",
    "judge": "delegated_away",
    "boss": "delegated_away",
    "above": "skip_level",
    "reason": "read_only",
    "owner": "not_delegated",
}


class Answer(NamedTuple):
    effect: str
    reason: str | None = None
    hidden: bool = False


def answer(relation: str, delegated: bool, action: str, held: Iterable[Grant]) -> Answer:
    """D-12: deny beats all; what is explicit beats what is derived; nothing means denied."""
    need = 1 if action == "read" else 2
    counting = [
        (grant.mode.value, int(grant.level))
        for grant in held
        if grant.holder_id == ME
        and grant.resource_id == THIS
        and grant.revoked_at is None
        and (grant.expires_at is None or grant.expires_at > NOW)
    ]

    def says(mode: str, levels: Iterable[int]) -> bool:
        return any((mode, level) in counting for level in levels)

    up_to_need, from_need = range(need + 1), range(need, 3)
    reads_by_grant = not says("deny", (0, 1)) and (says("allow", (1, 2)) or says("ask", (1, 2)))
    unknown = relation == "none" and not reads_by_grant
    if says("deny", up_to_need):
        return Answer("deny", "denied_by_grant", unknown)
    if relation == "owner" and delegated and action in NOT_ON_A_MANDATE:
        return Answer("deny", "own_mandate")
    if relation == "owner" and not delegated and action == "submit":
        return Answer("deny", "yours_to_judge")
    condition = says("ask", up_to_need)
    if action in BY_PLACE[relation]:
        return Answer("ask", "needs_approval") if condition else Answer("allow", relation)
    if action in GRANTABLE:
        if says("allow", from_need) and not condition:
            return Answer("allow", "granted")
        if says("allow", from_need) or says("ask", from_need):
            return Answer("ask", "needs_approval")
    if relation == "none":
        return Answer("deny", "no_relation", True) if unknown else Answer("deny", "read_only")
    return Answer("deny", WHY_NOT[relation])


# ── every world within the bounds ───────────────────────────────────────────────────────────────


def grant(number: int, level: Level, mode: Mode, **changes: object) -> Grant:
    plain = Grant(
        id=GrantId(f"grant-{number:04}"),
        company_id=COMPANY,
        holder_id=ME,
        kind=ResourceKind.OUTCOME,
        resource_id=THIS,
        level=level,
        mode=mode,
        scope_id=None,
        parent_id=None,
        granted_by_agent=None,
        granted_by_user=UserId("user"),
        created_at=0,
        expires_at=None,
        revoked_at=None,
        used_at=None,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields of a grant


COUNTING = tuple(
    grant(number, level, mode)
    for number, (level, mode) in enumerate(
        itertools.product((Level.READ, Level.WRITE), (Mode.ALLOW, Mode.ASK, Mode.DENY))
    )
)
SHAPES = tuple(
    replace(
        grant(100 + number, level, mode),
        expires_at=expires_at,
        revoked_at=revoked_at,
        holder_id=holder,
        resource_id=on,
    )
    for number, (level, mode, expires_at, revoked_at, holder, on) in enumerate(
        itertools.product(
            (Level.READ, Level.WRITE),
            (Mode.ALLOW, Mode.ASK, Mode.DENY),
            (None, NOW, NOW + 1),
            (None, NOW - 1),
            (ME, OTHER),
            (THIS, THAT),
        )
    )
)


def holdings() -> Iterable[tuple[Grant, ...]]:
    yield ()
    yield from ((one,) for one in SHAPES)
    yield from itertools.product(COUNTING, SHAPES)
    yield from itertools.combinations(COUNTING, 3)


def ask(relation: str, delegated: bool, action: str, held: Sequence[Grant]) -> Decision:
    actor = Principal(ActorKind.AGENT, ME, "me", COMPANY, None, None, AgentStatus.IDLE)
    facts = Facts(
        NOW, held=tuple(held), relation=Relation(relation), delegated=delegated, listed=False
    )
    return decide(actor, Action(f"outcome.{action}"), Resource(ResourceKind.OUTCOME, THIS), facts)


def disagreements() -> Iterator[str]:
    for held in holdings():
        for relation, delegated, action in itertools.product(BY_PLACE, (False, True), ACTIONS):
            got = ask(relation, delegated, action, held)
            expected = answer(relation, delegated, action, held)
            if (got.effect.value, got.reason, got.conceal) != expected:
                yield f"{relation} {delegated} {action} {held}: {got} not {expected}"


@pytest.mark.requirement(
    "BX-02", "AG-39", "AG-70", "AG-99", "AG-100", "AG-101", "AG-102", "AG-103", "AG-104", "AG-106",
    "AG-107", "AG-108", "AG-109", "BX-11", "AG-41",
)  # fmt: skip
def test_every_decision_about_an_outcome_follows_the_rules() -> None:
    assert len(list(holdings())) > 800
    assert {relation.value for relation in Relation} == set(BY_PLACE)
    assert list(disagreements()) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"_JUDGING": {}},
        {"_ONLY_BY_RULE": frozenset()},
        {"condition": lambda held, need, now: None},
        {"_SEES": {}},
    ],
)
def test_a_broken_rule_would_be_caught(
    broken: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in broken.items():
        monkeypatch.setattr(rules, name, value)
    assert any(disagreements())


@pytest.mark.slow
def test_every_answer_has_a_reason_a_sentence_and_a_basis() -> None:
    for held in holdings():
        for relation, delegated, action in itertools.product(BY_PLACE, (False, True), ACTIONS):
            got = ask(relation, delegated, action, held)
            assert got.reason
            assert got.sentence.endswith(".")
            kind, _, on = got.basis.partition(":")
            assert kind in ("rule", "grant")
            assert on


@pytest.mark.parametrize("status", list(AgentStatus))
def test_an_agent_that_cannot_act_does_nothing_to_its_own_outcome(status: AgentStatus) -> None:
    actor = Principal(ActorKind.AGENT, ME, "me", COMPANY, None, None, status)
    facts = Facts(NOW, relation=Relation.OWNER)
    got = decide(actor, Action.OUTCOME_READ, Resource(ResourceKind.OUTCOME, THIS), facts)
    acts = status not in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL)
    assert got.allowed is acts


@pytest.mark.requirement("BX-02")
def test_people_follow_their_role_and_their_part() -> None:
    actor = Principal(ActorKind.USER, UserId("user"), "user")
    part = AgentId("lead")
    for role, scope, inside, action in itertools.product(
        (UserRole.BOARD, UserRole.OBSERVER, None), (None, part), (True, False), ACTIONS
    ):
        membership = None if role is None else Membership(COMPANY, actor.id, role, scope, 0)  # type: ignore[arg-type]  # the id of a user
        place = (ME, part) if inside else (ME,)
        facts = Facts(NOW, membership, place=place, listed=False)
        got = decide(
            actor, Action(f"outcome.{action}"), Resource(ResourceKind.OUTCOME, THIS), facts
        )
        may_act = role is UserRole.BOARD or (role is UserRole.OBSERVER and action == "read")
        assert got.allowed is (may_act and (scope is None or inside))
        if role is None or (may_act and not got.allowed):
            assert got.conceal
        assert got.effect is not Effect.ASK
