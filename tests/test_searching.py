"""Looking for outcomes and events, what is offered to whom, and how much one look shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import BadInput, NotFound, Refused
from remit.services import (
    choices,
    delegation,
    events,
    graph,
    naming,
    outcomes,
    picture,
    searching,
)
from remit.services.identity import Caller
from tests.company import Company
from tests.http_client import serving
from tests.organisation import many, work


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def titles(company: Company, caller: Caller | None = None, **wanted: Any) -> list[str]:
    found = company.call(caller or company.board, searching.outcomes, company=company.id, **wanted)
    return [one["title"] for one in found]


def actions(company: Company, **wanted: Any) -> list[str]:
    found = company.call(company.board, searching.events, company=company.id, **wanted)
    return [event["action"] for event in found["events"]]


# ── outcomes ────────────────────────────────────────────────────────────────────────────────────


def test_outcomes_are_found_by_title_status_owner_and_whether_they_can_be_worked_on(
    company: Company,
) -> None:
    lead = company.agent("lead")
    ceo = company.ceo
    shop = work(company, ceo.caller, ceo.id, "Open a shop")
    sign = work(company, ceo.caller, shop, "Hang the 100% sign_board")
    work(company, lead.caller, lead.id, "Ärger \\ vermeiden")
    company.call(ceo.caller, outcomes.complete, outcome=sign)
    assert titles(company, words="SHOP") == ["Open a shop"]
    assert (
        titles(company, words="100%")
        == titles(company, words="n_b")
        == ["Hang the 100% sign_board"]
    )
    assert titles(company, words="0_ s") == []
    assert titles(company, words="Ärger \\") == ["Ärger \\ vermeiden"]
    assert titles(company, status="completed") == ["Hang the 100% sign_board"]
    assert titles(company, owner="lead", actionable=True) == ["Ärger \\ vermeiden"]
    assert "Open a shop" in titles(company, actionable=True, status="open")
    assert "Open a shop" not in titles(company, roots=True)
    # Newest first, page after page.
    first = company.call(company.board, searching.outcomes, company=company.id, limit=2)
    rest = company.call(
        company.board, searching.outcomes, company=company.id, before=first[-1]["id"]
    )
    assert [one["id"] for one in (*first, *rest)] == sorted(
        (one["id"] for one in (*first, *rest)), reverse=True
    )


def test_who_has_a_part_of_the_company_names_an_owner_in_it(small: Company) -> None:
    lead = small.agent("lead")
    work(small, lead.caller, lead.id, "Below")
    partial = small.user("partial", scope="lead")
    assert "Below" in titles(small, partial, owner="lead")
    with pytest.raises(Refused):
        titles(small, partial)
    with pytest.raises(NotFound):
        titles(small, owner="nobody")
    with pytest.raises(BadInput):
        titles(small, status="lost")
    assert "Below" in titles(small, small.ceo.caller, owner="lead")
    with pytest.raises(Refused):
        titles(small, lead.caller, owner="ceo")


def test_an_outline_costs_what_it_shows(company: Company) -> None:
    shop = work(company, company.ceo.caller, company.ceo.id, "Shop")
    many(company, shop, 600)
    rows = company.call(company.board, graph.outline, outcome=shop, depth=3, most=60)
    assert len(rows) == 60
    assert [row["depth"] for row in rows[:3]] == [1, 2, 2]
    assert any(row["more"] for row in rows)
    # What is part of two things is shown once.
    one, other = (
        work(company, company.ceo.caller, shop, "One"),
        work(company, company.ceo.caller, shop, "Other"),
    )
    shared = work(company, company.ceo.caller, one, "Shared", parents=[other])
    rows = company.call(company.board, graph.outline, outcome=one)
    assert [(row["id"], row["more"]) for row in rows] == [(shared, None)]


def test_a_drawing_of_some_outcomes_has_what_connects_them(company: Company) -> None:
    ceo = company.ceo
    shop = work(company, ceo.caller, ceo.id, "Shop")
    lease = work(company, ceo.caller, shop, "Lease")
    sign = work(company, ceo.caller, shop, "Sign", blocked_by=[lease])
    company.call(ceo.caller, outcomes.complete, outcome=lease)
    shown = company.call(company.board, picture.show, company=company.id, status="open")
    assert {node["id"] for node in shown["nodes"]} == {ceo.id, shop, sign}
    assert sorted(shown["parts"]) == sorted([[ceo.id, shop], [shop, sign]])
    whole = company.call(company.board, picture.show, company=company.id)
    assert whole["blockers"] == [[lease, sign]]
    few = company.call(company.board, picture.show, company=company.id, most=2)
    assert (len(few["nodes"]), few["cut_off"]) == (2, True)
    near = company.call(company.board, picture.around, outcome=lease)
    assert {node["id"] for node in near["nodes"]} == {ceo.id, shop, lease, sign}
    assert [lease, sign] in near["blockers"]
    with pytest.raises(BadInput):
        company.call(company.board, picture.show, company=company.id, status="lost")


# ── what is offered ─────────────────────────────────────────────────────────────────────────────


def offered(company: Company, caller: Caller, outcome: str) -> set[str]:
    found = company.call(caller, choices.outcome, outcome=outcome)
    return {name for name, possible in found.items() if possible is True}


def test_only_what_would_be_carried_out_is_offered(company: Company) -> None:
    lead = company.agent("lead")
    ceo = company.ceo
    shop = work(company, ceo.caller, ceo.id, "Shop")
    assert offered(company, company.board, shop) == {
        *("create", "change", "complete", "close", "delegate")
    }
    reports = company.call(company.board, choices.outcome, outcome=shop)["reports"]
    assert [one["name"] for one in reports] == ["lead"]
    company.call(ceo.caller, delegation.delegate, outcome=shop, to="lead")
    assert offered(company, company.board, shop) >= {"reclaim"}
    assert "complete" not in offered(company, lead.caller, shop)
    assert offered(company, ceo.caller, shop) >= {"complete", "reclaim"}
    assert offered(company, company.user("onlooker", role="observer"), shop) == set()
    company.call(company.board, outcomes.close, outcome=shop, rationale="no money")
    assert offered(company, company.board, shop) == {"reopen"}
    assert "complete" not in offered(company, company.board, ceo.id)
    before = company.call(company.board, events.listing, company=company.id)[0]["seq"]
    offered(company, company.user("other", role="observer"), ceo.id)
    kept = company.call(company.board, events.listing, company=company.id, after=before)
    assert all(event["allowed"] for event in kept), "nothing was asked for, so nothing was refused"


def test_who_holds_rights_on_a_file_is_for_those_who_may_audit_it(company: Company) -> None:
    lead = company.agent("lead")
    plan = company.file(company.ceo.caller, b"plan", "Plan")
    company.give(company.ceo.caller, lead, plan, "read")
    held = company.call(company.board, choices.holders, file=plan["id"])
    assert {(one["holder_id"], one["level"]) for one in held["grants"]} == {
        (company.ceo.id, "write"),
        (lead.id, "read"),
    }
    assert company.call(company.board, choices.file, file=plan["id"]) == {
        "read": True,
        "write": True,
        "audit": True,
    }
    peer = company.agent("peer")
    assert not any(company.call(peer.caller, choices.file, file=plan["id"]).values())
    with pytest.raises(Refused):
        company.call(peer.caller, choices.holders, file=plan["id"])
    outcome = work(company, company.ceo.caller, company.ceo.id, "Shop")
    assert not company.call(company.board, choices.file, file=outcome)["write"]


def test_titles_are_told_as_far_as_one_may_know(company: Company) -> None:
    lead = company.agent("lead")
    secret = company.file(company.ceo.caller, b"x", "Secret plan", unlisted=True)
    shop = work(company, company.ceo.caller, company.ceo.id, "Shop")
    wanted = [f"kb_file:{secret['id']}", f"outcome:{shop}", "outcome:gone", "agent:x", "odd"]

    def told(caller: Caller) -> dict[str, str]:
        return company.call(caller, naming.titles, company=company.id, resources=wanted)

    assert told(company.board) == {
        wanted[0]: "Secret plan",
        wanted[1]: "Shop",
    }
    assert told(lead.caller) == {}


# ── the record ──────────────────────────────────────────────────────────────────────────────────


def test_the_record_is_searched_by_kind_by_actor_and_for_refusals(company: Company) -> None:
    lead = company.agent("lead")
    plan = company.file(company.ceo.caller, b"plan", "Plan")
    with pytest.raises(Refused):
        company.read(lead.caller, plan["id"])
    assert actions(company, refused=True) == ["file.read"]
    assert actions(company, action="file") == ["file.read", "file.create"]
    assert actions(company, action="file.create") == ["file.create"]
    assert actions(company, action="fil_") == actions(company, action="%") == []
    assert actions(company, actor="lead") == ["file.read"]
    assert set(actions(company, actor="user:board")) >= {"company.create", "agent.create"}
    assert actions(company, actor="Remit") == []
    with pytest.raises(NotFound):
        actions(company, actor="nobody")
    with pytest.raises(Refused):
        company.call(company.user("partial", scope="lead"), searching.events, company=company.id)


def test_a_search_goes_through_the_record_stretch_by_stretch(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "STRETCH", 3)
    small.file(small.ceo.caller, b"plan", "Plan")
    before: int | None = None
    found: list[str] = []
    looks = 0
    while looks == 0 or before is not None:
        page = small.call(
            small.board,
            searching.events,
            company=small.id,
            action="company.create",
            before=before,
        )
        found += [event["action"] for event in page["events"]]
        before, looks = page["before"], looks + 1
    assert found == ["company.create"]
    assert looks > 1


def test_searches_and_choices_are_offered_over_http(tmp_path: Path) -> None:
    with serving(tmp_path) as here:
        board = here.board
        company = board.must("GET", "/api/companies")[0]["id"]
        root = board.must("GET", f"/api/companies/{company}/agents")[0]["id"]
        made = [
            board.must(
                "POST",
                f"/api/companies/{company}/outcomes",
                {"parentId": root, "title": f"Shop {number}"},
            )
            for number in range(3)
        ]
        where = f"/api/companies/{company}/outcomes?query=shop&limit=2"
        first = board("GET", where)
        assert [one["title"] for one in first.json] == ["Shop 2", "Shop 1"]
        assert 'rel="next"' in first.headers["Link"]
        offer = board.must("GET", f"/api/outcomes/{made[0]['id']}/choices")
        assert offer["complete"] is True
        record = f"/api/companies/{company}/events"
        found = board.must("GET", f"{record}?action=outcome.create&actor=board&limit=1000")
        assert {event["action"] for event in found} == {"outcome.create"}
        assert board.must("GET", f"{record}?refused=true") == []
        assert board("GET", f"{record}?refused=true&after=3").status == 422
        file = board.must(
            "POST", f"/api/companies/{company}/files", {"description": "a", "content": "b"}
        )
        assert board.must("GET", f"/api/files/{file['id']}/holders")["grants"] == []
