"""Layout of an export: the path of each file, and the keys of each record.

People are not exported: `person` stands for each of them, and the importer takes their place. So
the export of an imported company equals the one that it came from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit.clock import to_iso
from remit.errors import BadInput
from remit.model.connections.commit_identity import some_people, somebody
from remit.model.connections.secret import secret_name
from remit.model.event import Event
from remit.model.execution import prices
from remit.model.execution.limit import changed as with_limits
from remit.model.execution.prices import changed as with_prices
from remit.model.messaging.confirmation import MailDecisions
from remit.model.messaging.mail import Messaging
from remit.model.organisation import path_pattern
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import (
    CONFIGURED,
    FIELDS,
    AgentRole,
    Field,
    Holds,
    document,
)
from remit.model.organisation.company import (
    DEFAULT_REVIEW_HOURS,
    Company,
    company_name,
    review_hours,
)
from remit.model.organisation.grant import Grant, parse_mode
from remit.model.organisation.permission import PermissionLevel, policy
from remit.model.work.file import LONGEST_DESCRIPTION, File, FileKind, Version
from remit.model.work.outcome import LONGEST_TITLE, Outcome, OutcomeKind
from remit.services.archive.fields import PERSON, Fields
from remit.services.archive.records import (
    FLAG,
    SHA256,
    TIME,
    Author,
    Boss,
    Entry,
    Given,
    Kind,
    Names,
    Record,
    checked,
    line,
    number,
    prose,
    word,
)
from remit.services.archive.text import Noted
from remit.services.hiring.agent_spec import adapter
from remit.services.redaction import text_without_secrets, without_secrets
from remit.services.shape_basics import JsonObject
from remit.store.organisation.agents import Place
from remit.store.organisation.people import Member
from remit.store.record.company_dump import Named

FORMAT = 4
#: The format before mail was exported.
WITHOUT_MAIL = 1
#: The first format with approvals and configurations.
WITH_GOVERNANCE = 3
#: The first format with bindings.
WITH_BINDINGS = 4

COMPANY = "company.toml"
GRANTS = "grants.jsonl"
MAIL = "mail.jsonl"
QUESTIONS = "questions.jsonl"
SCHEDULES = "schedules.jsonl"
APPROVALS = "approvals.jsonl"
CONFIGURATIONS = "configurations.jsonl"
BINDINGS = "bindings.jsonl"
#: For `remit apply`; an import only counts its entries.
SETUP = "setup.toml"
EVENTS = "events.jsonl"
README = "README.txt"
#: Git must keep every byte, even in files that look like text.
ATTRIBUTES = ".gitattributes"
ATTRIBUTES_TEXT = b"* -text\n"

README_TEXT = b"""\
This folder is a whole company, exported from Remit.

company.toml      its name, who may write to whom, and who had a part in it
agents/           who worked there: place in the tree, settings, prompt
agents/former/    those who were terminated
outcomes/         what was to be accomplished: status, reasons, verdicts, and the prose
files/ID/         each file of the knowledge base: meta.toml, and v1, v2, ... as they were
grants.jsonl      the capabilities in force
mail.jsonl        who wrote to whom, and what became of it; each body is a file
questions.jsonl   what agents asked, and the answers
schedules.jsonl   what agents send at set times
approvals.jsonl   what was asked of people, how it was decided, and what was said about it
configurations.jsonl  how agents were configured, revision by revision
bindings.jsonl    which agents were reached through which channels, without secrets
setup.toml        repositories, checks and copies to work in, to be read and then applied
events.jsonl      what happened, for reading

There are no tokens, passwords or keys in what Remit itself keeps: settings that look like one
were taken out and are listed as `removed`. The words of people and agents in files and outcomes
are here as they wrote them. Treat the folder like the company itself.

