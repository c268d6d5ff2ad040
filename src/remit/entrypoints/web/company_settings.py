"""How a company is run: its name, its rules, and the people who have a part in it."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from remit.entrypoints.web import asking
from remit.entrypoints.web.company import entered
from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.site import Done, Site, Visit
from remit.entrypoints.web.words import with_readable_times
from remit.errors import AlreadyExists, Conflict, NotFound
from remit.model.limit import WORDS, Limit
from remit.services import accounts, companies, users

PAGE: Final = 50
#: Who may write to whom, in words; each adds to the one before it.
MESSAGING: Final = (
    ("chain", "Chain", "An agent writes to its boss and to its own reports."),
    ("team", "Team", "Also to those who have the same boss."),
    ("subtree", "Subtree", "Also to everybody who works below it, not only its own reports."),
    ("open", "Open", "Everybody writes to everybody in the company."),
)
_LABELS: Final = {
    Limit.TURNS_PER_RUN: "Turns of a run",
    Limit.IDENTICAL_CALLS: "Identical calls in a row",
    Limit.AGENT_RUNS_PER_HOUR: "Runs of an agent an hour",
    Limit.AGENT_TOKENS_PER_DAY: "Tokens of an agent a day",
    Limit.COMPANY_RUNS_PER_HOUR: "Runs of the company an hour",
    Limit.COMPANY_CENTS_PER_DAY: "Cents of the company a day",
}
_SWITCHES: Final = (
    "require_board_approval_for_new_agents",
    "require_approval_for_config_changes",
)
_TEXTS: Final = ("name", "messaging", "chat_llm_provider", "chat_llm_model", "review_hours")


def routes(site: Site) -> list[Route]:
    here = "/companies/{company_id}"
    return [
        site.page(f"{here}/settings", show),
        site.action(f"{here}/settings/change", change, show),
        site.action(f"{here}/settings/limits", change_limits, show),
        site.action(f"{here}/accounts/{{account}}/retry", retry, show),
        site.page(f"{here}/people", back),
        site.action(f"{here}/people", add, show),
        site.page(f"{here}/people/{{user}}", person),
        site.action(f"{here}/people/{{user}}/remove", remove, person),
        site.page(f"{here}/people/{{user}}/tokens", back),
        site.action(f"{here}/people/{{user}}/tokens", new_token, person),
        site.action(f"{here}/people/{{user}}/tokens/{{token}}/revoke", revoke, person),
    ]


async def show(visit: Visit) -> Response:
    company = await entered(visit)
    now = await visit.ask(companies.show, company=company)
    after = visit.argument("after")
    people: list[dict[str, Any]] = []
    if visit.whole:
        people = await visit.ask(users.listing, company=company, after=after, limit=PAGE)
    # Who was too late is shown what it is now; whoever made a mistake, what they typed.
    late = isinstance(visit.problem, Conflict) and not isinstance(visit.problem, AlreadyExists)
    return await visit.show(
        "company_settings.html",
        now=now,
        typed=now if late or visit.problem is None else {**now, **_typed(visit.form)},
        may_change=visit.decides and visit.whole,
        messaging=MESSAGING,
        limits=[
            (limit.value, _LABELS[limit], WORDS[limit], _typed_limit(visit, now, limit, late=late))
            for limit in Limit
        ],
        people=people,
        accounts=[
            {**one, "sentence": with_readable_times(one["sentence"])}
            for one in await visit.ask(accounts.listing, company=company)
        ],
        names=await asking.names(visit, (one["scope_agent_id"] for one in people)),
        more=f"/companies/{company}/settings?after={people[-1]['id']}#people"
        if len(people) == PAGE
        else "",
    )


async def change(visit: Visit) -> Done:
    """Only what differs from what the form was made with, and only if that is still so."""
    company = await entered(visit)
    asked, was = _typed(visit.form), _before(visit.form)
    changed = {name: value for name, value in asked.items() if value != was[name]}
    here = f"/companies/{company}/settings"
    if not changed:
        return Done(here, "It is as it was.")
    await visit.do(
        companies.change,
        company=company,
        expected={name: was[name] or None if name in _TEXTS else was[name] for name in changed},
        **changed,
    )
    return Done(here, "Saved.")


def _typed_limit(visit: Visit, now: dict[str, Any], limit: Limit, *, late: bool) -> str:
    """What somebody typed and was not taken, or else what it is; empty where there is none."""
    if visit.problem is not None and not late and limit.value in visit.form.fields:
        return visit.form.text(limit.value)
    found = now["limits"][limit.value]
    return "" if found is None else str(found)


async def change_limits(visit: Visit) -> Done:
    """Only what differs from what the form was made with, and only if that is still so."""
    company, form = await entered(visit), visit.form
    here = f"/companies/{company}/settings#limits"
    differ = [
        limit.value for limit in Limit if form.text(limit.value) != form.text(f"was_{limit.value}")
    ]
    if not differ:
        return Done(here, "It is as it was.")
    await visit.do(
        companies.change,
        company=company,
        limits={name: form.text(name) for name in differ},
        expected={"limits": {name: form.number(f"was_{name}") for name in differ}},
    )
    return Done(here, "Saved.")


def _typed(form: Form) -> dict[str, Any]:
    """The settings that the form is about, as they are to be."""
    found: dict[str, Any] = {}
    for name in _SWITCHES:
        if form.text(f"was_{name}"):
            found[name] = form.ticked(name)
    for name in _TEXTS:
        if f"was_{name}" in form.fields:
            found[name] = form.text(name)
    return found


def _before(form: Form) -> dict[str, Any]:
    switches = {name: form.ticked(f"was_{name}") for name in _SWITCHES}
    return switches | {name: form.text(f"was_{name}") for name in _TEXTS}


async def retry(visit: Visit) -> Done:
    company = await entered(visit)
    tried = await visit.do(accounts.retry, account=visit.argument("account"), company=company)
    return Done(f"/companies/{company}/settings#accounts", f"{tried['name']} is tried now.")


# ── people ──────────────────────────────────────────────────────────────────────────────────────


async def back(visit: Visit) -> Response:
    """What a form answered is shown once; whoever comes back looks at the settings."""
    await entered(visit)
    return RedirectResponse(f"/companies/{visit.company_id}/settings", 303)


async def add(visit: Visit) -> Response:
    company = await entered(visit)
    form = visit.form
    made = await visit.do(
        users.invite,
        company=company,
        name=form.text("person"),
        role=form.text("role"),
        scope=form.maybe("scope"),
    )
    said = f"{made['name']} now has a part in {visit.company['name'] if visit.company else ''}."
    return await visit.show(
        "token.html", person=made, token=made["token"], said=said, known=made["known"]
    )


async def person(visit: Visit) -> Response:
    company = await entered(visit)
    who = visit.argument("user")
    if not visit.whole:
        # Asking would be refused, and there is nothing to be seen for a part of the company.
        raise NotFound("There is no such user here.")
    tokens = await visit.ask(users.tokens, company=company, user=who)
    everybody = await visit.ask(users.listing, company=company, limit=10_000)
    found = next((one for one in everybody if who in (one["id"], one["name"])), None)
    if found is None:
        raise NotFound("There is no such user here.")
    return await visit.show(
        "person.html",
        person=found,
        tokens=tokens[::-1],
        may_change=visit.decides,
        names=await asking.names(visit, [found["scope_agent_id"]]),
    )


async def remove(visit: Visit) -> Done:
    company = await entered(visit)
    await visit.do(users.remove, company=company, user=visit.argument("user"))
    return Done(f"/companies/{company}/settings", "They have no part in the company any more.")


async def new_token(visit: Visit) -> Response:
    company = await entered(visit)
    made = await visit.do(
        users.create_token,
        company=company,
        user=visit.argument("user"),
        label=visit.form.text("label"),
        expires_at=None,
    )
    names = await asking.names(visit, [made["user_id"]])
    who = {"id": made["user_id"], "name": names[made["user_id"]]}
    said = f"A new token for {who['name']}."
    return await visit.show("token.html", person=who, token=made["token"], said=said, known=False)


async def revoke(visit: Visit) -> Done:
    company, who = await entered(visit), visit.argument("user")
    await visit.do(users.revoke_token, company=company, user=who, token=visit.argument("token"))
    return Done(f"/companies/{company}/people/{who}", "The token opens nothing any more.")
