"""Reading an export: every field of every file is looked at before anything is believed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, Any, NamedTuple, TypeVar

from remit.clock import Micros, from_iso
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, FileId, GrantId, OutcomeId, UserId, is_id
from remit.model.agent import Agent, AgentRole, AgentStatus, agent_name
from remit.model.company import Company, company_name
from remit.model.file import LONGEST_DESCRIPTION, File, FileKind, Version
from remit.model.grant import Grant, parse_level, parse_mode, parse_resource
from remit.model.mail import Messaging
from remit.model.outcome import LONGEST_TITLE, Outcome, OutcomeKind, OutcomeStatus
from remit.model.permission import PermissionLevel
from remit.model.text import clean_line, clean_text
from remit.services.archive import layout, tar
from remit.services.archive.text import load, split_prose
from remit.services.posts import LONGEST_PROMPT, adapter, document
from remit.store.agents import Place

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MOST_ENTRIES = 1_000_000
LARGEST_TEXT = 16 * 1024 * 1024
#: What all texts may add up to; they are in memory together.
LARGEST_TEXTS = 256 * 1024 * 1024
_LARGEST_NUMBER = 2**31 - 1


class Piece(NamedTuple):
    """Where bytes are in the archive."""

    path: str
    offset: int
    size: int


class Folder:
    """An archive on disk, looked at through its names. Nothing is unpacked."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = LARGEST_TEXTS
        self._taken: set[str] = set()
        self.pieces: dict[str, Piece] = {}
        for entry in tar.walk(file.read, self._skip):
            if len(self.pieces) == MOST_ENTRIES:
                raise BadInput(f"The archive has more than {MOST_ENTRIES} files.")
            self.pieces[entry.path] = Piece(entry.path, file.tell(), entry.size)

    def below(self, folder: str) -> list[str]:
        return sorted(path for path in self.pieces if path.startswith(f"{folder}/"))

    def take(self, path: str) -> Piece:
        """Where a file is; whatever nobody takes is not part of an export."""
        self._taken.add(path)
        try:
            return self.pieces[path]
        except KeyError:
            raise BadInput(f"{path}: is missing.", "Export the company again.") from None

    def read(self, path: str, most: int = LARGEST_TEXT) -> bytes:
        piece = self.take(path)
        self._left -= piece.size
        if piece.size > most or self._left < 0:
            raise BadInput(f"{path}: is too large for what it is.")
        return self.at(piece.offset, piece.size)

    def at(self, offset: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, offset)

    def lines(self, path: str) -> Iterator[tuple[str, Any]]:
        for number, row in enumerate(self.read(path, LARGEST_TEXTS).splitlines(), 1):
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(row)
            except (ValueError, RecursionError):
                raise BadInput(f"{where}: is not JSON.") from None

    def check_all_taken(self, *also: str) -> None:
        for path in self.pieces:
            if path not in self._taken and path not in also:
                raise BadInput(f"{path}: is not part of an export.", "Remove it.")

    def _skip(self, entry: tar.Entry) -> None:
        behind = self._file.tell() + entry.size + tar.padding(entry.size)
        if behind > self._file.seek(0, os.SEEK_END):
            raise BadInput(f"{entry.path}: is cut off.", "Get a complete copy of the archive.")
        self._file.seek(behind)


@dataclass(frozen=True, slots=True)
class Stored:
    """A file with its versions, and where the bytes of each are."""

    file: File
    versions: tuple[Version, ...]
    pieces: tuple[Piece, ...]


@dataclass
class Plan:
    """A company as it will be, once its bytes are stored and its rows are written."""

    company: Company
    #: Whoever imports it stands in for all people.
    importer: UserId
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    outcomes: dict[OutcomeId, Outcome] = field(default_factory=dict)
    parents: dict[OutcomeId, list[OutcomeId]] = field(default_factory=dict)
    blockers: dict[OutcomeId, list[OutcomeId]] = field(default_factory=dict)
    files: dict[FileId, Stored] = field(default_factory=dict)
    grants: dict[GrantId, Grant] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    #: Settings that were taken out, by agent.
    removed: dict[str, list[str]] = field(default_factory=dict)
    #: Where each agent and grant was described; outcomes and files are where their ids say.
    where: dict[str, str] = field(default_factory=dict)


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
    folder.check_all_taken(layout.README, layout.ATTRIBUTES, layout.EVENTS)
    return plan


