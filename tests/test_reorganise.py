"""Changing the organisation while it works, seeing beforehand what changes, and going back."""

import asyncio
import json
import re
from typing import Any

import pytest

from remit.errors import BadInput, Conflict, RemitError, Unauthenticated
from remit.ids import AgentId
from remit.services.command import Context, Kind, Verb
from remit.services.identity import Caller
from remit.services.organisation import agents, authority_map, reorganise
from remit.services.people import users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.screens import overview
from remit.services.work import delegation, outcomes
from tests.company import Answer, Company, Member
from tests.organisation import RECORD, dump, given, hire, problems, refusal, shown, work


@pytest.fixture
def lead(company: Company) -> Member:
    return company.agent("lead")


Op = dict[str, Any]
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def apply(company: Company, *operations: Op, by: Caller | None = None) -> Answer:
    return company.call(
        by or company.board,
        reorganise.reorganise,
        company=company.id,
        operations=list(operations),
    )


def undo(company: Company, done: Answer) -> Answer:
    return company.call(company.board, reorganise.undo, company=company.id, event=done["event_id"])


def refused(company: Company, *operations: Op, by: Caller | None = None) -> str:
    return refusal(
        company,
        by or company.board,
        reorganise.reorganise,
        company=company.id,
        operations=list(operations),
    )


def boss_of(company: Company, agent: Member) -> str | None:
    found = company.call(company.board, agents.show, agent=agent.id)["reports_to"]
    return None if found is None else str(found)


def authority(company: Company) -> dict[str, Any]:
    """Who has which say over whom and what, in the whole company."""

    def look(ctx: Context) -> dict[str, Any]:
        ctx.enter(company.id)
        everybody = [AgentId(agent) for (agent,) in company.sql("SELECT id FROM agents")]
        found = authority_map.snapshot(ctx, everybody, ())
        return {" | ".join(key): value for key, value in found.facts.items()}

    return company.call(company.board, Verb("authority", Kind.QUERY, look))


def busy(company: Company) -> dict[str, Member]:
    """Two teams with work at every level, shared papers and reports that were given more."""
    ceo = company.ceo
    team = {"ceo": ceo}
    for name, boss in (("lead", "ceo"), ("peer", "ceo"), ("dev", "lead"), ("tester", "lead")):
        team[name] = company.agent(name, boss)
    paper = company.file(company.board)
    company.give(company.board, ceo, paper, "write", scope=ceo.id)
    company.give(ceo.caller, team["lead"], paper, "write")
    company.give(team["lead"].caller, team["dev"], paper, "read")
    company.give(company.board, team["lead"], paper, "read")
    own = company.file(team["lead"].caller)
    company.give(team["lead"].caller, team["tester"], own, "read")
    for name in ("lead", "peer", "dev"):
        part = work(company, team[name].caller, team[name].id, f"Work of {name}")
        work(company, team[name].caller, part, "Below it")
    extra = work(company, ceo.caller, ceo.id, "More for the lead")
    given(company, ceo.caller, extra, team["lead"])
    passed = work(company, team["lead"].caller, extra, "And for the developer")
    given(company, team["lead"].caller, passed, team["dev"])
    hired = work(company, team["dev"].caller, passed, "For an intern")
    team["intern"] = hire(company, team["dev"].caller, hired, "intern")
    assert problems(company) == []
    return team


COMMAND = {"command": "true"}

EVERYTHING: list[list[Op]] = [
    [{"op": "move", "agent": "dev", "to": "peer"}],
    [{"op": "move", "agent": "lead", "to": "board"}],
    [{"op": "move", "agent": "lead", "to": "peer"}],
    [{"op": "insert_layer", "agents": ["lead", "peer"], "name": "layer", "role": "pm"}],
    [{"op": "insert_layer", "agents": ["dev"], "name": "layer", "purpose": "Look after dev"}],
    [{"op": "insert_layer", "agents": ["ceo"], "name": "holding"}],
    [{"op": "remove_layer", "agent": "lead"}],
    [{"op": "remove_layer", "agent": "dev"}],
    [{"op": "remove_layer", "agent": "intern"}],
    [{"op": "seat", "agent": "lead", "user": "board"}],
    [
        {
            "op": "seat",
            "agent": "lead",
            "adapter_type": "process",
            "adapter_config": {"command": "true"},
        }
    ],
    [
        {"op": "insert_layer", "agents": ["lead", "peer"], "name": "layer"},
        {"op": "move", "agent": "dev", "to": "layer"},
        {"op": "remove_layer", "agent": "lead"},
        {"op": "move", "agent": "tester", "to": "dev"},
        {"op": "seat", "agent": "dev", "user": "board"},
    ],
]


