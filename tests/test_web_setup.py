"""Set-up on pages: everything that the command line sets up, with pickers and tests."""

import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
from playwright.sync_api import expect

from remit.entrypoints.cli.main import cli
from remit.entrypoints.web.pages.setup import files, noun
from tests.browsing import Office, Visitor, check_accessible
from tests.web_stage import HOSTILE


@pytest.mark.requirement("FX-49")
def test_a_secret_is_tested_before_it_is_saved_and_its_value_is_never_shown(
    office: Office, visitor: Visitor, tmp_path: Path
) -> None:
    place = tmp_path / "key"
    page = visitor.goto("/setup/secrets/new")
    page.get_by_label("Kind").select_option("file")
    page.get_by_label("Source").wait_for()
    page.get_by_label("Name", exact=True).fill("forge-key")
    page.get_by_label("Source").fill(str(place))
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#tried")).to_contain_text("cannot be read")
    place.write_text("s3cret-value-of-a-file")
    place.chmod(0o600)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#tried")).to_contain_text("The secret can be read.")
    page.get_by_role("button", name="Save secret").click()
    expect(page.get_by_role("row", name="forge-key")).to_contain_text("found")
    page.goto("/setup/secrets/new")
    page.get_by_label("Name", exact=True).fill("typed-key")
    page.get_by_label("Value").fill("typed-s3cret-value")
    page.get_by_role("button", name="Save secret").click()
    expect(page.get_by_role("row", name="typed-key")).to_contain_text("kept by this instance")
    for shown in ("/setup/secrets", "/events", "/hire"):
        page.goto(shown)
        assert "s3cret-value" not in page.content()
    page.goto("/setup/secrets")
    page.get_by_role("row", name="typed-key").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("row", name="typed-key")).to_have_count(0)


def test_schedules_budgets_keys_and_channels_are_made_with_pickers(
    office: Office, visitor: Visitor
) -> None:
    root = office.root["name"]
    page = visitor.goto("/setup/schedules/new")
    assert root in page.locator("datalist#l-c-agent option").evaluate_all(
        "all => all.map(one => one.value)"
    )
    page.get_by_label("Agent", exact=True).fill(root)
    page.get_by_label("Text").fill("Look at the numbers.")
    page.get_by_label("Repeated, as cron").fill("nonsense")
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_role("alert")).to_contain_text("is not a schedule")
    expect(page.get_by_label("Text")).to_have_value("Look at the numbers.")
    page.get_by_label("Repeated, as cron").fill("0 9 * * *")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#tried")).to_contain_text(re.compile(r"sent next at \S+ \d\d:\d\d UTC"))
    assert office.board.must("GET", office.path("schedules")) == []
    page.get_by_role("button", name="Save schedule").click()
    row = page.get_by_role("row", name="Look at the numbers.")
    expect(row).to_contain_text("daily at 09:00 (UTC)")
    expect(row).to_contain_text("itself")
    page.goto("/setup/schedules/new")
    page.get_by_label("Agent", exact=True).fill(root)
    page.get_by_label("Text").fill("Close the books.")
    page.get_by_label("Once, at").fill("2099-01-31T18:00")
    page.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_role("row", name="Close the books.")).to_contain_text("once")
    [once] = [one for one in office.board.must("GET", office.path("schedules")) if not one["cron"]]
    assert once["nextAt"].startswith("2099-01-31T18:00:00")

    page.goto(f"/setup/budgets/new?agent={root}")
    page.get_by_label("Dollars a month").fill("many")
    page.get_by_role("button", name="Save budget").click()
    expect(page.locator("#e-c-dollars")).to_be_visible()
    page.get_by_label("Dollars a month").fill("12.50")
    page.get_by_role("button", name="Save budget").click()
    amounts = page.get_by_role("row", name=root).get_by_role("cell", name="$12.50")
    expect(amounts).to_have_count(2)
    expect(amounts.first).to_have_css("text-align", "right")

    page.goto("/setup/keys/new")
    page.get_by_label("Agent", exact=True).fill(root)
    page.get_by_role("button", name="Save agent key").click()
    key = page.locator("code", has_text="rmt_agent_").inner_text()
    assert office.running.client(key).must("GET", "/api/me")["name"] == root
    page.get_by_role("link", name="Done").click()
    page.get_by_role("row", name=root).get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No agent has a key.")).to_be_visible()
    assert office.running.client(key)("GET", "/api/me").status == 401

    page.goto("/setup/channels/new?kind=webhook")
    page.get_by_label("Agent", exact=True).fill(root)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#tried")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("code", has_text="rmt_channel_")).to_be_visible()


