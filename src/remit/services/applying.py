"""A company as a file declares it: compared with what is there, and made so, all or nothing.

What the file does not mention is left alone. The changes are made by the verbs that people use, in
one transaction, each decided and recorded as ever; a preview does the same and takes it back. So
nothing of the record is ever cleared, and applying the same file again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, RemitError
from remit.model.agent import Agent
from remit.model.configuration import CONFIG_KEYS, changed, configuration_of
from remit.model.grant import Grant, parse_level, parse_mode
from remit.model.permission import CAN_CREATE_AGENTS, can_create_agents, permission_level
from remit.model.text import clean_line, name_key
from remit.services import (
    agents,
    companies,
    configuration,
    grants,
    lookup,
    permissions,
    posts,
    reorganise,
    repos,
    schedules,
    views,
)
from remit.services.command import Answer, Context, command, logged
from remit.store import agents as agent_statements
from remit.store import mail as mail_statements
from remit.store import people

MOST_ENTRIES = 1000
#: As they are called in a file, and what the verb calls them.
COMPANY = {
    "name": "name",
    "messaging": "messaging",
    "requireBoardApprovalForNewAgents": "require_board_approval_for_new_agents",
    "requireApprovalForConfigChanges": "require_approval_for_config_changes",
    "chatLLMProvider": "chat_llm_provider",
    "chatLLMModel": "chat_llm_model",
}
AGENT = (*CONFIG_KEYS, "reportsTo", "permissions", "permissionLevel", "purpose", "perpetual")
GRANT = ("agent", "resource", "level", "mode", "expiresAt", "scope")
REPO = ("name", "url", "ref", "username", "secret")
SCHEDULE = ("agent", "subject", "body", "cron", "timezone", "to")

Entry = Mapping[str, Any]


@command
def apply(ctx: Context, *, company: str | None, document: object) -> Answer:
    """Make the company what the document says."""
    plan = _carry_out(ctx, company, document)
    event = ctx.record(
        "company.apply",
        f"company:{ctx.company}",
        {
            "created": plan.names("create"),
            "changed": plan.names("change"),
            "unchanged": len(plan.names("unchanged")),
        },
    )
    return {**plan.view(), "event_id": event, "dry_run": False}


@logged
def preview(ctx: Context, *, company: str | None, document: object) -> Answer:
    """Exactly what applying it would change, without changing it."""
    plan = _carry_out(ctx, company, document)
    ctx.tx.restart()
    return {**plan.view(), "event_id": None, "dry_run": True}


@dataclass
class Plan:
    """What has to be done, or was."""

    entries: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, path: str, kind: str, name: str, action: str, changes: list[Any] | None = None
    ) -> None:
        entry = {"path": path, "kind": kind, "name": name, "action": action}
        self.entries.append({**entry, "changes": changes or []})

    def compare(self, path: str, kind: str, name: str, changes: list[Any]) -> None:
        self.add(path, kind, name, "change" if changes else "unchanged", changes)

    def names(self, action: str) -> list[str]:
        return [f"{one['kind']} {one['name']}" for one in self.entries if one["action"] == action]

    def view(self) -> Answer:
        counts = {
            word: len(self.names(action))
            for word, action in (
                ("created", "create"),
                ("changed", "change"),
                ("unchanged", "unchanged"),
            )
        }
        return {"plan": self.entries, **counts}


def _carry_out(ctx: Context, company: str | None, document: object) -> Plan:
    sections = _sections(document)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_CHANGE, on=f"company:{ctx.company}")
    plan = Plan()
    # What others refer to comes first.
    for name, carry_out in _SECTIONS.items():
        if name in sections:
            carry_out(ctx, plan, sections[name])
    return plan


def _sections(document: object) -> dict[str, Any]:
    """The parts of the document, each of the right shape and with no key that nobody knows."""
    if not isinstance(document, Mapping):
        raise BadInput("The document must be an object.", "Write sections such as [[agents]].")
    if "bindings" in document:
        raise BadInput(
            "bindings: there are no channels to bind yet.", "Leave the bindings out of the file."
        )
    _check_keys("", document, tuple(_SECTIONS))
    found: dict[str, Any] = {}
    for name, section in document.items():
        if name == "company":
            found[name] = _table("company", section, tuple(COMPANY))
            continue
        if not isinstance(section, list) or len(section) > MOST_ENTRIES:
            raise BadInput(f"{name}: must be a list of at most {MOST_ENTRIES}.", "Correct it.")
        found[name] = [
            _table(f"{name}[{number}]", entry, _KEYS[name]) for number, entry in enumerate(section)
        ]
    return found


def _table(path: str, value: object, keys: tuple[str, ...]) -> Entry:
    if not isinstance(value, Mapping):
        raise BadInput(f"{path}: must be an object with named values.", "Correct it.")
    _check_keys(f"{path}.", value, keys)
    return {key: inner for key, inner in value.items() if inner is not None}


def _check_keys(path: str, value: Mapping[Any, Any], keys: tuple[str, ...]) -> None:
    for key in value:
        if key not in keys:
            raise BadInput(f"{path}{str(key)[:60]}: is not known.", f"Known are {', '.join(keys)}.")


@contextmanager
def _at(path: str, keys: tuple[str, ...] = ()) -> Iterator[None]:
    """Whatever is wrong here says where in the file it is."""
    try:
        yield
    except RemitError as error:
        first = error.sentence.replace(":", " ").replace(".", " ").partition(" ")[0]
        between = "." if first in keys else ": "
        raise type(error)(
            f"{path}{between}{error.sentence}",
            error.step,
            code=error.reason,
            details=error.details,
        ) from error


def _text(path: str, entry: Entry, key: str) -> str:
    if not isinstance(entry.get(key), str) or not entry[key]:
        raise BadInput(f"{path}.{key}: must be text.", f"Give the {key}.")
    return str(entry[key])


def _once(seen: dict[Any, str], key: Any, path: str) -> None:
    if key in seen:
        raise BadInput(f"{path}: is the same as {seen[key]}.", "Say everything once.")
    seen[key] = path


# ── the company itself ──────────────────────────────────────────────────────────────────────────


def _company(ctx: Context, plan: Plan, given: Entry) -> None:
    found = ctx.tx.one(people.COMPANY, company=ctx.company)
    assert found is not None
    was = views.company(found)
    asked = {ours: given[theirs] for theirs, ours in COMPANY.items() if theirs in given}
    # Nothing is the same as an empty text here, and only here.
    differs = {
        key: value
        for key, value in asked.items()
        if ("" if was[key] is None else was[key]) != value
    }
    with _at("company", tuple(COMPANY)):
        if differs:
            assert ctx.company is not None
            companies.change.body(ctx, company=ctx.company, **differs)
    theirs = {ours: key for key, ours in COMPANY.items()}
    changes = [
        {"path": theirs[key], "was": was[key], "now": value} for key, value in differs.items()
    ]
    plan.compare("company", "company", found.name, changes)


# ── agents ──────────────────────────────────────────────────────────────────────────────────────


def _agents(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    seen: dict[str, str] = {}
    there: list[tuple[str, Entry, Agent]] = []
    new: list[tuple[str, Entry]] = []
    for number, entry in enumerate(given):
        path = f"agents[{number}]"
        _once(seen, name_key(_text(path, entry, "name")), path)
        with _at(path, AGENT):
            _boss(entry)
        found = _living(ctx, entry["name"])
        if found is None:
            new.append((path, entry))
        else:
            there.append((path, entry, found))
    _create_all(ctx, plan, new)
    moves: list[dict[str, str]] = []
    for path, entry, agent in there:
        _compare_agent(ctx, plan, path, entry, agent, moves)
    with _at("agents"):
        for start in range(0, len(moves), reorganise.MOST_OPERATIONS):
            some = moves[start : start + reorganise.MOST_OPERATIONS]
            reorganise.reorganise.body(ctx, company=ctx.company, operations=some)


def _create_all(ctx: Context, plan: Plan, new: list[tuple[str, Entry]]) -> None:
    """Bosses before their reports, in whichever order the file has them."""
    names = {name_key(entry["name"]) for _, entry in new}
    while new:
        ready = [one for one in new if name_key(_boss(one[1]) or "") not in names]
        if not ready:
            raise BadInput(
                f"{new[0][0]}.reportsTo: these agents report to each other.", "Name a boss."
            )
        for path, entry in ready:
            with _at(path, AGENT):
                _create(ctx, entry)
            plan.add(path, "agent", entry["name"], "create")
            names.discard(name_key(entry["name"]))
        new = [one for one in new if one not in ready]


def _create(ctx: Context, entry: Entry) -> None:
    said = {ours: entry[theirs] for theirs, ours in posts.FIELDS.items() if theirs in entry}
    for key in ("purpose", "perpetual", "permissions"):
        if key in entry:
            said[key] = entry[key]
    if not isinstance(said.get("perpetual", False), bool):
        raise BadInput("perpetual: must be true or false.", "Send a boolean.")
    made = agents.create.body(ctx, company=ctx.company, reports_to=_boss(entry), **said)
    if "permissionLevel" in entry:
        permissions.change.body(ctx, agent=made["id"], level=entry["permissionLevel"])


def _boss(entry: Entry) -> str | None:
    boss = entry.get("reportsTo")
    if boss is not None and not isinstance(boss, str):
        raise BadInput("reportsTo: must be the name of an agent, or board.", "Name the boss.")
    return None if boss in (None, "", "board") else boss.removeprefix("agent:")


def _compare_agent(
    ctx: Context, plan: Plan, path: str, entry: Entry, agent: Agent, moves: list[dict[str, str]]
) -> None:
    changes: list[dict[str, Any]] = []
    with _at(path, AGENT):
        was = configuration_of(agent)
        wanted = _normal(configuration.merged(agent, entry))
        if changed(was, wanted):
            changes += configuration.difference(was, wanted)
            keys = {key: entry[key] for key in CONFIG_KEYS if key in entry}
            configuration.change.body(ctx, agent=agent.id, changes=keys)
        changes += _permit(ctx, entry, agent)
        if "reportsTo" in entry:
            boss = lookup.agent(ctx, name).id if (name := _boss(entry)) else None
            if boss != agent.boss_id:
                moves.append({"op": "move", "agent": agent.id, "to": boss or "board"})
                changes.append(
                    {"path": "reportsTo", "was": _name(ctx, agent.boss_id), "now": name or "board"}
                )
    plan.compare(path, "agent", agent.name, changes)


def _permit(ctx: Context, entry: Entry, agent: Agent) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    if "permissionLevel" in entry:
        level = permission_level(entry["permissionLevel"])
        if level is not agent.permission_level:
            permissions.change.body(ctx, agent=agent.id, level=level.value)
            was = agent.permission_level.value
            changes.append({"path": "permissionLevel", "was": was, "now": level.value})
            now = lookup.agent_row(ctx, agent.id)
            assert now is not None
            agent = now
    if "permissions" in entry:
        said = permissions.read(entry["permissions"])
        before = can_create_agents(agent.permissions)
        if said is not None and said != before:
            permissions.change.body(ctx, agent=agent.id, can_create=said)
            key = f"permissions.{CAN_CREATE_AGENTS}"
            changes.append({"path": key, "was": before, "now": said})
    return changes


def _normal(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration as it would be stored."""
    post = posts.from_configuration(config)
    stored = {theirs: getattr(post, ours) for theirs, ours in posts.FIELDS.items()}
    for key in ("adapterConfig", "runtimeConfig", "metadata"):
        stored[key] = json.loads(stored[key])
    return {**stored, "role": post.role.value}


