"""Settings of a company: its name, rules, limits, accounts, permission levels and people."""

from typing import Any, Final

from remit.entrypoints import arrival
from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.site import MOST_ROWS, Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries
from remit.entrypoints.web.text.settings_form import number_or_none
from remit.entrypoints.web.text.words import with_readable_times
from remit.errors import AlreadyExists, Conflict, NotFound, RemitError
from remit.ids import TokenKind
from remit.model.execution.limit import Limit
from remit.model.organisation.grant import ACTIONS
from remit.model.organisation.permission import CAN_CREATE_AGENTS, PermissionLevel, Reach
from remit.services.command import Answer
from remit.services.execution import accounts
from remit.services.organisation import permissions
from remit.services.people import companies, tokens, users

LINK: Final = f"rmt_{TokenKind.LOGIN.value}_"
#: Messaging policies, with label and explanation; each includes the one before it.
MESSAGING: Final = (
    ("chain", "Chain", "An agent writes to its boss and to its own reports."),
    ("team", "Team", "Also to those who have the same boss."),
    ("subtree", "Subtree", "Also to everybody who works below it, not only its own reports."),
    ("open", "Open", "Everybody writes to everybody in the company."),
)
#: Settings for decisions by e-mail, with label and explanation.
MAIL_DECISIONS: Final = (
    (
        "confirm",
        "Confirmed here first",
        (
            "Nothing that an e-mail decides takes effect before the person confirms it while "
            "signed in: the mailbox's password is enough to put e-mails of anybody into it."
        ),
    ),
    ("direct", "Take effect at once", "For a mailbox that nobody else can write to."),
)
_LABELS: Final = {
    Limit.TURNS_PER_RUN: "Turns per run",
    Limit.IDENTICAL_CALLS: "Identical calls in a row",
    Limit.FAILED_CALLS: "Failed calls in a row",
    Limit.AGENT_RUNS_PER_HOUR: "Runs per agent and hour",
    Limit.AGENT_TOKENS_PER_DAY: "Tokens per agent and day",
    Limit.COMPANY_RUNS_PER_HOUR: "Company runs per hour",
    Limit.COMPANY_CENTS_PER_DAY: "Company spending per day ($)",
    Limit.COMPANY_UNPRICED_TOKENS_PER_DAY: "Company tokens of unknown cost per day",
}
_SWITCHES: Final = (
    "require_board_approval_for_new_agents",
    "require_approval_for_config_changes",
)
_TEXTS: Final = (
    *("name", "messaging", "chat_llm_provider", "chat_llm_model", "review_hours"),
    *("commit_committer", "commit_co_authors", "commit_signing", "mail_decisions"),
)
#: The purpose of each level, in words.
WORDS: Final = {
    PermissionLevel.RESTRICTED: "Cannot hire, and cannot be granted what is denied here.",
    PermissionLevel.STANDARD: "The level of every new agent.",
    PermissionLevel.PRIVILEGED: "Can hire.",
    PermissionLevel.BOSS: "Can hire, and controls others as the board does.",
}
#: Labels of actions on this page.
ACTION_WORDS: Final = {
    "agent.create": "Create agents",
    "approval.decide": "Decide approvals",
    "full_access": "Full access",
    "instance.configure": "Configure Remit",
}
_CREATES: Final = {"default": None, "yes": True, "no": False}
CREATES: Final = (("default", "only the CEO"), ("yes", "yes"), ("no", "no"))
MODES: Final = (("", "as granted"), ("allow", "allowed"), ("deny", "denied"))
REACHES: Final = (
    (Reach.NOBODY.value, "nobody"),
    (Reach.BELOW.value, "everybody below it"),
    (Reach.COMPANY.value, "everybody but itself and those above it"),
)


