"""Views of things for callers: plain dictionaries with snake_case keys and ISO times.

Each is checked against its type in `shapes`, from which the API's description is generated.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import fields
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import (
    Any,
    NotRequired,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)

from remit.clock import Micros, to_iso
from remit.model.event import Event
from remit.model.execution.job import Job
from remit.model.execution.limit import stored as limits_of
from remit.model.execution.run import Run
from remit.model.messaging.mail import BACKGROUND, Message
from remit.model.messaging.question import Question
from remit.model.messaging.schedule import Schedule
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import CONFIGURED, LISTED, Field, Holds
from remit.model.organisation.approval import Approval, Comment, Revision
from remit.model.organisation.company import Company
from remit.model.organisation.configuration import configuration_of
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.grant import Grant, Level
from remit.model.organisation.permission import CAN_CREATE_AGENTS
from remit.model.organisation.principal import Token
from remit.model.work.file import AccessEntry, File, Version
from remit.model.work.outcome import Outcome, why_not_actionable
from remit.model.work.wait import Submission
from remit.services import shapes
from remit.services.redaction import text_without_secrets, without_secrets
from remit.store.organisation.people import Member

Thing = TypeVar("Thing")
Shown = TypeVar("Shown")
Seen = TypeVar("Seen", contravariant=True)
Shows = TypeVar("Shows", covariant=True)


@overload
def time(at: Micros) -> str: ...
@overload
def time(at: Micros | None) -> str | None: ...
def time(at: Micros | None) -> str | None:
    return None if at is None else to_iso(at)


class View(Protocol[Seen, Shows]):
    """Returns the view of a thing; `supplied` are the keys that the thing itself does not have."""

    def __call__(self, value: Seen, /, **supplied: Any) -> Shows: ...


def view_of(
    kind: type[Thing],
    shape: Callable[..., Shown],
    supplied: Collection[str] = (),
    **other: str | Callable[[Thing], Any],
) -> View[Thing, Shown]:
    """Return the view function of a thing by its shape: each key shows the field of that name,
    unless `other` names another field or a function, or the caller supplies it. Times become
    ISO, enums their values, JSON text is parsed. An optional key is left out if it is None."""
    hints = get_type_hints(shape, include_extras=True)
    known = {field.name for field in fields(cast(Any, kind))} | other.keys() | set(supplied)
    keys = {key: hint for key, hint in hints.items() if _required(hint) or key in known}
    if unknown := keys.keys() - known:
        raise TypeError(f"{kind.__name__} has no {', '.join(unknown)}")
    uses: dict[str, Any] = {"time": time, "to_iso": to_iso, "by_value": _by_value, "read": _read}
    parts = []
    for key, hint in keys.items():
        if key in supplied:
            continue
        read = other.get(key, key)
        if isinstance(read, str):
            source = f"value.{read}"
        else:
            uses[f"find_{key}"], source = read, f"find_{key}(value)"
        parts.append(f"{key!r}: {_shown_as(source, hint)}")
    # Generated as one would write it by hand: lists have thousands of rows, and a loop over the
    # keys takes twice as long.
    read_all = eval(f"lambda value: {{{', '.join(parts)}}}", uses)  # noqa: S307 - of names of ours
    wanted = set(supplied)
    perhaps = [key for key, hint in keys.items() if not _required(hint) and key not in supplied]

    def show(value: Thing, /, **more: Any) -> Shown:
        if more.keys() != wanted:
            raise TypeError(
                f"a view of {kind.__name__} is given {', '.join(supplied) or 'nothing'}"
            )
        view = read_all(value)
        view.update(more)
        for key in perhaps:
            if view[key] is None:
                del view[key]
        return cast(Shown, view)

    return show


def _required(hint: Any) -> bool:
    return get_origin(hint) is not NotRequired


def _shown_as(source: str, hint: Any, *, optional: bool = False) -> str:
    """Return the expression for a key of a type, from the one for its stored value."""
    choices = (hint, *get_args(hint))
    if not _required(hint):
        return _shown_as(source, choices[1], optional=True)
    optional = optional or NoneType in choices
    if shapes.Moment in choices:
        return f"time({source})" if optional else f"to_iso({source})"
    for mark in choices:
        if isinstance(mark, type) and issubclass(mark, Enum):
            word = "word" if mark is Level else "value"
            return f"by_value({source})" if optional else f"{source}.{word}"
    if any(get_origin(choice) in (dict, list) or is_typeddict(choice) for choice in choices):
        return f"read({source})"
    return source


def _by_value(value: Enum | None) -> str | None:
    if value is None:
        return None
    return value.word if isinstance(value, Level) else value.value


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def awaiting(
    company: str | None,
    kind: str,
    item: str,
    title: str,
    agent: str | None,
    since: Micros | None,
    cause: str = "",
) -> shapes.AwaitingShape:
    """A row of the list of what awaits a person."""
    return {
        "kind": kind,
        "id": item,
        "company_id": company,
        "title": title,
        "agent_id": agent,
        "since": time(since),
        "cause": cause,
    }


def granter(value: Grant) -> str | None:
    if value.granted_by_agent is not None:
        return f"agent:{value.granted_by_agent}"
    return None if value.granted_by_user is None else f"user:{value.granted_by_user}"


def sender(value: Message) -> str:
    if value.background:
        return BACKGROUND
    if value.channel is not None:
        return value.channel
    who = value.sender_agent_id or value.sender_user_id
    return f"{value.sender_kind.value}:{who}" if who else "system"


def _actor(value: Event) -> str:
    return f"{value.actor_kind.value}:{value.actor_id}".rstrip(":")


def _shown(value: Event) -> Any:
    """The details of an event; those of reorganisations include adapters' settings, so secrets are
    redacted."""
    details = json.loads(value.details)
    return without_secrets(details)[0] if value.action.startswith("org.") else details


def _why(value: Event) -> str | None:
    details = json.loads(value.details)
    reason = details.get("note") or details.get("reason") or details.get("sentence")
    return None if reason is None else str(reason)


company = view_of(Company, shapes.CompanyShape, limits=lambda it: limits_of(it.limits).view())

member = view_of(Member, shapes.MemberShape, id="user_id")


def _listed(field: Field) -> Callable[[Agent], Any]:
    """Return a reader of a field for lists of agents; secrets are redacted only in prose."""
    read: Callable[[Agent], Any] = attrgetter(field.name)
    if field.holds is Holds.TEXT:
        return lambda value: text_without_secrets(text)[0] if (text := read(value)) else text
    if field.holds in (Holds.ROLE, Holds.DOCUMENT):
        return lambda value: field.shown(read(value))
    return read


_LISTED = tuple((field.name, _listed(field)) for field in LISTED)


def agent(value: Agent) -> shapes.AgentShape:
    shown = {
        "id": value.id,
        "company_id": value.company_id,
        "status": value.status.value,
        "reports_to": value.boss_id,
        "boss_user_id": value.boss_user_id,
        "permissions": {CAN_CREATE_AGENTS: _may_hire(value)},
        "permission_level": value.permission_level.value,
        "seat_user_id": value.seat_user_id,
        "state_file_id": value.state_file_id,
        "log_file_id": value.log_file_id,
        "created_at": time(value.created_at),
        "updated_at": time(value.updated_at),
        **{name: read(value) for name, read in _LISTED},
    }
    return cast(shapes.AgentShape, shown)


def description(value: Agent) -> tuple[dict[str, object], list[str]]:
    """Return an agent's configuration without the secrets in prose and documents, and the paths of
    those."""
    document, removed = without_secrets(configuration_of(value))
    shown = {
        field.name: document[field.key]
        if field.holds in (Holds.TEXT, Holds.DOCUMENT)
        else field.shown(getattr(value, field.name))
        for field in CONFIGURED
    }
    return shown, removed


def _may_hire(value: Agent) -> bool:
    may_hire = value.can_create_agents
    return value.is_ceo if may_hire is None else may_hire


_approval = view_of(Approval, shapes.ApprovalShape, redacted=lambda _: [])


def approval(value: Approval) -> shapes.ApprovalShape:
    """An approval, without the secrets in its payload."""
    view = _approval(value)
    payload, view["redacted"] = without_secrets(view["payload"])
    view["payload"] = payload
    view["result"] = None if value.result is None else without_secrets(json.loads(value.result))[0]
    return view


approval_revision = view_of(
    Revision,
    shapes.ApprovalRevisionShape,
    payload=lambda it: without_secrets(json.loads(it.payload))[0],
    changes=lambda _: [],
)

comment = view_of(Comment, shapes.CommentShape)

_outcome = view_of(Outcome, shapes.OutcomeShape)
brief_outcome = view_of(Outcome, shapes.BriefOutcomeShape)


def outcome(value: Outcome, now: Micros | None = None) -> shapes.OutcomeShape:
    view = _outcome(value)
    if now is not None:
        reason = why_not_actionable(value, now)
        view["actionable"] = reason is None
        view["why_not_actionable"] = reason
        view["waiting"] = value.open_waits > 0
    return view


submission = view_of(Submission, shapes.SubmissionShape)

#: Everything but the token itself, which is not stored.
token = view_of(Token, shapes.TokenShape)

_file = view_of(File, shapes.FileShape, hash="sha256")
#: Hash and size would reveal something about contents that must not be read.
_KNOWN_OF = ("id", "company_id", "description", "unlisted", "created_at")


def file(value: File, level: Level | None = None) -> shapes.FileShape:
    view = _file(value)
    if level is Level.NONE:
        known = {key: shown for key, shown in view.items() if key in _KNOWN_OF}
        view = cast(shapes.FileShape, known)
    if level is not None:
        view["level"] = level.word
    return view


version = view_of(Version, shapes.VersionShape, hash="sha256")

access = view_of(AccessEntry, shapes.AccessShape)

_grant = view_of(
    Grant,
    shapes.GrantShape,
    resource=lambda it: str(it.resource),
    scope="scope_id",
    granted_by=granter,
)


def grant(value: Grant, reason: str | None = None) -> shapes.GrantShape:
    view = _grant(value)
    if reason is not None:
        view["reason"] = reason
    return view


def grant_limits(value: Grant) -> shapes.GrantLimitsShape:
    """The files and branches of a repository that a grant is limited to, if it is."""
    limits: shapes.GrantLimitsShape = {}
    if value.limited_paths is not None:
        limits["paths"] = list(value.limited_paths)
    if value.limited_branches is not None:
        limits["branches"] = list(value.limited_branches)
    return limits


OWN = Decision(Effect.ALLOW, "self", "It is your own.", "rule:self")

message = view_of(Message, shapes.MessageShape, sender=sender, to="address", file_id="body_file_id")

run = view_of(
    Run,
    shapes.RunShape,
    completed_at="ended_at",
    envelope_ids="message_ids",
    cost_usd=lambda it: it.cost_micros / 1_000_000,
)

job = view_of(
    Job, shapes.JobShape, completed_at="ended_at", cost_usd=lambda it: it.cost_micros / 1_000_000
)

schedule = view_of(Schedule, shapes.ScheduleShape, to="address")

question = view_of(
    Question,
    shapes.QuestionShape,
    to=lambda it: f"agent:{it.to_agent_id}" if it.to_agent_id else "board",
    question="text",
)

#: An event as a line of history.
happening = view_of(Event, shapes.HappeningShape, by=_actor, why=_why, event_id="id")

event = view_of(Event, shapes.EventShape, actor=_actor, details=_shown)
