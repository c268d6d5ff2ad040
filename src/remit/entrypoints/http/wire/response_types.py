"""Response schemas of the operations, as /openapi.json has them.

The types are those that the services' views are checked against; a view may have more fields than
its type, and never fewer.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
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

from remit.entrypoints.http.wire.json_document import camel_key
from remit.model.connections.diff import Diff
from remit.model.organisation.grant import Level
from remit.services import shapes


class HealthShape(TypedDict):
    status: str
    version: str


#: Fields that are left of an agent that is gone or hidden when an answer is repeated.
_LEFT: Final = frozenset({"id", "company_id", "name", "role", "status"})
_IN_PART: Final = get_type_hints(shapes.AgentShape).keys() - _LEFT
#: Response types of hand-written routes, by operation id; a declared route has its verb's type.
ANSWERS: Final[dict[str, Any]] = {
    "health": HealthShape,
    # The instance.
    "examine_instance": list[shapes.FindingShape],
    "list_backups": list[shapes.BackupShape],
    "make_backup": shapes.NewBackupShape,
    "remove_backup": shapes.RemovedBackupShape,
    # Agents.
    "create_agent": shapes.AgentShape,
    "change_agent": shapes.AgentShape,
    "stop_agent": shapes.AgentShape | shapes.StoppedShape,
    "go_agent": shapes.AgentShape | shapes.LiftedShape,
    "purge_agent": shapes.PurgedAgentShape,
    "change_permissions": shapes.AgentShape,
    "hire_agent": shapes.HireShape,
    "propose_configuration": shapes.HireShape,
    "list_log": list[shapes.LogEntryShape],
    "create_key": shapes.NewKeyShape,
    "list_loose_ends": list[shapes.LooseEndShape],
    # Outcomes.
    "list_outcomes": list[shapes.OutcomeShape],
    "delegate_outcome": shapes.DelegatedShape,
    "outcome_graph": shapes.PictureShape,
    # The company and its people.
    "import_company": shapes.ImportedCompanyShape,
    "change_policy": shapes.ChangedPolicyShape,
    "show_organisation": list[shapes.OrganisedAgentShape],
    "reorganise_company": shapes.ReorganisedShape,
    "show_past": list[shapes.PastPlaceShape | shapes.GrantShape],
    "apply_document": shapes.AppliedShape,
    "create_login_link": shapes.LoginLinkShape,
    "list_what_needs_you": list[shapes.AwaitingShape],
    "show_notify": shapes.NotifiedHereShape,
    "try_notify": shapes.TrialShape,
    # Files and grants.
    "list_files": list[shapes.FileShape],
    "create_file": shapes.FileShape,
    "write_file": shapes.FileShape,
    # Mail.
    "show_inbox": list[shapes.ReceivedMessageShape],
    "show_inbox_of_agent": list[shapes.ReceivedMessageShape],
    "acknowledge_message": shapes.AcknowledgedShape,
    "cancel_message": shapes.TakenBackShape,
    "receive_message": shapes.TakenInShape,
    # Work, what it takes, and what happened.
    "show_run": shapes.RunWithDenialsShape,
    "cancel_run": shapes.EndedShape,
    "report_run": shapes.ReportedShape,
    "read_run_log": list[shapes.TranscriptEntryShape | shapes.LogPieceShape],
    "list_events": list[shapes.EventShape],
    "list_activity": list[shapes.ActivityShape],
    # Connections of a company.
    "list_adapters": list[shapes.AdapterShape],
    "show_adapter": shapes.AdapterInFullShape,
    "test_adapter": shapes.TestedAdapterShape,
    "list_secrets": list[shapes.ListedSecretShape],
    "set_secret": shapes.SecretShape,
    "show_signing_key": shapes.SigningKeyShape,
    "make_signing_key": shapes.SigningKeyShape,
    "remove_secret": shapes.RemovedSecretShape,
    "add_mcp_server": shapes.McpServerShape,
    "test_mcp_server": shapes.TriedMcpServerShape,
    "test_binding": shapes.TriedBindingShape,
    "remove_repo": shapes.RemovedRepoShape,
    "sync_repo": shapes.SyncedRepoShape,
    "diff_change": Diff,
    "list_lendable": shapes.LendableShape,
    "lend_plugin": shapes.LentPluginShape,
}
_PLAIN: Final[Mapping[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    object: {},
    Any: {},
}


def schema_of(kind: Any) -> dict[str, Any]:
    """A JSON schema; a shape is referred to by its name."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if _is_shape(kind):
        return {"$ref": f"#/components/schemas/{_name(kind)}"}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _marked(schema_of(inner[0]), inner[1:])
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(choice) for choice in inner]}
    raise TypeError(f"{kind} has no schema")


def components(kinds: Any) -> dict[str, dict[str, Any]]:
    """The schemas of all shapes in some types, by name."""
    schemas: dict[str, dict[str, Any]] = {}
    pending = list(kinds)
    while pending:
        kind = pending.pop()
        pending += get_args(kind)
        if not _is_shape(kind) or _name(kind) in schemas:
            continue
        hints = get_type_hints(kind, include_extras=True)
        pending += hints.values()
        perhaps = _IN_PART if hints.keys() >= _IN_PART else frozenset()
        schemas[_name(kind)] = {
            "type": "object",
            "required": [
                camel_key(key)
                for key in hints
                if key not in perhaps and get_origin(hints[key]) is not NotRequired
            ],
            "properties": {camel_key(key): schema_of(_bare(hints[key])) for key in hints},
            **({"description": kind.__doc__} if kind.__doc__ else {}),
        }
    return schemas


def _is_shape(kind: Any) -> bool:
    """Return whether a type has declared fields: a TypedDict, or a dataclass of the model."""
    return is_typeddict(kind) or is_dataclass(kind)


def _bare(kind: Any) -> Any:
    """Strip NotRequired from a type."""
    return get_args(kind)[0] if get_origin(kind) is NotRequired else kind


def _marked(schema: dict[str, Any], marks: tuple[Any, ...]) -> dict[str, Any]:
    for mark in marks:
        if mark == shapes.MOMENT:
            schema["format"] = mark
        elif isinstance(mark, type) and issubclass(mark, Enum):
            schema["enum"] = [
                member.word if isinstance(member, Level) else str(member.value) for member in mark
            ]
    return schema


def _name(kind: Any) -> str:
    name = str(kind.__name__).removesuffix("Shape")
    # Generated clients have a File of their own, for bytes.
    return "KbFile" if name == "File" else name