def routes(site: Site) -> Routes:
    does, here = site.does, "/companies/{company_id}"
    user, settings = f"{here}/people/{{user}}", f"{here}/settings"
    retry, message = f"{here}/accounts/{{account}}/retry", "{name} is tried now."
    return [
        site.page(settings, show),
        *site.forms(settings, show, change=change, limits=change_limits, signing_key=new_key),
        does(retry, accounts.retry, show, f"{settings}#accounts", message),
        *site.form(f"{here}/levels", levels, change_level),
        *site.answered(f"{here}/people", add, show, settings),
        site.page(user, person),
        site.action(f"{user}/remove", remove, person),
        *site.answered(f"{user}/tokens", new_token, person, settings),
        *site.answered(f"{user}/links", new_link, person, settings),
        does(f"{user}/tokens/{{token}}/revoke", users.revoke_token, person, user, "Token revoked."),
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
    company = visit.company_id
    now = visit.ask(companies.show, company=company)
    people: list[dict[str, Any]] = []
    invited: set[str | None] = set()
    if visit.whole:
        people = visit.ask(
            users.listing, company=company, after=visit.argument("after"), limit=MOST_ROWS
        )
        invited = {link["user_id"] for link in visit.ask(tokens.links, company=company)}
    more = visit.more(f"/companies/{company}/settings", people, place="after")
    # After a conflict the form shows the current values; after a mistake, the typed ones.
    late = isinstance(visit.problem, Conflict) and not isinstance(visit.problem, AlreadyExists)
    return visit.show(
        "company_settings.html",
        now=now,
        typed=now if late or visit.problem is None else {**now, **_typed(visit.form)},
        may_change=visit.decides and visit.whole,
        messaging=MESSAGING,
        mail_decisions=MAIL_DECISIONS,
        limits=[
            (limit.value, _LABELS[limit], _typed_limit(visit, now, limit, late=late))
            for limit in Limit
        ],
        people=people,
        invited=invited,
        picks=common_queries.picks(visit, "agent", "secret"),
        accounts=[
            {**account, "key": _key(account), "sentence": with_readable_times(account["sentence"])}
            for account in visit.ask(accounts.listing, company=company)
        ],
        names=common_queries.names(visit, (member["scope_agent_id"] for member in people)),
        more=more and f"{more}#people",
    )


def _key(account: Answer) -> str:
    """The credential of an account, or the place of a set-up, in words."""
    if account["worker"]:
        return f"set-up on {account['worker']}"
    kind, _, name = (account["credential"] or "").partition(":")
    return {"secret": f"secret {name}", "own": "a key of its agents"}.get(kind, "the machine's key")


async def change(visit: Visit) -> Done:
    """Change the settings that differ from the form's original values, unless those are stale."""
    typed, before = _typed(visit.form), _before(visit.form)
    changed = {name: value for name, value in typed.items() if value != before[name]}
    here = f"/companies/{visit.company_id}/settings"
    if not changed:
        return Done(here, "Nothing changed.")
    await visit.do(
        companies.change,
        company=visit.company_id,
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
    form, here = visit.form, f"/companies/{visit.company_id}/settings#limits"
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
        company=visit.company_id,
        limits={name: limits[name] for name in differ},
        expected={"limits": {name: form.number(f"was_{name}") for name in differ}},
    )
    return Done(here, "Saved.")


async def new_key(visit: Visit) -> Done:
    await visit.site.app.signing.make(visit.caller, company=visit.company_id)
    message = "There is a new key. Register it at the forge."
    return Done(f"/companies/{visit.company_id}/settings#commits", message)


def _typed(form: Form) -> dict[str, Any]:
    """Settings of the form, with their new values."""
    return {
        **{name: form.ticked(name) for name in _SWITCHES if form.text(f"was_{name}")},
        **{name: form.text(name) for name in _TEXTS if f"was_{name}" in form.fields},
    }


def _before(form: Form) -> dict[str, Any]:
    switches = {name: form.ticked(f"was_{name}") for name in _SWITCHES}
    return switches | {name: form.text(f"was_{name}") for name in _TEXTS}


# ── permission levels ───────────────────────────────────────────────────────────────────────────


def levels(visit: Visit) -> Page:
    return visit.show(
        "company_levels.html",
        policy=visit.ask(permissions.show_policy, company=visit.company_id),
        may_change=visit.decides and visit.whole,
        words=WORDS,
        actions=[(action, ACTION_WORDS.get(action, action)) for action in sorted(ACTIONS)],
        creates=CREATES,
        said={value: key for key, value in _CREATES.items()},
        modes=MODES,
        reaches=REACHES,
    )


async def change_level(visit: Visit) -> Done:
    form = visit.form
    settings: dict[str, Any] | None = None
    if form.text("what") != "shipped":
        chosen = {action: form.text(action) for action in sorted(ACTIONS)}
        settings = {
            CAN_CREATE_AGENTS: _CREATES.get(form.text("creates")),
            "allow": [action for action, mode in chosen.items() if mode == "allow"],
            "deny": [action for action, mode in chosen.items() if mode == "deny"],
        }
        if form.text("governs"):
            settings["governs"] = form.text("governs")
    done = await visit.do(
        permissions.change_policy,
        company=visit.company_id,
        level=form.text("level"),
        settings=settings,
        expected_version=form.number("version"),
    )
    reached = ", ".join(done["agents_changed"])
    message = f"The level {form.text('level')} is changed."
    return Done(
        f"/companies/{visit.company_id}/levels",
        f"{message} It reached {reached}." if reached else message,
    )


# ── people ──────────────────────────────────────────────────────────────────────────────────────


async def add(visit: Visit) -> Page:
    invitation = await visit.do(
        tokens.invite,
        company=visit.company_id,
        name=visit.form.text("person"),
        **visit.form.arguments(tokens.invite, ("role", "scope")),
    )
    company = visit.company["name"] if visit.company else ""
    sentence = f"{invitation['name']} has a part in {company} now"
    return shown_once(visit, sentence, invitation, invitation, _page_of(visit, invitation))


def _page_of(visit: Visit, who: Answer) -> str:
    return f"/companies/{visit.company_id}/people/{who['id']}"


def shown_once(visit: Visit, sentence: str, who: Answer, credential: Answer, back: str) -> Page:
    """Values of the page that shows a link or a token, which no later page has."""
    token = credential.get("token")
    is_link = token is not None and token.startswith(LINK)
    base = arrival.of(visit.request).link_base
    return visit.show(
        "token.html",
        said=sentence,
        person=who,
        link=f"{base}/login?token={token}" if is_link else None,
        until=credential.get("expires_at"),
        token=None if is_link else token,
        known=credential.get("known", False),
        back=back,
    )


def person(visit: Visit) -> Page:
    company, who = visit.company_id, visit.argument("user")
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
        handed_out=visit.ask(users.list_handed_out, company=company, user=member["id"]),
        may_change=visit.decides,
        names=common_queries.names(visit, [member["scope_agent_id"]]),
    )


