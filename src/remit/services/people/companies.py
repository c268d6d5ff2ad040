"""Companies: create, list, show, rename."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypedDict, Unpack

from remit.authority import Action
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import CompanyId
from remit.model.connections.commit_identity import LONGEST_NAMES, some_people, somebody
from remit.model.connections.secret import secret_name
from remit.model.event import GENESIS
from remit.model.execution.limit import changed as with_limits
from remit.model.execution.limit import stored
from remit.model.messaging.confirmation import MailDecisions
from remit.model.messaging.mail import Messaging
from remit.model.organisation.company import (
    LONGEST_MODEL,
    LONGEST_NAME,
    Company,
)
from remit.model.organisation.company import review_hours as hours
from remit.model.organisation.principal import ActorKind
from remit.model.organisation.user import UserRole
from remit.model.text import name_key
from remit.services import lookup, shapes, views
from remit.services.command import Arguments, Context, command, query
from remit.services.fields import CompanyRef, Help, Name, Text, Words
from remit.services.hiring import agent_spec
from remit.services.organisation import roots
from remit.services.people import users
from remit.services.spending import limits as limits_at_work
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.engine.statement import row
from remit.store.organisation import people

CompanyName = Annotated[str, Text(LONGEST_NAME, one_line=True)]
ModelName = Annotated[str, Text(LONGEST_MODEL, empty=True, one_line=True)]
ReviewHours = Annotated[
    str, Help("Hours after which an outcome without progress is reviewed again: `1, 4, 24`.")
]
CommitNames = Annotated[str, Text(LONGEST_NAMES, empty=True, one_line=True)]
Committer = Annotated[CommitNames, Help("The committer for its agents: `Acme <bot@acme.example>`.")]
CoAuthors = Annotated[CommitNames, Help("Co-authors of each commit, with commas between several.")]
Key = Annotated[str, Text(64, empty=True, one_line=True)]
Signing = Annotated[Key, Help("The secret with the key that signs commits.")]
MailDecision = Annotated[
    str,
    MailDecisions,
    Help("Whether decisions by e-mail are confirmed elsewhere first, or take effect at once."),
]
Limits = Annotated[
    Mapping[str, object], Help('Such as `{"agentRunsPerHour": 120}`; 0, null or "none": no limit.')
]


@command(
    "companies.create",
    Added("root_name", None),
    Added("adapter_type", None),
    Added("adapter_config", None),
    AsRoute("POST /companies", "create_company", 201),
)
def create(
    ctx: Context,
    *,
    name: CompanyName,
    root_name: Annotated[Name, Help("Name of its root agent; ceo, if left out.")] | None = None,
    adapter_type: Annotated[
        str,
        Words(agent_spec.adapter_types),
        Help("Adapter of the root agent; the first that can be used here, if left out."),
    ]
    | None = None,
    adapter_config: dict[str, object] | None = None,
) -> shapes.NewCompanyShape:
    """A company with its root outcome and its root agent; its creator becomes a board member."""
    ctx.require(Action.COMPANY_CREATE, on="company")
    if ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(name)) is not None:
        raise AlreadyExists(f"There is a company named {name!r} already.")
    company = Company(CompanyId(ctx.ids.new()), name, ctx.now)
    ctx.tx.add(company, name_key=name_key(name), mail_position=0)
    ctx.tx.run(people.INSERT_HEAD, company_id=company.id, seq=0, hash=GENESIS)
    if ctx.actor.kind is ActorKind.USER:
        users.add_member(ctx, company.id, ctx.actor.id, UserRole.BOARD, None)
    ctx.enter(company.id)
    ctx.record("company.create", f"company:{company.id}", {"name": name})
    root = roots.begin(
        ctx, name=root_name, adapter_type=adapter_type, adapter_config=adapter_config
    )
    return {**_with_part(ctx, company), "root_agent_id": root["id"]}


@query("companies.listing", AsRoute("GET /companies", "list_companies", page="id"))
def listing(ctx: Context, *, after: str = "", limit: int = 100) -> list[shapes.CompanyShape]:
    """The companies the caller has a part in, and which part that is."""
    if ctx.actor.company_id is not None:
        own_company = ctx.tx.one(people.COMPANY, company=ctx.actor.company_id)
        return (
            [views.company(own_company)]
            if own_company is not None and own_company.id > after
            else []
        )
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after=after, limit=limit)
    return [_with_part(ctx, company) for company in mine]


@query("companies.show", AsRoute("GET /companies/{companyId}", "show_company"))
def show(ctx: Context, *, company: CompanyRef | None = None) -> shapes.CompanyShape:
    """A company, how it is run, and which part the caller has in it."""
    return _with_part(ctx, _require(ctx, Action.COMPANY_READ, company))


@query("companies.positions")
def positions(ctx: Context) -> dict[str, int]:
    """Return the length of the record of each of the caller's companies, and nothing of its
    content."""
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This is for people.", "Read the events of your company.")
    return dict(ctx.tx.all(people.POSITIONS_OF_USER, user=ctx.actor.id))


def _with_part(ctx: Context, company: Company) -> shapes.CompanyShape:
    """A company, with the part that the calling person has in it."""
    part = ctx.tx.one(people.MEMBERSHIP, company=company.id, user=ctx.actor.id)
    if part is None:
        return views.company(company)
    return {
        **views.company(company),
        "role": part.role.value,
        "scope_agent_id": part.scope_agent_id,
    }


class Settings(TypedDict, total=False):
    """Settings of a company that can be changed."""

    name: CompanyName | None
    messaging: Annotated[str, Messaging, Help("Mail that agents may send.")] | None
    require_board_approval_for_new_agents: bool | None
    require_approval_for_config_changes: bool | None
    chat_llm_provider: ModelName | None
    chat_llm_model: ModelName | None
    review_hours: ReviewHours | None
    commit_committer: Committer | None
    commit_co_authors: CoAuthors | None
    commit_signing: Signing | None
    limits: Limits | None
    mail_decisions: MailDecision | None


def _flag(flag: object, field: str) -> bool:
    if not isinstance(flag, bool):
        raise BadInput(f"{field}: must be true or false.", "Send a boolean.")
    return flag


#: The parser of each setting that is not plain text; an empty plain text is stored as None.
_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "messaging": lambda text, _: Messaging(text),
    "mail_decisions": lambda text, _: MailDecisions(text),
    "require_board_approval_for_new_agents": _flag,
    "require_approval_for_config_changes": _flag,
    "review_hours": lambda text, _: hours(text),
    "commit_committer": somebody,
    "commit_co_authors": some_people,
    "commit_signing": lambda text, _: secret_name(text) if text else None,
}
_ROUTE = AsRoute(
    "PATCH /companies/{companyId}",
    "change_company",
    spelled={"chat_llm_provider": "chatLLMProvider", "chat_llm_model": "chatLLMModel"},
    without=("expected",),
)
#: The settings as they are called in a file and over HTTP.
CALLED = {name: _ROUTE.called(name) for name in Settings.__annotations__}


@command(
    "companies.change",
    Added("review_hours", None),
    Added("limits", None),
    Added("commit_committer", None),
    Added("commit_co_authors", None),
    Added("commit_signing", None),
    Added("mail_decisions", None),
    _ROUTE,
)
def change(
    ctx: Context,
    *,
    company: CompanyRef,
    expected: Mapping[str, object] | None = None,
    **settings: Unpack[Settings],
) -> shapes.CompanyShape:
    """Rename a company, or change how it is run. An empty text takes a default back.

    `limits` are those to be changed; 0 or "none" turns one off. `expected` is what the caller saw
    before; if it has changed since, the call is refused.
    """
    changes: Arguments = {name: value for name, value in settings.items() if value is not None}
    if not changes:
        raise BadInput("Nothing is to be changed.", "Give name, messaging or another setting.")
    old = _require(ctx, Action.COMPANY_CHANGE, company)
    _check_unchanged(old, expected or {})
    read: Arguments = {
        name: _READ[name](value, CALLED[name]) if name in _READ else value or None
        for name, value in changes.items()
        if name != "limits"
    }
    limits = with_limits(old.limits, changes["limits"]) if "limits" in changes else old.limits
    new = replace(old, **read, limits=limits)
    taken = ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(new.name))
    if taken is not None and taken.id != old.id:
        raise AlreadyExists(f"There is a company named {new.name!r} already.")
    ctx.tx.run(people.CHANGE_COMPANY, **new_values(new), new_key=name_key(new.name))
    limits_at_work.changed(ctx, stored(old.limits), stored(new.limits))
    was, now = dict(views.company(old)), dict(views.company(new))
    ctx.record(
        "company.change",
        f"company:{old.id}",
        {
            **{key: value for key, value in now.items() if value != was[key]},
            "was": {key: value for key, value in was.items() if value != now[key]},
        },
    )
    return _with_part(ctx, new)


def _check_unchanged(company: Company, expected: Mapping[str, object]) -> None:
    now = views.company(company)
    for setting, was in expected.items():
        is_now = now.get(setting)
        if isinstance(is_now, Mapping) and isinstance(was, Mapping):
            is_now = {name: is_now.get(name) for name in was}
        if setting in now and is_now != was:
            raise Conflict(
                f"Somebody else changed {setting.replace('_', ' ')} meanwhile.",
                "Look at what it is now, then change it if you still want to.",
            )


def new_values(company: Company) -> dict[str, object]:
    """Return the column values that a change of a company writes."""
    values = row(company)
    values.pop("created_at")
    return {"company": values.pop("id"), **{f"new_{key}": value for key, value in values.items()}}


def _require(ctx: Context, action: Action, reference: str | None) -> Company:
    lookup.company_of_caller(ctx, reference)
    ctx.require(action, on=f"company:{ctx.company}")
    company = ctx.tx.one(people.COMPANY)
    if company is None:
        raise NotFound.of("company")
    return company