# ── what the operations do ──────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-08", "HH-05", "AG-69")
def test_a_moved_agent_works_for_its_new_boss(company: Company, lead: Member) -> None:
    peer = company.agent("peer")
    dev = company.agent("dev", "lead")
    inner = work(company, dev.caller, dev.id, "Inner")
    apply(company, {"op": "move", "agent": "dev", "to": "peer"})
    assert boss_of(company, dev) == peer.id
    assert shown(company, dev.id)["delegator_id"] == peer.id
    # The new boss judges; the old one has nothing to do with it any more.
    assert refusal(company, lead.caller, outcomes.show, outcome=inner) == "not_found"
    assert refusal(company, lead.caller, agents.pause, agent=dev.id) == "not_below_you"
    assert [one["id"] for one in shown(company, peer.id)["children"]] == [dev.id]
    assert shown(company, lead.id)["children"] == []
    company.call(dev.caller, outcomes.show, outcome=peer.id)
    company.call(dev.caller, outcomes.complete, outcome=inner)
    company.call(peer.caller, outcomes.complete, outcome=dev.id)


@pytest.mark.requirement("BX-08", "AG-109")
def test_the_end_of_a_former_boss_does_not_touch_who_moved_away(
    company: Company, lead: Member
) -> None:
    company.agent("peer")
    dev = company.agent("dev", "lead")
    hired = hire(company, lead.caller, work(company, lead.caller, lead.id, "Part"), "hired")
    apply(
        company,
        {"op": "move", "agent": "dev", "to": "peer"},
        {"op": "move", "agent": "hired", "to": "peer"},
    )
    company.call(company.ceo.caller, outcomes.close, outcome=lead.id, rationale="Not needed.")
    for agent in (dev, hired):
        assert company.call(company.board, agents.show, agent=agent.id)["status"] == "idle"
        assert shown(company, agent.id)["status"] == "open"


@pytest.mark.requirement("BX-08", "AG-90")
def test_a_layer_comes_between_and_its_reports_stay_as_they_are(company: Company) -> None:
    team = busy(company)
    before = company.sql("SELECT id, name, adapter_config, prompt FROM agents ORDER BY id")
    held = company.call(team["dev"].caller, grants.listing, company=None)
    done = apply(
        company,
        {"op": "insert_layer", "agents": ["lead", "peer", "lead"], "name": "layer", "role": "pm"},
    )
    layer = company.call(company.board, agents.show, agent="layer")
    assert (layer["reports_to"], layer["role"]) == (company.ceo.id, "pm")
    assert [boss_of(company, team[name]) for name in ("lead", "peer")] == [layer["id"]] * 2
    assert boss_of(company, team["dev"]) == team["lead"].id
    after = company.sql("SELECT id, name, adapter_config, prompt FROM agents ORDER BY id")
    assert [row for row in after if row[0] != layer["id"]] == before
    assert company.call(team["dev"].caller, grants.listing, company=None) == held
    assert (
        refusal(company, company.ceo.caller, outcomes.complete, outcome=team["lead"].id)
        == "skip_level"
    )
    assert done["changes"]


@pytest.mark.requirement("BX-08", "AG-90")
def test_a_layer_goes_and_leaves_its_work_and_reports_to_its_boss(company: Company) -> None:
    team = busy(company)
    lead = team["lead"]
    mine = company.call(company.board, outcomes.listing, owner="lead", status="open")
    held = company.call(team["dev"].caller, grants.listing, company=None)
    apply(company, {"op": "remove_layer", "agent": "lead"})
    assert company.call(company.board, agents.show, agent=lead.id)["status"] == "terminated"
    assert [boss_of(company, team[name]) for name in ("dev", "tester")] == [company.ceo.id] * 2
    for outcome in mine:
        if outcome["id"] != lead.id:
            view = shown(company, outcome["id"])
            assert view["owner_id"] == company.ceo.id
            assert not view["delegated"]
            work(company, company.ceo.caller, outcome["id"], "The boss goes on with it")
    # What the reports were given by it, they keep; it rests on where the layer had it from.
    kept = company.call(team["dev"].caller, grants.listing, company=None)
    assert [(g["id"], g["level"]) for g in kept] == [(g["id"], g["level"]) for g in held]
    by = {g["granted_by"] for g in kept if g["granted_by"]}
    assert by == {f"agent:{company.ceo.id}"}
    for grant in kept:
        if grant["parent_id"] is not None:
            company.call(company.ceo.caller, grants.revoke, grant=grant["id"])


