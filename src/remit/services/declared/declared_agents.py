"""The agents of a document that declares a company."""

from collections.abc import Mapping
from typing import Any

from remit.errors import BadInput
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import FIELDS
from remit.model.organisation.configuration import CONFIG_KEYS, changed, configuration_of
from remit.model.organisation.permission import (
    CAN_CREATE_AGENTS,
    permission_level,
)
from remit.model.text import name_key
from remit.services import lookup
from remit.services.acceptance import machine_rights
from remit.services.command import Context
from remit.services.declared.declaration import Entry, Plan, at, once, text
from remit.services.hiring import agent_spec, configuration
from remit.services.organisation import agents, permissions, reorganise
from remit.services.shape_basics import JsonObject

_MORE = ("reportsTo", "permissionLevel", "purpose", "perpetual")
AGENT = (*(field.key for field in FIELDS.values()), *_MORE)


def carry_out(ctx: Context, plan: Plan, entries: list[Entry]) -> None:
    seen: dict[str, str] = {}
    there: list[tuple[str, Entry, Agent]] = []
    new: list[tuple[str, Entry]] = []
    for number, entry in enumerate(entries):
        path = f"agents[{number}]"
        name = text(path, entry, "name")
        with at(path, AGENT):
            once(seen, path, name_key(name))
            _boss(entry)
        agent_row = lookup.living_agent(ctx, entry["name"])
        if agent_row is None:
            new.append((path, entry))
        else:
            there.append((path, entry, agent_row))
    _create_all(ctx, plan, new)
    moves: list[dict[str, str]] = []
    for path, entry, agent in there:
        _compare_agent(ctx, plan, path, entry, agent, moves)
    with at("agents"):
        for start in range(0, len(moves), reorganise.MOST_OPERATIONS):
            some = moves[start : start + reorganise.MOST_OPERATIONS]
            reorganise.reorganise.body(ctx, company=ctx.company, operations=some)


def _create_all(ctx: Context, plan: Plan, new: list[tuple[str, Entry]]) -> None:
    """Create bosses before their reports, in whichever order the file has them."""
    names = {name_key(entry["name"]) for _, entry in new}
    while new:
        ready = [pair for pair in new if name_key(_boss(pair[1]) or "") not in names]
        if not ready:
            raise BadInput(
                f"{new[0][0]}.reportsTo: these agents report to each other.", "Name a boss."
            )
        for path, entry in ready:
            with at(path, AGENT):
                _create(ctx, _inside(plan, entry))
            plan.add(path, "agent", entry["name"], "create")
            names.discard(name_key(entry["name"]))
        new = [pair for pair in new if pair not in ready]


def _create(ctx: Context, entry: Entry) -> None:
    settings: JsonObject = {field.name: entry.get(field.key) for field in FIELDS.values()}
    if not isinstance(entry.get("perpetual", False), bool):
        raise BadInput("perpetual: must be true or false.", "Send a boolean.")
    agent = agents.create.body(
        ctx,
        company=ctx.company,
        reports_to=_boss(entry),
        purpose=entry.get("purpose"),
        perpetual=entry.get("perpetual"),
        **settings,
    )
    if "permissionLevel" in entry:
        permissions.change.body(ctx, agent=agent["id"], level=entry["permissionLevel"])


def _inside(plan: Plan, entry: Entry, has: Mapping[str, Any] | None = None) -> Entry:
    """Return an entry without settings that would let a program out of the sandbox; one that the
    agent `has` stays."""
    config = entry.get("adapterConfig")
    if not isinstance(config, Mapping):
        return entry
    kept, left_out = machine_rights.without(config, entry["name"], has)
    plan.left_out += left_out
    return {**entry, "adapterConfig": kept}


def _boss(entry: Entry) -> str | None:
    boss = entry.get("reportsTo")
    if boss is not None and not isinstance(boss, str):
        raise BadInput("reportsTo: must be the name of an agent, or board.", "Name the boss.")
    return None if boss in (None, "", "board") else boss.removeprefix("agent:")


def _compare_agent(
    ctx: Context, plan: Plan, path: str, entry: Entry, agent: Agent, moves: list[dict[str, str]]
) -> None:
    changes: list[Any] = []
    with at(path, AGENT):
        was = configuration_of(agent)
        entry = _inside(plan, entry, was["adapterConfig"])
        wanted = agent_spec.settled(configuration.merged(agent, entry))
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


def _permit(ctx: Context, entry: Entry, agent: Agent) -> list[dict[str, object]]:
    changes: list[dict[str, object]] = []
    if "permissionLevel" in entry:
        level = permission_level(entry["permissionLevel"])
        if level is not agent.permission_level:
            permissions.change.body(ctx, agent=agent.id, level=level.value)
            was = agent.permission_level.value
            changes.append({"path": "permissionLevel", "was": was, "now": level.value})
            now = lookup.known_agent(ctx, agent.id)
            agent = now
    if "permissions" in entry:
        can_create = permissions.read(entry["permissions"])
        before = agent.can_create_agents
        if can_create is not None and can_create != before:
            permissions.change.body(ctx, agent=agent.id, can_create=can_create)
            key = f"permissions.{CAN_CREATE_AGENTS}"
            changes.append({"path": key, "was": before, "now": can_create})
    return changes


def _name(ctx: Context, agent: str | None) -> str:
    agent_row = lookup.agent_row(ctx, agent) if agent else None
    return agent_row.name if agent_row else "board"