`remit company import DIR` makes the company again, in another instance. The person who does
that stands in for the people of this one. A file whose content was changed is refused, because its
hash is no longer the one in its meta.toml.
"""


def agent_path(agent: Agent) -> str:
    if agent.status is AgentStatus.TERMINATED:
        return f"agents/former/{agent.name}/{agent.id}.md"  # another agent may have the name
    return f"agents/{agent.name}.md"


def outcome_path(outcome_id: str) -> str:
    return f"outcomes/{outcome_id}.md"


def meta_path(file_id: str) -> str:
    return f"files/{file_id}/meta.toml"


def version_path(file: File, number: int) -> str:
    """Return the path of a version's bytes; the latest prose of an outcome is in its own
    document."""
    if file.kind is FileKind.OUTCOME and number == file.version:
        return outcome_path(file.id)
    return f"files/{file.id}/v{number}"


def company(value: Company, members: Sequence[Member], seats: Mapping[str, str]) -> JsonObject:
    return COMPANY_RECORD.write(
        value,
        format=FORMAT,
        people=[
            {
                "name": member.name,
                "role": member.role.value,
                "scope": member.scope_agent_id,
                "seats": [agent for agent, user in seats.items() if user == member.user_id],
            }
            for member in members
        ],
    )


def _read_limits(fields: Fields, key: str) -> str:
    try:
        return with_limits("{}", fields.get(key))
    except BadInput as error:
        raise fields.wrong(key, f"are refused: {error.sentence.rstrip('.')}") from None


def _limits(stored: str) -> dict[str, int] | None:
    """Only limits that were set; 0 for none."""
    return {name: limit or 0 for name, limit in json.loads(stored).items()} or None


def _read_prices(fields: Fields, key: str) -> str:
    try:
        return with_prices("{}", fields.get(key))
    except BadInput as error:
        raise fields.wrong(key, f"are refused: {error.sentence.rstrip('.')}") from None


def _prices(text: str) -> dict[str, dict[str, float]] | None:
    return {model: price.view() for model, price in prices.stored(text).items()} or None


def _policy(text: object, _: str) -> str:
    try:
        return policy(str(text)).stored()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput("It is no permission policy.") from None


ASKED = ("require_board_approval_for_new_agents", "require_approval_for_config_changes")
COMPANY_RECORD = Record(
    Company,
    Given("format"),
    "id",
    Entry("name", checked(lambda text, _: company_name(text))),
    Entry("messaging", word(Messaging), before=Messaging.CHAIN),
    *ASKED,
    Entry("chat_llm_provider", line(100), default=None),
    Entry("chat_llm_model", line(100), default=None),
    Entry("review_hours", checked(lambda text, _: review_hours(text)), before=DEFAULT_REVIEW_HOURS),
    Entry("limits", Kind(_limits, _read_limits), before="{}"),
    Entry("prices", Kind(_prices, _read_prices), before="{}"),
    Entry("permission_policy", checked(_policy), before="{}"),
    "created_at",
    Entry("commit_committer", checked(somebody), default=None),
    Entry("commit_co_authors", checked(some_people), default=None),
    Entry("commit_signing", checked(lambda text, _: secret_name(text)), default=None),
    Entry("mail_decisions", word(MailDecisions), before=MailDecisions.CONFIRM),
)


@dataclass(frozen=True)
class _Described:
    """A field of an agent's description, without its secrets."""

    field: Field

    def write(self, value: Any, _: Names) -> JsonObject:
        return {self.field.name: _without_secrets(value, self.field)[0]}

    def read(self, fields: Fields) -> JsonObject:
        return {self.field.name: _read_described(fields, self.field)}


def _without_secrets(agent: Agent, field: Field) -> tuple[Any, list[str]]:
    """Return a field as it is written, and the paths of its secrets."""
    value = field.shown(getattr(agent, field.name))
    if field.holds is Holds.DOCUMENT:
        clean, paths = without_secrets(value)
        own = "" if field.name == "adapter_config" else f"{field.name}."
        return json.dumps(clean, indent=2) if clean else None, [own + path for path in paths]
    if field.holds is Holds.TEXT:
        text, told = text_without_secrets(value)
        return text or None, [field.name] if told else []
    return value, []


def _read_described(fields: Fields, field: Field) -> Any:
    """Read a field of an agent's description; an absent one has its default."""
    if field.holds is Holds.DOCUMENT:
        return _document(fields, field.name)
    if field.holds is Holds.ADAPTER:
        return fields.clean(field.name, adapter)
    if field.holds is Holds.ROLE:
        return fields.one_of(field.name, AgentRole)
    if field.holds is Holds.TEXT and fields.get(field.name) is None:
        return field.empty
    return fields.clean(field.name, field.checked)