@pytest.mark.requirement("BX-08")
def test_a_root_layer_goes_only_when_nothing_would_be_left_without_an_owner(
    company: Company, lead: Member
) -> None:
    part = work(company, company.ceo.caller, company.ceo.id, "Part")
    assert refused(company, {"op": "remove_layer", "agent": "ceo"}) == "conflict"
    company.call(company.ceo.caller, outcomes.complete, outcome=part)
    apply(company, {"op": "remove_layer", "agent": "ceo"})
    assert boss_of(company, lead) is None
    assert shown(company, lead.id)["delegator_id"] is None
    company.agent("successor", None)
    company.call(company.board, outcomes.complete, outcome=lead.id)


# ── seats ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-07")
def test_a_person_takes_a_seat_acts_in_it_and_leaves_it(company: Company) -> None:
    lead = company.agent("lead", adapter_type="scripted")
    dev = company.agent("dev", "lead")
    person = company.user("ann", role="observer")
    program = company.run(lead)
    before = company.sql("SELECT id, boss_id FROM agents ORDER BY id")
    assert refusal(company, person, agents.create_key, agent=lead.id) == "observer"
    seated = apply(company, {"op": "seat", "agent": "lead", "user": "ann"})
    view = company.call(company.board, agents.show, agent=lead.id)
    assert view["adapter_type"] == "human"
    # The program that sat there is out.
    for old in (lead.caller, program.caller):
        with pytest.raises(Unauthenticated):
            company.call(old, overview.me)
    key = Caller(company.call(person, agents.create_key, agent=lead.id)["token"])
    assert company.call(key, overview.me)["id"] == lead.id
    part = work(company, key, lead.id, "By hand")
    company.call(key, outcomes.complete, outcome=part)
    company.call(key, outcomes.complete, outcome=dev.id)
    assert refusal(company, person, agents.create_key, agent=company.ceo.id) == "observer"
    # And back: its boss and its reports are who they were, the person is out.
    back = undo(company, seated)
    assert company.call(company.board, agents.show, agent=lead.id)["adapter_type"] == "scripted"
    with pytest.raises(Unauthenticated):
        company.call(key, overview.me)
    assert refusal(company, person, agents.create_key, agent=lead.id) == "observer"
    assert company.sql("SELECT id, boss_id FROM agents ORDER BY id") == before
    assert {one["change"] for one in back["changes"]} == {"loses"}


@pytest.mark.requirement("BX-07")
def test_whoever_leaves_the_company_leaves_their_seat(company: Company, lead: Member) -> None:
    person = company.user("ann")
    apply(company, {"op": "seat", "agent": "lead", "user": "ann"})
    key = Caller(company.call(person, agents.create_key, agent=lead.id)["token"])
    assert company.call(key, overview.me)["id"] == lead.id
    company.call(company.board, users.remove, company=company.id, user="ann")
    with pytest.raises(Unauthenticated):
        company.call(key, overview.me)


@pytest.mark.requirement("BX-07")
def test_a_program_takes_the_place_of_a_person(company: Company, lead: Member) -> None:
    apply(company, {"op": "seat", "agent": "lead", "user": "board"})
    apply(
        company,
        {
            "op": "seat",
            "agent": "lead",
            "adapter_type": "process",
            "adapter_config": {"command": "true"},
        },
    )
    row = company.sql(
        "SELECT adapter_type, adapter_config, seat_user_id FROM agents WHERE id = ?", lead.id
    )
    assert row == [("process", '{"command": "true"}', None)]
    for operation in (
        {"op": "seat", "agent": "lead"},
        {"op": "seat", "agent": "lead", "adapter_type": "magic"},
        {"op": "seat", "agent": "lead", "user": "nobody"},
    ):
        assert refused(company, operation) in ("invalid", "not_found")


