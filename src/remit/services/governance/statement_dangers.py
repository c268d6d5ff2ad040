"""Dangers of a request, in sentences of Remit; they stand first in its statement.

A value is quoted in a sentence as far as it is short; the whole of it stands among the leaves.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from remit.model.connections.secret import named_in, shown_place
from remit.model.organisation.agent_spec import AgentRole
from remit.model.organisation.configuration import FULL
from remit.model.organisation.grant import (
    AGENT_CREATE,
    APPROVAL_DECIDE,
    FULL_ACCESS,
    INSTANCE_CONFIGURE,
    Mode,
)
from remit.model.organisation.permission import CAN_CREATE_AGENTS, PermissionLevel
from remit.model.organisation.principal import ActorKind
from remit.model.spelling import spelled
from remit.model.text import monthly
from remit.services.command import Context
from remit.services.redaction import REMOVED
from remit.store.connections import mcp_servers as server_statements
from remit.store.connections import secrets as secret_statements

_LONGEST_QUOTED: Final = 160
_MOST_NAMED: Final = 10
_ACTIONS: Final = {
    AGENT_CREATE: "It may hire agents",
    APPROVAL_DECIDE: "It may decide what agents below it ask for",
    FULL_ACCESS: "Its programs may run outside the sandbox, with all that the user of this "
    "instance may do",
    INSTANCE_CONFIGURE: "It may change the settings of this instance",
}
_LEVELS: Final = frozenset({"write", "propose", "merge"})
#: A setting, or an argument of a program, that takes away a question or a wall.
_BYPASSES: Final = re.compile(
    r"bypass|danger|yolo|skip[-_ ]?permission|no[-_ ]?sandbox|full[-_ ]?(?:access|auto)"
    r"|trust[-_ ]?all",
    re.IGNORECASE,
)
_PROGRAMS: Final = frozenset({"command", "cmd", "argv", "args", "program", "executable", "hooks"})
_SECRETS: Final = frozenset({"secretref", "secret"})
_ADDRESSES: Final = frozenset({"url", "cancelurl", "baseurl"})


def of_configuration(
    ctx: Context, now: Mapping[str, Any], was: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Dangers of a configuration without secrets; what `was` there before is said to be so."""
    before = set() if was is None else set(_configured(ctx, was))
    for sentence in dict.fromkeys(_configured(ctx, now)):
        yield f"{sentence} It is so already." if sentence in before else sentence
    budget = monthly(now)
    if budget and (was is None or monthly(was) != budget):
        yield f"It may spend {budget}."
    elif was is not None and monthly(was) and not budget:
        yield f"Its monthly budget of {monthly(was)} is taken away: it has none then."


def of_hire(payload: Mapping[str, Any]) -> Iterator[str]:
    """Dangers of a hire besides its configuration: permissions, level and grants."""
    permission = _object(payload.get("permissions")).get(CAN_CREATE_AGENTS)
    leads = payload.get("role") == AgentRole.CEO and not payload.get("reportsTo")
    if permission or (permission is None and leads):
        yield f"{_ACTIONS[AGENT_CREATE]}."
    level = payload.get("permissionLevel")
    if level not in (None, PermissionLevel.STANDARD.value, PermissionLevel.RESTRICTED.value):
        yield f"It has the permission level {_quoted(level)}; the company's policy says its rights."
    for kind, amount in _object(payload.get("setAside")).items():
        share = f"{spelled(str(kind))} {spelled(str(amount))}"
        yield f"Set aside for it out of its boss's budget: {share}."


def of_grants(ctx: Context, grants: object) -> Iterator[str]:
    """Dangers of the rights that come with a request."""
    for grant in grants if isinstance(grants, list) else []:
        if not isinstance(grant, dict) or grant.get("mode") == Mode.DENY.value:
            continue
        resource, level = str(grant.get("resource")), str(grant.get("level"))
        asks = ", each use after an approval" if grant.get("mode") == Mode.ASK.value else ""
        if resource in _ACTIONS:
            yield f"{_ACTIONS[resource]} ({resource}){asks}."
        elif resource.startswith("mcp_server:"):
            yield f"It may call the tools of {_quoted(resource)}{asks}{_lent_by(ctx, resource)}."
        elif level in _LEVELS:
            yield f"It may {level} {_quoted(resource)}{asks}."