def test_budgets_are_listed_by_need_and_the_rest_on_request(
    office: Office, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noun, "_DRAWN", 1)
    for name, cents in (("ample", 900), ("empty", 0)):
        agent = office.agent(name)
        limits = {"budgetMonthlyCents": cents}
        office.board.must("PATCH", f"/api/agents/{agent['id']}", limits)
    page = visitor.goto("/setup/budgets")
    [shown] = page.locator("tbody tr").all()
    expect(shown).to_contain_text("empty")
    expect(shown).to_contain_text("used up")
    page.get_by_role("link", name=re.compile("Show all")).click()
    expect(page.get_by_role("row", name="ample")).to_be_visible()
    page.get_by_role("link", name="Change budget of ample").click()
    expect(page.get_by_label("Agent", exact=True)).to_have_value("ample")


def test_a_scripted_run_does_not_count_as_a_tested_key(office: Office, visitor: Visitor) -> None:
    step = visitor.goto("/setup").get_by_role("listitem").filter(has_text="Key tested")
    office.end(office.begin(office.agent("scripted")))
    visitor.goto("/setup")
    expect(step).to_contain_text("To do:")
    expect(step).to_contain_text("No run with a model has succeeded lately.")


def test_servers_and_repositories_are_tried_before_they_are_kept(
    office: Office, visitor: Visitor, tmp_path: Path
) -> None:
    page = visitor.goto("/setup/mcp-servers/new")
    page.get_by_label("Name", exact=True).fill("broken")
    page.get_by_label("Program and arguments").fill("/nowhere/at-all")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#tried.bad")).to_be_visible()
    assert office.board.must("GET", office.path("mcp-servers")) == []
    page.goto("/setup/repositories/new")
    page.get_by_label("Name", exact=True).fill("site")
    page.get_by_label("Address").fill(str(tmp_path / "nothing-here"))
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#tried.bad")).to_be_visible()
    names = [repo["name"] for repo in office.board.must("GET", office.path("repos"))]
    assert "site" not in names


def test_an_operator_sets_how_proposals_to_a_repository_are_pushed(
    office: Office, visitor: Visitor
) -> None:
    where = "https://example.invalid/acme/shop.git"
    office.board.must("POST", office.path("repos"), {"name": "shop", "url": where})

    def pushed() -> tuple[str, str | None]:
        rows = office.board.must("GET", office.path("repos"))
        (row,) = (one for one in rows if one["name"] == "shop")
        return row["push"], row["fork"]

    page = visitor.goto("/setup/repositories")
    row = page.get_by_role("row", name="shop")
    expect(row).to_contain_text("at once")
    row.get_by_role("link", name="shop").click()
    expect(page.get_by_label("At once")).to_be_checked()
    expect(page.get_by_role("main")).to_contain_text("before anybody has looked at it")
    check_accessible(page)
    page.get_by_label("After a person's look").check()
    page.get_by_role("button", name="Save").click()
    said = page.get_by_role("status").filter(has_text="Proposals to shop are pushed")
    expect(said).to_contain_text("after a person's look")
    expect(page.get_by_role("row", name="shop")).to_contain_text("after a look")
    assert pushed() == ("after_look", None)

    page.get_by_role("row", name="shop").get_by_role("link", name="shop").click()
    expect(page.get_by_label("After a person's look")).to_be_checked()
    page.get_by_label("To a fork").check()
    page.get_by_label("User name").fill("bot")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("needs its address")
    expect(page.get_by_label("To a fork")).to_be_checked()
    expect(page.get_by_label("User name")).to_have_value("bot")
    page.get_by_label("User name").fill("")
    page.get_by_label("Address of the fork").fill("https://example.invalid/bots/shop.git")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="shop")).to_contain_text("to a fork")
    assert pushed() == ("fork", "https://example.invalid/bots/shop.git")

    # What was typed about a fork counts for no other way.
    page.get_by_role("row", name="shop").get_by_role("link", name="shop").click()
    page.get_by_label("At once").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="shop")).to_contain_text("at once")
    assert pushed() == ("at_once", None)
    missing = page.request.get(f"{office.url}/setup/repositories/pushing?repo=none")
    assert missing.status == 404


