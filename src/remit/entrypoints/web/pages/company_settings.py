"""Settings of a company: its name, rules, limits, accounts and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.pages.company import entered
from remit.entrypoints.web.site import Done, Page, Site, Visit
from remit.entrypoints.web.text import common_queries, pickers
from remit.entrypoints.web.text.settings_form import number_or_none
from remit.entrypoints.web.text.words import with_readable_times
from remit.errors import AlreadyExists, Conflict, NotFound, RemitError
from remit.ids import TokenKind
from remit.model.execution.limit import Limit
from remit.services.execution import accounts
from remit.services.people import companies, tokens, users

PAGE: Final = 50
LINK: Final = f"rmt_{TokenKind.LOGIN.value}_"
#: Messaging policies, with label and explanation; each includes the one before it.
MESSAGING: Final = (
    ("chain", "Chain", "An agent writes to its boss and to its own reports."),
    ("team", "Team", "Also to those who have the same boss."),
    ("subtree", "Subtree", "Also to everybody who works below it, not only its own reports."),
    ("open", "Open", "Everybody writes to everybody in the company."),
)
_LABELS: Final = {
    Limit.TURNS_PER_RUN: "Turns per run",
    Limit.IDENTICAL_CALLS: "Identical calls in a row",
    Limit.AGENT_RUNS_PER_HOUR: "Runs per agent and hour",
    Limit.AGENT_TOKENS_PER_DAY: "Tokens per agent and day",
    Limit.COMPANY_RUNS_PER_HOUR: "Company runs per hour",
    Limit.COMPANY_CENTS_PER_DAY: "Company spending per day ($)",
}
_SWITCHES: Final = (
    "require_board_approval_for_new_agents",
    "require_approval_for_config_changes",
)
_TEXTS: Final = (
    *("name", "messaging", "chat_llm_provider", "chat_llm_model", "review_hours"),
    *("commit_committer", "commit_co_authors", "commit_signing"),
)


def routes(site: Site) -> list[Route]:
    here = "/companies/{company_id}"
    user = f"{here}/people/{{user}}"
    return [
        site.page(f"{here}/settings", show),
        *site.forms(
            f"{here}/settings",
            show,
            change=change,
            limits=change_limits,
            signing_key=new_signing_key,
        ),
        site.action(f"{here}/accounts/{{account}}/retry", retry, show),
        *site.answered(f"{here}/people", add, show, back),
        site.page(user, person),
        site.action(f"{user}/remove", remove, person),
        *site.answered(f"{user}/tokens", new_token, person, back),
        *site.answered(f"{user}/links", new_link, person, back),
        site.action(f"{user}/tokens/{{token}}/revoke", revoke, person),
    ]


async def show(visit: Visit) -> Page:
    page = await visit.look(_load)
    now = page.values["now"]
    try:
        key = await visit.site.app.signing.public(now["id"], now["commit_signing"])
    except RemitError as error:
        key = {"problem": error.sentence}
    page.values["signing"] = key
    return page


def _load(visit: Visit) -> Page:
    company = entered(visit)
    now = visit.ask(companies.show, company=company)
    after = visit.argument("after")
    people: list[dict[str, Any]] = []
    invited: set[str | None] = set()
    if visit.whole:
        people = visit.ask(users.listing, company=company, after=after, limit=PAGE)
        invited = {link["user_id"] for link in visit.ask(tokens.links, company=company)}
    # After a conflict the form shows the current values; after a mistake, the typed ones.
    late = isinstance(visit.problem, Conflict) and not isinstance(visit.problem, AlreadyExists)
    return visit.show(
        "company_settings.html",
        now=now,
        typed=now if late or visit.problem is None else {**now, **_typed(visit.form)},
        may_change=visit.decides and visit.whole,
        messaging=MESSAGING,
        limits=[
            (
                limit.value,
                _LABELS[limit],
                _typed_limit(visit, now, limit, late=late),
            )
            for limit in Limit
        ],
        people=people,
        invited=invited,
        picks=pickers.of(visit, "agent", "secret"),
        accounts=[
            {**account, "key": _key(account), "sentence": with_readable_times(account["sentence"])}
            for account in visit.ask(accounts.listing, company=company)
        ],
        names=common_queries.names(visit, (member["scope_agent_id"] for member in people)),
        more=f"/companies/{company}/settings?after={people[-1]['id']}#people"
        if len(people) == PAGE
        else "",
    )


def _key(account: Mapping[str, Any]) -> str:
    """The credential of an account, or the place of a set-up, in words."""
    if account["worker"]:
        return f"set-up on {account['worker']}"
    kind, _, name = (account["credential"] or "").partition(":")
    return {"secret": f"secret {name}", "own": "a key of its agents"}.get(kind, "the machine's key")


async def change(visit: Visit) -> Done:
    """Change the settings that differ from the form's original values, unless those are stale."""
    company = await visit.look(entered)
    typed, before = _typed(visit.form), _before(visit.form)
    changed = {name: value for name, value in typed.items() if value != before[name]}
    here = f"/companies/{company}/settings"
    if not changed:
        return Done(here, "Nothing changed.")
    await visit.do(
        companies.change,
        company=company,
        expected={
            name: before[name] or None if name in _TEXTS else before[name] for name in changed
        },
        **changed,
    )
    return Done(here, "Saved.")


def _typed_limit(visit: Visit, now: dict[str, Any], limit: Limit, *, late: bool) -> str:
    """The limit as typed if that failed, else the current one; empty if there is none."""
    if visit.problem is not None and not late and limit.value in visit.form.fields:
        return visit.form.text(limit.value)
    amount = now["limits"][limit.value]
    if amount is not None and limit is Limit.COMPANY_CENTS_PER_DAY:
        return f"{amount / 100:,.2f}"
    return "" if amount is None else f"{amount:,}"