async def remove(visit: Visit) -> Done:
    gone = await visit.do(users.remove, company=visit.company_id, user=visit.argument("user"))
    sentences = ["Removed from the company."]
    for heading, ends in (("Ended", True), ("Still good, look at them", False)):
        credentials = [
            f"{each['kind']} for {each['name']}"
            for each in gone["handed_out"]
            if each["ends"] is ends
        ]
        if credentials:
            sentences.append(f"{heading}: {', '.join(credentials)}.")
    return Done(f"/companies/{visit.company_id}/settings", " ".join(sentences))


async def new_token(visit: Visit) -> Page:
    token = await visit.do(
        users.create_token,
        company=visit.company_id,
        user=visit.argument("user"),
        label=visit.form.text("label"),
    )
    return await _made(visit, "token", token)


async def new_link(visit: Visit) -> Page:
    link = await visit.do(tokens.create_link, company=visit.company_id, user=visit.argument("user"))
    return await _made(visit, "link", link)


async def _made(visit: Visit, what: str, credential: Answer) -> Page:
    names = await visit.look(lambda visit: common_queries.names(visit, [credential["user_id"]]))
    who = {"id": credential["user_id"], "name": names[credential["user_id"]]}
    return shown_once(visit, f"A {what} for {who['name']}", who, credential, _page_of(visit, who))