# ── all or nothing ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-08")
@pytest.mark.parametrize("operations", EVERYTHING)
@pytest.mark.campaign_on_postgresql("each operation is carried out there by other tests")
def test_a_dry_run_changes_nothing_and_tells_exactly_what_would(
    company: Company, operations: list[Op]
) -> None:
    busy(company)
    before = dump(company)
    dry = company.call(company.board, reorganise.preview, company=company.id, operations=operations)
    assert dump(company) == before
    assert (dry["dry_run"], dry["event_id"]) == (True, None)
    map_before = authority(company)
    done = apply(company, *operations)
    assert done["dry_run"] is False
    map_after = authority(company)

    known = set(ID.findall(str(before)))

    def plain(changes: list[Answer]) -> list[str]:
        """What is new has another id each time; all else is the same."""
        told = [json.dumps(one) for one in changes]
        return sorted(
            ID.sub(lambda found: found[0] if found[0] in known else "new", one) for one in told
        )

    assert plain(dry["changes"]) == plain(done["changes"])
    # And what it tells is what became true.
    gained = {key for key in map_after if key not in map_before}
    lost = {key for key in map_before if key not in map_after}
    told: dict[str, set[str]] = {"gains": set(), "loses": set()}
    for one in done["changes"]:
        told[one["change"]].add(" | ".join((one["who"], one["right"], one["over"])))
    assert (told["gains"], told["loses"]) == (gained, lost)


@pytest.mark.requirement("BX-08")
@pytest.mark.parametrize("operations", EVERYTHING)
@pytest.mark.campaign_on_postgresql("each operation is carried out there by other tests")
def test_an_undo_restores_exactly_who_had_which_say(company: Company, operations: list[Op]) -> None:
    team = busy(company)
    company.call(company.board, agents.pause, agent=team["dev"].id)
    before = authority(company)
    edges = company.sql("SELECT parent_id, child_id FROM outcome_edges ORDER BY 1, 2")
    statuses = company.sql("SELECT id, status FROM agents ORDER BY id")
    done = apply(company, *operations)
    assert problems(company) == []
    changed = authority(company)
    undone = undo(company, done)
    assert problems(company) == []
    created = {step["agent"] for step in done["steps"] if step["step"] == "create"}
    assert authority(company) == before
    assert [
        edge
        for edge in company.sql("SELECT parent_id, child_id FROM outcome_edges ORDER BY 1, 2")
        if edge[1] not in created
    ] == edges
    assert [
        row
        for row in company.sql("SELECT id, status FROM agents ORDER BY id")
        if row[0] not in created
    ] == statuses
    # An undo can be undone, too.
    if not created:
        undo(company, undone)
        assert problems(company) == []
        assert authority(company) == changed


@pytest.mark.requirement("BX-08")
@pytest.mark.parametrize(
    "bad",
    [
        {"op": "move", "agent": "ceo", "to": "dev"},
        {"op": "move", "agent": "nobody", "to": "ceo"},
        {"op": "move", "agent": "dev", "to": "nobody"},
        {"op": "move", "agent": "dev"},
        {"op": "insert_layer", "agents": ["dev", "ceo"], "name": "layer"},
        {"op": "insert_layer", "agents": ["dev"], "name": "peer"},
        {"op": "insert_layer", "agents": [], "name": "layer"},
        {"op": "insert_layer", "agents": "dev", "name": "layer"},
        {"op": "insert_layer", "agents": ["dev"]},
        {"op": "remove_layer", "agent": "ceo"},
        {"op": "remove_layer", "agent": None},
        {"op": "seat", "agent": "dev", "user": "nobody"},
        {"op": "explode", "agent": "dev"},
        {},
    ],
)
def test_one_bad_operation_undoes_all(company: Company, bad: Op) -> None:
    busy(company)
    before = dump(company, RECORD)
    good = [
        {"op": "move", "agent": "tester", "to": "peer"},
        {"op": "remove_layer", "agent": "lead"},
    ]
    with pytest.raises(RemitError):
        apply(company, *good, bad)
    assert dump(company, RECORD) == before


def test_an_operation_on_somebody_who_just_left_is_refused(company: Company) -> None:
    team = busy(company)
    for operation in (
        {"op": "move", "agent": team["lead"].id, "to": "peer"},
        {"op": "insert_layer", "agents": [team["lead"].id], "name": "layer"},
        {"op": "remove_layer", "agent": team["lead"].id},
        {"op": "seat", "agent": team["lead"].id, "user": "board"},
        {"op": "move", "agent": "dev", "to": team["lead"].id},
    ):
        assert refused(company, {"op": "remove_layer", "agent": "lead"}, operation) == "conflict"
    with pytest.raises(BadInput):
        apply(company)
    with pytest.raises(BadInput):
        apply(company, *[{"op": "seat", "agent": "lead", "user": "board"}] * 101)


