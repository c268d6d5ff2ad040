"""Everything that a company would run, reach and be lent on this machine, as plain text.

Each setting of an agent's adapter is an entry, so that nothing is hidden between those that have a
kind of their own. Values of secrets are not shown, but compared; signs that cannot be seen are
spelled out.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from remit.adapters import registry
from remit.model.connections import check as checks
from remit.model.connections.diff import visible
from remit.model.connections.folder import FolderKind
from remit.model.connections.repo import PushMode, Repo
from remit.model.connections.secret import COMMAND, shown_place
from remit.model.organisation.agent import HUMAN, Agent, AgentStatus
from remit.model.organisation.approval import Approval, ApprovalStatus, ApprovalType
from remit.model.organisation.grant import Grant, Mode, ResourceKind
from remit.model.organisation.permission import PermissionLevel, Reach
from remit.model.text import digest_of
from remit.services import lookup
from remit.services.acceptance import shapes
from remit.services.command import Context
from remit.services.connections import bindings, folders, mcp_servers
from remit.services.organisation import permissions
from remit.services.redaction import text_without_secrets, without_secrets
from remit.store.connections import folders as folder_statements
from remit.store.connections import mcp_servers as server_statements
from remit.store.connections import repos as repo_statements
from remit.store.connections import secrets as secret_statements
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import grants as grant_statements
from remit.store.organisation import people
from remit.store.paging import each
from remit.store.record import company_dump
from remit.store.record import reach as statements

#: Kinds of settings by their names; every other one is a `setting`.
_KINDS = {
    **dict.fromkeys(("command", "args", "script", "program"), "program"),
    **dict.fromkeys(("url", "cancelUrl", "cancel_url", "baseUrl", "base_url"), "address"),
    **dict.fromkeys(("provider", "model"), "model"),
    **dict.fromkeys(("secretRef", "secret_ref"), "secret"),
    "sandbox": "sandbox",
}
#: Kinds of resources whose use has an effect outside of the company's own texts.
_OF_WEIGHT = frozenset(
    {
        ResourceKind.ACTION,
        ResourceKind.MCP_SERVER,
        ResourceKind.REPO,
        ResourceKind.CHANNEL,
    }
)
_COMPANY = "the company"
_LONGEST = 1 << 20

_CHANGED = "(changed; the value is not shown)"

#: Kind, owner and text of each entry, and the true value where the text may not show all of it.
Entries = Iterator[tuple[str, str, object] | tuple[str, str, object, object]]


class Entry(NamedTuple):
    """An entry as it is shown, and a digest of the value where the text may not show all of it."""

    kind: str
    of: str
    text: str
    hidden: str = ""

    @property
    def shown(self) -> shapes.ReachShape:
        return {"kind": self.kind, "of": self.of, "text": self.text}


def of_company(ctx: Context) -> list[Entry]:
    """Everything that the entered company would run, reach and be lent."""
    names: dict[str, str] = {agent.id: agent.name for agent in _living(ctx)}
    parts = (_settings(ctx), _agents(ctx), _connections(ctx, names), _rights(ctx, names))
    return [_entry(*about) for part in (*parts, _starting(ctx, names)) for about in part]


def _entry(kind: str, of: str, text: object, *true_value: object) -> Entry:
    line = visible(_line(text), _LONGEST)
    return Entry(kind, visible(of, _LONGEST), line, *(digest_of(value) for value in true_value))


def new(before: Iterable[Entry], after: Iterable[Entry]) -> list[Entry]:
    """Return the entries that were not there before. One of which a value changed that is not shown
    says so."""
    known = set(before)
    looked_like = {entry[:3] for entry in known}
    return [
        entry._replace(text=f"{entry.text} {_CHANGED}") if entry[:3] in looked_like else entry
        for entry in after
        if entry not in known
    ]


def keys_here(entries: Iterable[shapes.ReachShape]) -> list[str]:
    """Return the keys among the entries that the environment of this process has."""
    names = {
        name
        for entry in entries
        if entry["kind"] == "key"
        for name in entry["text"].replace(",", " ").split()
    }
    return sorted(name for name in names if os.environ.get(name))


def instructions(ctx: Context) -> str:
    """Return a digest of what agents are told, and of their settings with what is not shown."""
    return digest_of(
        {
            agent.id: [agent.prompt, agent.runtime_config, agent.adapter_config]
            for agent in _living(ctx)
        }
    )


def _line(text: object) -> str:
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _living(ctx: Context) -> Iterator[Agent]:
    return each(ctx.tx, agent_statements.AGENTS, terminated_too=False)


def _settings(ctx: Context) -> Entries:
    company = ctx.tx.existing(people.COMPANY)
    if not company.require_board_approval_for_new_agents:
        yield "right", _COMPANY, "hires take effect without anybody being asked"
    if not company.require_approval_for_config_changes:
        yield "right", _COMPANY, "proposed configurations take effect without anybody being asked"
    if company.chat_llm_provider or company.chat_llm_model:
        chosen = f"{company.chat_llm_provider or ''} {company.chat_llm_model or ''}".strip()
        yield "model", _COMPANY, f"agents that agents create: {chosen}"
    if company.commit_signing:
        yield "secret", _COMPANY, f"{company.commit_signing} signs commits"
    for level, preset in permissions.current(ctx).edited.items():
        yield "right", _COMPANY, f"level {level.value}: {_line(preset.as_dict())}"


def _agents(ctx: Context) -> Entries:
    for agent in _living(ctx):
        if agent.adapter_type == HUMAN:
            continue
        config = json.loads(agent.adapter_config)
        yield "adapter", agent.name, _standing(agent)
        yield from _adapter(agent.name, config)
        if "sandbox" not in config:
            yield "sandbox", agent.name, "the usual one of its adapter"
        yield from _lent(agent, config)


def _standing(agent: Agent) -> str:
    waits = agent.status is AgentStatus.PENDING_APPROVAL
    return f"{agent.adapter_type} (its hire waits for a decision)" if waits else agent.adapter_type


def _adapter(name: str, config: Mapping[str, Any]) -> Entries:
    """Every setting of an adapter. All variables are named, as some steer a program; the value of
    most is not shown, as in requests for approval: any may be a secret."""
    variables = config.get("env")
    told = variables if isinstance(variables, Mapping) else {}
    others = {key: value for key, value in config.items() if key != "env" or not told}
    for path, value, true_value in _leaves(others, without_secrets(others)[0]):
        first = path.partition(".")[0]
        kind = _KINDS.get(first) or ("secret" if "secret" in path.lower() else "setting")
        yield kind, name, f"{path}: {_line(value)}", true_value
    for variable, value, true_value in _leaves(told, without_secrets({"env": told})[0]["env"]):
        yield "environment", name, f"{variable}={_line(value)}", true_value


def _leaves(whole: Mapping[str, Any], shown: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each leaf of a document as it is shown, with its path and its true value."""
    # Names are redacted in place. Two may be the same then, and the whole stands for each value.
    are_apart = len(whole) == len(shown)
    true_values = whole.values() if are_apart else [whole] * len(shown)
    for (name, value), true_value in zip(shown.items(), true_values, strict=True):
        if isinstance(value, Mapping) and value and isinstance(true_value, Mapping):
            for path, inner, true_inner in _leaves(true_value, value):
                yield f"{name}.{path}", inner, true_inner
        else:
            yield name, value, true_value


