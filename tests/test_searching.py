"""Looking for outcomes and events, what is offered to whom, and how much one look shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import BadInput, NotFound, Refused
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.organisation import reorganise
from remit.services.record import events, search
from remit.services.screens import allowed_actions, finding, name_lookup, record_page
from remit.services.work import delegation, outcome_walks, outcomes
from tests.company import Company
from tests.http_client import serving
from tests.mailing import send
from tests.organisation import many, work


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def titles(company: Company, caller: Caller | None = None, **wanted: Any) -> list[str]:
    found = company.call(caller or company.board, search.outcomes, company=company.id, **wanted)
    return [one["title"] for one in found]


def actions(company: Company, **wanted: Any) -> list[str]:
    found = company.call(company.board, search.events, company=company.id, **wanted)
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
    first = company.call(company.board, search.outcomes, company=company.id, limit=2)
    rest = company.call(company.board, search.outcomes, company=company.id, before=first[-1]["id"])
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
    rows = company.call(company.board, outcome_walks.outline, outcome=shop, depth=3, most=60)
    assert len(rows) == 60
    assert [row["depth"] for row in rows[:3]] == [1, 2, 2]
    assert any(row["more"] for row in rows)
    # What is part of two things is shown once.
    one, other = (
        work(company, company.ceo.caller, shop, "One"),
        work(company, company.ceo.caller, shop, "Other"),
    )
    shared = work(company, company.ceo.caller, one, "Shared", parents=[other])
    rows = company.call(company.board, outcome_walks.outline, outcome=one)
    assert [(row["id"], row["more"]) for row in rows] == [(shared, None)]


def test_a_drawing_of_some_outcomes_has_what_connects_them(company: Company) -> None:
    ceo = company.ceo
    shop = work(company, ceo.caller, ceo.id, "Shop")
    lease = work(company, ceo.caller, shop, "Lease")
    sign = work(company, ceo.caller, shop, "Sign", blocked_by=[lease])
    company.call(ceo.caller, outcomes.complete, outcome=lease)
    shown = company.call(company.board, outcome_walks.drawing, company=company.id, status="open")
    assert {node["id"] for node in shown["nodes"]} == {ceo.id, shop, sign}
    assert sorted(shown["parts"]) == sorted([[ceo.id, shop], [shop, sign]])
    whole = company.call(company.board, outcome_walks.drawing, company=company.id)
    assert whole["blockers"] == [[lease, sign]]
    few = company.call(company.board, outcome_walks.drawing, company=company.id, most=2)
    assert (len(few["nodes"]), few["cut_off"]) == (2, True)
    near = company.call(company.board, outcome_walks.drawing_around, outcome=lease)
    assert {node["id"] for node in near["nodes"]} == {ceo.id, shop, lease, sign}
    assert [lease, sign] in near["blockers"]
    with pytest.raises(BadInput):
        company.call(company.board, outcome_walks.drawing, company=company.id, status="lost")


# ── what is offered ─────────────────────────────────────────────────────────────────────────────


def offered(company: Company, caller: Caller, outcome: str) -> set[str]:
    found = company.call(caller, allowed_actions.outcome, outcome=outcome)
    return {name for name, possible in found.items() if possible is True}


def test_only_what_would_be_carried_out_is_offered(company: Company) -> None:
    lead = company.agent("lead")
    ceo = company.ceo
    shop = work(company, ceo.caller, ceo.id, "Shop")
    assert offered(company, company.board, shop) == {
        *("create", "change", "complete", "close", "delegate")
    }
    reports = company.call(company.board, allowed_actions.outcome, outcome=shop)["reports"]
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
    held = company.call(company.board, allowed_actions.holders, file=plan["id"])
    assert {(one["holder_id"], one["level"]) for one in held["grants"]} == {
        (company.ceo.id, "write"),
        (lead.id, "read"),
    }
    assert company.call(company.board, allowed_actions.file, file=plan["id"]) == {
        "read": True,
        "write": True,
        "audit": True,
    }
    peer = company.agent("peer")
    assert not any(company.call(peer.caller, allowed_actions.file, file=plan["id"]).values())
    with pytest.raises(Refused):
        company.call(peer.caller, allowed_actions.holders, file=plan["id"])
    outcome = work(company, company.ceo.caller, company.ceo.id, "Shop")
    assert not company.call(company.board, allowed_actions.file, file=outcome)["write"]


def test_titles_are_told_as_far_as_one_may_know(company: Company) -> None:
    lead = company.agent("lead")
    secret = company.file(company.ceo.caller, b"x", "Secret plan", unlisted=True)
    shop = work(company, company.ceo.caller, company.ceo.id, "Shop")
    wanted = [f"kb_file:{secret['id']}", f"outcome:{shop}", "outcome:gone", "agent:x", "odd"]
    letter = send(company, company.ceo.caller, "board", "It is done.", subject="News")
    bare = send(company, company.ceo.caller, "board", "It is done.")
    wanted += [f"message:{letter['id']}", f"message:{bare['id']}", "message:gone"]

    def told(caller: Caller) -> dict[str, str]:
        return company.call(caller, name_lookup.titles, company=company.id, resources=wanted)

    assert told(company.board) == {
        wanted[0]: "Secret plan",
        wanted[1]: "Shop",
        wanted[5]: "News",
    }
    assert told(lead.caller) == {}


def test_a_person_finds_texts_by_what_they_contain(small: Company) -> None:
    plan = small.file(small.ceo.caller, b"First, the Harbour\nis dredged.", "Plan")
    small.file(small.ceo.caller, b"Nothing of it", "Diary")
    small.file(small.ceo.caller, b"\xff\x00 harbour", "Picture")
    hidden = small.file(small.ceo.caller, b"harbour, secretly", "Hidden", unlisted=True)
    letter = send(small, small.ceo.caller, "board", "The harbour is done.", subject="News")
    small.file(small.ceo.caller, b"x" * (files.LARGEST_SEARCHED + 1) + b"harbour", "Heap")

    def found(caller: Caller, **more: Any) -> list[tuple[str, str | None]]:
        answer = small.call(caller, files.containing, company=small.id, words="HARBOUR", **more)
        return [(one["id"], one["message_id"]) for one in answer["files"]]

    assert found(small.board) == [(hidden["id"], None), (plan["id"], None)]
    assert found(small.board, letters=True) == [
        (letter["file_id"], letter["id"]),
        (hidden["id"], None),
        (plan["id"], None),
    ]
    first = small.call(small.board, files.containing, company=small.id, words="harbour", limit=1)
    assert [one["id"] for one in first["files"]] == [hidden["id"]]
    assert "harbour, secretly" in first["files"][0]["excerpt"]
    assert found(small.board, before=first["before"]) == [(plan["id"], None)]
    # Who has a part of the company finds what is theirs to read, and nothing unlisted.
    small.agent("lead")
    assert found(small.user("partner", scope="lead"), letters=True) == []
    with pytest.raises(BadInput, match="for people"):
        found(small.ceo.caller)


def test_mail_is_found_by_its_subject_as_far_as_one_may_read_it(small: Company) -> None:
    lead = small.agent("lead")
    sent = [
        send(small, small.board, f"agent:{to}", subject=f"Harbour {number}")["id"]
        for number, to in enumerate(["ceo", "lead"] + ["ceo"] * finding.MOST)
    ]

    def found(caller: Caller) -> list[str]:
        answer = small.call(caller, finding.find, company=small.id, words="harbour")
        assert {one["kind"] for one in answer} == {"mail"}
        return [one["id"] for one in answer]

    assert len(found(small.board)) == finding.MOST
    assert found(lead.caller) == [sent[1]]


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
        company.call(company.user("partial", scope="lead"), search.events, company=company.id)


def test_a_search_goes_through_the_record_stretch_by_stretch(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "STRETCH", 3)
    small.file(small.ceo.caller, b"plan", "Plan")
    before: int | None = None
    found: list[str] = []
    looks = 0
    while looks == 0 or before is not None:
        page = small.call(
            small.board,
            search.events,
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


# ── the record, as people read it ───────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-50")
def test_the_record_is_found_by_words_and_by_time(company: Company) -> None:
    ceo = company.ceo
    start = company.app.clock.now()
    shop = work(company, ceo.caller, ceo.id, "Open a Büro")
    company.call(ceo.caller, outcomes.complete, outcome=shop)
    middle = company.app.clock.now()
    company.agent("Latecomer")
    assert actions(company, words="büro", actor=ceo.name)[:1] == ["outcome.complete"]
    assert "outcome.create" in actions(company, words="BÜRO".capitalize())
    assert "agent.create" in actions(company, words="latecom")
    assert actions(company, words="100%") == []
    between = actions(company, since=start, until=middle)
    assert "outcome.complete" in between
    assert "agent.create" not in between
    assert actions(company, until=start - 10**12) == []
    assert actions(company, since=company.app.clock.now() + 10**9) == []


def test_words_do_not_find_what_a_reorganisation_keeps_of_settings(company: Company) -> None:
    company.agent("Lead")
    company.agent("Holder")
    changed = [{"op": "move", "agent": "Holder", "to": "Lead", "note": "guess-me-9c1"}]
    company.call(company.board, reorganise.reorganise, company=company.id, operations=changed)
    assert "org.change" in actions(company)
    assert "org.change" not in actions(company, words="guess-me-9c1")


def told(company: Company, **wanted: Any) -> list[dict[str, Any]]:
    found = company.call(company.board, record_page.page, company=company.id, **wanted)
    return list(found["lines"])


@pytest.mark.requirement("FX-50")
def test_a_run_is_one_line_with_its_effects_and_idle_runs_are_folded(company: Company) -> None:
    lead = company.agent("lead")
    run = company.run(lead)
    work(company, run.caller, lead.id, "Plan it")
    work(company, run.caller, lead.id, "Do it")
    company.call(as_system(), runs.end, run=run.id)
    for _ in range(5):
        company.call(as_system(), runs.end, run=company.run(lead).id)
    lines = told(company)
    ran = [one for one in lines if one["run"]]
    assert [(one["effects"], one["times"]) for one in ran] == [(0, 5), (2, 1)]
    assert [one["action"] for one in ran[1]["events"]] == ["outcome.create"] * 2
    kept = [one for line in lines for one in line["events"]]
    assert not any(one["details"].get("run_id") for one in kept if one["action"] == "token.create")
    found = company.call(company.board, record_page.of_run, run=ran[1]["run"]["id"])
    assert [one["action"] for one in found] == ["outcome.create"] * 2
    # Page after page, each line once.
    seen: list[str] = []
    before = None
    while True:
        page = company.call(
            company.board, record_page.page, company=company.id, before=before, limit=2
        )
        seen += [(line["run"] or line["events"][0])["id"] for line in page["lines"]]
        before = page["before"]
        if before is None:
            break
    assert len(seen) == len(set(seen)) >= len(lines)
