"""Creation of a company from an export: all of its rows in one transaction, under their old ids."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from remit.authority import Action
from remit.errors import AlreadyExists, Conflict, NotFound
from remit.ids import AgentId, FileId, UserId
from remit.model.event import GENESIS
from remit.model.messaging.question import QuestionStatus
from remit.model.organisation.approval import OPEN, ApprovalStatus
from remit.model.organisation.company import company_name
from remit.model.organisation.configuration import RevisionSource
from remit.model.organisation.principal import ActorKind
from remit.model.organisation.user import UserRole
from remit.model.text import name_key
from remit.model.work.file import FileKind
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.model.work.wait import WaitKind
from remit.services import lookup, shapes, views
from remit.services.acceptance import acceptance
from remit.services.archive import checking, layout, mail
from remit.services.archive.plan import Plan, Stored
from remit.services.command import Context, command, query
from remit.services.connections import bindings
from remit.services.execution import waking
from remit.services.governance import approval_engine
from remit.services.hiring import configuration
from remit.services.knowledge import files
from remit.services.organisation import roots
from remit.services.people import users
from remit.services.spending import ledger
from remit.services.work import waits
from remit.store.engine.statement import row
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import people
from remit.store.record import company_dump
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements


class Known(NamedTuple):
    """Properties of a stored content."""

    is_text: bool
    links: tuple[str, ...]


#: Properties of the stored contents, by file and hash.
Contents = Mapping[tuple[FileId, str], Known]


#: Parts of a plan whose numbers the answer has.
_COUNTED = (
    *("agents", "outcomes", "files", "grants", "messages", "questions", "schedules"),
    *("approvals", "bindings"),
)


@query("importing.may_import")
def may_import(ctx: Context) -> str:
    """Check that the caller may create a company, before anything is received. Returns the member
    of its board."""
    return _require_importer(ctx)


@query("importing.check_free")
def check_free(ctx: Context, *, new_plan: Plan, name: object = None) -> None:
    """Refuse names and ids that are taken, before any bytes are stored."""
    _require_importer(ctx)
    _check_free(ctx, new_plan, name)


@command("importing.create")
def create(
    ctx: Context, *, sha256: str, name: object = None, new_plan: Plan, new_contents: Contents
) -> shapes.ImportedCompanyShape:
    """Create the company, halted, with the caller as its board. The archive is identified by its
    hash."""
    plan = new_plan
    importer = _require_importer(ctx)
    assert importer == plan.importer, "the plan was read for whoever asks now"
    company = replace(plan.company, name=_check_free(ctx, plan, name))
    ctx.tx.add(company, name_key=name_key(company.name), mail_position=plan.mail_position)
    ctx.tx.run(people.INSERT_HEAD, company_id=company.id, seq=0, hash=GENESIS)
    users.add_member(ctx, company.id, importer, UserRole.BOARD, None)
    ctx.enter(company.id)
    _insert_organisation(ctx, plan)
    ledger.settle(ctx, None)
    for stored in plan.files.values():
        _insert_file(ctx, stored, new_contents)
    for grant in checking.parents_first(plan):
        ctx.tx.add(grant, level=int(grant.level))
    _insert_mail(ctx, plan)
    _insert_governance(ctx, plan)
    for binding in plan.bindings.values():
        bindings.hold(
            ctx, binding.agent_id, binding.adapter_type, binding.adapter_config, binding.created_at
        )
    _go_on(ctx, plan)
    counted = {name: len(getattr(plan, name)) for name in _COUNTED} | {"setup": plan.setup}
    details = {"name": company.name, "was": plan.company.name, "sha256": sha256, **counted}
    details["left_out"] = plan.left_out
    ctx.record("company.import", f"company:{company.id}", details)
    acceptance.hold(ctx, company.id, importer, plan.left_out)
    _record_origins(ctx, plan)
    roots.ensure(ctx)
    answer = {
        **views.company(company),
        **counted,
        "removed": plan.removed,
        "left_out": plan.left_out,
        "awaits_acceptance": True,
    }
    return cast(shapes.ImportedCompanyShape, answer)


def _require_importer(ctx: Context) -> UserId:
    ctx.require(Action.COMPANY_CREATE, on="company")
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("There is nothing here with that id.")
    return UserId(ctx.actor.id)


def _check_free(ctx: Context, plan: Plan, name: object) -> str:
    """Return the name of the new company, provided that neither that nor any id is taken."""
    wanted = plan.company.name if name is None else company_name(name)
    if ctx.tx.one(people.COMPANY, company=plan.company.id) is not None:
        raise Conflict(
            f"The company {plan.company.id} is in this instance already.",
            "Import it into another instance.",
        )
    if ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(wanted)) is not None:
        raise AlreadyExists(
            f"There is a company named {wanted!r} already.", "Give it another name with --name."
        )
    _check_ids(ctx, plan.outcomes, layout.outcome_path)
    file_rows = {id_: stored.file for id_, stored in plan.files.items()}
    _check_ids(ctx, file_rows, layout.meta_path)
    others = (plan.grants, plan.messages, plan.questions, plan.schedules)
    for values in (*others, plan.approvals, plan.comments, plan.configurations):
        _check_ids(ctx, values, lambda id_: plan.where[id_])
    return wanted


def _check_ids(ctx: Context, values: Mapping[Any, object], where: Callable[[str], str]) -> None:
    taken = {kind: company_dump.taken(kind) for kind in set(map(type, values.values()))}
    for id_, value in values.items():
        if ctx.tx.one(taken[type(value)], id=id_) is not None:
            raise Conflict(
                f"{where(id_)}: its id, {id_}, is in this instance already.",
                "Import it into another instance.",
            )


def _insert_organisation(ctx: Context, plan: Plan) -> None:
    here = {"company_id": plan.company.id}
    for outcome in plan.outcomes.values():
        ctx.tx.add(outcome)
    for agent in checking.bosses_first(plan):
        ctx.tx.add(agent, name_key=name_key(agent.name))
    for place in plan.places:
        ctx.tx.run(agent_statements.INSERT_PLACE, **row(place, **here))
    for child, parents in plan.parents.items():
        for parent in parents:
            ctx.tx.run(outcome_statements.INSERT_EDGE, parent_id=parent, child_id=child, **here)
    for waiting, blockers in plan.blockers.items():
        for blocker in blockers:
            ctx.tx.run(
                outcome_statements.INSERT_BLOCKER, outcome_id=waiting, blocker_id=blocker, **here
            )


def _insert_file(ctx: Context, stored: Stored, contents: Contents) -> None:
    file = stored.file
    latest = contents[(file.id, file.sha256)]
    complete = replace(file, is_text=latest.is_text, links=len(latest.links))
    ctx.tx.run(file_statements.INSERT_FILE, **row(complete))
    for version in stored.versions:
        is_text = contents[(file.id, version.sha256)].is_text
        ctx.tx.add(version, is_text=is_text)
    for target in latest.links:
        ctx.tx.run(file_statements.INSERT_LINK, file_id=file.id, target_id=target)
    if file.kind is FileKind.FILE:
        files.index(ctx, file.id, file.description)


def _insert_mail(ctx: Context, plan: Plan) -> None:
    for question in plan.questions.values():
        ctx.tx.add(question)
    for message in mail.answered_first(plan):
        ctx.tx.add(message)
    ctx.tx.run(file_statements.KNOW_LETTERS)
    for delivery in plan.deliveries:
        values = row(delivery)
        del values["id"]
        ctx.tx.run(mail_statements.INSERT_DELIVERY, **values)
    for schedule in plan.schedules.values():
        ctx.tx.add(schedule)


def _insert_governance(ctx: Context, plan: Plan) -> None:
    decided = (*plan.approvals.values(), *plan.approval_revisions, *plan.comments.values())
    for value in (*decided, *plan.configurations.values()):
        ctx.tx.add(value)
    known = {config.agent_id for config in plan.configurations.values()}
    for agent in plan.agents.values():
        if agent.id not in known:  # older exports have no revisions
            configuration.keep(ctx, agent, RevisionSource.CREATE)


def _go_on(ctx: Context, plan: Plan) -> None:
    """Begin the waits for undecided requests, and make everything else due at once. Submissions
    have to be made again."""
    for agent in plan.agents.values():
        waking.look_now(ctx, agent.id)
    for question in plan.questions.values():
        if question.status is QuestionStatus.OPEN:
            to = question.to_agent_id
            _wait(ctx, plan, WaitKind.QUESTION, question.id, question.agent_id, to)
    for approval in plan.approvals.values():
        requester_id = approval.requested_by_agent_id
        if approval.status is ApprovalStatus.PENDING and requester_id is not None:
            to = approval.routed_to_agent_id
            _wait(ctx, plan, WaitKind.APPROVAL, approval.id, requester_id, to)
    for message in plan.messages.values():
        request = json.loads(message.request or "{}")
        if request and not request.keys() & {"grant", "refused"}:
            asking = plan.agents[AgentId(request["agent"])]
            about = _resting(ctx, plan, WaitKind.CAPABILITY, message.id, asking.id)
            waits.begin_for_capability(ctx, message, asking, about)


def _wait(
    ctx: Context, plan: Plan, kind: WaitKind, subject: str, agent: AgentId, to: AgentId | None
) -> None:
    about = _resting(ctx, plan, kind, subject, agent)
    waits.begin(ctx, kind, subject, agent, to_agent=to, about=about)


def _resting(
    ctx: Context, plan: Plan, kind: WaitKind, subject: str, agent: AgentId
) -> list[Outcome] | None:
    """The open outcomes of an agent that rested for a request; None if it was about none."""
    known = (
        lookup.known_outcome(ctx, outcome_id)
        for outcome_id in plan.resting.get(waits.matter(kind, subject), ())
        if outcome_id in plan.outcomes
    )
    resting = [
        outcome
        for outcome in known
        if outcome.owner_id == agent and outcome.status is OutcomeStatus.OPEN
    ]
    return resting or None


def _record_origins(ctx: Context, plan: Plan) -> None:
    """Record every agent and grant, so that a trace from a later event to a person does not end at
    the import."""
    for agent in plan.agents.values():
        ctx.record("agent.import", f"agent:{agent.id}", {"name": agent.name})
    for grant in plan.grants.values():
        if not grant.by_authorship:
            ctx.record("grant.import", f"grant:{grant.id}", {"holder": grant.holder_id})
    for approval in plan.approvals.values():
        if approval.status in OPEN:
            # The decision compares the request with this digest.
            about = approval_engine.details(approval)
            ctx.record("approval.import", f"approval:{approval.id}", about)
