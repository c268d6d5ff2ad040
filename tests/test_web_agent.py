"""One agent's page: who it is, what it does or why not, and everything that can be done to it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from remit.runtime.runs.lifecycle import begin, finish
from remit.services.execution import run_start
from remit.services.identity import as_system
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits
from tests.web_stage import HOSTILE, refusals

TABS = ("", "?tab=work", "?tab=mail", "?tab=rights", "?tab=configuration", "?tab=runs")


def header(page: Page) -> Any:
    return page.locator("[data-part=who]")


def stands(page: Page) -> Any:
    return page.locator("[data-part=stands]")


def more(page: Page) -> None:
    page.get_by_text("More", exact=True).click()


@pytest.mark.requirement("BX-17", "AG-93", "FX-01")
def test_an_agent_says_who_it_is_what_it_works_on_and_why_it_does_not_run(
    office: Office, visitor: Visitor
) -> None:
    ada = office.agent("Ada", role="cto", title="Chief technology", purpose="Technology works")
    grace = office.agent("Grace", ada["id"])
    office.as_agent(ada).must(
        "POST", office.path("outcomes"), {"title": "A compiler", "parentId": ada["id"]}
    )
    page = visitor.goto(f"/agents/{ada['id']}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Ada")
    expect(header(page)).to_contain_text("Chief technology, cto")
    expect(header(page).get_by_role("link", name=office.root["name"])).to_be_visible()
    expect(header(page).get_by_role("link", name="Grace")).to_have_attribute(
        "href", f"/agents/{grace['id']}"
    )
    told = office.board.must("GET", f"/api/agents/{ada['id']}/why-idle")["sentence"]
    expect(stands(page)).to_contain_text(f"Not running {told}")
    expect(page.get_by_role("region", name="Mandate")).to_contain_text("Technology works")
    expect(page.get_by_role("region", name="Open outcomes")).to_contain_text("A compiler")
    expect(page.get_by_role("region", name="Details")).to_contain_text("Accountable")
    page.get_by_role("link", name="Work", exact=True).click()
    expect(page.get_by_role("region", name="Its outcomes")).to_contain_text("A compiler")
    page.get_by_role("link", name="Completed").click()
    expect(page.get_by_text("It owns no outcomes with this status.")).to_be_visible()


@pytest.mark.requirement("HH-10")
def test_the_boss_of_an_agent_is_current_without_reloading(
    office: Office, visitor: Visitor
) -> None:
    boss, other, one = (office.agent(name) for name in ("Boss1", "Boss2", "Moved"))
    office.board.must(
        "POST",
        office.path("reorganise"),
        {"operations": [{"op": "move", "agent": "Moved", "to": "Boss1"}]},
    )
    page = visitor.live(visitor.goto(f"/agents/{one['id']}"))
    expect(header(page).get_by_role("link", name="Boss1")).to_be_visible()
    page.evaluate("window.unbroken = true")
    office.board.must(
        "POST",
        office.path("reorganise"),
        {"operations": [{"op": "move", "agent": "Moved", "to": "Boss2"}]},
    )
    expect(header(page).get_by_role("link", name="Boss2")).to_have_attribute(
        "href", f"/agents/{other['id']}"
    )
    expect(header(page).get_by_role("link", name="Boss1")).to_have_count(0)
    assert page.evaluate("window.unbroken")
    assert boss["id"] != other["id"]


@pytest.mark.requirement("AG-93")
def test_a_running_agent_shows_its_run_and_can_be_ended_paused_and_resumed(
    office: Office, visitor: Visitor
) -> None:
    one = office.agent("Runner")
    page = visitor.live(visitor.goto(f"/agents/{one['id']}"))
    live = office.begin(one)
    expect(header(page).locator(".badge")).to_have_text("running")
    expect(stands(page).get_by_role("link")).to_have_attribute("href", f"/runs/{live.id}")
    page.get_by_role("button", name="Cancel run").click()
    said = page.get_by_role("status").filter(has_text="The run of Runner was cancelled.")
    expect(said).to_be_visible()
    expect(header(page).locator(".badge")).to_have_text("idle")
    page.get_by_role("button", name="Pause").click()
    expect(header(page).locator(".badge")).to_have_text("paused")
    expect(stands(page)).to_contain_text("It is paused; somebody has to resume it.")
    expect(page.get_by_role("button", name="Wake")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(header(page).locator(".badge")).to_have_text("idle")
    page.get_by_role("button", name="Wake").click()
    expect(page.get_by_role("link", name="Mail 1", exact=False)).to_be_visible()
    expect(page.get_by_role("img", name="1 run in 14 days")).to_be_visible()
    page.goto(f"/agents/{one['id']}?tab=runs")
    expect(page.get_by_role("region", name="Its runs").locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("region", name="Its runs")).to_contain_text("cancelled")
    expect(page.locator("[data-part=totals]")).to_contain_text("1run")


@pytest.mark.requirement("PC-75")
def test_an_agent_that_awaits_approval_has_a_way_to_it_and_no_controls(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Waiting")
    page = visitor.live(visitor.goto(f"/agents/{made['agent']['id']}"))
    expect(header(page).locator(".badge")).to_have_text("awaits approval")
    expect(page.get_by_role("group", name="Control Waiting")).to_have_count(0)
    expect(stands(page)).to_contain_text("Pending board approval")
    page.goto(f"/agents/{made['agent']['id']}?tab=rights")
    expect(page.get_by_role("switch")).to_have_count(0)
    page.goto(f"/agents/{made['agent']['id']}?tab=configuration")
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    visitor.live()
    stands(page).get_by_role("link", name="Review").click()
    page.wait_for_url(f"**/approvals/{made['approval']['id']}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status").filter(has_text="Approved.")).to_be_visible()
    page.goto(f"/agents/{made['agent']['id']}")
    expect(page.get_by_role("group", name="Control Waiting")).to_be_visible()


def test_terminating_asks_first_and_shows_who_ends_with_it(
    office: Office, visitor: Visitor
) -> None:
    above = office.agent("Above")
    below = office.agent("Below", above["id"])
    page = visitor.live(visitor.goto(f"/agents/{above['id']}"))
    more(page)
    expect(page.get_by_role("link", name="Terminate with everybody below")).to_be_visible()
    page.goto(f"/agents/{below['id']}")
    more(page)
    page.get_by_role("button", name="Terminate").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(header(page).locator(".badge")).to_have_text("idle")
    page.get_by_role("button", name="Terminate").click()
    page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
    expect(header(page).locator(".badge")).to_have_text("terminated")
    expect(page.get_by_role("group", name="Control Below")).to_have_count(0)


@pytest.mark.requirement("AG-94")
def test_a_person_writes_to_any_agent_and_sees_it_in_its_inbox(
    office: Office, visitor: Visitor
) -> None:
    one = office.agent("Reader")
    page = visitor.live(visitor.goto(f"/agents/{one['id']}"))
    page.get_by_label("Subject").fill("Hello")
    page.get_by_role("textbox", name="Message").fill("Read **this**.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status").filter(has_text="is sent")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    # What was said stays, although the page was refreshed by what was done.
    page.wait_for_timeout(800)
    expect(page.get_by_role("status").filter(has_text="is sent")).to_be_visible()
    page.get_by_role("link", name="Mail 1").click()
    inbox = page.get_by_role("region", name="Inbox")
    expect(inbox.get_by_role("link", name="Hello")).to_be_visible()
    expect(inbox).to_contain_text("Read this.")
    office.as_agent(one).must(
        "POST", office.path("messages"), {"to": "board", "subject": "Thanks", "body": "x"}
    )
    expect(page.get_by_role("region", name="Messages").get_by_text("Thanks")).to_be_visible()


@pytest.mark.requirement("PC-65", "PC-79")
def test_the_hiring_permission_is_a_switch_that_keeps_its_value(
    office: Office, visitor: Visitor
) -> None:
    one = office.agent("Recruiter")
    page = visitor.live(visitor.goto(f"/agents/{one['id']}?tab=rights"))
    switch = page.get_by_role("switch", name="Can create new agents")
    expect(switch).to_have_attribute("aria-checked", "false")
    switch.press("Enter")
    expect(switch).to_have_attribute("aria-checked", "true")
    page.reload()
    expect(switch).to_have_attribute("aria-checked", "true")
    found = office.board.must("GET", f"/api/agents/{one['id']}")
    assert found["permissions"] == {"canCreateAgents": True}
    visitor.live()
    office.board.must("PATCH", f"/api/agents/{one['id']}/permissions", {"canCreateAgents": False})
    expect(switch).to_have_attribute("aria-checked", "false")
    page.get_by_label("Permission level").select_option("boss")
    page.get_by_role("button", name="Set level").click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("region", name="Permissions", exact=True)).to_contain_text(
        "approval.decide"
    )


def test_capabilities_are_given_marked_when_unused_and_taken_back(
    office: Office, visitor: Visitor
) -> None:
    one, other = office.agent("Holder"), office.agent("Friend")
    page = visitor.live(visitor.goto(f"/agents/{one['id']}?tab=rights"))
    page.get_by_role("button", name="Grant…").click()
    page.get_by_label("Resource").fill("kb_file:nonsense")
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_role("button", name="Grant…").click()
    expect(page.get_by_label("Resource")).to_have_value("kb_file:nonsense")
    page.get_by_label("Resource").fill(f"message:{other['id']}")
    page.get_by_label("Level", exact=True).select_option("use")
    page.get_by_label("Mode").select_option("ask")
    page.get_by_label("Ends at").fill("2099-01-01T10:00")
    page.get_by_role("button", name="Grant", exact=True).click()
    row = page.get_by_role("region", name="Permissions", exact=True).locator("tbody tr").first
    expect(row).to_contain_text("mail to Friend")
    expect(row).to_contain_text("ask")
    expect(row).to_contain_text("never used")
    expect(row).to_contain_text("granted by the board")
    expect(row).to_contain_text("its mandate")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No permissions granted.")).to_be_visible()
    page.get_by_text("permissions by rule").click()
    expect(page.get_by_role("region", name="Permissions by rule")).to_contain_text("its memory")


def test_a_configuration_is_changed_compared_and_taken_back_without_showing_its_secrets(
    office: Office, visitor: Visitor
) -> None:
    secret = "sk-live-aaaabbbbccccdddd1111"
    one = office.agent(
        "Tuned",
        adapterType="process",
        adapterConfig={"command": "true", "env": {"API_TOKEN": secret}},
        prompt="First line.\nSecond line.",
    )
    page = visitor.live(visitor.goto(f"/agents/{one['id']}?tab=configuration&json=1"))
    assert secret not in page.content()
    settings = page.get_by_label("Adapter settings")
    expect(settings).to_contain_text("***REDACTED***")
    settings.fill('{"command": "true", "timeoutSeconds": "soon"}')
    page.get_by_role("button", name="Save").click()
    at_field = page.locator("[data-part=at-adapterConfig]")
    expect(at_field).to_contain_text("adapterConfig.timeoutSeconds")
    expect(settings).to_have_value('{"command": "true", "timeoutSeconds": "soon"}')
    settings.fill("{nonsense")
    page.get_by_role("button", name="Save").click()
    expect(at_field).to_contain_text("is not JSON (line 1, column 2)")
    settings.fill(
        '{"command": "true", "timeoutSeconds": 60, "env": {"API_TOKEN": "***REDACTED***"}}'
    )
    page.get_by_label("Instructions").fill("First line.\nAnother line.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Revision 2, current")).to_be_visible()
    expect(settings).to_contain_text('"timeoutSeconds": 60')
    kept = office.do(_env(office, one))
    assert kept == {"API_TOKEN": secret}
    page.get_by_text("Changed prompt, adapterConfig").click()
    changed = page.get_by_role("region", name="Changes in revision 2")
    expect(changed.locator(".removed")).to_contain_text(["Second line."])
    expect(changed.locator(".added").first).to_contain_text("Another line.")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("region", name="Differences")).to_contain_text("timeoutSeconds")
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.get_by_role("heading", name="Revision 3, current")).to_be_visible()
    expect(page.get_by_label("Instructions")).to_have_value("First line.\nSecond line.")
    assert secret not in page.content()
    page.get_by_label("Command", exact=False).first.fill("/nowhere/at-all")
    page.get_by_role("button", name="Save").click()
    said = "Saved as revision 4. It cannot work here yet: The program is not installed here"
    expect(page.get_by_text(said)).to_be_visible()


async def _env(office: Office, one: dict[str, Any]) -> Any:
    """What is really stored, which no page shows."""
    app = office.running.app
    live = await begin(app.gate, app.ids, app.settings.workspaces, one["id"])
    found = await app.gate(as_system(), run_start.briefing, run=live.id, token=live.token)
    await finish(app.gate, live, "completed")
    return found.agent["adapter_config"]["env"]


def test_who_changes_a_configuration_after_somebody_else_did_is_told_and_loses_nothing(
    office: Office, visitor: Visitor
) -> None:
    one = office.agent("Contested", prompt="Old.")
    page = visitor.live(visitor.goto(f"/agents/{one['id']}?tab=configuration"))
    prompt = page.get_by_label("Instructions")
    prompt.fill("Mine.")
    office.board.must("PATCH", f"/api/agents/{one['id']}", {"prompt": "Theirs."})
    expect(page.get_by_role("heading", name="Revision 2, current")).to_be_visible()
    expect(prompt).to_have_value("Mine.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("at revision 2, not 1")
    expect(prompt).to_have_value("Mine.")
    page.get_by_label("Save anyway").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Revision 3, current")).to_be_visible()
    assert office.board.must("GET", f"/api/agents/{one['id']}")["prompt"] == "Mine."


def test_a_change_can_be_proposed_instead(office: Office, visitor: Visitor) -> None:
    one = office.agent("Proposed")
    page = visitor.live(visitor.goto(f"/agents/{one['id']}?tab=configuration"))
    page.get_by_label("Title").fill("Second in command")
    page.get_by_label("Reason, for a proposal").fill("It earned it.")
    page.get_by_role("button", name="Propose").click()
    page.wait_for_url("**/approvals/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("change title of Proposed")
    request = page.get_by_role("region", name="Request")
    expect(request).to_contain_text("+ Second in command")
    expect(request).to_contain_text("It earned it.")
    page.get_by_role("button", name="Request revision").click()
    again = page.get_by_role("region", name="Resubmit")
    expect(again.get_by_label("Title")).to_have_value("Second in command")
    expect(again.get_by_label("Reason")).to_have_value("It earned it.")
    again.get_by_label("Instructions").fill("Command.")
    again.get_by_role("button", name="Resubmit").click()
    expect(request).to_contain_text("+ Command.")
    expect(request).to_contain_text("+ Second in command")


def test_the_state_document_is_read_when_somebody_opens_it_and_not_before(
    office: Office, visitor: Visitor
) -> None:
    one = office.agent("Thinker")
    client = office.as_agent(one)
    file = client.must("GET", f"/api/files/{one['stateFileId']}")
    client.must(
        "PUT",
        f"/api/files/{one['stateFileId']}/content",
        body=b"# Plan\n\n- *think*",
        headers={
            "Content-Type": "text/markdown",
            "If-Match": f'"{file["version"]}:{file["hash"]}"',
        },
    )

    def readings() -> int:
        found = office.board.must("GET", f"/api/files/{one['stateFileId']}/log")
        return sum(entry["userId"] is not None for entry in found)

    page = visitor.live(visitor.goto(f"/agents/{one['id']}"))
    assert readings() == 0
    page.get_by_text("State document", exact=True).click()
    expect(page.locator("#memory em")).to_have_text("think")
    office.board.must("POST", f"/api/agents/{one['id']}/wakeup")
    expect(page.get_by_role("link", name="Mail 1")).to_be_visible()
    expect(page.locator("#memory em")).to_have_text("think")
    assert readings() == 1


def test_who_only_looks_has_no_buttons_and_nothing_is_refused(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    inside = office.agent("Inside")
    report = office.agent("Deeper", inside["id"])
    before = refusals(office)
    watcher = visit(office.user("Watcher", "observer"))
    for tab in TABS:
        page = watcher.goto(f"/agents/{inside['id']}{tab}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Inside")
        expect(page.locator("main form[method=post]")).to_have_count(0)
    part = visit(office.user("Partner", scope=inside["id"]))
    page = part.goto(f"/agents/{report['id']}")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page = part.goto(f"/agents/{office.root['id']}")
    expect(page.get_by_text("Outside your part of the company.")).to_be_visible()
    expect(page.get_by_role("link", name="Configuration", exact=True)).to_have_count(0)
    assert refusals(office) == before


@pytest.mark.requirement("HB-14")
def test_a_lent_plugin_is_shown_with_its_text_and_taken_back(
    office: Office, visitor: Visitor
) -> None:
    text = f"---\nname: deploy\ndescription: '{HOSTILE}'\n---\nPush it. !`git status` {HOSTILE}\n"
    agent = office.agent("Lent")
    office.board.must(
        "POST",
        f"/api/agents/{agent['id']}/lent",
        {
            "name": "team",
            "source": "/srv/site",
            "files": {"skills/deploy/SKILL.md": base64.b64encode(text.encode()).decode()},
        },
    )
    page = visitor.goto(f"/agents/{agent['id']}?tab=configuration")
    lent = page.locator("[data-part=lent]")
    expect(lent).to_contain_text("copied from /srv/site")
    lent.get_by_text("Skill team:deploy").click()
    expect(lent).to_contain_text("Starts when it is used: git status")
    expect(lent.locator("pre")).to_contain_text("Push it.")
    check_accessible(page)
    lent.get_by_role("button", name="Take back").click()
    page.get_by_role("dialog").get_by_role("button", name="Take back").click()
    expect(lent).to_contain_text("No skills, commands or agents are lent to it.")


def test_hostile_text_is_text_in_every_tab(office: Office, visitor: Visitor) -> None:
    one = office.agent(
        "Hostile",
        title="<img src=x onerror=alert(1)>",
        prompt=HOSTILE,
        capabilities=HOSTILE + "x" * 5000,
        purpose="<b>bold</b> aim",
        adapterType="process",
        adapterConfig={"command": "<script>", "args": ["</code><script>alert(1)</script>"]},
    )
    client = office.as_agent(one)
    client.must(
        "POST", office.path("outcomes"), {"title": "<script>x</script>", "parentId": one["id"]}
    )
    client.must(
        "POST", office.path("messages"), {"to": "board", "subject": "</a><script>", "body": HOSTILE}
    )
    office.end(office.begin(one), "failed")
    for tab in TABS:
        page = visitor.goto(f"/agents/{one['id']}{tab}")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img, main a[href^=javascript]").count() == 0
        check_fits(page)


@LOOKED_AT_ELSEWHERE
def test_every_tab_is_accessible_and_fits_a_phone_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    one = office.agent("Tidy", prompt="# Title\n\n### Deep\n\nText.", capabilities="Many *things*.")
    office.agent("Tidied", one["id"])
    office.as_agent(one).must(
        "POST", office.path("messages"), {"to": "board", "subject": "Hi", "body": "x"}
    )
    office.board.must(
        "POST",
        office.path("grants"),
        {"to": one["id"], "resource": "full_access", "level": "use", "mode": "ask"},
    )
    office.board.must("PATCH", f"/api/agents/{one['id']}", {"title": "Tidier"})
    office.end(office.begin(one))
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        visitor = visit(color_scheme=scheme, **more)
        for tab in (*TABS, "/state"):
            page = visitor.goto(f"/agents/{one['id']}{tab}")
            check_accessible(page)
            check_fits(page)


def test_an_agent_is_seen_and_controlled_without_scripts(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    one = office.agent("Plain")
    page = visit(java_script_enabled=False).goto(f"/agents/{one['id']}?tab=rights")
    page.get_by_role("switch", name="Can create new agents").click()
    expect(page.get_by_role("switch")).to_have_attribute("aria-checked", "true")
    page.get_by_role("button", name="Pause").click()
    expect(header(page).locator(".badge")).to_have_text("paused")
    page.goto(f"/agents/{one['id']}?tab=configuration&json=1")
    page.get_by_label("Adapter settings").fill('{"nonsense": 1}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Adapter settings")).to_have_value('{"nonsense": 1}')
    expect(page.get_by_role("alert")).to_contain_text("adapterConfig.nonsense")


def test_what_is_not_there_says_so(office: Office, visitor: Visitor) -> None:
    for address in ("/agents/nobody", f"/agents/{office.root['id']}?tab=nonsense"):
        page = visitor.goto(address)
        expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
        expect(page.get_by_role("alert")).to_be_visible()


def test_the_channels_of_an_agent_are_shown_without_what_opens_them(
    office: Office, visitor: Visitor
) -> None:
    bound, free = office.agent("Bound"), office.agent("Unbound")
    wanted = {
        "agent": bound["id"],
        "adapterType": "webhook",
        "adapterConfig": {"url": "https://chat.example.org/hooks/5ecret"},
    }
    token = office.board.must("POST", office.path("bindings"), wanted)["token"]
    said = {"id": "1", "conversation": "</script>", "body": HOSTILE}
    office.board.as_(token).must("POST", "/api/channels/webhook", said)
    page = visitor.goto(f"/agents/{bound['id']}?tab=mail")
    channels = page.get_by_role("region", name="Channels")
    expect(channels).to_contain_text("webhook to https://chat.example.org/…")
    expect(page.get_by_role("region", name="Inbox")).to_contain_text("webhook:</script>")
    assert "5ecret" not in page.content()
    assert token not in page.content()
    check_accessible(page)
    rights = visitor.goto(f"/agents/{bound['id']}?tab=rights")
    rights.get_by_text("permissions by rule").click()
    by_rule = rights.get_by_role("region", name="Permissions by rule")
    expect(by_rule).to_contain_text("is bound to it")
    page = visitor.goto(f"/agents/{bound['id']}?tab=mail")
    # A person who answers writes to the agent; only the agent writes to the channel.
    page.get_by_role("link", name="(no subject)").first.click()
    page.get_by_label("Your reply").fill("Be kind to them.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Sent.")).to_be_visible()
    page = visitor.goto(f"/agents/{free['id']}?tab=mail")
    expect(page.get_by_role("region", name="Channels")).to_contain_text("No channels.")


@pytest.mark.requirement("HH-27", "HH-41")
def test_an_agent_is_updated_and_ended_with_those_below_after_a_look(
    office: Office, visitor: Visitor
) -> None:
    lead = office.agent("lead", office.root["id"])
    below = office.agent("below", lead["id"])
    page = visitor.goto(f"/agents/{lead['id']}")
    more(page)
    page.get_by_role("link", name="Update…", exact=True).click()
    expect(page.get_by_text("No settings change.")).to_be_visible()
    page.get_by_role("button", name="Update lead").click()
    expect(page.get_by_role("status").filter(has_text="lead takes over its set-up")).to_be_visible()
    more(page)
    page.get_by_role("link", name="Terminate with everybody below").click()
    expect(page.get_by_role("heading", name="2 agents", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="below", exact=True)).to_be_visible()
    check_accessible(page)
    page.get_by_role("button", name="Terminate 2 agents").click()
    expect(
        page.get_by_role("status").filter(has_text="lead is terminated with 1 below it.")
    ).to_be_visible()
    assert office.board.must("GET", f"/api/agents/{below['id']}")["status"] == "terminated"