class Fields:
    """The fields of one document; complains with its path."""

    def __init__(self, path: str, table: Any) -> None:
        if not isinstance(table, Mapping):
            raise BadInput(f"{path}: must be a table of fields.")
        self.path = path
        self._table = table
        self._asked: set[str] = set()

    def wrong(self, name: str, what: str) -> BadInput:
        return BadInput(f"{self.path}: {name} {what}.", "Correct it, or export the company again.")

    def get(self, name: str) -> Any:
        self._asked.add(name)
        return self._table.get(name)

    def done(self) -> None:
        """Nothing may be left that nobody asked for: it would be lost without a word."""
        for name in self._table:
            if name not in self._asked:
                raise BadInput(f"{self.path}: {str(name)[:60]!r} is not a field it has.")

    def clean(self, name: str, cleaned: Callable[[Any], T]) -> T:
        """A value that is as the rest of Remit would have kept it."""
        given = self.get(name)
        try:
            found = cleaned(given)
        except BadInput as error:
            raise self.wrong(name, f"is refused: {error.sentence.rstrip('.')}") from None
        if isinstance(found, str) and found != given:
            raise self.wrong(name, "has blanks or characters that Remit does not keep")
        return found

    def id(self, name: str) -> str:
        found = self.get(name)
        if not isinstance(found, str) or not is_id(found):
            raise self.wrong(name, "must be an id")
        return found

    def maybe_id(self, name: str) -> str | None:
        return None if self.get(name) is None else self.id(name)

    def ids(self, name: str) -> list[str]:
        found = self.get(name)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(o, str) and is_id(o) for o in found):
            raise self.wrong(name, "must be a list of ids")
        if len(set(found)) != len(found):
            raise self.wrong(name, "names something twice")
        return found

    def texts(self, name: str) -> list[str]:
        found = self.get(name)
        if found is not None and not isinstance(found, list):
            raise self.wrong(name, "must be a list of texts")
        if not all(isinstance(one, str) for one in found or ()):
            raise self.wrong(name, "must be a list of texts")
        return found or []

    def time(self, name: str) -> Micros:
        found = self.get(name)
        if not isinstance(found, str):
            raise self.wrong(name, "must be a time in quotes")
        try:
            return from_iso(found)
        except BadInput:
            raise self.wrong(name, "is not a time") from None

    def maybe_time(self, name: str) -> Micros | None:
        return None if self.get(name) is None else self.time(name)

    def flag(self, name: str) -> bool:
        found = self.get(name)
        if found is not None and not isinstance(found, bool):
            raise self.wrong(name, "must be true or false")
        return bool(found)

    def number(self, name: str, *, least: int = 1, most: int = _LARGEST_NUMBER) -> int:
        found = self.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise self.wrong(name, f"must be a whole number from {least} to {most}")
        return found

    def one_of(self, name: str, kind: type[E]) -> E:
        try:
            return kind(self.get(name))
        except ValueError:
            known = ", ".join(one.value for one in kind)
            raise self.wrong(name, f"must be one of {known}") from None

    def tables(self, name: str) -> list[Fields]:
        found = self.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.wrong(name, "must be a list")
        return [Fields(f"{self.path}, {name} {n}", one) for n, one in enumerate(found, 1)]

    def boss(self) -> AgentId | None:
        """Of an agent; None when it is a person."""
        return None if self.get("boss") == layout.PERSON else AgentId(self.id("boss"))

    def author(self, name: str, importer: UserId) -> tuple[AgentId | None, UserId | None]:
        found = self.get(name)
        if found is None:
            return None, None
        if found == layout.PERSON:
            return None, importer
        agent = found.removeprefix("agent:") if isinstance(found, str) else ""
        if not is_id(agent) or found != f"agent:{agent}":
            raise self.wrong(name, "must be person or agent:ID")
        return AgentId(agent), None


def _company(fields: Fields) -> Company:
    if fields.get("format") != layout.FORMAT:
        raise fields.wrong("format", f"must be {layout.FORMAT}")
    name = fields.clean("name", company_name)
    messaging = fields.one_of("messaging", Messaging)
    return Company(
        id=CompanyId(fields.id("id")),
        name=name,
        messaging=messaging,
        require_board_approval_for_new_agents=True,
        require_approval_for_config_changes=True,
        chat_llm_provider=None,
        chat_llm_model=None,
        created_at=fields.time("created_at"),
    )


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
        adapter_config=_config(fields),
        seat_user_id=None,
        prompt=_prompt(fields, prose),
        capabilities="",
        permissions="{}",
        permission_level=PermissionLevel.STANDARD,
        runtime_config="{}",
        budget_monthly_cents=None,
        metadata="{}",
        config_revision=1,
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
    _add(plan, plan.agents, agent.id, agent, path)


def _config(fields: Fields) -> str:
    text = fields.get("adapter_config")
    if text is None:
        return document({}, "adapter_config")
    try:
        config = json.loads(text, parse_constant=_refuse) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise fields.wrong("adapter_config", "must be a JSON object")
    try:
        return document(config, "adapter_config")
    except BadInput as error:
        raise fields.wrong("adapter_config", f"is refused: {error.sentence}") from None


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
    outcome = Outcome(
        id=outcome_id,
        company_id=plan.company.id,
        kind=fields.one_of("kind", OutcomeKind),
        title=fields.clean("title", lambda text: clean_line(text, "title", longest=LONGEST_TITLE)),
        status=fields.one_of("status", OutcomeStatus),
        perpetual=fields.flag("perpetual"),
        owner_id=AgentId(fields.id("owner")),
        delegated=fields.flag("delegated"),
        delegator_id=_as(AgentId, fields.maybe_id("delegator")),
        urgent=fields.flag("urgent"),
        important=fields.flag("important"),
        deferred_until=fields.maybe_time("deferred_until"),
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
    _add(plan, plan.grants, grant.id, grant, fields.path)


def _sha256(fields: Fields) -> str:
    found = fields.get("sha256")
    if not isinstance(found, str) or len(found) != 64 or set(found) - set("0123456789abcdef"):
        raise fields.wrong("sha256", "must be 64 hex digits")
    return found


def _as(kind: Callable[[str], T], value: str | None) -> T | None:
    return None if value is None else kind(value)


def _add(plan: Plan, known: dict[Any, Any], id_: str, value: object, where: str) -> None:
    if id_ in known:
        raise BadInput(f"{where}: has the id of {plan.where[id_]}.")
    known[id_] = value
    plan.where[id_] = where