def _lent(agent: Agent, config: Mapping[str, Any]) -> Entries:
    if agent.adapter_type not in registry.types():
        return
    keys, login = registry.lendable(agent.adapter_type, config)
    if keys:
        yield "key", agent.name, f"those of the machine that are set of: {', '.join(keys)}"
    if login:
        yield "key", agent.name, "the login of its program on the machine, where there is no key"


def _connections(ctx: Context, names: Mapping[str, str]) -> Entries:
    here: dict[str, Any] = {"company": ctx.company}
    for secret in each(ctx.tx, secret_statements.SECRETS, **here):
        kind = "program" if secret.source == COMMAND else "secret"
        place = text_without_secrets(shown_place(secret))[0]
        yield kind, _COMPANY, f"{secret.name} from {secret.source}: {place}", secret.place
    for server in each(ctx.tx, server_statements.SERVERS, **here):
        view = mcp_servers.view(ctx, server)
        what = "program" if server.command else "address"
        called = f"MCP server {server.name}"
        yield what, called, view["command"] or view["url"], server.argv or server.url
        plain, templates = server.settings, server.templates
        parts: tuple[tuple[str, Any, Any], ...] = (
            ("env", view["env"], plain),
            ("secret_env", view["secret_env"], templates),
            ("headers", view["headers"], plain),
            ("secret_headers", view["secret_headers"], templates),
            ("inject", view["inject"], server.inject),
        )
        for key, value, true_value in parts:
            if value:
                yield "setting", called, f"{key}: {_line(value)}", true_value
    for repo in each(ctx.tx, repo_statements.REPOS, **here):
        yield from _repository(repo)
    for binding in each(ctx.tx, channel_statements.BINDINGS, agent=None, **here):
        true_config = json.loads(binding.adapter_config)
        config = bindings.shown(true_config)
        waits = ", waits for its secret" if binding.held else ""
        text = f"{binding.adapter_type}{waits}: {_line(config)}"
        owner = names.get(binding.agent_id, binding.agent_id)
        yield "channel", owner, text, true_config
    for folder in each(ctx.tx, folder_statements.FOLDERS, **here):
        owner = names.get(folder.agent_id, folder.agent_id) if folder.agent_id else _COMPANY
        title = folders.view(ctx, folder)["title"]
        reads = "reads" if folder.kind is FolderKind.TOOLS else "works in"
        settings = "".join(
            f", {text}" for text in (folder.programs, folder.variables) if len(text) > 2
        )
        yield "folder", owner, f"{reads} {title}{settings}"