def _document(fields: Fields, name: str) -> str:
    text = fields.get(name)
    try:
        config = {} if text is None else json.loads(text, parse_constant=_refuse)
    except (TypeError, ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise fields.wrong(name, "must be a JSON object")
    try:
        return document(config, name)
    except BadInput as error:
        raise fields.wrong(name, f"is refused: {error.sentence}") from None


def _refuse(_: str) -> None:
    raise ValueError


def _standing(status: AgentStatus) -> AgentStatus:
    """Status without a live run, which is not exported."""
    return AgentStatus.IDLE if status is AgentStatus.RUNNING else status


#: Fields of the description in the head of an agent's document, settings before prose; the prompt
#: is the prose below it.
_HEAD = sorted(
    (field for field in CONFIGURED if field.name != "prompt"),
    key=lambda field: field.holds is Holds.TEXT,
)
_WHO = (Holds.NAME, Holds.ROLE, Holds.LINE)
_SETTINGS = (Holds.ADAPTER, Holds.DOCUMENT, Holds.TEXT)

PLACE = Record(Place, Boss(), Entry("since", TIME), Entry("until", TIME, default=None))
AGENT = Record(
    Agent,
    "id",
    *(_Described(field) for field in _HEAD if field.holds in _WHO),
    Entry(
        "status",
        Kind(
            lambda status: _standing(status).value,
            lambda fields, key: _standing(fields.one_of(key, AgentStatus)),
        ),
    ),
    Boss(),
    Given("mandate"),
    *(_Described(field) for field in _HEAD if field.holds in _SETTINGS),
    Given("can_create_agents"),
    Entry("permission_level", word(PermissionLevel), before=PermissionLevel.STANDARD),
    *(_Described(field) for field in _HEAD if field.holds not in _WHO + _SETTINGS),
    Entry("config_revision", number(), before=1),
    Given("removed"),
    *("state_file=state_file_id", "log_file=log_file_id", "created_at", "updated_at"),
)
OUTCOME = Record(
    Outcome,
    Entry("title", line(LONGEST_TITLE)),
    Entry("kind", word(OutcomeKind), default=OutcomeKind.WORK),
    *("status", "owner=owner_id"),
    Given("mandate"),
    Entry("perpetual", FLAG, default=False),
    Entry("delegated", FLAG, default=False),
    "delegator=delegator_id",
    Entry("urgent", FLAG, default=False),
    Entry("important", FLAG, default=False),
    "deferred_until",
    Given("parents"),
    Given("blocked_by"),
    Given("waits_for"),
    *("version", "created_at", "updated_at", "finished_at"),
    Given("verdict"),
)
FILE = Record(
    File,
    "kind",
    Entry("description", prose(LONGEST_DESCRIPTION)),
    Entry("unlisted", FLAG, default=False),
    *("home=home_agent_id", "created_at", "updated_at"),
)
VERSION = Record(
    Version,
    "number",
    Entry("sha256", SHA256),
    Entry("size", number(least=0, most=2**40)),
    "at",
    Author("by", "agent_id", "user_id"),
)
PATTERNS = Kind(
    lambda text: None if text is None else list(path_pattern.read(text) or ()),
    lambda fields, key: fields.clean(
        key,
        lambda patterns: (
            None if patterns is None else path_pattern.stored(path_pattern.patterns(patterns, key))
        ),
    ),
)
GRANT = Record(
    Grant,
    *("id", "holder=holder_id"),
    Given("resource"),
    Given("level"),
    Entry("mode", Kind(lambda mode: mode.value, lambda fields, key: fields.clean(key, parse_mode))),
    *("scope=scope_id", "parent=parent_id"),
    Author("granted_by", "granted_by_agent", "granted_by_user"),
    *("created_at", "expires_at", "used_at"),
    *(Entry(key, PATTERNS, default=None) for key in ("paths", "branches")),
)


def agent(
    value: Agent, mandate: str, names: Names, places: Sequence[Place]
) -> tuple[JsonObject, str]:
    """The head of an agent's document, and its prompt; `mandate` is that outcome's title."""
    prompt = _without_secrets(value, FIELDS["prompt"])
    removed = [path for field in _HEAD for path in _without_secrets(value, field)[1]]
    head = AGENT.write(
        value,
        names,
        mandate=Noted(value.id, mandate),
        can_create_agents=value.can_create_agents,
        removed=removed + prompt[1],
        places=[PLACE.write(place, names) for place in places],
    )
    return head, prompt[0] or ""


def outcome(
    value: Outcome,
    names: Names,
    parents: Sequence[Named],
    blockers: Sequence[Named],
    requests: Sequence[str],
) -> JsonObject:
    """The head of an outcome's document; `requests` are those that it rests for."""
    return OUTCOME.write(
        value,
        names,
        mandate=value.id in names or None,
        parents=[Noted(parent.id, parent.title) for parent in parents],
        blocked_by=[Noted(blocker.id, blocker.title) for blocker in blockers],
        waits_for=list(requests) or None,
        verdict=None if value.verdict is None else _verdict(json.loads(value.verdict)),
    )


def _verdict(value: Mapping[str, Any]) -> JsonObject:
    return {
        "note": value.get("note", ""),
        "by": author(value.get("by")),
        "run": value.get("run_id"),
        "evidence": [
            {"file": seen["id"], "version": seen["version"], "sha256": seen["hash"]}
            for seen in value.get("evidence", ())
        ],
    }


def file(value: File, names: Names, versions: Sequence[Version]) -> JsonObject:
    return FILE.write(
        value, names, versions=[VERSION.write(version, names) for version in versions]
    )


def grant(value: Grant) -> JsonObject:
    return GRANT.write(value, resource=str(value.resource), level=value.level.word)


def event(value: Event) -> JsonObject:
    """An event as it was recorded, except for secrets; its hash was computed with them."""
    details, removed = without_secrets(json.loads(value.details))
    shown = {
        "seq": value.seq,
        "at": to_iso(value.at),
        "actor": f"{value.actor_kind.value}:{value.actor_id}".rstrip(":"),
        "run": value.run_id,
        "action": value.action,
        "resource": value.resource,
        "allowed": value.allowed,
        "reason": value.reason,
        "basis": value.basis,
        "details": details,
        "id": value.id,
        "hash": value.hash,
    }
    return {**shown, "removed": removed} if removed else shown


def author(text: object) -> str | None:
    """Kind of an author: `person`, an agent, or None for Remit itself."""
    if not isinstance(text, str) or not text or text.startswith("system:"):
        return None
    return PERSON if text.startswith("user:") else text
