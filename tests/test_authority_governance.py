"""Who may hire, permit, configure and decide: every case, against the rules written twice."""

import itertools
from dataclasses import replace
from functools import cache

import pytest

from remit.authority import Action, Facts, decide
from remit.ids import AgentId, CompanyId, GrantId
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.grant import (
    AGENT_CREATE,
    APPROVAL_DECIDE,
    Grant,
    Level,
    Mode,
    Resource,
    ResourceKind,
)
from remit.model.organisation.permission import Reach
from remit.model.organisation.principal import ActorKind, Principal

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


@cache
def me(status: AgentStatus = AgentStatus.IDLE) -> Principal:
    return Principal(ActorKind.AGENT, ME, "me", COMPANY, agent_status=status)


@cache
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
        assert effect(Action.LEVEL_CHANGE) == "deny"
        asked += 1
    assert asked == 6 * 3 * 2 * 2 * 10 * 6


@pytest.mark.requirement("BX-10")
def test_approvals_follow_the_rules_in_every_case() -> None:
    resource = Resource(ResourceKind.ACTION, APPROVAL_DECIDE)
    asked = 0
    for status, modes, (where, place), requester, for_people in itertools.product(
        AgentStatus,
        HELD.values(),
        PLACES.items(),
        (ME, BELOW, LOWER, ABOVE, ASIDE, None),
        (False, True),
    ):
        facts = Facts(
            NOW,
            place=place,
            held=grants(APPROVAL_DECIDE, modes),
            requester=requester,
            listed=False,
            for_people=for_people,
        )
        alive = status.value in ALIVE
        concerned = ME in place
        decider = (
            alive
            and where in ("below", "lower")
            and requester not in (ME, None)
            and modes in (("allow",),)
            and not for_people
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
    assert asked == 6 * 10 * 6 * 6 * 2 * 6


#: What a board member does to those in their part, and an agent with the level `boss`, too.
LIKE_THE_BOARD = {
    "agent.appoint", "agent.control", "agent.terminate", "approval.cancel", "approval.comment",
    "approval.decide", "approval.read", "binding.read", "config.change", "config.read",
    "file.audit", "file.read", "file.see", "file.write", "grant.give", "grant.read",
    "grant.revoke", "key.read", "message.read", "message.send", "org.change", "outcome.change",
    "outcome.create", "outcome.delegate", "outcome.finish", "outcome.read", "outcome.reclaim",
    "question.answer", "schedule.change", "thread.cancel",
}  # fmt: skip
#: What people alone do: levels, permissions, people, keys, secrets, settings of the company, the
#: machine itself, what comes from outside, and taking something out for good.
OF_PEOPLE = {
    "agent.lend", "agent.permit", "agent.purge", "binding.change", "company.change",
    "company.create",
    "company.export", "key.change", "level.change", "mcp_server.change", "policy.change",
    "policy.read", "repo.add", "repo.change", "run.change", "secret.change", "secret.read",
    "user.change", "user.read", "event.read", "event.verify",
}  # fmt: skip


@pytest.mark.requirement("HB-08", "HB-10", "PC-10")
@pytest.mark.slow
def test_the_level_boss_adds_a_say_over_others_and_nothing_else_in_every_case() -> None:
    """Against an agent without the level: only these actions, only there, and never less."""
    assert not LIKE_THE_BOARD & OF_PEOPLE
    asked, added = 0, 0
    for action, (where, place), reach in itertools.product(Action, PLACES.items(), Reach):
        for over_boss, for_people, by_person, status, requester, modes in itertools.product(
            (False, True), (False, True), (False, True), (AgentStatus.IDLE, AgentStatus.TERMINATED),
            (BELOW, None), ((), ("deny",), ("ask",)),
        ):  # fmt: skip
            resource = Resource(ResourceKind.ACTION, APPROVAL_DECIDE)
            without = Facts(
                NOW,
                place=place,
                held=grants(APPROVAL_DECIDE, modes),
                requester=requester,
                for_people=for_people,
                by_person=by_person,
                listed=False,
            )
            with_level = replace(without, reach=reach, above=(ME, ABOVE), over_boss=over_boss)
            plain = decide(me(status), action, resource, without)
            found = decide(me(status), action, resource, with_level)
            asked += 1
            in_reach = {
                Reach.NOBODY: set[str](),
                Reach.BELOW: {"below", "lower"},
                Reach.COMPANY: {"below", "lower", "aside"},
            }[reach]
            has_say = (
                action.value in LIKE_THE_BOARD
                and where in in_reach
                and status is AgentStatus.IDLE
                and not (over_boss or for_people or by_person)
                and not (
                    requester is None and action.value in ("approval.decide", "approval.cancel")
                )
            )
            # What was said explicitly goes before the level.
            said = plain.reason == "denied_by_grant" or plain.effect.value == "ask"
            said = said or (bool(modes) and action is Action.APPROVAL_DECIDE)
            if has_say and not plain.allowed and not said:
                assert (found.effect.value, found.basis) == ("allow", "rule:boss_level")
                added += 1
            else:
                assert found == plain, (action, where, reach)
            if action.value in OF_PEOPLE:
                assert not found.allowed
    assert asked == len(Action) * 6 * 3 * 2 * 2 * 2 * 2 * 2 * 3
    assert added >= 400
