"""Who may hire, permit, configure and decide: every case, against the rules written twice."""

import itertools

import pytest

from remit.authority import Action, Facts, decide
from remit.ids import AgentId, CompanyId, GrantId
from remit.model.agent import AgentStatus
from remit.model.grant import (
    AGENT_CREATE,
    APPROVAL_DECIDE,
    Grant,
    Level,
    Mode,
    Resource,
    ResourceKind,
)
from remit.model.principal import ActorKind, Principal

NOW = 1_000
COMPANY = CompanyId("company")
ME, BELOW, LOWER, ABOVE, ASIDE = (
    AgentId(name) for name in ("me", "below", "lower", "above", "aside")
)
ALIVE = {"idle", "running", "paused", "error"}
#: Where the matter lies: with me, below me, above me, beside me, or with nobody.
PLACES: dict[str, tuple[AgentId, ...]] = {
    "mine": (ME, ABOVE),
    "below": (BELOW, ME, ABOVE),
    "lower": (LOWER, BELOW, ME, ABOVE),
    "above": (ABOVE,),
    "aside": (ASIDE, ABOVE),
    "nowhere": (),
}
#: What may be held: in a mode, or in one that does not count.
HELD: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "allow": ("allow",),
    "ask": ("ask",),
    "deny": ("deny",),
    "allow and ask": ("allow", "ask"),
    "allow and deny": ("allow", "deny"),
    "another's": ("another's",),
    "expired": ("expired",),
    "revoked": ("revoked",),
    "elsewhere": ("elsewhere",),
}


def me(status: AgentStatus = AgentStatus.IDLE) -> Principal:
    return Principal(ActorKind.AGENT, ME, "me", COMPANY, agent_status=status)


def grants(action: str, modes: tuple[str, ...]) -> tuple[Grant, ...]:
    return tuple(
        Grant(
            id=GrantId(f"grant-{number}"),
            company_id=COMPANY,
            holder_id=ASIDE if mode == "another's" else ME,
            kind=ResourceKind.ACTION,
            resource_id="full_access" if mode == "elsewhere" else action,
            level=Level.USE,
            mode=Mode(mode) if mode in ("allow", "ask", "deny") else Mode.ALLOW,
            scope_id=None,
            parent_id=None,
            granted_by_agent=None,
            granted_by_user=None,
            created_at=0,
            expires_at=NOW if mode == "expired" else None,
            revoked_at=1 if mode == "revoked" else None,
            used_at=None,
        )
        for number, mode in enumerate(modes)
    )


def may_hire(modes: tuple[str, ...], said: bool | None, ceo: bool, delegating: bool) -> str:
    """A denial beats all, then what was said, then who leads, then what is held."""
    if "deny" in modes or said is False:
        return "deny"
    if "ask" in modes:
        return "ask"
    return "allow" if said or ceo or "allow" in modes or delegating else "deny"


@pytest.mark.requirement("PC-06", "PC-10", "PC-12", "PC-13", "PC-52", "HH-31", "PC-78")
def test_hiring_permitting_and_reading_follow_the_rules_in_every_case() -> None:
    resource = Resource(ResourceKind.ACTION, AGENT_CREATE)
    asked = 0
    for status, said, ceo, delegating, modes, (where, place) in itertools.product(
        AgentStatus, (None, True, False), (True, False), (True, False), HELD.values(),
        PLACES.items(),
    ):  # fmt: skip
        facts = Facts(
            NOW,
            place=place,
            held=grants(AGENT_CREATE, modes),
            can_create_agents=said,
            is_ceo=ceo,
            for_delegation=delegating,
        )

        def effect(action: Action, facts: Facts = facts, status: AgentStatus = status) -> str:
            return decide(me(status), action, resource, facts).effect.value

        alive = status.value in ALIVE
        hiring = may_hire(modes, said, ceo, delegating) if alive else "deny"
        assert effect(Action.AGENT_CREATE) == hiring
        reads = alive and (ceo or hiring != "deny")
        assert effect(Action.CONFIG_READ) == ("allow" if reads else "deny")
        # Whatever one holds: only who leads permits, and never oneself.
        permits = alive and ceo and where != "mine"
        assert effect(Action.AGENT_PERMIT) == ("allow" if permits else "deny")
        proposes = alive and where in ("below", "lower")
        assert effect(Action.CONFIG_PROPOSE) == ("allow" if proposes else "deny")
        assert effect(Action.CONFIG_CHANGE) == effect(Action.AGENT_APPOINT) == "deny"
        asked += 1
    assert asked == 6 * 3 * 2 * 2 * 10 * 6


@pytest.mark.requirement("BX-10")
def test_approvals_follow_the_rules_in_every_case() -> None:
    resource = Resource(ResourceKind.ACTION, APPROVAL_DECIDE)
    asked = 0
    for status, modes, (where, place), requester in itertools.product(
        AgentStatus, HELD.values(), PLACES.items(), (ME, BELOW, LOWER, ABOVE, ASIDE, None)
    ):
        facts = Facts(
            NOW,
            place=place,
            held=grants(APPROVAL_DECIDE, modes),
            requester=requester,
            listed=False,
        )
        alive = status.value in ALIVE
        concerned = ME in place
        decider = (
            alive
            and where in ("below", "lower")
            and requester not in (ME, None)
            and modes in (("allow",),)
        )
        expected = {
            Action.APPROVAL_DECIDE: decider,
            Action.APPROVAL_RESUBMIT: alive and requester == ME,
            Action.APPROVAL_READ: alive and concerned,
            Action.APPROVAL_COMMENT: alive and concerned,
            Action.APPROVAL_REQUEST: alive and concerned,
            Action.APPROVAL_CANCEL: alive and concerned and requester is not None,
        }
        for action, allowed in expected.items():
            decision = decide(me(status), action, resource, facts)
            assert decision.allowed == allowed, (status, modes, where, requester, action)
            if not allowed and alive and not concerned and requester != ME:
                assert decision.conceal  # what concerns others does not exist
            asked += 1
    assert asked == 6 * 10 * 6 * 6 * 6