async def change_limits(visit: Visit) -> Done:
    """Change the limits that differ from the form's original values, unless those are stale."""
    company, form = await visit.look(entered), visit.form
    here = f"/companies/{company}/settings#limits"
    limits = {limit.value: form.text(limit.value).replace(",", "") for limit in Limit}
    dollars = Limit.COMPANY_CENTS_PER_DAY.value
    if limits[dollars]:  # money is typed in dollars
        typed = number_or_none(limits[dollars], "dollars")
        limits[dollars] = "" if typed is None else str(round(typed * 100))
    differ = [name for name, value in limits.items() if value != form.text(f"was_{name}")]
    if not differ:
        return Done(here, "Nothing changed.")
    await visit.do(
        companies.change,
        company=company,
        limits={name: limits[name] for name in differ},
        expected={"limits": {name: form.number(f"was_{name}") for name in differ}},
    )
    return Done(here, "Saved.")


async def new_signing_key(visit: Visit) -> Done:
    company = await visit.look(entered)
    await visit.site.app.signing.make(visit.caller, company=company)
    message = "There is a new key. Register it at the forge."
    return Done(f"/companies/{company}/settings#commits", message)


def _typed(form: Form) -> dict[str, Any]:
    """Settings of the form, with their new values."""
    settings: dict[str, Any] = {}
    for name in _SWITCHES:
        if form.text(f"was_{name}"):
            settings[name] = form.ticked(name)
    for name in _TEXTS:
        if f"was_{name}" in form.fields:
            settings[name] = form.text(name)
    return settings


def _before(form: Form) -> dict[str, Any]:
    switches = {name: form.ticked(f"was_{name}") for name in _SWITCHES}
    return switches | {name: form.text(f"was_{name}") for name in _TEXTS}


async def retry(visit: Visit) -> Done:
    company = await visit.look(entered)
    tried = await visit.do(accounts.retry, account=visit.argument("account"), company=company)
    return Done(f"/companies/{company}/settings#accounts", f"{tried['name']} is tried now.")


# ── people ──────────────────────────────────────────────────────────────────────────────────────


def back(visit: Visit) -> Response:
    """Redirect to the settings: the answer of a form is shown once."""
    entered(visit)
    return RedirectResponse(f"/companies/{visit.company_id}/settings", 303)


async def add(visit: Visit) -> Page:
    company = await visit.look(entered)
    form = visit.form
    invitation = await visit.do(
        tokens.invite,
        company=company,
        name=form.text("person"),
        role=form.text("role"),
        scope=form.maybe("scope"),
    )
    sentence = (
        f"{invitation['name']} has a part in {visit.company['name'] if visit.company else ''} now"
    )
    return shown_once(visit, sentence, invitation, invitation, _page_of(visit, invitation))


def _page_of(visit: Visit, who: Mapping[str, Any]) -> str:
    return f"/companies/{visit.company_id}/people/{who['id']}"


def shown_once(
    visit: Visit, sentence: str, who: Mapping[str, Any], credential: Mapping[str, Any], back: str
) -> Page:
    """Values of the page that shows a link or a token, which no later page has."""
    token = credential.get("token")
    is_link = token is not None and token.startswith(LINK)
    return visit.show(
        "token.html",
        said=sentence,
        person=who,
        link=f"{base(visit)}/login?token={token}" if is_link else None,
        until=credential.get("expires_at"),
        token=None if is_link else token,
        known=credential.get("known", False),
        back=back,
    )


def base(visit: Visit) -> str:
    """Address under which others reach this instance."""
    url = visit.request.url
    return (visit.site.app.settings.url or f"{url.scheme}://{url.netloc}").rstrip("/")


def person(visit: Visit) -> Page:
    company = entered(visit)
    who = visit.argument("user")
    if not visit.whole:
        # The query would be refused: a part of the company has no people.
        raise NotFound("There is no such user here.")
    tokens = visit.ask(users.tokens, company=company, user=who)
    everybody = visit.ask(users.listing, company=company, limit=10_000)
    member = next((user for user in everybody if who in (user["id"], user["name"])), None)
    if member is None:
        raise NotFound("There is no such user here.")
    return visit.show(
        "person.html",
        person=member,
        tokens=tokens[::-1],
        may_change=visit.decides,
        names=common_queries.names(visit, [member["scope_agent_id"]]),
    )


async def remove(visit: Visit) -> Done:
    company = await visit.look(entered)
    await visit.do(users.remove, company=company, user=visit.argument("user"))
    return Done(f"/companies/{company}/settings", "Removed from the company.")


async def new_token(visit: Visit) -> Page:
    company = await visit.look(entered)
    token = await visit.do(
        users.create_token,
        company=company,
        user=visit.argument("user"),
        label=visit.form.text("label"),
    )
    return await _made(visit, "token", token)


async def new_link(visit: Visit) -> Page:
    company = await visit.look(entered)
    link = await visit.do(tokens.create_link, company=company, user=visit.argument("user"))
    return await _made(visit, "link", link)


async def _made(visit: Visit, what: str, credential: Mapping[str, Any]) -> Page:
    names = await visit.look(lambda visit: common_queries.names(visit, [credential["user_id"]]))
    who = {"id": credential["user_id"], "name": names[credential["user_id"]]}
    return shown_once(visit, f"A {what} for {who['name']}", who, credential, _page_of(visit, who))


async def revoke(visit: Visit) -> Done:
    company, who = await visit.look(entered), visit.argument("user")
    await visit.do(users.revoke_token, company=company, user=who, token=visit.argument("token"))
    return Done(f"/companies/{company}/people/{who}", "Token revoked.")