def _living(ctx: Context, name: str) -> Agent | None:
    return ctx.tx.one(
        agent_statements.LIVING_AGENT_BY_NAME, company=ctx.company, name_key=name_key(name)
    )


def _name(ctx: Context, agent: str | None) -> str:
    found = lookup.agent_row(ctx, agent) if agent else None
    return found.name if found else "board"


# ── grants, repositories, schedules ─────────────────────────────────────────────────────────────


def _grants(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    seen: dict[Any, str] = {}
    for number, entry in enumerate(given):
        path = f"grants[{number}]"
        holder = _text(path, entry, "agent")
        with _at(path, GRANT):
            agent = lookup.agent(ctx, holder)
            resource = grants.named(ctx, entry.get("resource"))
            _once(seen, (agent.id, resource), path)
            level = parse_level(entry.get("level"), resource.kind)
            mode = parse_mode(entry.get("mode", "allow"))
            wish = {
                "resource": entry["resource"],
                "level": level.word,
                "mode": mode.value,
                "scope": entry.get("scope"),
                "expires_at": entry.get("expiresAt"),
            }
            held = [one for one in ctx.held(agent.id, resource) if _by_board(ctx, one)]
            name = f"{agent.name} {entry['resource']}"
            if any(_is_as_wished(one, level, mode, wish) for one in held):
                plan.add(path, "grant", name, "unchanged")
                continue
            for one in held:
                grants.revoke.body(ctx, grant=one.id)
            made = grants.give_to(ctx, agent, wish)
            now = {key: views.grant(made)[key] for key in ("level", "mode", "expires_at")}
            if not held:
                plan.add(path, "grant", name, "create")
                continue
            was = views.grant(held[-1])
            plan.compare(
                path,
                "grant",
                name,
                [{"path": key, "was": was[key], "now": value} for key, value in now.items()],
            )


def _by_board(ctx: Context, grant: Grant) -> bool:
    """What came by mail, by authorship or from another agent is not the file's to change."""
    given = grant.granted_by_user is not None and grant.scope_id is not None
    return given and grant.live(ctx.now)


def _is_as_wished(grant: Grant, level: Any, mode: Any, wish: Mapping[str, Any]) -> bool:
    return (
        grant.level is level
        and grant.mode is mode
        and grant.expires_at == grants.expiry(wish["expires_at"])
        and wish["scope"] in (None, grant.scope_id)
    )


def _repos(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    seen: dict[str, str] = {}
    for number, entry in enumerate(given):
        path = f"repos[{number}]"
        _once(seen, _text(path, entry, "name"), path)
        with _at(path, REPO):
            wanted = repos.wanted(**{"url": None, **entry})
            found = repos.of_name(ctx, wanted.name)
            if found is None:
                repos.add.body(ctx, company=ctx.company, **entry)
                plan.add(path, "repo", wanted.name, "create")
                continue
            changes = [
                {"path": key, "was": getattr(found, key), "now": getattr(wanted, key)}
                for key in REPO
                if getattr(found, key) != getattr(wanted, key)
            ]
            if changes:
                repos.change(ctx, found, wanted)
            plan.compare(path, "repo", found.name, changes)


def _schedules(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    """A schedule is known by its agent and its subject; another under these takes its place."""
    seen: dict[Any, str] = {}
    for number, entry in enumerate(given):
        path = f"schedules[{number}]"
        for key in ("agent", "subject", "body", "cron"):
            _text(path, entry, key)
        with _at(path, SCHEDULE):
            agent = lookup.agent(ctx, entry["agent"])
            subject = clean_line(entry["subject"], "subject", longest=200)
            _once(seen, (agent.id, subject), path)
            wanted = {
                "body": entry["body"].strip(),
                "cron": entry["cron"].strip(),
                "timezone": entry.get("timezone", "UTC"),
                "to": schedules.destination(ctx, agent, entry.get("to")),
            }
            active = ctx.tx.all(
                mail_statements.SCHEDULES,
                company=ctx.company,
                agent=agent.id,
                any_agent=False,
                ended_too=False,
                after="",
                limit=MOST_ENTRIES,
            )
            same = [one for one in active if one.subject == subject and one.cron is not None]
            name = f"{agent.name} {subject}"
            was = views.schedule(same[-1]) if same else {}
            changes = [
                {"path": key, "was": was.get(key), "now": value}
                for key, value in wanted.items()
                if was.get(key) != value
            ]
            if same and not changes:
                plan.add(path, "schedule", name, "unchanged")
                continue
            for one in same:
                schedules.cancel(ctx, one)
            schedules.add.body(ctx, agent=agent.id, subject=subject, **wanted)
            plan.add(
                path, "schedule", name, "change" if same else "create", changes if same else []
            )


_KEYS = {"agents": AGENT, "grants": GRANT, "repos": REPO, "schedules": SCHEDULE}
_SECTIONS: dict[str, Callable[[Context, Plan, Any], None]] = {
    "company": _company,
    "repos": _repos,
    "agents": _agents,
    "grants": _grants,
    "schedules": _schedules,
}
