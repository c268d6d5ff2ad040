"""Reading an export: every field of every file is validated before use."""

import json
from collections.abc import Mapping
from typing import TypeVar

from remit.errors import BadInput
from remit.ids import FileId, OutcomeId, UserId, is_id
from remit.model.organisation.agent_spec import FIELDS, permissions
from remit.model.organisation.company import Company, company_name
from remit.model.organisation.grant import parse_level, parse_resource
from remit.model.organisation.permission import CAN_CREATE_AGENTS as _HIRING
from remit.model.text import clean_text
from remit.model.work.file import Version
from remit.model.work.outcome import Look
from remit.services.archive import connections, governance, layout, mail
from remit.services.archive.fields import Fields
from remit.services.archive.plan import Plan, Stored
from remit.services.archive.tar import Folder, Piece
from remit.services.archive.text import load, split_prose

T = TypeVar("T")


def read(folder: Folder, importer: UserId) -> Plan:
    """Read the folder, each part by itself; `checking` checks how the parts fit."""
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
    readers = {layout.GRANTS: _grant}
    if about["format"] != layout.WITHOUT_MAIL:
        readers |= mail.READERS
    if about["format"] >= layout.WITH_GOVERNANCE:
        readers |= governance.READERS
    if about["format"] >= layout.WITH_BINDINGS:
        readers |= connections.READERS
    for file, read_line in readers.items():
        for where, row in folder.lines(file):
            read_line(plan, plan.fields(where, row))
    if layout.SETUP in folder.pieces:
        sections = load(layout.SETUP, folder.read(layout.SETUP)).values()
        plan.setup = sum(len(section) for section in sections if isinstance(section, list))
    folder.check_all_taken(layout.README, layout.ATTRIBUTES, layout.EVENTS)
    return plan


def _company(fields: Fields) -> Company:
    written = fields.number("format", most=layout.FORMAT)
    fields.clean("name", company_name)  # errors in names come before those in what Remit wrote
    # Older exports lack the settings; the default is to require approval.
    silent = [name for name in layout.ASKED if fields.get(name) is None]
    defaults = dict.fromkeys(silent if written < layout.WITH_GOVERNANCE else (), True)
    return layout.COMPANY_RECORD.read_some(fields, **defaults)


def _agent(plan: Plan, folder: Folder, path: str) -> None:
    table, prose = split_prose(path, folder.read(path))
    fields = plan.fields(path, table)
    can_create = fields.get("can_create_agents")
    can_create = None if can_create is None else fields.flag("can_create_agents")
    agent = layout.AGENT.read_some(
        fields,
        company_id=plan.company.id,
        prompt=_prompt(fields, prose),
        permissions=permissions({_HIRING: can_create}),
    )
    for place in fields.tables("places"):
        plan.places.append(layout.PLACE.read(place, agent_id=agent.id))
    if fields.id("mandate") != agent.id:
        raise fields.wrong("mandate", "must be the id of the agent")
    if removed := fields.texts("removed"):
        plan.removed[agent.name] = removed
    fields.done()
    if path != layout.agent_path(agent):
        raise BadInput(f"{path}: belongs at {layout.agent_path(agent)}.")
    plan.add(plan.agents, agent.id, agent, path)


def _prompt(fields: Fields, prose: bytes) -> str:
    try:
        text = prose.decode()
        if FIELDS["prompt"].checked(text) == text:
            return text
    except (UnicodeDecodeError, BadInput):
        pass
    raise fields.wrong("the prompt", "must be trimmed text that is not too long")


def _outcome(plan: Plan, folder: Folder, path: str, prose: dict[str, Piece]) -> None:
    document = folder.read(path)
    table, written = split_prose(path, document)
    fields = plan.fields(path, table)
    outcome_id = OutcomeId(path.removeprefix("outcomes/").removesuffix(".md"))
    if not is_id(outcome_id) or path != layout.outcome_path(outcome_id):
        raise BadInput(f"{path}: must be named by the outcome's id.")
    fields.get("mandate")  # only for human readers
    deferred = None if fields.get("deferred_until") is None else fields.time("deferred_until")
    parents = [OutcomeId(parent) for parent in fields.ids("parents")]
    blockers = [OutcomeId(blocker) for blocker in fields.ids("blocked_by")]
    for request in fields.texts("waits_for"):
        plan.resting.setdefault(request, []).append(outcome_id)
    outcome = layout.OUTCOME.read(
        fields,
        id=outcome_id,
        company_id=plan.company.id,
        look_at=deferred,
        look_for=None if deferred is None else Look.DEFERRAL,
        open_prereqs=0,
        verdict=_verdict(fields),
    )
    plan.parents[outcome.id], plan.blockers[outcome.id] = parents, blockers
    behind = folder.pieces[path].offset + len(document) - (len(written) + 1 if written else 0)
    if written and not document.endswith(written + b"\n"):
        behind += 1  # an editor removed the final newline
    prose[outcome.id] = Piece(path, behind, len(written))
    plan.outcomes[outcome.id] = outcome


def _verdict(fields: Fields) -> str | None:
    if fields.get("verdict") is None:
        return None
    verdict_fields = fields.inner("verdict", fields.get("verdict"))
    agent, user = verdict_fields.author("by")
    evidence = []
    for seen in verdict_fields.tables("evidence"):
        version, sha256 = seen.number("version"), seen.sha256("sha256")
        evidence.append({"id": seen.id("file"), "version": version, "hash": sha256})
        seen.done()
    verdict = {
        "note": verdict_fields.clean(
            "note", lambda text: clean_text(text, "note", longest=20_000, empty_ok=True)
        ),
        "evidence": evidence,
        "by": f"agent:{agent}" if agent else f"user:{user}" if user else "system:",
        "run_id": None if verdict_fields.get("run") is None else verdict_fields.id("run"),
    }
    verdict_fields.done()
    return json.dumps(verdict)


def _file(plan: Plan, folder: Folder, path: str, prose: Mapping[str, Piece]) -> None:
    fields = plan.fields(path, load(path, folder.read(path)))
    file_id = FileId(path.removeprefix("files/").removesuffix("/meta.toml"))
    if not is_id(file_id):
        raise BadInput(f"{path}: must be in a folder that is named by the file's id.")
    versions: list[Version] = []
    for version_fields in fields.tables("versions"):
        versions.append(layout.VERSION.read(version_fields, file_id=file_id, is_text=True))
        if versions[-1].number != len(versions):
            raise version_fields.wrong("number", f"must be {len(versions)}")
    if not versions:
        raise fields.wrong("versions", "is missing")
    latest = versions[-1]
    file = layout.FILE.read(
        fields,
        id=file_id,
        company_id=plan.company.id,
        version=latest.number,
        sha256=latest.sha256,
        size=latest.size,
        is_text=True,
        links=0,
    )
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
    grant = layout.GRANT.read(
        fields,
        company_id=plan.company.id,
        kind=resource.kind,
        resource_id=resource.id,
        level=fields.clean("level", lambda text: parse_level(text, resource.kind)),
    )
    plan.add(plan.grants, grant.id, grant, fields.path)