def _repository(repo: Repo) -> Entries:
    """Entries of a repository: addresses, secrets, people with a say there, and commands."""
    called = f"repository {repo.name}"
    yield "address", called, _address(repo.url), repo.url
    if repo.forge:
        yield "address", called, f"forge {repo.forge} {repo.api or ''}".strip()
    match repo.push:
        case PushMode.FORK:
            fork = _address(repo.fork or "")
            yield "address", called, f"proposals are pushed to the fork {fork}", repo.fork
        case PushMode.AT_ONCE:
            yield "right", called, "proposals are pushed before anybody has looked"
    if repo.secret:
        yield "secret", called, repo.secret
    for secret, use in (
        (repo.api_secret, "opens the API of the forge"),
        (repo.hook, "signs webhooks"),
        (repo.fork_secret, "opens the fork"),
    ):
        if secret:
            yield "secret", called, f"{secret} {use}"
    if people := json.loads(repo.people):
        yield "right", called, f"people who are heard at the forge: {', '.join(people)}"
    if repo.label:
        yield "right", called, f"their label {repo.label} makes an issue an outcome"
    for check in checks.read(repo.checks):
        network = ", with the network" if check.network else ""
        yield "program", called, f"check {check.name}: {check.command}{network}"


def _address(url: str) -> str:
    return str(without_secrets({"url": url})[0]["url"])


def _rights(ctx: Context, names: Mapping[str, str]) -> Entries:
    policy = permissions.current(ctx)
    for agent in _living(ctx):
        if agent.can_create_agents:
            yield "right", agent.name, "may hire"
        level = agent.permission_level
        if policy[level].governs is not Reach.NOBODY:
            yield "right", agent.name, f"governs {policy[level].governs.value}: level {level.value}"
        elif level is not PermissionLevel.STANDARD:
            yield "right", agent.name, f"level {level.value}"
    for grant in each(ctx.tx, grant_statements.LIVE_IN_COMPANY, now=ctx.now):
        if grant.kind in _OF_WEIGHT and grant.mode is not Mode.DENY and grant.holder_id in names:
            yield "right", names[grant.holder_id], _right(grant)
    for approval in each(ctx.tx, company_dump.APPROVALS, company=ctx.company):
        if _is_unused(approval):
            payload = json.loads(approval.payload)
            asker = approval.requested_by_agent_id or ""
            what = f"approved and not yet done: {payload.get('action')} {payload.get('resource')}"
            yield "right", names.get(asker, asker), what


def _right(grant: Grant) -> str:
    asks = ", each use asks" if grant.mode is Mode.ASK else ""
    limits = "".join(
        f", {what} {_line(list(patterns))}"
        for what, patterns in (
            ("files", grant.limited_paths),
            ("branches", grant.limited_branches),
        )
        if patterns is not None
    )
    return f"{grant.level.word} {grant.resource}{limits}{asks}"


def _is_unused(approval: Approval) -> bool:
    return (
        approval.type is ApprovalType.CAPABILITY_USE
        and approval.status is ApprovalStatus.APPROVED
        and approval.used_at is None
    )


def _starting(ctx: Context, names: Mapping[str, str]) -> Entries:
    """Things that would start agents: schedules, mail that waits, and open outcomes."""
    for schedule in each(
        ctx.tx, mail_statements.SCHEDULES, company=ctx.company, agent=None, ended_too=False
    ):
        owner = names.get(schedule.agent_id, schedule.agent_id)
        when = f"{schedule.cron} ({schedule.timezone})" if schedule.cron else "once"
        yield "schedule", owner, f"{when} to {_receiver(ctx, schedule.address)}: {schedule.subject}"
    for letter in ctx.tx.all(statements.WAITING_MAIL, company=ctx.company):
        yield (
            "mail",
            names.get(letter.agent_id, letter.agent_id),
            letter.subject or "without subject",
        )
    for owner_id, number in ctx.tx.all(statements.OPEN_OUTCOMES, company=ctx.company):
        if owner_id in names:
            yield "outcome", names[owner_id], f"{number} open, for which it is started"


def _receiver(ctx: Context, address: str) -> str:
    kind, _, who = address.partition(":")
    return f"agent:{lookup.name_of(ctx, who)}" if kind == "agent" else address