@pytest.mark.requirement("AG-69", "BX-08")
def test_no_move_makes_a_cycle_also_not_two_at_once(company: Company) -> None:
    company.agent("left")
    company.agent("right")
    below = company.agent("below", "left")
    assert refused(company, {"op": "move", "agent": "left", "to": "below"}) == "cycle"
    assert refused(company, {"op": "move", "agent": "left", "to": "left"}) == "cycle"
    for _ in range(20):
        answers = company.together(
            [
                company.app.gate(
                    company.board,
                    reorganise.reorganise,
                    company=company.id,
                    operations=[{"op": "move", "agent": one, "to": other}],
                )
                for one, other in (("left", "right"), ("right", "left"))
            ]
        )
        assert len([answer for answer in answers if isinstance(answer, dict)]) == 1
        assert problems(company) == []
        apply(company, *({"op": "move", "agent": one, "to": "ceo"} for one in ("left", "right")))
    assert boss_of(company, below) is not None


# ── going back ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-08")
def test_an_undo_is_refused_when_something_it_touched_was_changed_since(company: Company) -> None:
    team = busy(company)

    def stays(done: Answer) -> None:
        before = dump(company, RECORD)
        with pytest.raises(Conflict):
            undo(company, done)
        assert dump(company, RECORD) == before

    moved = apply(company, {"op": "move", "agent": "tester", "to": "peer"})
    again = apply(company, {"op": "move", "agent": "tester", "to": "dev"})
    stays(moved)
    undo(company, again)
    undo(company, moved)
    stays(moved)

    # Its old boss came to work below it.
    moved = apply(company, {"op": "move", "agent": "tester", "to": "peer"})
    under = apply(company, {"op": "move", "agent": "lead", "to": "tester"})
    stays(moved)
    undo(company, under)
    # Its old boss is gone.
    company.agent("short", "peer")
    moved = apply(company, {"op": "move", "agent": "tester", "to": "short"})
    away = apply(company, {"op": "move", "agent": "tester", "to": "dev"})
    company.call(company.board, agents.terminate, agent="short")
    stays(away)

    # A new layer got work, or a report of its own.
    layered = apply(company, {"op": "insert_layer", "agents": ["dev"], "name": "layer"})
    layer = company.call(company.board, agents.show, agent="layer")["id"]
    part = work(company, company.board, layer, "For the layer")
    stays(layered)
    its_own = Caller(company.call(company.board, agents.create_key, agent=layer)["token"])
    company.call(its_own, outcomes.close, outcome=part, rationale="No.")
    extra = company.agent("extra", "layer")
    stays(layered)
    company.call(company.board, agents.terminate, agent=extra.id)
    undo(company, layered)
    assert boss_of(company, team["dev"]) == team["lead"].id

    # A removed layer's name was given away, or its work went elsewhere.
    removed = apply(company, {"op": "remove_layer", "agent": "lead"})
    other = company.agent("lead")
    stays(removed)
    company.call(company.board, agents.terminate, agent=other.id)
    company.call(company.board, outcomes.reopen, outcome=team["lead"].id)
    stays(removed)
    assert problems(company) == []


@pytest.mark.requirement("BX-08")
def test_an_undo_needs_an_event_that_reorganised_something(company: Company, lead: Member) -> None:
    done = apply(company, {"op": "move", "agent": "lead", "to": "board"})
    assert refused(company, {"op": "move", "agent": "lead", "to": "ceo"}, by=lead.caller) == (
        "board_only"
    )
    attempts = company.call(company.board, events.listing, company=company.id, limit=1)
    assert not attempts[0]["allowed"]
    for event in ("", " ", "0", "zzzzzzzz", attempts[0]["id"], lead.id):
        with pytest.raises(RemitError):
            company.call(company.board, reorganise.undo, company=company.id, event=event)
    assert (
        refusal(company, lead.caller, reorganise.undo, company=None, event=done["event_id"])
        == "board_only"
    )
    undo(company, done)


@pytest.mark.requirement("BX-01", "BX-08")
def test_an_undo_gives_nothing_back_that_could_not_be_given_now(company: Company) -> None:
    team = busy(company)
    paper = company.file(company.board)
    first = company.give(company.board, team["ceo"], paper, "read")
    company.give(team["ceo"].caller, team["lead"], paper, "read")
    company.read(team["lead"].caller, paper["id"])
    removed = apply(company, {"op": "remove_layer", "agent": "lead"})
    company.call(company.board, grants.revoke, grant=first["id"])
    undo(company, removed)
    held = company.call(company.board, grants.listing, company=company.id, agent="lead")
    assert not [grant for grant in held if grant["resource"].endswith(paper["id"])]


