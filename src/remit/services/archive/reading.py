"""Reading an export: every field of every file is looked at before anything is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, FileId, GrantId, OutcomeId, UserId, is_id
from remit.model.agent import Agent, AgentRole, AgentStatus, agent_name
from remit.model.company import Company, company_name, review_hours
from remit.model.file import LONGEST_DESCRIPTION, File, FileKind, Version
from remit.model.grant import Grant, parse_level, parse_mode, parse_resource
from remit.model.limit import changed as with_limits
from remit.model.mail import Messaging
from remit.model.outcome import LONGEST_TITLE, Look, Outcome, OutcomeKind, OutcomeStatus
from remit.model.permission import CAN_CREATE_AGENTS as _HIRING
from remit.model.permission import PermissionLevel, permissions, policy
from remit.model.text import clean_line, clean_text
from remit.services.archive import governance, layout, mail
from remit.services.archive.fields import Fields
from remit.services.archive.folder import Folder, Piece
from remit.services.archive.plan import Plan, Stored
from remit.services.archive.text import load, split_prose
from remit.services.posts import (
    LONGEST_CAPABILITIES,
    LONGEST_PROMPT,
    adapter,
    budget,
    document,
)
from remit.store.agents import Place

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def read(folder: Folder, importer: UserId) -> Plan:
    """What the folder says, each part by itself; `checking` looks at how the parts fit."""
    about = load(layout.COMPANY, folder.read(layout.COMPANY))
    plan = Plan(_company(Fields(layout.COMPANY, about)), importer)
    for path in folder.below("agents"):
        _agent(plan, folder, path)
    prose: dict[str, Piece] = {}
    for path in folder.below("outcomes"):
        _outcome(plan, folder, path, prose)
    for path in folder.below("files"):
        if path.endswith("/meta.toml"):
            _file(plan, folder, path, prose)
    for where, row in folder.lines(layout.GRANTS):
        _grant(plan, Fields(where, row))
    if about["format"] != layout.WITHOUT_MAIL:
        mail.read(plan, folder)
    if about["format"] >= layout.WITH_GOVERNANCE:
        governance.read(plan, folder)
    folder.check_all_taken(layout.README, layout.ATTRIBUTES, layout.EVENTS)
    return plan


def _company(fields: Fields) -> Company:
    written = fields.number("format", most=layout.FORMAT)
    name = fields.clean("name", company_name)
    return Company(
        id=CompanyId(fields.id("id")),
        name=name,
        messaging=Messaging.CHAIN
        if written == layout.WITHOUT_MAIL
        else fields.one_of("messaging", Messaging),
        require_board_approval_for_new_agents=_said(
            fields, "require_board_approval_for_new_agents", written
        ),
        require_approval_for_config_changes=_said(
            fields, "require_approval_for_config_changes", written
        ),
        chat_llm_provider=_default(fields, "chat_llm_provider"),
        chat_llm_model=_default(fields, "chat_llm_model"),
        review_hours=review_hours(_default(fields, "review_hours") or ""),
        permission_policy=fields.maybe("permission_policy", _policy) or "{}",
        created_at=fields.time("created_at"),
        limits=_limits(fields),
    )


def _said(fields: Fields, name: str, written: int) -> bool:
    """People want to be asked, where an older export does not say."""
    return fields.flag(name) or (written < layout.WITH_GOVERNANCE and fields.get(name) is None)


def _limits(fields: Fields) -> str:
    given = fields.get("limits")
    try:
        return "{}" if given is None else with_limits("{}", given)
    except BadInput as error:
        raise fields.wrong("limits", f"are refused: {error.sentence.rstrip('.')}") from None


def _policy(text: object) -> str:
    try:
        return policy(str(text)).stored()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput("It is no permission policy.") from None


def _default(fields: Fields, name: str) -> str | None:
    return fields.maybe(name, lambda text: clean_line(text, name, longest=100))


def _agent(plan: Plan, folder: Folder, path: str) -> None:
    table, prose = split_prose(path, folder.read(path))
    fields = Fields(path, table)
    status = fields.one_of("status", AgentStatus)
    boss = fields.boss()
    agent = Agent(
        id=AgentId(fields.id("id")),
        company_id=plan.company.id,
        name=fields.clean("name", agent_name),
        role=fields.one_of("role", AgentRole),
        title=fields.clean(
            "title", lambda text: clean_line(text, "title", longest=100, empty_ok=True)
        ),
        status=AgentStatus.IDLE if status is AgentStatus.RUNNING else status,
        boss_id=boss,
        boss_user_id=None if boss else plan.importer,
        adapter_type=fields.clean("adapter_type", adapter),
        adapter_config=_config(fields, "adapter_config"),
        seat_user_id=None,
        prompt=_prompt(fields, prose),
        capabilities=_capabilities(fields),
        permissions=_permissions(fields),
        permission_level=PermissionLevel.STANDARD
        if fields.get("permission_level") is None
        else fields.one_of("permission_level", PermissionLevel),
        runtime_config=_config(fields, "runtime_config"),
        budget_monthly_cents=fields.maybe("budget_monthly_cents", budget),
        budget_monthly_tokens=fields.maybe("budget_monthly_tokens", budget),
        metadata=_config(fields, "metadata"),
        config_revision=1
        if fields.get("config_revision") is None
        else fields.number("config_revision"),
        state_file_id=FileId(fields.id("state_file")),
        log_file_id=FileId(fields.id("log_file")),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
    )
    for place in fields.tables("places"):
        above = place.boss()
        since, until = place.time("since"), place.maybe_time("until")
        plan.places.append(Place(agent.id, above, None if above else plan.importer, since, until))
        place.done()
    if fields.id("mandate") != agent.id:
        raise fields.wrong("mandate", "must be the id of the agent")
    if removed := fields.texts("removed"):
        plan.removed[agent.name] = removed
    fields.done()
    if path != layout.agent_path(agent):
        raise BadInput(f"{path}: belongs at {layout.agent_path(agent)}.")
    plan.add(plan.agents, agent.id, agent, path)


def _permissions(fields: Fields) -> str:
    said = fields.get("can_create_agents")
    return permissions({_HIRING: None if said is None else fields.flag("can_create_agents")})


def _capabilities(fields: Fields) -> str:
    return (
        fields.maybe(
            "capabilities",
            lambda text: clean_text(text, "capabilities", longest=LONGEST_CAPABILITIES),
        )
        or ""
    )


def _config(fields: Fields, name: str) -> str:
    text = fields.get(name)
    if text is None:
        return document({}, name)
    try:
        config = json.loads(text, parse_constant=_refuse) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise fields.wrong(name, "must be a JSON object")
    try:
        return document(config, name)
    except BadInput as error:
        raise fields.wrong(name, f"is refused: {error.sentence}") from None


def _refuse(_: str) -> None:
    raise ValueError


def _prompt(fields: Fields, prose: bytes) -> str:
    try:
        text = prose.decode()
        if clean_text(text, "prompt", longest=LONGEST_PROMPT, empty_ok=True) == text:
            return text
    except (UnicodeDecodeError, BadInput):
        pass
    raise fields.wrong("the prompt", "must be trimmed text that is not too long")


def _outcome(plan: Plan, folder: Folder, path: str, prose: dict[str, Piece]) -> None:
    document = folder.read(path)
    table, written = split_prose(path, document)
    fields = Fields(path, table)
    outcome_id = OutcomeId(path.removeprefix("outcomes/").removesuffix(".md"))
    if not is_id(outcome_id) or path != layout.outcome_path(outcome_id):
        raise BadInput(f"{path}: must be named by the outcome's id.")
    fields.get("mandate")  # a remark for readers
    deferred = fields.maybe_time("deferred_until")
    outcome = Outcome(
        id=outcome_id,
        company_id=plan.company.id,
        kind=OutcomeKind.WORK if fields.get("kind") is None else fields.one_of("kind", OutcomeKind),
        title=fields.clean("title", lambda text: clean_line(text, "title", longest=LONGEST_TITLE)),
        status=fields.one_of("status", OutcomeStatus),
        perpetual=fields.flag("perpetual"),
        owner_id=AgentId(fields.id("owner")),
        delegated=fields.flag("delegated"),
        delegator_id=_as(AgentId, fields.maybe_id("delegator")),
        urgent=fields.flag("urgent"),
        important=fields.flag("important"),
        deferred_until=deferred,
        look_at=deferred,
        look_for=None if deferred is None else Look.DEFERRAL,
        open_prereqs=0,
        verdict=_verdict(plan, fields),
        version=fields.number("version"),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
        finished_at=fields.maybe_time("finished_at"),
    )
    plan.parents[outcome.id] = [OutcomeId(one) for one in fields.ids("parents")]
    plan.blockers[outcome.id] = [OutcomeId(one) for one in fields.ids("blocked_by")]
    fields.done()
    behind = folder.pieces[path].offset + len(document) - (len(written) + 1 if written else 0)
    if written and not document.endswith(written + b"\n"):
        behind += 1  # somebody's editor took the last line's end
    prose[outcome.id] = Piece(path, behind, len(written))
    plan.outcomes[outcome.id] = outcome


def _verdict(plan: Plan, fields: Fields) -> str | None:
    if fields.get("verdict") is None:
        return None
    given = Fields(f"{fields.path}, verdict", fields.get("verdict"))
    agent, user = given.author("by", plan.importer)
    evidence = []
    for seen in given.tables("evidence"):
        evidence.append(
            {"id": seen.id("file"), "version": seen.number("version"), "hash": _sha256(seen)}
        )
        seen.done()
    verdict = {
        "note": given.clean(
            "note", lambda text: clean_text(text, "note", longest=20_000, empty_ok=True)
        ),
        "evidence": evidence,
        "by": f"agent:{agent}" if agent else f"user:{user}" if user else "system:",
        "run_id": given.maybe_id("run"),
    }
    given.done()
    return json.dumps(verdict)


def _file(plan: Plan, folder: Folder, path: str, prose: Mapping[str, Piece]) -> None:
    fields = Fields(path, load(path, folder.read(path)))
    file_id = FileId(path.removeprefix("files/").removesuffix("/meta.toml"))
    if not is_id(file_id):
        raise BadInput(f"{path}: must be in a folder that is named by the file's id.")
    versions: list[Version] = []
    for given in fields.tables("versions"):
        agent, user = given.author("by", plan.importer)
        versions.append(
            Version(
                file_id=file_id,
                number=given.number("number"),
                sha256=_sha256(given),
                size=given.number("size", least=0, most=2**40),
                is_text=True,
                at=given.time("at"),
                agent_id=agent,
                user_id=user,
                run_id=None,
            )
        )
        given.done()
        if versions[-1].number != len(versions):
            raise given.wrong("number", f"must be {len(versions)}")
    if not versions:
        raise fields.wrong("versions", "is missing")
    latest = versions[-1]
    file = File(
        id=file_id,
        company_id=plan.company.id,
        kind=fields.one_of("kind", FileKind),
        description=fields.clean(
            "description",
            lambda text: clean_text(text, "description", longest=LONGEST_DESCRIPTION),
        ),
        unlisted=fields.flag("unlisted"),
        home_agent_id=_as(AgentId, fields.maybe_id("home")),
        version=latest.number,
        sha256=latest.sha256,
        size=latest.size,
        is_text=True,
        links=0,
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
    )
    fields.done()
    pieces = []
    for version in versions:
        where = layout.version_path(file, version.number)
        piece = prose.get(file_id) if where.startswith("outcomes/") else folder.take(where)
        if piece is None:
            raise BadInput(f"{path}: is the document of an outcome that is not here.")
        if piece.size != version.size:
            raise BadInput(
                f"{where}: is {piece.size} bytes, and {path} says {version.size}.",
                "Export the company again.",
            )
        pieces.append(piece)
    plan.files[file.id] = Stored(file, tuple(versions), tuple(pieces))


def _grant(plan: Plan, fields: Fields) -> None:
    resource = fields.clean("resource", parse_resource)
    if str(resource) != fields.get("resource"):
        raise fields.wrong("resource", "is not written as Remit writes it")
    agent, user = fields.author("granted_by", plan.importer)
    grant = Grant(
        id=GrantId(fields.id("id")),
        company_id=plan.company.id,
        holder_id=AgentId(fields.id("holder")),
        kind=resource.kind,
        resource_id=resource.id,
        level=fields.clean("level", lambda text: parse_level(text, resource.kind)),
        mode=fields.clean("mode", parse_mode),
        scope_id=_as(OutcomeId, fields.maybe_id("scope")),
        parent_id=_as(GrantId, fields.maybe_id("parent")),
        granted_by_agent=agent,
        granted_by_user=user,
        created_at=fields.time("created_at"),
        expires_at=fields.maybe_time("expires_at"),
        revoked_at=None,
        used_at=fields.maybe_time("used_at"),
    )
    fields.done()
    plan.add(plan.grants, grant.id, grant, fields.path)


def _sha256(fields: Fields) -> str:
    found = fields.get("sha256")
    if not isinstance(found, str) or len(found) != 64 or set(found) - set("0123456789abcdef"):
        raise fields.wrong("sha256", "must be 64 hex digits")
    return found


def _as(kind: Callable[[str], T], value: str | None) -> T | None:
    return None if value is None else kind(value)