def test_an_invitation_link_signs_in_without_a_shell_and_once(
    office: Office, visitor: Visitor, chromium: object
) -> None:
    page = visitor.goto(f"/companies/{office.company}/settings#people")
    page.get_by_text("Add a person").click()
    page.get_by_role("region", name="People").get_by_label("Name", exact=True).fill("guest")
    page.get_by_role("button", name="Add person", exact=True).click()
    link = urlsplit(page.locator("code", has_text="rmt_login_").inner_text())
    stranger = visitor.context.browser.new_context(base_url=office.url)  # type: ignore[union-attr]
    try:
        theirs = stranger.new_page()
        theirs.goto(f"{link.path}?{link.query}")
        check_accessible(theirs)
        theirs.get_by_role("button", name="Sign in").click()
        theirs.wait_for_url(f"{office.url}/")
        theirs.goto("/account")
        theirs.get_by_role("button", name="Create token").click()
        token = theirs.locator("code", has_text="rmt_user_").inner_text()
        stranger.clear_cookies()
        theirs.goto(f"{link.path}?{link.query}")
        theirs.get_by_role("button", name="Sign in").click()
        expect(theirs.get_by_role("alert")).to_contain_text("was used already")
        theirs.get_by_label("Token").fill(token)
        theirs.get_by_role("button", name="Sign in").click()
        theirs.wait_for_url(f"{office.url}/")
    finally:
        stranger.close()


def test_a_company_is_made_from_a_template_and_the_next_from_the_switcher(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/")
    page.locator("header summary").first.click()
    page.get_by_role("link", name="New company").click()
    page.get_by_label("Name", exact=True).fill("Second")
    page.get_by_label("Research desk").check()
    page.get_by_role("button", name="Create company").click()
    page.wait_for_url(re.compile("company="))
    expect(page.get_by_role("status").filter(has_text="Second is there")).to_be_visible()
    found = office.board.must("GET", "/api/companies")
    [made] = [one for one in found if one["name"] == "Second"]
    agents = office.board.must("GET", f"/api/companies/{made['id']}/agents")
    assert {"editor", "researcher", "writer", "checker"} < {one["name"] for one in agents}


def test_a_file_is_applied_after_what_it_changes_was_seen(office: Office, visitor: Visitor) -> None:
    page = visitor.goto(f"/apply?company={office.company}")
    page.get_by_label("Text", exact=True).fill("[[agents]\nname")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_role("alert")).to_contain_text("cannot be read")
    page.get_by_label("Text", exact=True).fill(
        '[[agents]]\nname = "applied"\nreportsTo = "board"\n'
    )
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_text("1 to create")).to_be_visible()
    names = {one["name"] for one in office.board.must("GET", office.path("agents"))}
    assert "applied" not in names
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text("1 created")).to_be_visible()


