"""The statement of an approval: all that it would apply, for whoever decides, on any surface.

It is made of the payload whose digest the approval has, without its secrets, and of what that
binds, such as a content by its hash. Dangers stand first, in words; then for whom it is; then every
leaf of the payload under its name. All of it is plain text in which nothing is invisible, and the
requester's own words cannot be taken for another line. A surface that does not show a statement
whole does not let anybody approve.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from remit.errors import RemitError
from remit.ids import is_id
from remit.model.organisation.agent import Agent
from remit.model.organisation.approval import Approval, ApprovalType, Look, Revision
from remit.model.organisation.configuration import configuration_of
from remit.model.organisation.statement import EntryKind
from remit.model.organisation.statement import as_text as as_text
from remit.model.spelling import spelled
from remit.model.text import monthly
from remit.services import lookup
from remit.services.command import Context
from remit.services.governance import approval_engine
from remit.services.governance import statement_contents as contents
from remit.services.governance import statement_dangers as dangers
from remit.services.governance.shapes import EntryShape, StatementSectionShape, StatementShape
from remit.services.governance.statement_leaves import (
    differences,
    entry,
    fact,
    leaves,
    words,
)
from remit.services.governance.statement_secrets import without_secret_words
from remit.services.hiring import configuration, helper_creation
from remit.services.messaging import origins
from remit.services.redaction import text_without_secrets
from remit.services.screens import name_lookup
from remit.services.shape_basics import JsonObject
from remit.store.execution import runs as run_statements
from remit.store.organisation import governance as statements

_SNAPSHOT: Final = "requestedConfigurationSnapshot"
#: Keys that are shown in sections of their own.
_APART: Final = frozenset(
    {_SNAPSHOT, "grants", "configuration", "difference", "arguments", "prepared"}
)
#: Keys for programs; they stand last.
_RECORD: Final = frozenset(
    {"agentId", "requestedByAgentId", "baseRevision", "changed", "verb", "version", "basis"}
    | {"options"}
)
#: Keys that are computed from others.
_DERIVED: Final = frozenset({"difference", "changed", "baseRevision"})
_KINDS: Final = {"outcome": "outcome", "kb_file": "file", "change": "change"}
_MOST_NAMED: Final = 100
_SAME: Final = "Nothing that is shown is different."
_ALTERED: Final = (
    "The request was altered after it was made. Reject it, and have it asked for anew."
)
TAKE_NOTE: Final = "Take note"


def of(ctx: Context, approval: Approval) -> StatementShape:
    """Return the statement of an approval for the caller, who may see the approval."""
    raw: JsonObject = json.loads(approval.payload)
    payload, redacted = without_secret_words(raw)
    names = _names(ctx, payload)
    may_decide = approval_engine.may_be_decided(ctx, approval)
    mine = may_decide or approval.requester == ctx.actor.address
    stored = contents.written(ctx, approval, raw.get("arguments"), mine=mine)
    merge = contents.merged(ctx, payload) if payload.get("action") == "change.merge" else None
    altered = approval_engine.is_altered(ctx, approval)
    seen = _looks(ctx, approval)
    warnings = [_ALTERED] if altered else []
    warnings += [
        *_dangers(ctx, approval, raw, payload),
        *([] if merge is None else merge.dangers),
        *dangers.of_secrets(_stated(redacted)),
    ]
    sections = [
        _section(TAKE_NOTE, (entry("", EntryKind.DANGER, text) for text in warnings)),
        _section("For whom", _for_whom(ctx, approval, payload)),
        _since(ctx, approval, seen),
        _section("Content", stored.entries),
        _section("Merge", [] if merge is None else merge.entries),
        *_parts(ctx, approval, raw, payload, names),
        _section("For the record", _record(approval, payload, names)),
    ]
    return {
        "revision": approval.revision,
        "whole": not altered and stored.whole and (merge is None or merge.whole),
        "may_decide": may_decide,
        "seen": approval.revision in seen,
        "sections": [section for section in sections if section["entries"]],
    }


def looked(ctx: Context, approval: Approval, statement: StatementShape) -> None:
    """Remember that the caller saw all of this revision, if they may decide about it."""
    if statement["may_decide"] and statement["whole"] and not statement["seen"]:
        ctx.lock_company()  # nobody else remembers the same look meanwhile
        if approval.revision not in _looks(ctx, approval):
            look = (approval.id, approval.company_id, ctx.actor.address, approval.revision)
            ctx.tx.add(Look(*look, ctx.now))


def _looks(ctx: Context, approval: Approval) -> set[int]:
    """Revisions of an approval that the caller has seen."""
    return set(ctx.tx.all(statements.LOOKS, approval=approval.id, reader=ctx.actor.address))


def _stated(paths: Iterable[str]) -> list[str]:
    """Paths in a payload, as its statement names them."""
    shown = (path for path in paths if path.partition("[")[0] not in _DERIVED)
    return list(dict.fromkeys(map(_stated_name, shown)))


def _stated_name(path: str) -> str:
    """A path without the object that has a section of its own."""
    for above in (_SNAPSHOT, "configuration", "arguments", "prepared"):
        path = path.removeprefix(f"{above}.")
    return path


def _section(title: str, entries: Iterable[EntryShape]) -> StatementSectionShape:
    return {"title": title, "entries": list(entries)}


# ── what it would apply ─────────────────────────────────────────────────────────────────────────


def _parts(
    ctx: Context,
    approval: Approval,
    raw: JsonObject,
    payload: JsonObject,
    names: Mapping[str, str],
) -> Iterator[StatementSectionShape]:
    """The leaves of a payload, in sections by its type; what no type knows is shown, too."""
    rest = {key: value for key, value in payload.items() if key not in _RECORD | _APART}
    match approval.type:
        case ApprovalType.HIRE_AGENT:
            config = [*_object(payload, _SNAPSHOT, names), *_no_budget(payload.get(_SNAPSHOT))]
            # A hire has its name, role and title twice; where they are equal they stand once.
            hire = [shown for shown in leaves(rest, names) if shown not in config]
            yield _section("The hire", hire)
            yield _section("Grants", _list(payload, "grants", names))
            yield _section("Configuration", config)
            shown = {_SNAPSHOT, "grants"}
        case ApprovalType.CONFIG_CHANGE:
            yield _section("The proposal", leaves(rest, names))
            yield _section("Changes", _configured(ctx, raw, payload))
            shown = {"configuration", "difference"}
        case ApprovalType.CAPABILITY_USE:
            yield _section("The call", leaves(rest, names))
            yield _section("With", _object(payload, "arguments", names, empty=True))
            helper = _helper(ctx, approval, raw)
            created = [*leaves(helper or {}, names), *_no_budget(helper)]
            yield _section("The agent that it creates", created)
            yield _section("Made ready by Remit", _object(payload, "prepared", names))
            shown = {"arguments", "prepared"}
        case _:
            yield _section("The request", leaves(rest, names))
            shown = set()
    others = {key: payload[key] for key in payload if key in _APART - shown}
    yield _section("Also in the request", leaves(others, names))


def _no_budget(config: object) -> Iterator[EntryShape]:
    """An entry for the settings of a new agent that has no monthly budget."""
    if isinstance(config, Mapping) and not monthly(config):
        without = "none of its own; only the company's limits hold what it spends"
        yield fact("monthly budget", without)


def _object(
    payload: JsonObject, key: str, names: Mapping[str, str], *, empty: bool = False
) -> Iterator[EntryShape]:
    """The leaves of an object in a payload, under their own names."""
    value = payload.get(key)
    if isinstance(value, Mapping):
        yield from leaves(value, names, empty=empty)
    elif value is not None:
        yield from leaves({key: value}, names)


def _list(payload: JsonObject, key: str, names: Mapping[str, str]) -> Iterator[EntryShape]:
    yield from leaves({key: payload.get(key)}, names)


def _configured(ctx: Context, raw: JsonObject, payload: JsonObject) -> Iterator[EntryShape]:
    """Changes of a proposal to the configuration for which it was made."""
    now = payload.get("configuration")
    if not isinstance(now, dict):
        return
    agent = lookup.agent_row(ctx, str(payload.get("agentId") or ""))
    was = None if agent is None else _configuration_at(ctx, agent, payload.get("baseRevision"))
    if agent is not None and agent.config_revision != payload.get("baseRevision"):
        moved = "It was configured differently meanwhile, so this cannot be applied any more."
        yield entry("", EntryKind.NOTE, moved)
    if was is None or not configuration.is_readable(ctx):
        yield from leaves(now, {}, empty=True)
        return
    kept = {key: was.get(key) for key in raw["configuration"]}
    yield from differences(kept, raw["configuration"], without_secret_words(kept)[0], now)


def _configuration_at(ctx: Context, agent: Agent, revision: object) -> JsonObject | None:
    if agent.config_revision == revision:
        return configuration_of(agent)
    kept = ctx.tx.one(statements.CONFIG_REVISION, agent=agent.id, revision="", number=revision)
    return None if kept is None else json.loads(kept.config)


def _helper(ctx: Context, approval: Approval, raw: JsonObject) -> JsonObject | None:
    """The configuration of the agent that a call of `create_agent` makes, without secrets."""
    asker = lookup.agent_row(ctx, approval.requested_by_agent_id or "")
    if raw.get("verb") != helper_creation.create_agent.name or asker is None:
        return None
    with suppress(RemitError):  # what it refuses is refused when it is approved
        spec = helper_creation.asked_for(ctx, asker, raw["arguments"])
        shown: JsonObject = without_secret_words(configuration_of(spec))[0]
        return shown
    return None


def _record(
    approval: Approval, payload: JsonObject, names: Mapping[str, str]
) -> Iterator[EntryShape]:
    yield fact("approval", approval.id)
    yield fact("type", approval.type.value)
    yield fact("revision", approval.revision)
    yield fact("digest", approval.digest)
    kept = {key: value for key, value in payload.items() if key in _RECORD}
    yield from leaves(kept, names)


# ── dangers, and for whom ───────────────────────────────────────────────────────────────────────


def _dangers(
    ctx: Context, approval: Approval, raw: JsonObject, payload: JsonObject
) -> Iterator[str]:
    match approval.type:
        case ApprovalType.HIRE_AGENT:
            config = payload.get(_SNAPSHOT)
            yield from dangers.of_configuration(ctx, config if isinstance(config, dict) else {})
            yield from dangers.of_hire(payload)
            yield from dangers.of_grants(ctx, payload.get("grants"))
        case ApprovalType.CONFIG_CHANGE:
            agent = lookup.agent_row(ctx, str(payload.get("agentId") or ""))
            wanted = payload.get("configuration")
            if agent is not None and isinstance(wanted, dict):
                now = without_secret_words(configuration_of(agent))[0]
                yield from dangers.of_configuration(ctx, {**now, **wanted}, now)
        case ApprovalType.CAPABILITY_USE:
            yield from dangers.of_call(ctx, payload)
            if (helper := _helper(ctx, approval, raw)) is not None:
                yield from dangers.of_configuration(ctx, helper)
        case ApprovalType.BUDGET:
            agent = lookup.agent_row(ctx, str(payload.get("agentId") or ""))
            now_has = "" if agent is None else monthly(configuration_of(agent))
            yield f"It may spend {monthly(payload)}; now it has {now_has or 'no budget'}."
        case _:
            return


def _for_whom(ctx: Context, approval: Approval, payload: JsonObject) -> Iterator[EntryShape]:
    """Requester, outcome, and the person whose letter led to it."""
    yield fact("asked by", _who(ctx, approval.requested_by_agent_id, approval.requested_by_user_id))
    if approval.agent_id is not None and approval.agent_id != approval.requested_by_agent_id:
        yield fact("about", lookup.name_of(ctx, approval.agent_id))
    run = approval.requested_by_run_id and ctx.tx.one(
        run_statements.RUN, run=approval.requested_by_run_id
    )
    meant = [payload.get("outcomeId"), *(json.loads(run.outcome_ids) if run else [])]
    wanted = [f"outcome:{outcome}" for outcome in dict.fromkeys(filter(None, meant))]
    titles = name_lookup.known_titles(ctx, wanted)
    for resource in wanted:
        if resource in titles:
            yield words("for the outcome", text_without_secrets(titles[resource])[0])
    letter = origins.of_run(ctx, run) if run else None
    message = lookup.message_row(ctx, letter) if letter is not None else None
    if message is not None and message.sender_user_id is not None:
        yield fact("for the person", lookup.user_name(ctx, message.sender_user_id, "somebody"))


def _who(ctx: Context, agent: str | None, user: str | None) -> str:
    if agent is not None:
        return f"agent {lookup.name_of(ctx, agent)}"
    return lookup.user_name(ctx, user, "somebody")


def _names(ctx: Context, payload: JsonObject) -> dict[str, str]:
    """Names of the ids in a payload, as far as the caller may know them."""
    ids = sorted({id_ for text in _texts(payload) if is_id(id_ := text.rpartition(":")[2])})
    known = name_lookup.parties(ctx, ids[:_MOST_NAMED])
    others = [id_ for id_ in ids[:_MOST_NAMED] if id_ not in known]
    resources = [f"{kind}:{id_}" for id_ in others for kind in ("outcome", "kb_file", "change")]
    titles = name_lookup.known_titles(ctx, resources)
    named = {
        resource.partition(":")[2]: f"{_KINDS[resource.partition(':')[0]]} “{spelled(title)}”"
        for resource, title in titles.items()
    }
    return {**named, **known}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


# ── looks ───────────────────────────────────────────────────────────────────────────────────────


def _since(ctx: Context, approval: Approval, seen: set[int]) -> StatementSectionShape:
    """Changes since the revision that the reader saw last, or else since the one before."""
    if approval.revision == 1:
        return _section("", ())
    last = max((number for number in seen if number < approval.revision), default=None)
    number = approval.revision - 1 if last is None else last
    earlier = ctx.tx.one(statements.REVISION, approval=approval.id, number=number)
    if earlier is None:
        return _section("", ())
    saw = "which you saw" if last is not None else "the one before"
    title = f"Changed since revision {number}, {saw}"
    now = ctx.tx.one(statements.REVISION, approval=approval.id, number=approval.revision)
    return _section(title, [] if now is None else changes(earlier, now))


def changes(earlier: Revision, later: Revision) -> list[EntryShape]:
    """Differences between two revisions of a request."""
    raw: list[JsonObject] = [json.loads(revision.payload) for revision in (earlier, later)]
    sides = [
        {key: value for key, value in side.items() if key not in _DERIVED}
        for side in (*raw, *(without_secret_words(payload)[0] for payload in raw))
    ]
    by_name: dict[str, EntryShape] = {}
    for changed in differences(*sides):
        name = _stated_name(changed["name"])
        by_name.setdefault(name, {**changed, "name": name})
    return list(by_name.values()) or [entry("", EntryKind.NOTE, _SAME)]