# ── who may ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-08")
def test_a_board_member_over_a_part_reorganises_that_part_alone(company: Company) -> None:
    team = busy(company)
    partial = company.user("partial", scope="lead")
    observer = company.user("watcher", role="observer")
    before = dump(company, RECORD)
    for operation in (
        {"op": "move", "agent": "peer", "to": "lead"},
        {"op": "move", "agent": "dev", "to": "peer"},
        {"op": "move", "agent": "dev", "to": "board"},
        {"op": "move", "agent": "lead", "to": "board"},
        {"op": "insert_layer", "agents": ["lead"], "name": "layer"},
        {"op": "insert_layer", "agents": ["dev", "peer"], "name": "layer"},
        {"op": "remove_layer", "agent": "lead"},
        {"op": "remove_layer", "agent": "peer"},
        {"op": "seat", "agent": "ceo", "user": "partial"},
    ):
        assert refused(company, operation, by=partial) == "outside_scope", operation
        assert refused(company, operation, by=observer) == "observer"
    assert dump(company, RECORD) == before
    apply(company, {"op": "move", "agent": "tester", "to": "dev"}, by=partial)
    apply(company, {"op": "insert_layer", "agents": ["dev"], "name": "layer"}, by=partial)
    apply(company, {"op": "remove_layer", "agent": "layer"}, by=partial)
    apply(company, {"op": "seat", "agent": "lead", "user": "partial"}, by=partial)
    assert boss_of(company, team["tester"]) == team["dev"].id
    stranger = company.second_company()
    assert refused(company, {"op": "remove_layer", "agent": "dev"}, by=stranger.board) == (
        "not_found"
    )


# ── under load ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-08")
def test_reorganising_while_everybody_works_breaks_nothing(company: Company) -> None:
    team = busy(company)
    gate = company.app.gate
    board = company.board

    async def agent_at_work(one: Member) -> int:
        done = 0
        for number in range(12):
            try:
                made = await gate(one.caller, outcomes.create, parent=one.id, title=f"{number}")
                if number % 3:
                    await gate(one.caller, outcomes.complete, outcome=made["id"])
                else:
                    await gate(
                        one.caller,
                        delegation.delegate,
                        outcome=made["id"],
                        hire={"name": f"{one.name}-{number}"},
                    )
                done += 1
            except RemitError:
                continue  # its place is being changed; it tries the next
        return done

    async def reorganising() -> int:
        done = 0
        for number in range(6):
            for operations in (
                [{"op": "insert_layer", "agents": ["lead", "peer"], "name": f"layer-{number}"}],
                [{"op": "move", "agent": "dev", "to": "peer"}],
                [{"op": "move", "agent": "dev", "to": "lead"}],
                [{"op": "remove_layer", "agent": f"layer-{number}"}],
            ):
                answer = await gate(
                    board, reorganise.reorganise, company=company.id, operations=operations
                )
                done += answer["event_id"] is not None
        return done

    async def everything() -> list[int]:
        workers = [agent_at_work(team[name]) for name in ("ceo", "lead", "peer", "dev", "tester")]
        return await asyncio.gather(reorganising(), *workers)

    changes, *worked = company.wait(everything())
    assert changes == 24
    assert all(done == 12 for done in worked)
    assert problems(company) == []


def test_an_adapters_secrets_are_not_shown_with_the_reorganisation(company: Company) -> None:
    config = {"env": {"API_KEY": "sk-live-0123456789abcdef0123"}, "command": "small"}
    company.agent("worker")
    operation = {
        "op": "seat",
        "agent": "worker",
        "adapter_type": "process",
        "adapter_config": config,
    }
    done = company.call(
        company.board, reorganise.reorganise, company=company.id, operations=[operation]
    )
    listed = json.dumps(company.call(company.board, events.listing, company=company.id, limit=5))
    assert "sk-live" not in listed
    assert "small" in listed

    # What is kept is whole, so that it can be undone, and the undoing as well.
    def stored() -> str:
        return str(company.sql("SELECT adapter_config FROM agents WHERE name = 'worker'"))

    for present in (False, True):
        assert ("sk-live" in stored()) != present
        done = company.call(
            company.board, reorganise.undo, company=company.id, event=done["event_id"]
        )
        assert ("sk-live" in stored()) == present