def test_a_large_tree_of_the_past_is_opened_branch_by_branch(
    office: Office, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_LINES", 2)
    lead = office.agent("past-lead")
    office.agent("past-dev", reportsTo=lead["id"])
    office.agent("past-peer", reportsTo=lead["id"])
    now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    tree = visitor.goto(f"/as-of?at={now}&agent=Past-Lead").locator(".past")
    expect(tree).to_contain_text("past-dev")
    expect(tree).not_to_contain_text("past-peer")
    expect(tree.get_by_role("link", name="2 below")).to_have_attribute(
        "href", re.compile("agent=past-lead")
    )
    page = visitor.goto(f"/as-of?at={now}&agent=nobody")
    expect(page.get_by_role("alert")).to_contain_text("There was no agent named 'nobody' then.")


def test_an_operator_looks_at_the_machine_and_keeps_a_backup(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/instance")
    page.get_by_role("button", name="Back up now").click()
    row = page.get_by_role("row", name=re.compile(r"remit-.*\.backup"))
    expect(row).to_be_visible()
    # Nothing was said about proxies; `test_web_proxy.py` downloads one where that was done.
    expect(page.get_by_text("Set REMIT_PROXIES")).to_be_visible()
    assert row.get_by_role("link", name="Download").count() == 0
    page.get_by_role("button", name="Check this machine").click()
    expect(page.get_by_role("row", name="database")).to_contain_text("reachable")
    check_accessible(page)


def test_who_may_not_has_nothing_to_press_and_is_refused(office: Office) -> None:
    observer, part = office.user("watcher", "observer"), office.user("part", scope="ceo")
    guarded = {"name": "guarded", "url": "https://example.invalid/acme/guarded.git"}
    office.board.must("POST", office.path("repos"), guarded)
    for who in (observer, part):
        link = urlsplit(who.must("POST", "/api/login-links")["url"])
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": office.url}
        answer = office.running.client()("POST", "/login", body=link.query, headers=sent)
        cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        client = office.running.client()
        for address in ("/setup", "/setup/secrets/new", "/companies/new", "/apply"):
            shown = client("GET", address, headers=cookie)
            assert shown.status == 200
            for word in (b"Save secret", b"Create company", b"Preview changes"):
                assert word not in shown.body
        assert client("GET", "/instance", headers=cookie).status == 403
        for address, body in (
            ("/setup/secrets/new", "c-name=mine&c-value=a-value-of-mine&kind=value"),
            ("/setup/mcp-servers/new", "c-name=mine&c-command=true&kind=program&step=test"),
            ("/setup/repositories/new", "c-name=mine&c-url=/etc&step=test"),
            ("/setup/repositories/pushing?repo=guarded", "push=after_look"),
            ("/setup/budgets/new", "c-agent=ceo&c-dollars=1"),
            ("/setup/keys/new", "c-agent=ceo"),
            ("/companies/new", "c-name=Mine"),
            ("/apply", "document=%7B%22company%22%3A%7B%7D%7D&step=try"),
            ("/instance/backups", ""),
            ("/instance/doctor", ""),
        ):
            if who is part and ("budgets" in address or "keys" in address):
                continue  # its own part is its own to decide about
            answer = client("POST", address, body=body, headers={**cookie, **sent})
            assert answer.status in (403, 404, 422), (address, answer.status)
            foreign = {**sent, **cookie, "Origin": "https://elsewhere.example"}
            assert client("POST", address, body=body, headers=foreign).status == 403
    assert office.board.must("GET", office.path("mcp-servers")) == []
    listed = office.board.must("GET", office.path("repos"))
    assert [repo["push"] for repo in listed if repo["name"] == "guarded"] == ["at_once"]


#: Commands that no page does: they start, stop or replace the instance itself, or serve the shell.
NOT_ON_PAGES = {
    "up": "starts the instance that pages come from",
    "serve": "the same",
    "worker": "starts a worker on another machine",
    "down": "ends the instance; Stop halts the work",
    "status": "is asked when there may be no page",
    "demo": "makes an instance of its own",
    "restore": "needs a place without an instance",
    "simulate": "plays companies that are not real",
    "login": "keeps a token for the shell",
    "help": "explains the shell's commands",
    "completion": "is for the shell",
    "mcp-stdio": "is for programs of agents",
}
#: What else does, by the beginning of the command: the page that a person finds it on.
ON_PAGES = {
    "open": "/account",
    "top": "/",
    "needs-you": "/",
    "version": "/instance",
    "doctor": "/instance",
    "backup": "/instance",
    "company create": "/companies/new",
    "company import": "/companies/new",
    "company export": "/setup",
    "company list": "/account",
    "company accept": "/companies/{company}/acceptance",
    "company policy": "/companies/{company}/levels",
    "company spending": "/",
    "company": "/companies/{company}/settings",
    "stop": "/",
    "go": "/",
    "resume": "/",
    "apply": "/apply",
    "user": "/companies/{company}/settings",
    "agent budget": "/setup/budgets",
    "agent token": "/setup/keys",
    "agent lend": "/agents/{agent}?tab=configuration",
    "agent create": "/hire",
    "agent hire": "/hire",
    "agent list": "/org",
    "agent tree": "/org",
    "agent move": "/org",
    "agent": "/agents/{agent}",
    "org": "/org",
    "outcome": "/outcomes",
    "kb": "/files",
    "grant": "/agents/{agent}?tab=rights",
    "approve": "/approvals",
    "reject": "/approvals",
    "approval": "/approvals",
    "confirm": "/",
    "run": "/runs",
    "job": "/setup/jobs",
    "account": "/companies/{company}/settings",
    "adapter": "/setup/adapters",
    "mcp": "/setup/mcp-servers",
    "secret": "/setup/secrets",
    "repo": "/setup/repositories",
    "folder": "/setup/folders",
    "change": "/changes",
    "send": "/inbox",
    "reply": "/inbox",
    "cancel": "/inbox",
    "inbox": "/inbox",
    "read": "/inbox",
    "revive": "/",
    "notify": "/account",
    "link": "/account",
    "bind": "/setup/channels",
    "question": "/",
    "schedule": "/setup/schedules",
    "event": "/events",
    "why": "/events",
    "as-of": "/as-of",
}


def commands(found: click.Command, name: str = "") -> list[str]:
    if not isinstance(found, click.Group):
        return [name]
    context = click.Context(found)
    inner = [(one, found.get_command(context, one)) for one in found.list_commands(context)]
    return [path for one, it in inner if it for path in commands(it, f"{name} {one}".strip())]


@pytest.mark.requirement("FX-49")
def test_every_command_has_a_page_or_a_reason(office: Office, visitor: Visitor) -> None:
    known = commands(cli)
    assert len(known) > 120
    assert set(NOT_ON_PAGES) <= set(known)
    places = set()
    for command in known:
        if command in NOT_ON_PAGES:
            continue
        words = command.split()
        ways = [ON_PAGES.get(" ".join(words[:length])) for length in range(len(words), 0, -1)]
        place = next((way for way in ways if way), None)
        assert place is not None, f"no page does `remit {command}`"
        places.add(place.format(company=office.company, agent=office.root["id"]))
    for place in sorted(places):
        answer = visitor.page.request.get(f"{office.url}{place}")
        assert answer.status == 200, place


def test_a_wrong_token_and_a_foreign_page_do_not_sign_in(office: Office) -> None:
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": office.url}
    client = office.running.client()
    answer = client("POST", "/login", body=f"token=rmt_user_{'A' * 43}", headers=sent)
    assert answer.status == 401
    assert b"Sign in" in answer.body
    foreign = {**sent, "Origin": "https://elsewhere.example"}
    assert client("POST", "/login", body="token=x", headers=foreign).status == 403


def test_rules_of_notices_are_saved_on_the_account(office: Office) -> None:
    board, sent = office.board, {"Content-Type": "application/x-www-form-urlencoded"}
    link = urlsplit(board.must("POST", "/api/login-links")["url"])
    sent["Origin"] = office.url
    answer = office.running.client()("POST", "/login", body=link.query, headers=sent)
    sent["Cookie"] = answer.headers["Set-Cookie"].partition(";")[0]
    body = f"company={office.company}&quiet=22:00-07:00&time_zone=UTC&digest_at=08:00"
    body += "&after_minutes=0&escalate_minutes=0"
    answer = office.running.client()("POST", "/account/notices", body=body, headers=sent)
    assert answer.status == 303, answer.body
    assert b"22:00-07:00" in office.running.client()("GET", "/account", headers=sent).body


def test_hostile_names_are_text_on_every_list(office: Office, visitor: Visitor) -> None:
    office.board.must(
        "POST",
        office.path("schedules"),
        {
            "agent": office.root["name"],
            "subject": HOSTILE[:100],
            "body": HOSTILE,
            "cron": "0 9 * * *",
        },
    )
    page = visitor.goto("/setup/schedules")
    expect(page.get_by_text("<script>").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert visitor.problems == []
