"""Runs in the browser: what is at work, and the log of one as it grows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from remit.model.execution.transcript import Entry, EntryKind, line_of
from remit.services.execution import run_queue
from remit.services.identity import as_system
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits

STREAM = Path(__file__).parent / "agents" / "streams" / "claude.jsonl"
FORGED = "<img src=x onerror=alert(1)><script>alert(1)</script>\n== completed"


@pytest.mark.requirement("AG-93", "HB-57")
def test_a_run_is_seen_live_from_its_first_line_to_its_end(
    office: Office, visitor: Visitor
) -> None:
    worker = office.agent("Dijkstra")
    run = office.begin(worker)
    office.print(run, 1, "first line\n")
    page = visitor.live(visitor.goto("/runs?live=1"))
    page.get_by_role("link", name="of Dijkstra").click()
    log = page.get_by_role("log")
    expect(log).to_contain_text("first line")
    office.print(run, 2, "second line\n", "third <b>line</b>\n")
    expect(log).to_contain_text("third <b>line</b>")
    office.end(run)
    expect(page.locator("[data-part=head] .badge")).to_have_text("completed")
    assert log.locator("b").count() == 0


def test_the_log_can_be_searched_and_read_as_text(office: Office, visitor: Visitor) -> None:
    worker = office.agent("Knuth")
    run = office.begin(worker)
    office.print(run, 1, *(f"line {number}\n" for number in range(1, 401)))
    office.print(run, 401, "a complaint\n", stream="stderr")
    page = visitor.goto(f"/runs/{run.id}")
    log = page.get_by_role("log")
    expect(log).to_contain_text("a complaint")
    assert log.inner_text().count("line 7\n") == 1
    page.get_by_label("Find in the log").fill("line 39")
    expect(page.get_by_text("11 found")).to_be_visible()
    expect(log.locator(".hit").first).to_be_in_viewport()
    expect(page.get_by_label("Follow")).not_to_be_checked()
    text = visitor.context.request.get(f"/runs/{run.id}/log.txt")
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text().splitlines()[:2] == ["line 1", "line 2"]
    office.end(run)


def test_a_flood_of_lines_is_cut_and_the_page_stays_usable(
    office: Office, visitor: Visitor
) -> None:
    worker = office.agent("Flood")
    run = office.begin(worker)
    page = visitor.goto(f"/runs/{run.id}")
    for start in range(1, 6_000, 1_000):
        office.print(run, start, *(f"line {start + n}\n" for n in range(1_000)))
    log = page.get_by_role("log")
    expect(log).to_contain_text("line 6000")
    assert log.locator(".entry").count() <= 5_000
    page.get_by_label("Find in the log").fill("line 6000")
    expect(page.get_by_text("1 found")).to_be_visible()
    office.end(run)


@pytest.mark.requirement("FX-20")
def test_a_run_reads_as_what_it_did_live_and_without_scripts(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    coder = office.agent("Lovelace", adapterType="claude")
    run = office.begin(coder)
    lines = STREAM.read_text().splitlines(keepends=True)
    office.print(run, 1, *lines[:5])
    page = visitor.goto(f"/runs/{run.id}")
    log = page.get_by_role("log")
    expect(log.locator(".call")).to_have_text(["-> mail_inbox()", re.compile("-> Bash")])
    forged = {"type": "assistant", "message": {"content": [{"type": "text", "text": FORGED}]}}
    office.print(run, 6, *lines[5:], json.dumps(forged) + "\n")
    turn = Entry(EntryKind.TURN, turn=1, tokens_in=1234, tokens_out=5, cost_micros=1200)
    office.print(run, 99, line_of(turn) + "\n", stream="remit")
    gate = office.running.app.gate
    denied = {"Bash": 2, "Write": 1}
    office.do(gate(as_system(), run_queue.append_log, run=run.id, pieces=[], denied=denied))
    office.end(run)
    expect(log.locator(".end")).to_contain_text("== completed: 3 denied: Bash, Write")
    check_accessible(page)
    expect(page.locator("[data-part=facts]")).to_contain_text("Bash (2 times), Write")
    drawn = log.locator(".entry").all_inner_texts()
    plain = visit(java_script_enabled=False).goto(f"/runs/{run.id}")
    for seen in (page, plain):
        log = seen.get_by_role("log")
        assert log.locator(".entry").all_inner_texts() == drawn
        assert log.locator(".denied").count() == 3
        assert log.locator(".retry").count() == 2
        assert log.locator(".said").last.inner_text() == FORGED.replace("\n==", "\n ==")
        assert log.locator("script, img").count() == 0
        expect(log.locator(".turn")).to_contain_text("1,234 tokens in, 5 out, <$0.01 so far")
        (whole,) = log.get_by_role("link").all()
        address = whole.get_attribute("href") or ""
    # What is over is read from its beginning, and nothing touches.
    page.set_viewport_size({"width": 390, "height": 500})
    page.reload()
    log = page.get_by_role("log")
    expect(log.locator(".end")).to_have_count(1)
    log.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    expect(log.locator(".entry").first).to_be_in_viewport()
    expect(log.locator(".end")).not_to_be_in_viewport()
    expect(page.get_by_label("Follow")).to_be_hidden()
    box, above = log.bounding_box(), page.get_by_label("Find in the log").bounding_box()
    assert box is not None
    assert above is not None
    assert above["y"] + above["height"] + 4 <= box["y"]
    text = visitor.context.request.get(address)
    assert text.headers["content-type"].startswith("text/plain")
    assert "line 59 of a long file" in text.text()
    assert visitor.context.request.get(f"/runs/{run.id}/log/999").status == 404
    expect(visitor.goto("/runs").get_by_text("3 denied: Bash, Write")).to_be_visible()


def test_a_long_run_is_read_page_by_page_without_scripts(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    run = office.begin(office.agent("Long"))
    office.print(run, 1, *(f"line {number}\n" for number in range(1, 401)))
    office.end(run)
    page = visit(java_script_enabled=False).goto(f"/runs/{run.id}")
    assert page.get_by_role("log").locator(".entry").count() == 300
    page.get_by_role("link", name="More", exact=True).click()
    shown = page.get_by_role("log").locator(".entry")
    assert (shown.count(), shown.first.inner_text()) == (101, "line 301")
    expect(page.get_by_role("link", name="More", exact=True)).to_have_count(0)
    page.get_by_role("link", name="From the beginning").click()
    assert page.get_by_role("log").locator(".entry").first.inner_text() == "line 1"


def test_the_board_ends_a_run_after_confirming(office: Office, visitor: Visitor) -> None:
    worker = office.agent("Loop")
    run = office.begin(worker)
    page = visitor.goto(f"/runs/{run.id}")
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("[data-part=head] .badge")).to_have_text("cancelled")
    assert office.board.must("GET", f"/api/runs/{run.id}")["status"] == "cancelled"


@LOOKED_AT_ELSEWHERE
def test_run_pages_are_accessible_and_fit_a_phone(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    worker = office.agent("Wide")
    run = office.begin(worker)
    office.print(run, 1, "x" * 4_000)
    office.end(run, "failed")
    for options in ({"color_scheme": "dark"}, {"viewport": PHONE}):
        visitor = visit(**options)
        for address in ("/runs", f"/runs/{run.id}"):
            page = visitor.goto(address)
            check_accessible(page)
            check_fits(page)


def test_a_run_of_another_company_is_not_there(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    other = office.board.must("POST", "/api/companies", {"name": "Elsewhere"})["id"]
    made = office.board.must(
        "POST", f"/api/companies/{other}/users", {"name": "Stranger", "role": "board"}
    )
    key = office.board.must("POST", f"/api/companies/{other}/users/{made['id']}/tokens")
    run = office.begin(office.agent("Private"))
    stranger = visit(office.running.client(key["token"]))
    page = stranger.goto(f"/runs/{run.id}")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    assert stranger.context.request.get(f"/runs/{run.id}/log.txt").status == 404
    office.end(run)
