"""Shapes of what lies outside."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.clock import Micros
from remit.model.connections.folder import FolderKind
from remit.model.connections.lent_plugin import ItemKind
from remit.model.connections.mcp_server import Transport
from remit.model.messaging.mail import DeliveryStatus
from remit.model.organisation.grant import Mode
from remit.services.shape_basics import Moment, NamedShape, OwnedShape


class NoticeShape(TypedDict):
    id: str
    #: `command`, `webhook`, or a kind of channel.
    way: str
    kind: str
    subject_id: str
    status: Annotated[str, DeliveryStatus]
    attempt: int
    why: str | None
    created_at: Moment
    ended_at: Moment | None


class NoticeRulesShape(TypedDict):
    """Which kinds of notices a person gets, where and when."""

    routes: dict[str, list[str]]
    time_zone: str
    quiet: str | None
    urgent: list[str]
    digest: list[str]
    digest_at: str
    after_minutes: int
    escalate_minutes: int
    escalate_to: str | None


class NewsShape(TypedDict):
    """An item that awaits a person, and whether their browser notifies of it now."""

    kind: str
    id: str
    title: str
    tell: bool


class NotifiedShape(TypedDict):
    """How a person is notified, and the last notices."""

    user_id: str
    company_id: str | None
    webhook: str | None
    #: Kinds of channels that the person is linked in, the default one first.
    chats: list[str]
    rules: NoticeRulesShape
    latest: list[NoticeShape]


class CommandShape(TypedDict):
    """Whether a command of this machine tells the person."""

    command: bool
    command_problem: str | None


class NotifiedHereShape(NotifiedShape, CommandShape):
    pass


class WebhookShape(TypedDict):
    user_id: str
    company_id: str | None
    webhook: str | None
    #: The key that signs what is sent; it is shown this once.
    key: str | None


class TrialShape(TypedDict):
    user_id: str
    company_id: str | None
    ways: list[str]


class RepoCheckShape(TypedDict):
    """Check that runs on each proposal to a repository."""

    name: str
    command: str
    seconds: int
    network: bool
    required: bool
    protected: list[str]


class RepoShape(OwnedShape):
    name: str
    url: str
    ref: str | None
    username: str | None
    secret: str | None
    #: Whether runs are told the instructions in a copy.
    instructions: bool
    #: Kind and address of the forge, and the names of two secrets.
    forge: str | None
    api: str | None
    api_secret: str | None
    hook: str | None
    people: list[str]
    label: str | None
    #: When and where proposals are pushed, and what opens the fork.
    push: str
    fork: str | None
    fork_username: str | None
    fork_secret: str | None
    checks: list[RepoCheckShape]
    created_at: Moment
    updated_at: Moment


class UsableRepoShape(NamedShape):
    """A repository as agents see it."""

    url: str
    ref: str | None
    mode: Annotated[str, Mode]


class RemovedRepoShape(TypedDict):
    name: str
    revoked: list[str]


class RepoOfCompanyShape(RemovedRepoShape):
    company_id: str


class SyncedRepoShape(TypedDict):
    name: str
    url: str
    fetched_at: Moment
    branches: int
    head: str | None


class FolderShape(OwnedShape):
    """A folder of a worker's machine that runs are shown."""

    kind: Annotated[str, FolderKind]
    agent_id: str | None
    agent_name: str | None
    title: str
    path: str | None
    repo: str | None
    #: Patterns of names of files with keys, which runs do not see there.
    hides: list[str]
    programs: list[str]
    variables: dict[str, str]
    megabytes: int | None
    #: Whether runs are told the instructions in it.
    instructions: bool
    created_at: Moment


class LendableFileShape(TypedDict):
    #: Its path in a plugin.
    path: str
    #: In base64.
    content: str


class LendableShape(TypedDict):
    """Files of a repository that can be lent to an agent, and paths that stay behind."""

    commit: str
    files: list[LendableFileShape]
    left_out: list[str]


class LentItemShape(TypedDict):
    """A skill, command or agent that is lent."""

    kind: Annotated[str, ItemKind]
    name: str
    description: str
    files: list[str]
    #: Commands that a program starts by itself when a model uses it.
    starts: list[str]
    text: str


