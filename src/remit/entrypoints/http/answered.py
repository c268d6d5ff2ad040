"""What each operation answers, as /openapi.json says it.

The types are those that the services' views are checked against; a view may say more than its type
does, and never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from remit.entrypoints.http.document import camel_key
from remit.model.grant import Level
from remit.services import shapes


class KnownShape(TypedDict):
    """What it was done to; what was done is beside it."""

    id: str


class HealthShape(TypedDict):
    status: str
    version: str


class HireShape(TypedDict):
    agent: shapes.AgentShape
    #: None when nobody has to decide.
    approval: shapes.ApprovalShape | None


Object = dict[str, Any]
_AGENT: Final = (
    *("show_calling_agent", "show_agent", "delete_agent", "change_agent", "create_agent"),
    *("pause_agent", "resume_agent", "start_agent", "restart_agent", "abort_agent"),
    *("terminate_agent", "update_agent", "wake_agent", "roll_back_configuration"),
    *("change_permissions", "change_permission_level"),
)
_APPROVAL: Final = (
    *("request_approval", "show_approval", "approve", "reject", "request_revision", "resubmit"),
    "cancel_approval",
)
_OUTCOME: Final = (
    *("create_outcome", "show_outcome", "change_outcome", "show_subtree", "complete_outcome"),
    *("submit_outcome", "return_outcome", "close_outcome", "reopen_outcome"),
)
_KNOWN: Final = (
    *("create_key", "revoke_key", "create_token", "revoke_token", "remove_user"),
    *("revoke_grant", "revoke_grant_in_company"),
    *("cancel_question", "cancel_question_in_company", "delete_disapproved_agent"),
    *("cancel_schedule", "cancel_schedule_in_company", "cancel_run", "cancel_job"),
)
#: What an operation answers, by its name in the description.
ANSWERS: Final[Mapping[str, Any]] = {
    "health": HealthShape,
    **dict.fromkeys(_AGENT, shapes.AgentShape),
    "list_agents": list[shapes.AgentShape],
    "hire_agent": HireShape,
    "propose_configuration": HireShape,
    **dict.fromkeys(_APPROVAL, shapes.ApprovalShape),
    "list_approvals": list[shapes.ApprovalShape],
    "list_comments": list[shapes.CommentShape],
    "add_comment": shapes.CommentShape,
    **dict.fromkeys(_OUTCOME, shapes.OutcomeShape),
    "list_outcomes": list[shapes.OutcomeShape],
    "list_outcome_history": list[shapes.HappeningShape],
    **dict.fromkeys(("create_company", "show_company", "change_company"), shapes.CompanyShape),
    "list_companies": list[shapes.CompanyShape],
    "add_user": shapes.MemberShape,
    "list_users": list[shapes.MemberShape],
    "list_tokens": list[shapes.TokenShape],
    "list_keys": list[shapes.TokenShape],
    **dict.fromkeys(("create_file", "show_file", "change_file", "write_file"), shapes.FileShape),
    "list_files": list[shapes.FileShape],
    "list_versions": list[shapes.VersionShape],
    "list_accesses": list[shapes.AccessShape],
    "give_grant": shapes.GrantShape,
    "list_grants": list[shapes.GrantShape | shapes.DerivedGrantShape],
    **dict.fromkeys(("send_message", "show_message"), shapes.MessageShape),
    **dict.fromkeys(
        ("list_messages", "show_inbox", "show_inbox_of_agent"), list[shapes.MessageShape]
    ),
    **dict.fromkeys(
        ("ask_question", "answer_question", "answer_question_in_company"), shapes.QuestionShape
    ),
    "list_questions": list[shapes.QuestionShape],
    "add_schedule": shapes.ScheduleShape,
    "list_schedules": list[shapes.ScheduleShape],
    "show_job": shapes.JobShape,
    "list_jobs": list[shapes.JobShape],
    "show_run": shapes.RunShape,
    "list_runs": list[shapes.RunShape],
    "list_events": list[shapes.EventShape],
    "list_activity": list[shapes.ActivityShape],
    "show_caller": shapes.CallerShape,
    "show_configuration": shapes.ConfigurationShape,
    "list_configurations": list[shapes.ConfigurationShape],
    "list_config_revisions": list[shapes.ConfigRevisionShape],
    "add_repo": shapes.RepoShape,
    "list_repos": list[shapes.RepoShape],
    "add_binding": shapes.BindingShape,
    "list_bindings": list[shapes.BindingShape],
    "list_what_needs_you": list[shapes.AwaitingShape],
    "show_adapter": shapes.AdapterShape,
    "list_adapters": list[shapes.AdapterShape],
    **dict.fromkeys(_KNOWN, KnownShape),
}
#: Lists whose entries have no type of their own yet.
_LISTS: Final = frozenset(
    {
        *("list_log", "list_loose_ends", "list_accounts", "list_budgets", "list_channels"),
        *("list_dead_letters", "list_halts", "list_mcp_servers", "list_secrets"),
        *("read_run_log", "show_organisation", "show_past"),
    }
)
#: Of what callers may see in part only, or that may be gone by now: the keys that are always there.
_CERTAIN: Final[Mapping[Any, frozenset[str]]] = {
    shapes.AgentShape: frozenset({"id", "company_id", "name", "role", "status"}),
}
_PLAIN: Final[Mapping[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}


def schema_of(kind: Any) -> dict[str, Any]:
    """A JSON schema; a shape is referred to by its name."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_typeddict(kind):
        return {"$ref": f"#/components/schemas/{_name(kind)}"}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _marked(schema_of(inner[0]), inner[1:])
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(choice) for choice in inner]}
    raise TypeError(f"{kind} has no schema")


def components(kinds: Any) -> dict[str, dict[str, Any]]:
    """The schemas of all shapes in some types, by name."""
    found: dict[str, dict[str, Any]] = {}
    pending = list(kinds)
    while pending:
        kind = pending.pop()
        pending += get_args(kind)
        if not is_typeddict(kind) or _name(kind) in found:
            continue
        hints = get_type_hints(kind, include_extras=True)
        pending += hints.values()
        certain = _CERTAIN.get(kind, hints.keys())
        found[_name(kind)] = {
            "type": "object",
            "required": [
                camel_key(key)
                for key in hints
                if key in certain and get_origin(hints[key]) is not NotRequired
            ],
            "properties": {camel_key(key): schema_of(_bare(hints[key])) for key in hints},
            **({"description": kind.__doc__} if kind.__doc__ else {}),
        }
    return found


def answer_of(operation: str) -> Any:
    """The type of what an operation answers: where there is none, an object or a list of them."""
    return ANSWERS.get(operation, list[Object] if operation in _LISTS else Object)


def _bare(kind: Any) -> Any:
    """Without the mark that a key may be absent."""
    return get_args(kind)[0] if get_origin(kind) is NotRequired else kind


def _marked(schema: dict[str, Any], marks: tuple[Any, ...]) -> dict[str, Any]:
    for mark in marks:
        if mark == shapes.MOMENT:
            schema["format"] = mark
        elif isinstance(mark, type) and issubclass(mark, Enum):
            schema["enum"] = list(_values(mark))
    return schema


def _values(kind: type[Enum]) -> Iterator[str]:
    for one in kind:
        yield one.word if isinstance(one, Level) else str(one.value)


def _name(kind: Any) -> str:
    return str(kind.__name__).removesuffix("Shape")
