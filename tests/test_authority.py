"""The decision function against the rules, over every small company.

The rules are written down here a second time, as plainly as they can be said and sharing no code
with what they judge. Then both are asked the same questions in every world within these bounds:

- every tree shape of up to 4 agents, with every agent in every status, and every kind of person;
- 3 outcomes for a grant to end with (or none), 2 files, listed or not;
- every shape of a grant (level, mode, expiry, revoked, whose it is, which file, scope), alone and
  with every other; and every shape that counts, three at a time.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import pytest

from remit.authority import Action, Facts, Wish, attenuate, covers, decide, excessive, holding
from remit.clock import Micros
from remit.ids import AgentId, CompanyId, GrantId, OutcomeId, UserId
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.grant import Grant, Level, Mode, Resource, ResourceKind, kb_file
from remit.model.organisation.principal import SYSTEM, ActorKind, Principal
from remit.model.organisation.user import Membership, UserRole

NOW = 1_000
COMPANY = CompanyId("company")
AGENTS = tuple(AgentId(f"agent-{n}") for n in range(4))
OUTCOMES = (None, *(OutcomeId(f"outcome-{n}") for n in range(3)))
FILES = tuple(kb_file(f"file-{n}") for n in range(2))
LEVELS = (Level.NONE, Level.READ, Level.WRITE)
EXPIRIES: tuple[Micros | None, ...] = (None, NOW - 1, NOW, NOW + 1, NOW + 2)


# ── the rules, a second time ────────────────────────────────────────────────────────────────────


def in_force(grant: Grant) -> bool:
    """Neither taken back nor over; a grant is over from its expiry on."""
    return grant.revoked_at is None and (grant.expires_at is None or grant.expires_at > NOW)


def may(grants: Iterable[Grant], need: Level) -> str:
    """Deny beats ask beats allow; nothing matching means denied.

    A right includes the lower levels. A prohibition or a condition includes the higher ones.
    """
    modes = {(grant.mode.value, int(grant.level)) for grant in grants if in_force(grant)}
    if any(("deny", level) in modes for level in range(need + 1)):
        return "deny"
    higher = range(need, Level.WRITE + 1)
    allowed = any(("allow", level) in modes for level in higher)
    asked = any(("ask", level) in modes for level in higher)
    if not allowed and not asked:
        return "deny"
    condition = any(("ask", level) in modes for level in range(need + 1))
    return "allow" if allowed and not condition else "ask"


class Question(NamedTuple):
    """Who wants to do what to which file, and everything that is true meanwhile."""

    actor: Principal
    action: Action
    file: Resource
    listed: bool
    held: tuple[Grant, ...]


def about_a_file(asked: Question) -> tuple[str, bool]:
    """For an agent: the effect, and whether the file must not be known to exist."""
    if asked.actor.agent_status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        return "deny", False
    mine = [
        grant
        for grant in asked.held
        if grant.holder_id == asked.actor.id and grant.resource_id == asked.file.id
    ]
    reading, writing = may(mine, Level.READ), may(mine, Level.WRITE)
    unknown = not asked.listed and reading == "deny"
    if asked.action is Action.FILE_SEE:
        return ("deny", True) if unknown else ("allow", False)
    effect = writing if asked.action is Action.FILE_WRITE else reading
    # Whoever may write learns that the file exists as well.
    hidden = effect == "deny" and not asked.listed and reading == "deny"
    return effect, hidden


LOOKING = {
    "company.read", "user.read", "agent.read", "key.read", "file.see", "file.read", "file.audit",
    "grant.read", "event.read", "event.verify", "outcome.read", "message.read", "approval.read",
    "config.read", "repo.read", "binding.read", "policy.read", "change.read",
}  # fmt: skip
WHOLE_COMPANY = {
    "folder.change",
    "company.accept",
    "company.change",
    "company.export",
    "policy.read",
    "policy.change",
    "user.change",
    "user.read",
    "event.read",
    "event.verify",
    "secret.read",
    "secret.change",
    "mcp_server.read",
    "mcp_server.change",
    "repo.read",
    "repo.add",
    "repo.change",
    "repo.sync",
    "agent.purge",
}
OPERATING = {"company.accept", "folder.change", "secret.change", "mcp_server.change"}


def for_a_person(
    membership: Membership | None,
    operator: bool,
    action: Action,
    place: Sequence[str],
    listed: bool,
) -> tuple[str, bool]:
    """A board member does all, an observer looks; a scope bounds both to one subtree."""
    if action.value in ("company.create", "instance.operate"):
        return ("allow" if operator else "deny"), False
    if membership is None:
        return "deny", True
    if action.value in OPERATING and not operator:
        return "deny", False
    if action.value in ("mcp_server.call", "change.propose"):
        return "deny", False
    if membership.role.value == "observer" and action.value not in LOOKING:
        return "deny", False
    if action.value == "repo.add" and not operator:
        return "deny", False
    if membership.scope_agent_id is None or action.value == "company.read":
        return "allow", False
    if action.value in ("agent.read", "file.see") and listed:
        return "allow", False
    if action.value in WHOLE_COMPANY:
        return "deny", False
    if membership.scope_agent_id in place:
        return "allow", False
    return "deny", not listed


# ── all the worlds ──────────────────────────────────────────────────────────────────────────────


def trees(agents: int) -> Iterator[tuple[int | None, ...]]:
    """Every forest of that many agents: for each agent the number of its boss, or none."""
    choices = [[None, *(n for n in range(agents) if n != agent)] for agent in range(agents)]
    for bosses in itertools.product(*choices):
        if all(_ends(bosses, agent) for agent in range(agents)):
            yield bosses


def _ends(bosses: Sequence[int | None], agent: int | None) -> bool:
    for _ in bosses:
        agent = None if agent is None else bosses[agent]
    return agent is None


def chain(bosses: Sequence[int | None], agent: int) -> tuple[AgentId, ...]:
    """An agent and everybody above it."""
    found: list[AgentId] = []
    here: int | None = agent
    while here is not None:
        found.append(AGENTS[here])
        here = bosses[here]
    return tuple(found)


def a_grant(
    number: int,
    level: Level,
    mode: Mode,
    expires_at: Micros | None = None,
    *,
    revoked: bool = False,
    holder: AgentId = AGENTS[0],
    file: Resource = FILES[0],
    scope: OutcomeId | None = None,
    parent: GrantId | None = None,
    granter: AgentId | None = None,
) -> Grant:
    return Grant(
        id=GrantId(f"grant-{number}"),
        company_id=COMPANY,
        holder_id=holder,
        kind=ResourceKind.KB_FILE,
        resource_id=file.id,
        level=level,
        mode=mode,
        scope_id=scope,
        parent_id=parent,
        granted_by_agent=granter,
        granted_by_user=None if granter else UserId("user"),
        created_at=0,
        expires_at=expires_at,
        revoked_at=5 if revoked else None,
        used_at=None,
    )


def every_grant() -> list[Grant]:
    """Every shape there is, of the asking agent or another, on this file or another."""
    shapes = itertools.product(LEVELS, Mode, EXPIRIES, (False, True), AGENTS[:2], FILES, OUTCOMES)
    return [
        a_grant(n, level, mode, until, revoked=revoked, holder=holder, file=file, scope=scope)
        for n, (level, mode, until, revoked, holder, file, scope) in enumerate(shapes)
    ]


def own_grants(expiries: Sequence[Micros | None] = EXPIRIES) -> list[Grant]:
    """Every shape in which the asking agent can hold the file."""
    shapes = itertools.product(LEVELS, Mode, expiries)
    return [a_grant(n, level, mode, until) for n, (level, mode, until) in enumerate(shapes)]


@cache
def an_agent(status: AgentStatus = AgentStatus.IDLE, agent: AgentId = AGENTS[0]) -> Principal:
    return Principal(ActorKind.AGENT, agent, "agent", COMPANY, agent_status=status)


ABOUT_FILES = (Action.FILE_SEE, Action.FILE_READ, Action.FILE_AUDIT, Action.FILE_WRITE)


def file_questions() -> Iterator[Question]:
    """Every status with every single grant, every pair of grants, every three that count; of an
    idle agent first, which most mistakes are about."""
    single: list[tuple[Grant, ...]] = [(), *((grant,) for grant in every_grant())]
    pairs = list(itertools.combinations(own_grants(), 2))
    threes = list(itertools.combinations(own_grants(), 3))
    others = [status for status in AgentStatus if status is not AgentStatus.IDLE]
    for statuses, holdings in (
        ([AgentStatus.IDLE], single),
        ([AgentStatus.IDLE], pairs),
        ([AgentStatus.IDLE], threes),
        (others, single),
    ):
        for status, action, listed, held in itertools.product(
            statuses, ABOUT_FILES, (True, False), holdings
        ):
            yield Question(an_agent(status), action, FILES[0], listed, held)


Decider = Callable[[Principal, Action, Resource | None, Facts], Decision]


def first_disagreement(ask: Decider) -> tuple[int, Question | None]:
    """How many questions about files were answered right, and the first that was not."""
    asked = 0
    for question in file_questions():
        facts = Facts(NOW, listed=question.listed, held=question.held)
        decision = ask(question.actor, question.action, question.file, facts)
        if (decision.effect.value, decision.conceal) != about_a_file(question):
            return asked, question
        asked += 1
    return asked, None


# ── one action on one file ──────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-02", "AG-02", "AG-44", "AG-41")
@pytest.mark.slow
def test_every_decision_about_a_file_follows_the_rules() -> None:
    asked, wrong = first_disagreement(decide)
    assert wrong is None
    # 6 statuses with none or one of 1,440 grants; 2 or 3 of 45; for 4 actions, listed or not.
    assert asked == (6 * 1_441 + 990 + 14_190) * 4 * 2 == 190_608


def _ask_taken_as_allow(grant: Grant) -> Grant:
    return replace(grant, mode=Mode.ALLOW) if grant.mode is Mode.ASK else grant


def _expired_taken_as_live(grant: Grant) -> Grant:
    return replace(grant, expires_at=None)


def _revoked_taken_as_live(grant: Grant) -> Grant:
    return replace(grant, revoked_at=None)


def _anybodys_grant(grant: Grant) -> Grant:
    return replace(grant, holder_id=AGENTS[0])


def _any_file(grant: Grant) -> Grant:
    return replace(grant, resource_id=FILES[0].id)


def _expiry_one_too_late(grant: Grant) -> Grant:
    return replace(grant, expires_at=grant.expires_at + 1 if grant.expires_at else None)


def _deny_taken_as_nothing(grant: Grant) -> Grant:
    return replace(grant, revoked_at=1) if grant.mode is Mode.DENY else grant


def _read_taken_as_write(grant: Grant) -> Grant:
    return replace(grant, level=Level.WRITE) if grant.level is Level.READ else grant


@pytest.mark.requirement("BX-02")
@pytest.mark.parametrize(
    "mistake",
    [
        _ask_taken_as_allow,
        _expired_taken_as_live,
        _revoked_taken_as_live,
        _anybodys_grant,
        _any_file,
        _expiry_one_too_late,
        _deny_taken_as_nothing,
        _read_taken_as_write,
    ],
)
@pytest.mark.slow
def test_a_broken_decision_function_would_be_caught(mistake: Callable[[Grant], Grant]) -> None:
    def broken(
        actor: Principal, action: Action, resource: Resource | None, facts: Facts
    ) -> Decision:
        held = tuple(mistake(grant) for grant in facts.held)
        return decide(actor, action, resource, replace(facts, held=held))

    assert first_disagreement(broken)[1] is not None


@pytest.mark.requirement("BX-02")
def test_a_file_that_is_never_concealed_would_be_caught() -> None:
    def talkative(
        actor: Principal, action: Action, resource: Resource | None, facts: Facts
    ) -> Decision:
        return replace(decide(actor, action, resource, facts), conceal=False)

    assert first_disagreement(talkative)[1] is not None


@pytest.mark.requirement("BX-03")
def test_every_decision_has_a_reason_a_sentence_and_a_basis() -> None:
    reasons: set[str] = set()
    for question in itertools.islice(file_questions(), 0, None, 7):
        facts = Facts(NOW, listed=question.listed, held=question.held)
        decision = decide(question.actor, question.action, question.file, facts)
        assert decision.reason.replace("_", "").isalpha()
        assert decision.sentence.endswith(".")
        kind, _, rests_on = decision.basis.partition(":")
        assert kind in ("grant", "rule")
        if kind == "grant":
            assert rests_on in {grant.id for grant in question.held if in_force(grant)}
        reasons.add(decision.reason)
    assert reasons == {
        "agent_inactive", "listed", "granted", "needs_approval", "asked", "denied_by_grant",
        "no_capability",
    }  # fmt: skip


# ── people, and agents acting on agents ─────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Person:
    membership: Membership | None
    operator: bool


def every_person(agents: int) -> Iterator[Person]:
    for operator in (False, True):
        yield Person(None, operator)
        for role, scope in itertools.product(UserRole, [None, *AGENTS[:agents]]):
            yield Person(Membership(COMPANY, UserId("user"), role, scope, 0), operator)


@pytest.mark.requirement("BX-02")
@pytest.mark.slow
def test_every_decision_for_a_person_follows_the_rules_in_every_tree() -> None:
    worlds, asked = 0, 0
    for size in range(1, 5):
        # A person sees of a tree only the way up from a place, and many trees share it.
        places: set[tuple[AgentId, ...]] = {()}
        for bosses in trees(size):
            worlds += 1
            places |= {chain(bosses, agent) for agent in range(size)}
        for person, action, place, listed in itertools.product(
            every_person(size), Action, places, (True, False)
        ):
            actor = Principal(ActorKind.USER, "user", "user", operator=person.operator)
            facts = Facts(NOW, person.membership, place=place, listed=listed)
            decision = decide(actor, action, FILES[0], facts)
            assert (decision.effect.value, decision.conceal) == for_a_person(
                person.membership, person.operator, action, place, listed
            ), (person, action, place, listed)
            asked += 1
    # Forests of n named agents: (n + 1) ** (n - 1).
    assert worlds == 1 + 3 + 16 + 125
    assert asked >= 60_000


def test_a_seat_gives_keys_to_members_alone_and_the_whole_machine_is_given_by_people() -> None:
    actor = Principal(ActorKind.USER, "user", "user")
    member = Membership(COMPANY, UserId("user"), UserRole.OBSERVER, None, 0)
    for membership, allowed in ((member, True), (None, False)):
        facts = Facts(NOW, membership, place=(AGENTS[0],), seat_user=UserId("user"))
        assert decide(actor, Action.KEY_CHANGE, None, facts).allowed is allowed
    for of_machine in (True, False):
        facts = Facts(NOW, place=AGENTS[:2], target_boss=AGENTS[1], for_people=of_machine)
        boss = an_agent(AgentStatus.IDLE, AGENTS[1])
        assert decide(boss, Action.GRANT_GIVE, None, facts).allowed is not of_machine


@pytest.mark.requirement("BX-02", "AG-45", "AG-57")
def test_an_agent_grants_only_to_direct_reports_in_every_tree() -> None:
    asked = 0
    for size in range(1, 5):
        for bosses in trees(size):
            for actor, target, status in itertools.product(range(size), range(size), AgentStatus):
                above = bosses[target]
                facts = Facts(
                    NOW,
                    place=chain(bosses, target),
                    target_boss=None if above is None else AGENTS[above],
                )
                who = an_agent(status, AGENTS[actor])
                alive = status.value in ("idle", "running", "paused", "error")
                is_boss = above is not None and above == actor
                give = decide(who, Action.GRANT_GIVE, FILES[0], facts)
                assert give.allowed == (alive and is_boss)
                look = decide(who, Action.GRANT_READ, None, facts)
                assert look.allowed == (alive and (is_boss or actor == target))
                asked += 2
    assert asked >= 25_000


BY_CAPABILITY = {"file.see", "file.read", "file.audit", "file.write"}
#: Of one's own, of somebody below, or by a grant on the repository: test_changes.py.
BY_REPO = {"change.read", "change.comment"}
FOR_EVERY_AGENT = {"company.read", "agent.read", "file.create"}
# How agents stand to outcomes is checked in test_authority_outcomes.py, to each other's mail in
# test_mail_authority.py, to approvals and configurations in test_authority_governance.py.
BY_RELATION = {
    "grant.give", "grant.revoke", "grant.read", "message.send", "question.answer",
}  # fmt: skip
# What is one's own, and what one asked for.
OWN = {
    "log.write", "message.read", "schedule.change", "question.ask", "thread.cancel",
    "binding.read",
    "approval.request", "approval.read", "approval.comment",
}  # fmt: skip


@pytest.mark.requirement("BX-02", "AG-53")
@pytest.mark.parametrize("status", AgentStatus)
@pytest.mark.parametrize("action", Action)
def test_what_is_not_for_agents_is_refused_to_every_agent(
    action: Action, status: AgentStatus
) -> None:
    if action.value in BY_CAPABILITY | BY_RELATION | BY_REPO:
        return
    alive = status.value in ("idle", "running", "paused", "error")
    for whose in ((AGENTS[0],), (AGENTS[1],), (AGENTS[1], AGENTS[2]), ()):
        decision = decide(an_agent(status), action, None, Facts(NOW, place=whose))
        open_to_all = action.value in FOR_EVERY_AGENT
        own = action.value in OWN and whose[:1] == (AGENTS[0],)
        assert decision.allowed == (alive and (open_to_all or own)), whose


@pytest.mark.requirement("BX-02")
@pytest.mark.parametrize("mode", Mode)
def test_a_server_is_used_by_who_holds_it_and_by_nobody_else(mode: Mode) -> None:
    server = Resource(ResourceKind.MCP_SERVER, "up")
    given = replace(
        a_grant(1, Level.USE, mode), kind=ResourceKind.MCP_SERVER, resource_id=server.id
    )
    expected = {Mode.ALLOW: "allow", Mode.ASK: "ask", Mode.DENY: "deny"}
    for held, effect in (
        (given, expected[mode]),
        (replace(given, holder_id=AGENTS[1]), "deny"),
        (replace(given, resource_id="another"), "deny"),
        (replace(given, kind=ResourceKind.REPO), "deny"),
        (replace(given, revoked_at=NOW), "deny"),
    ):
        decision = decide(an_agent(), Action.MCP_SERVER_CALL, server, Facts(NOW, held=(held,)))
        assert decision.effect.value == effect


@pytest.mark.requirement("BX-02", "BX-01")
def test_a_grant_is_revoked_by_its_granter_or_given_up_by_its_holder_alone() -> None:
    for actor, holder, granter, mode, status in itertools.product(
        AGENTS[:3], AGENTS[:3], (None, *AGENTS[:3]), Mode, AgentStatus
    ):
        grant = a_grant(1, Level.READ, mode, holder=holder, granter=granter)
        decision = decide(
            an_agent(status, actor), Action.GRANT_REVOKE, None, Facts(NOW, grant=grant)
        )
        alive = status.value in ("idle", "running", "paused", "error")
        # What was put on an agent to restrain it is not the agent's to lift.
        gives_up = holder == actor and mode is Mode.ALLOW
        assert decision.allowed == (alive and (granter == actor or gives_up))
    nothing = decide(an_agent(), Action.GRANT_REVOKE, None, Facts(NOW))
    assert not nothing.allowed


def test_remit_itself_may_do_everything() -> None:
    assert all(decide(SYSTEM, action, None, Facts(NOW)).allowed for action in Action)


# ── passing on ──────────────────────────────────────────────────────────────────────────────────


def could_carry(source: Grant, level: Level, mode: Mode, until: Micros | None) -> bool:
    """Whether a grant of this shape is inside of what the source gives."""
    return (
        in_force(source)
        and source.level >= level
        and (source.mode is Mode.ALLOW or (source.mode is Mode.ASK and mode is Mode.ASK))
        and (source.expires_at is None or (until is not None and until <= source.expires_at))
    )


def all_holdings() -> Iterator[tuple[Grant, ...]]:
    yield ()
    yield from ((grant,) for grant in own_grants())
    yield from itertools.combinations(own_grants(), 2)
    yield from itertools.combinations(own_grants(), 3)


@cache
def rights_by(level: Level, mode: Mode, until: Micros | None) -> dict[Level, str]:
    """What a grant of this shape gives by itself."""
    return {need: may([a_grant(99, level, mode, until)], need) for need in LEVELS}


@pytest.mark.requirement("BX-01", "BX-02", "AG-45", "AG-46")
@pytest.mark.slow
def test_whatever_is_passed_on_is_inside_of_what_is_held() -> None:
    asked, given = 0, 0
    order = ("deny", "ask", "allow")
    for held in all_holdings():
        rights = {level: may(held, level) for level in LEVELS}
        for level, until in itertools.product(LEVELS, EXPIRIES):
            asked += 1
            passed = attenuate(held, Wish(level, until), NOW)
            right = rights[level]
            carriers = [
                grant
                for grant in held
                if could_carry(grant, level, Mode(right) if right != "deny" else Mode.ALLOW, until)
            ]
            bounded = [grant for grant in held if in_force(grant) and grant.level >= level]
            if right == "deny" or (until is not None and (until <= NOW or not carriers)):
                assert not passed.decision.allowed
                assert passed.parent is None
                continue
            given += 1
            assert passed.decision.allowed, (held, level, until)
            parent = passed.parent
            assert parent in bounded
            assert parent is not None
            assert passed.mode.value == right
            assert could_carry(parent, level, passed.mode, passed.expires_at)
            if until is not None:
                assert passed.expires_at == until
            # What the receiver gets is never more than what the giver has.
            received = rights_by(level, passed.mode, passed.expires_at)
            for need in LEVELS:
                assert order.index(received[need]) <= order.index(rights[need])
    # None, one, two or three of 45 grants; 3 levels and 5 expiries to wish for.
    assert asked == (1 + 45 + 990 + 14_190) * 3 * 5 == 228_390
    assert given >= 40_000


@pytest.mark.requirement("BX-01", "BX-02", "AG-46")
@pytest.mark.slow
def test_what_is_passed_down_a_chain_is_inside_of_everything_above() -> None:
    """Every grant at the top of a chain of four agents, narrowed in every way at each step."""
    wishes = [Wish(level, until) for level in LEVELS for until in (None, NOW + 1, NOW + 2)]
    order = ("deny", "ask", "allow")
    chains = 0
    for top in own_grants():
        for steps in itertools.product(wishes, repeat=3):
            held = top
            chains += 1
            for step, wish in enumerate(steps):
                passed = attenuate([held], wish, NOW)
                if not passed.decision.allowed:
                    break
                assert passed.parent == held
                below = a_grant(
                    step, wish.level, passed.mode, passed.expires_at, holder=AGENTS[step + 1]
                )
                for above in (top, held):
                    assert could_carry(above, below.level, below.mode, below.expires_at)
                    for need in LEVELS:
                        assert order.index(may([below], need)) <= order.index(may([above], need))
                held = below
    assert chains == 45 * 9**3 == 32_805


@pytest.mark.requirement("BX-01", "BX-02")
@pytest.mark.slow
def test_what_cannot_be_given_any_more_is_excessive() -> None:
    asked = 0
    children = [
        a_grant(100 + n, level, mode, holder=AGENTS[1], granter=AGENTS[0])
        for n, (level, mode) in enumerate(itertools.product(LEVELS, Mode))
    ]
    dead = [
        a_grant(200, Level.WRITE, Mode.ALLOW, NOW),
        a_grant(201, Level.WRITE, Mode.ALLOW, revoked=True),
    ]
    for held in all_holdings():
        expected = []
        for child in children:
            right = may(held, child.level)
            kept = (
                child.mode is Mode.DENY
                or right == "allow"
                or (right == "ask" and child.mode is Mode.ASK)
            )
            assert covers(held, child, NOW) == kept
            asked += 1
            if not kept:
                expected.append(child)
        assert excessive(held, [*children, *dead], NOW) == expected
    assert asked == (1 + 45 + 990 + 14_190) * 9 == 137_034


@pytest.mark.requirement("BX-02", "AG-02")
def test_more_rights_never_mean_less_and_more_prohibitions_never_mean_more() -> None:
    order = (Effect.DENY, Effect.ASK, Effect.ALLOW)
    for held in itertools.combinations(own_grants((None,)), 2):
        for extra, need in itertools.product(own_grants((None,)), LEVELS):
            before = order.index(holding(held, need, NOW).effect)
            after = order.index(holding((*held, extra), need, NOW).effect)
            if extra.mode is Mode.ALLOW:
                assert after >= before
            if extra.mode is Mode.DENY:
                assert after <= before


@pytest.mark.requirement("AG-02")
def test_a_condition_on_writing_leaves_reading_alone() -> None:
    held = (a_grant(1, Level.WRITE, Mode.ALLOW), a_grant(2, Level.WRITE, Mode.ASK))
    assert holding(held, Level.READ, NOW).effect is Effect.ALLOW
    assert holding(held, Level.WRITE, NOW).effect is Effect.ASK


@pytest.mark.requirement("AG-02")
@pytest.mark.parametrize(
    ("level", "effects"),
    [
        (Level.NONE, ("allow", "deny", "deny")),
        (Level.READ, ("allow", "allow", "deny")),
        (Level.WRITE, ("allow", "allow", "allow")),
    ],
)
def test_none_is_less_than_read_is_less_than_write(
    level: Level, effects: tuple[str, str, str]
) -> None:
    held = (a_grant(1, level, Mode.ALLOW),)
    assert tuple(holding(held, need, NOW).effect.value for need in LEVELS) == effects


# ── stop and go ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-13")
def test_every_decision_of_an_agent_about_a_halt_or_a_pause_follows_the_rules() -> None:
    """In every tree of 4: who is stopped, who made the halt, whether a person did, who asks."""
    asked = 0
    for bosses in trees(4):
        places = [chain(bosses, agent) for agent in range(4)]
        for top, maker, who in itertools.product((None, 0, 1, 2, 3), range(4), range(4)):
            place = () if top is None else places[top]
            me = AGENTS[who]
            statuses = (AgentStatus.IDLE, AgentStatus.TERMINATED)
            for by_person, status in itertools.product((False, True), statuses):
                facts = Facts(NOW, place=place, by_person=by_person, maker=places[maker])
                actor = an_agent(status, me)
                acts = status is AgentStatus.IDLE
                below_me = acts and top is not None and top != who and me in place
                stops = decide(actor, Action.HALT_STOP, None, facts).allowed
                lifts = decide(actor, Action.HALT_GO, None, facts).allowed
                controls = decide(actor, Action.AGENT_CONTROL, None, facts).allowed
                assert stops is below_me
                assert lifts is (below_me and not by_person and me in places[maker])
                assert controls is (below_me and not by_person)
                asked += 3
    assert asked == 125 * 5 * 4 * 4 * 2 * 2 * 3 == 120_000