def of_call(ctx: Context, payload: Mapping[str, Any]) -> Iterator[str]:
    """Dangers of one use of a capability."""
    resource, action = str(payload.get("resource")), str(payload.get("action"))
    if resource in _ACTIONS:
        yield f"{_ACTIONS[resource]} ({resource})."
    if action == "change.merge":
        yield "The commits below are merged into the repository."
    elif resource.startswith("mcp_server:"):
        yield f"A tool of {_quoted(resource)} is called{_lent_by(ctx, resource)}."


def of_files(by_mark: Mapping[str, list[str]]) -> Iterator[str]:
    """Dangers of files that a merge changes, by their marks."""
    for mark, paths in by_mark.items():
        yield f"The merge changes files, marked “{mark}”: {_some(paths)}."


def of_secrets(paths: list[str]) -> Iterator[str]:
    """Say where secrets were written into a request, because nobody sees what stands there."""
    if paths:
        yield (
            f"Something that looks like a secret is not shown at {_some(paths)}. Approve it only "
            "if you know what stands there."
        )


def _configured(ctx: Context, config: Mapping[str, Any]) -> Iterator[str]:
    settings = _object(config.get("adapterConfig"))
    if settings.get("sandbox") == FULL:
        yield (
            "Full access: its program runs outside the sandbox, with all that the user of this "
            "instance may do (sandbox: full)."
        )
    for top in ("adapterConfig", "runtimeConfig"):
        yield from _in_settings(ctx, _object(config.get(top)))


def _in_settings(ctx: Context, settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        shown, plain = spelled(str(name)), str(name).replace("_", "").casefold()
        if plain in _PROGRAMS and value and not (plain == "args" and settings.get("command")):
            command = _command(value, settings.get("args") if plain == "command" else None)
            yield f"A program runs on the machine: {shown} {_quoted(command)}."
        if plain in _SECRETS and isinstance(value, str) and value:
            yield f"It is lent the secret {_quoted(value)}, {_source(ctx, value)}."
        if plain in _ADDRESSES and isinstance(value, str) and value:
            yield f"Requests go to {_quoted(value)} ({shown}), with what the agent is lent."
        for text in (shown, *_texts(value)):
            if len(text) <= _LONGEST_QUOTED and _BYPASSES.search(text) and value is not False:
                yield f"It is not asked, or not held, where others are: {shown} {_quoted(text)}."
                break
        if isinstance(value, Mapping):
            yield from _in_settings(ctx, value)
        elif isinstance(value, list):
            for inner in value:
                yield from _in_settings(ctx, _object(inner))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, str))


def _command(value: object, arguments: object) -> str:
    """A program with its arguments, as one types it."""
    parts = [*(value if isinstance(value, list) else [value])]
    parts += arguments if isinstance(arguments, list) else []
    if all(isinstance(part, str) for part in parts):
        return shlex.join(parts) if len(parts) > 1 else parts[0]
    return str(value)


def _source(ctx: Context, name: str) -> str:
    """Where the value of a secret comes from; an agent learns the kind of source alone."""
    secret = ctx.tx.one(secret_statements.SECRET_NAMED, name=name)
    if secret is None:
        return "which is not registered here"
    if ctx.actor.kind is ActorKind.AGENT:
        return f"whose value comes from a source of the kind {spelled(secret.source)}"
    return f"whose value comes from {spelled(secret.source)}: {_quoted(shown_place(secret))}"


def _lent_by(ctx: Context, resource: str) -> str:
    """The secrets that an MCP server is called with."""
    server = ctx.tx.one(server_statements.SERVER_NAMED, name=resource.partition(":")[2])
    names = [] if server is None else named_in(server.templates.values())
    lent = "; ".join(f"{_quoted(name)}, {_source(ctx, name)}" for name in names)
    return f", which has the secret {lent}" if lent else ""


def _some(paths: list[str]) -> str:
    """The first of several paths, and how many more there are."""
    named = ", ".join(map(_quoted, paths[:_MOST_NAMED]))
    return f"{named} and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else named


def _quoted(value: object) -> str:
    shown = spelled(" ⏎ ".join(str(value).split("\n")))
    cut = shown if len(shown) <= _LONGEST_QUOTED else f"{shown[: _LONGEST_QUOTED - 1]}…"
    return f"“{cut}”" if cut != REMOVED else cut


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
