"""A company as a file declares it: compared with the present one and changed to match, all or
nothing.

Things that the file does not mention stay as they are. The changes are made by the verbs that
people use, in one transaction, each decided and recorded; a preview does the same and rolls back.
So no event is ever lost, and applying the same file again changes nothing.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.connections.secret import source_name
from remit.model.execution.limit import is_as_before
from remit.model.execution.prices import changed as with_prices
from remit.model.organisation.grant import Grant, Mode, is_over_machine, parse_level, parse_mode
from remit.model.organisation.permission import LEVEL_SETTINGS, PermissionLevel, Preset, preset
from remit.model.text import clean_line
from remit.services import lookup, shapes, views
from remit.services.acceptance import acceptance, machine_rights, reach
from remit.services.command import Context, command, logged
from remit.services.declared import declared_agents, declared_connections
from remit.services.declared.declaration import (
    MOST_ENTRIES,
    Entry,
    Once,
    Plan,
    Section,
    at,
    check_keys,
    differences,
    table,
)
from remit.services.messaging import schedules
from remit.services.organisation import permissions
from remit.services.people import companies
from remit.services.rights import grants
from remit.services.shape_basics import JsonObject
from remit.services.spending import promises
from remit.services.verbs import Added
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import people

_UNSEEN = (
    "Nobody has accepted what the company would run, reach and be lent with this.",
    "Look with --dry-run or `dryRun`, and repeat it with the digest that is shown.",
)
_OTHER = (
    "With this, the company would run, reach or be lent something else than was shown to you.",
    "Look at the preview again.",
)
GRANT = ("agent", "resource", "level", "mode", "expiresAt", "scope", "paths", "branches")
SCHEDULE = ("agent", "subject", "body", "cron", "timezone", "to")


@command("applying.apply", Added("accepted", None))
def apply(
    ctx: Context, *, company: str | None, document: object, accepted: str | None = None
) -> shapes.AppliedShape:
    """Change the company to match the document. If it would then run, reach or be lent more, the
    caller says the digest of the preview, and so that somebody has seen that."""
    plan, reached = _carry_out(ctx, company, document)
    if reached["entries"] and not hmac.compare_digest(reached["digest"], accepted or ""):
        raise Conflict(*_UNSEEN if accepted is None else _OTHER, code="not_accepted")
    event = ctx.record(
        "company.apply",
        f"company:{ctx.company}",
        {
            "created": plan.names("create"),
            "changed": plan.names("change"),
            "unchanged": len(plan.names("unchanged")),
            "left_out": plan.left_out,
            "accepted": reached["digest"] if reached["entries"] else None,
        },
    )
    if plan.tokens:
        ctx.secrets["tokens"] = plan.tokens
    return {
        **plan.view(),
        **reached,
        "event_id": event,
        "dry_run": False,
        "tokens": [],
        "replaced": plan.replaced,
        "warnings": plan.warnings,
    }


@logged("applying.preview")
def preview(ctx: Context, *, company: str | None, document: object) -> shapes.AppliedShape:
    """Return exactly what applying the document would change, and roll back."""
    plan, reached = _carry_out(ctx, company, document)
    ctx.tx.restart()
    return {
        **plan.view(),
        **reached,
        "event_id": None,
        "dry_run": True,
        "tokens": [],
        "replaced": [],
        "warnings": plan.warnings,
    }


def sources(document: Mapping[str, Any]) -> list[str]:
    """Return the sources of secrets in a valid document; the program that reads them knows whether
    they exist."""
    return [source_name(secret.get("source")) for secret in document.get("secrets", ())]


def _carry_out(
    ctx: Context, company: str | None, document: object
) -> tuple[Plan, shapes.ReachedShape]:
    """Make the changes. Returns them, and everything that the company runs, reaches and is lent
    since."""
    sections = _sections(document)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_CHANGE, on=f"company:{ctx.company}")
    plan, before = Plan(), reach.of_company(ctx)
    for name in _ORDER:
        if name in sections and name in _LISTS:
            _LISTS[name](ctx, plan, name, sections[name])
        elif name in sections:
            _WHOLE[name](ctx, plan, sections[name])
    plan.warnings += _unheld(ctx, plan)
    entries = reach.new(before, reach.of_company(ctx))
    return plan, acceptance.reached(entries, plan.left_out, ctx.company, document)


def _unheld(ctx: Context, plan: Plan) -> Iterator[shapes.AgentWarningShape]:
    """Yield the agents of a document that their budgets of money do not hold: those that it makes
    or changes, and with another price all of them."""
    of_agents = [entry for entry in plan.entries if entry["kind"] == "agent"]
    priced = any(
        change["path"].startswith("prices")
        for entry in plan.entries
        if entry["kind"] == "company"
        for change in entry["changes"]
    )
    for entry in of_agents:
        agent = lookup.living_agent(ctx, entry["name"])
        if agent is None or (entry["action"] == "unchanged" and not priced):
            continue
        if (why := promises.unheld(ctx, agent)) is not None:
            yield {
                "agent": agent.name,
                "about": "budget",
                "sentence": why.sentence,
                "next_step": why.next_step,
            }


def _sections(document: object) -> JsonObject:
    """Validate the shape and the keys of each section of the document."""
    if not isinstance(document, Mapping):
        raise BadInput("The document must be an object.", "Write sections such as [[agents]].")
    check_keys("", document, _ORDER)
    sections: dict[str, object] = {}
    for name, section in document.items():
        if name == "company":
            sections[name] = table("company", section, tuple(companies.CALLED.values()))
            continue
        if name == "permission_policy":
            levels = table(name, section, tuple(level.value for level in PermissionLevel))
            for level, settings in levels.items():
                table(f"{name}.{level}", settings, LEVEL_SETTINGS)
            sections[name] = levels
            continue
        if not isinstance(section, list) or len(section) > MOST_ENTRIES:
            raise BadInput(f"{name}: must be a list of at most {MOST_ENTRIES}.", "Correct it.")
        keys = _LISTS[name].keys if name in _LISTS else declared_agents.AGENT
        sections[name] = [
            table(f"{name}[{number}]", entry, keys) for number, entry in enumerate(section)
        ]
    return sections


# ── the company itself ──────────────────────────────────────────────────────────────────────────


def _company(ctx: Context, plan: Plan, section: Entry) -> None:
    company = ctx.tx.existing(people.COMPANY)
    was = dict(views.company(company))
    called = companies.CALLED
    wanted = {key: section[called[key]] for key in called if called[key] in section}
    # Here alone, None equals an empty text.
    differs = {
        key: value
        for key, value in wanted.items()
        if ("" if was[key] is None else was[key]) != value
    }
    with at("company", tuple(called.values())):
        if "limits" in differs and is_as_before(company.limits, differs["limits"]):
            del differs["limits"]
        if "prices" in differs and with_prices(company.prices, differs["prices"]) == company.prices:
            del differs["prices"]
        if differs:
            assert ctx.company is not None
            companies.change.body(ctx, company=ctx.company, **differs)
    changes = [
        {"path": called[key], "was": was[key], "now": value} for key, value in differs.items()
    ]
    plan.compare("company", "company", company.name, changes)


def _policy(ctx: Context, plan: Plan, levels: Entry) -> None:
    """Permission levels; settings and levels that are not named stay as they are."""
    for level in PermissionLevel:
        if level.value not in levels:
            continue
        path = f"permission_policy.{level.value}"
        was, settings = permissions.current(ctx)[level], dict(levels[level.value])
        with at(path, LEVEL_SETTINGS):
            now = preset(level, was, settings)
        allowed, left_out = machine_rights.of_policy(now.allowed, level.value, was.allowed)
        if left_out:
            plan.left_out += left_out
            now, settings = replace(now, allowed=tuple(allowed)), {**settings, "allow": allowed}
        changes = differences(_in_order(was), _in_order(now))
        if changes:
            with at(path):
                permissions.change_policy.body(ctx, level=level.value, settings=settings)
        plan.compare(path, "permission level", level.value, changes)


def _in_order(preset: Preset) -> dict[str, object]:
    """The settings of a level with sorted actions, whose order in a file has no meaning."""
    shown = preset.as_dict()
    return {
        key: sorted(setting) if isinstance(setting, list) else setting
        for key, setting in shown.items()
    }


# ── grants and schedules ────────────────────────────────────────────────────────────────────────


def _grant(ctx: Context, plan: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    agent = lookup.agent(ctx, entry["agent"])
    resource = grants.named(ctx, entry.get("resource"))
    once((agent.id, resource))
    level = parse_level(entry.get("level"), resource.kind)
    mode = parse_mode(entry.get("mode") or grants.usual_mode(ctx, level))
    wish = {
        "resource": entry["resource"],
        "level": level.word,
        "mode": mode.value,
        "scope": entry.get("scope"),
        "expires_at": entry.get("expiresAt"),
        "paths": entry.get("paths"),
        "branches": entry.get("branches"),
    }
    held = [grant for grant in ctx.held(agent.id, resource) if _by_board(ctx, grant)]
    name = f"{agent.name} {entry['resource']}"
    if any(_is_as_wished(grant, level, mode, wish) for grant in held):
        return name, []
    if is_over_machine(entry["resource"]) and mode is not Mode.DENY:
        plan.left_out.append(machine_rights.of_grant(agent.name))
        return name, []
    for old_grant in held:
        grants.revoke.body(ctx, grant=old_grant.id)
    new_grant = grants.give_to(ctx, agent, wish)
    if not held:
        return name, None
    was, now = dict(views.grant(held[-1])), dict(views.grant(new_grant))
    keys = ("level", "mode", "expires_at")
    changes = [{"path": key, "was": was[key], "now": now[key]} for key in keys]
    limits = ({key: grant.get(key) for key in ("paths", "branches")} for grant in (was, now))
    return name, changes + differences(*limits)


def _by_board(ctx: Context, grant: Grant) -> bool:
    """Return whether the board gave it: grants by mail, by authorship or from another agent are not
    changed by the file."""
    by_board = grant.granted_by_user is not None and grant.scope_id is not None
    return by_board and grant.live(ctx.now)


def _is_as_wished(grant: Grant, level: Any, mode: Any, wish: Mapping[str, Any]) -> bool:
    return (
        grant.level is level
        and grant.mode is mode
        and grant.expires_at == grants.expiry(wish["expires_at"])
        and wish["scope"] in (None, grant.scope_id)
        and (grant.limited_paths, grant.limited_branches)
        == grants.limits(wish, grant.resource, level)
    )


def _schedule(ctx: Context, _: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    """Carry out a schedule: identified by its agent and its subject, and replaced if it differs."""
    agent = lookup.agent(ctx, entry["agent"])
    subject = clean_line(entry["subject"], "subject", longest=200)
    once((agent.id, subject))
    wanted = {
        "body": entry["body"].strip(),
        "cron": entry["cron"].strip(),
        "timezone": entry.get("timezone", "UTC"),
        "to": schedules.destination(ctx, agent, entry.get("to")),
    }
    active = ctx.tx.all(
        mail_statements.SCHEDULES, agent=agent.id, ended_too=False, after="", limit=MOST_ENTRIES
    )
    same = [
        schedule for schedule in active if schedule.subject == subject and schedule.cron is not None
    ]
    name = f"{agent.name} {subject}"
    was = dict(views.schedule(same[-1])) if same else {}
    changes = differences({key: was.get(key) for key in wanted}, wanted)
    if same and not changes:
        return name, []
    for old_schedule in same:
        schedules.cancel(ctx, old_schedule)
    schedules.add.body(ctx, agent=agent.id, subject=subject, **wanted)
    return name, changes if same else None


#: The lists, in the order of their references.
_LISTS: dict[str, Section] = {
    **declared_connections.SECTIONS,
    "grants": Section("grant", GRANT, ("agent",), _grant),
    "schedules": Section("schedule", SCHEDULE, ("agent", "subject", "body", "cron"), _schedule),
}
_ORDER = (
    *("company", "permission_policy", "secrets", "repos", "checks", "mcp_servers"),
    *("agents", "grants", "bindings", "folders", "mounts", "schedules"),
)
_WHOLE: dict[str, Callable[[Context, Plan, Any], None]] = {
    "company": _company,
    "permission_policy": _policy,
    "agents": declared_agents.carry_out,
}