class LentPluginShape(TypedDict):
    """Skills, commands and agents that an agent is lent."""

    id: str
    agent_id: str
    name: str
    source: str
    sha256: str
    created_at: Moment
    items: list[LentItemShape]
    #: Files, and fields of their heads, that stayed behind.
    left_out: list[str]
    dry_run: bool


class BindingStateShape(TypedDict):
    #: listening, waiting, failing, bound (without a receiver), or held (until it gets its secret)
    state: str
    problem: str | None
    heard_at: Moment | None


class BindingShape(BindingStateShape):
    id: str
    company_id: str
    agent_id: str
    agent_name: str
    adapter_type: str
    adapter_config: dict[str, object]
    created_at: Moment


class NewBindingShape(BindingShape):
    #: Shown this once.
    token: str | None


class TriedBindingShape(TypedDict):
    id: str
    usable: bool
    sentence: str
    next_step: str


class ChannelShape(TypedDict):
    type: str
    summary: str
    text: str
    problem: str | None


class TakenInShape(TypedDict):
    """A message that came from outside."""

    id: str
    thread: str
    duplicate: bool


class SecretShape(OwnedShape):
    name: str
    source: str
    place: str
    version: int
    created_at: Moment
    updated_at: Moment
    #: The place of its value before, for the program that stores values.
    replaced: NotRequired[str | None]


class ListedSecretShape(SecretShape):
    usable: bool
    problem: str | None


class RemovedSecretShape(TypedDict):
    name: str
    removed: bool
    replaced: NotRequired[str | None]


class McpServerShape(OwnedShape):
    name: str
    transport: Annotated[str, Transport]
    command: list[str] | None
    url: str | None
    env: dict[str, str]
    secret_env: dict[str, str]
    headers: dict[str, str]
    secret_headers: dict[str, str]
    inject: bool
    version: int
    holders: list[str]
    created_at: Moment
    updated_at: Moment


class RemovedMcpServerShape(TypedDict):
    name: str
    removed: bool
    revoked: list[str]


class OfferedToolShape(TypedDict):
    name: str
    description: str | None


class TriedToolsShape(TypedDict):
    usable: bool
    error: str | None
    complaint: str
    tools: list[OfferedToolShape]


class TriedMcpServerShape(TriedToolsShape):
    name: str
    version: int


class SigningKeyShape(TypedDict):
    """The public part of the key that signs a company's commits, and the name of its secret."""

    secret: str | None
    public_key: str | None
    fingerprint: str | None


class MadeSigningKeyShape(SigningKeyShape):
    place: str
    replaced: str | None


class TestedBindingShape(TypedDict):
    id: str
    kind: str
    held: bool


class MakeableKeyShape(TypedDict):
    company_id: str | None
    secret: str


class ConnectionShape(TypedDict):
    """Parts of a binding that a `Connection` is made of."""

    binding: str
    company_id: str
    adapter_type: str
    adapter_config: dict[str, object]
    adapter_token: str


class CarriedFileShape(TypedDict):
    """A file that is sent with a message, in the version of that time."""

    id: str
    sha256: str
    size: int
    description: str
    is_text: bool


class ParcelShape(TypedDict):
    """Fields of a channel's `Parcel`, besides those of its connection and what goes with it."""

    id: str
    sender: str
    address: str
    conversation: str
    subject: str
    title: str
    body: str
    thread: str
    reply_to: str | None
    reply_to_outside: str | None
    earlier: list[str]
    created_at: Micros
    attempt: int
    again: bool


class ClaimedMessageShape(ConnectionShape):
    epoch: int
    files: list[CarriedFileShape]
    parcel: ParcelShape


class ToldItemShape(TypedDict):
    """An item that needs a person, in a notice."""

    kind: str
    subject: str
    title: str
    agent: str | None
    since: Moment | None
    cause: str
    next: str


class NoticeDocumentShape(ToldItemShape):
    id: str
    company: str | None
    #: Of a digest.
    items: NotRequired[list[ToldItemShape]]
    #: The person who did not decide in time.
    escalatedFrom: NotRequired[str | None]  # as it is sent


class ClaimedNoticeShape(TypedDict):
    epoch: int
    user_id: str
    way: str
    url: str | None
    key: str | None
    document: NoticeDocumentShape


class EndedBindingsShape(TypedDict):
    """Bindings that ended with an agent, each with its kind, and the messages that were not
    sent."""

    bindings: dict[str, str]
    unsent: list[str]
