"""Approvals: the list, and the page on which a person decides one or resubmits it."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from remit.entrypoints.approval_text import asks_to
from remit.entrypoints.web.pages import agent_forms, hire
from remit.entrypoints.web.site import MOST_ROWS, Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import approval_words, common_queries, settings_form
from remit.errors import BadInput, NotFound, RemitError
from remit.model.organisation.agent_spec import CONFIGURED, AgentRole
from remit.model.organisation.approval import ApprovalStatus
from remit.services.chat import confirmations
from remit.services.command import Answer, Verb
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.screens import overview

DELETED: Final = "The agent was deleted; the approval stays."
_PENDING: Final = ApprovalStatus.PENDING.value
#: Decisions with their verbs and the messages after them.
DECISIONS: Final = {
    "approve": (approvals.approve, "Approved."),
    "reject": (approvals.reject, "Rejected."),
    "revise": (approvals.request_revision, "Sent back for another revision."),
}
#: Keys of a payload with the requested configuration.
_CONFIGURATION: Final = {
    "hire_agent": "requestedConfigurationSnapshot",
    "config_change": "configuration",
}
#: The two amounts of a budget, with the number of stored units in one typed unit.
_AMOUNTS: Final = {"budgetMonthlyCents": 100, "budgetMonthlyTokens": 1}


def routes(site: Site) -> Routes:
    here, comment, delete = "/approvals/{approval}", approvals.comment, approvals.delete_agent
    return [
        site.page("/approvals", listing),
        site.page(here, show),
        *site.forms(here, show, decide=decide, resubmit=resubmit),
        site.does(f"{here}/comment", comment, show, here, "Comment added.", "body", "reply_to"),
        site.does(f"{here}/cancel", approvals.cancel, show, here, "Withdrawn."),
        site.does(f"{here}/delete-agent", delete, show, here, DELETED),
    ]


def listing(visit: Visit) -> Page:
    status = visit.argument("status")
    rows = visit.listed(approvals.listing, status=status or None)
    more = visit.more("/approvals", rows, status=status)
    if not status:
        rows = _pending_first(visit, rows)
    called = common_queries.called(visit, visit.company_id, rows)
    return visit.show(
        "approvals.html",
        approvals=[{**approval, "asks": asks_to(approval, called)} for approval in rows],
        names=common_queries.names(visit, (who for approval in rows for who in _people(approval))),
        status=status,
        statuses=[state.value for state in ApprovalStatus],
        more=more,
    )


def _pending_first(visit: Visit, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Move pending approvals to the top of the first page."""
    here = visit.company_id
    pending = visit.ask(approvals.listing, company=here, status=_PENDING, limit=MOST_ROWS)
    if len(pending) == MOST_ROWS:  # too many to move
        return rows
    others = [approval for approval in rows if approval["status"] != _PENDING]
    return others if visit.argument("before") else [*pending, *others]


async def show(visit: Visit) -> Page:
    page = await visit.look(_show)
    await look_at(visit, [page.values["one"]])
    return page


async def look_at(visit: Visit, shown: Iterable[Mapping[str, Any]]) -> None:
    """Remember that the visitor saw these approvals whole. An automatic refresh is no look."""
    if visit.argument("quiet"):
        return
    for approval in shown:
        stated = approval["statement"]
        if stated["may_decide"] and stated["whole"] and not stated["seen"]:
            with suppress(RemitError):  # decided by somebody else just now
                await visit.site.app.gate(visit.who, approvals.look, approval=approval["id"])


def _show(visit: Visit) -> Page:
    approval = visit.ask(approvals.show, approval=visit.argument("approval"))
    visit.enter(approval["company_id"])
    called = common_queries.called(visit, approval["company_id"], [approval])
    happened = visit.ask(approvals.history, approval=approval["id"])
    waiting = visit.ask(confirmations.mine)
    return visit.show(
        "approval.html",
        one=approval,
        by_mail=[row for row in waiting if row["subject"] == f"approval:{approval['id']}"],
        asks=asks_to(approval, called),
        about=_about(visit, approval),
        # The changes of the newest revision are part of the statement.
        earlier=approval["revisions"][-2:0:-1],
        thread=approval_words.thread(approval["comments"]),
        timeline=approval_words.timeline(approval, happened),
        names=common_queries.names(
            visit, (*_everybody(approval), *(event["by"].partition(":")[2] for event in happened))
        ),
        **_form(visit, approval),
    )


def _about(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any] | None:
    """The agent that an approval is about, unless it was deleted."""
    if not approval["agent_id"]:
        return None
    try:
        return visit.ask(overview.agent, agent=approval["agent_id"])
    except RemitError:
        return None


async def decide(visit: Visit) -> Done:
    done, message = await decided(visit, DECISIONS, "Approve, reject or return it.")
    return Done(f"/approvals/{done['id']}", message)


async def decided(
    visit: Visit, decisions: Mapping[str, tuple[Verb[..., Answer], str]], step: str
) -> tuple[Answer, str]:
    """Decide an approval as the form says."""
    chosen = decisions.get(visit.form.text("decision"))
    if chosen is None:
        raise NotFound("There is no such decision.", step)
    verb, message = chosen
    approval, note = visit.argument("approval"), visit.form.maybe("note")
    seen = visit.form.number("revision")
    if seen is None and verb is approvals.approve:
        raise BadInput("The revision that you read is missing.", "Open the approval again.")
    return await visit.do(verb, approval=approval, note=note, expected_revision=seen), message


def _people(approval: Mapping[str, Any]) -> list[str | None]:
    return [
        approval[f"{role}_{kind}_id"]
        for role in ("requested_by", "decided_by")
        for kind in ("agent", "user")
    ]


def _everybody(approval: Mapping[str, Any]) -> Iterable[str | None]:
    yield from _people(approval)
    yield approval["agent_id"]
    yield approval["routed_to_agent_id"]
    for entry in (*approval["comments"], *approval["revisions"]):
        yield entry["author_agent_id"] or entry["author_user_id"]


# ── resubmission of a person's request that was returned ────────────────────────────────────────
#
# A hire and a configuration change have the fields of an agent's declaration, a budget has its two
# amounts, and a call is repeated unchanged. Only a request of an undeclared form is edited as JSON.


def _form(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the form for a person's returned request; `form` is empty if there is none."""
    if approval["status"] != "revision_requested" or not approval["requested_by_user_id"]:
        return {"form": ""}
    kind = approval["type"]
    if kind in _CONFIGURATION:
        return _configured(visit, approval)
    if kind == "budget":
        return {"form": "budget", "typed": visit.kept(_budget(approval["payload"]))}
    if kind == "capability_use":
        return {"form": "call"}
    text = visit.form.text("payload") or settings_form.as_json(approval["payload"])
    return {"form": "document", "typed": {"payload": text}}


def _configured(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any]:
    try:
        agent: dict[str, Any] = visit.ask(configuration.show, agent=approval["agent_id"])
    except RemitError:
        return {"form": ""}  # a deleted agent cannot be requested again
    now = _now(approval, agent)
    hires = approval["type"] == "hire_agent"
    own = _hire(approval["payload"]) if hires else {"reason": _text(approval["payload"], "reason")}
    typed: dict[str, Any] = {**agent_forms.typed(visit, now), **visit.kept(own)}
    if hires:
        told = visit.problem is not None and bool(visit.form.fields)
        typed["can_create"] = (
            visit.form.ticked("can_create")
            if told
            else approval_words.can_create(approval["payload"])
        )
    return {
        "form": approval["type"],
        "typed": typed,
        "roles": [(role.value, role.value) for role in AgentRole],
        "grantable": common_queries.grantable(visit, approval["company_id"]) if hires else [],
        **agent_forms.fields(visit, now),
    }


def _now(approval: Mapping[str, Any], agent: Mapping[str, Any]) -> dict[str, Any]:
    """The requested configuration: the agent's, with the proposal's changes."""
    requested = approval_words.document(approval["payload"].get(_CONFIGURATION[approval["type"]]))
    return {
        **agent,
        **{field.name: requested[field.key] for field in CONFIGURED if field.key in requested},
    }


def _hire(payload: Mapping[str, Any]) -> dict[str, str]:
    """Fields of a hire besides its configuration, as text."""
    texts = {key: _text(payload, key) for key in ("name", "role", "purpose", "reason")}
    return {**texts, "grants": "\n".join(map(_line, approval_words.rights(payload)))}


def _line(right: Mapping[str, str]) -> str:
    mode = right["mode"] if right["mode"] not in ("", "allow") else ""
    return " ".join(filter(None, (right["resource"], right["level"], mode)))


def _budget(payload: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: f"{payload[key] / parts:.2f}" if parts > 1 else str(payload[key])
        for key, parts in _AMOUNTS.items()
        if isinstance(payload.get(key), int)
    }


def _text(payload: Mapping[str, Any], key: str) -> str:
    return approval_words.text(payload.get(key))


async def resubmit(visit: Visit) -> Done:
    """Resubmit a person's request."""
    approval = visit.argument("approval")
    request = await visit.do(approvals.show, approval=approval)
    changes: dict[str, Any] = {}
    if request["type"] in _CONFIGURATION:
        agent = await visit.do(configuration.show, agent=request["agent_id"])
        changes = agent_forms.changes(visit, _now(request, agent))
    await visit.do(
        approvals.resubmit, approval=approval, payload={**changes, **_given(visit, request)}
    )
    return Done(f"/approvals/{approval}", "Resubmitted.")


def _given(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any]:
    """Differences from the last revision, except those of a configuration."""
    kind, payload = approval["type"], approval["payload"]
    if kind == "hire_agent":
        return _given_of_hire(visit, payload)
    if kind == "config_change":
        return _different(visit, {"reason": _text(payload, "reason")})
    if kind == "budget":
        return {
            key: _amount(visit, key, parts)
            for key, parts in _AMOUNTS.items()
            if visit.form.text(key)
        }
    if kind == "capability_use":
        return {}
    document = agent_forms.read_json(visit.form.text("payload") or "{}", "payload")
    if not isinstance(document, dict):
        raise BadInput("payload: must be an object.", "Write it as a JSON object.")
    return document


def _given_of_hire(visit: Visit, payload: Mapping[str, Any]) -> dict[str, Any]:
    differing = _different(visit, _hire(payload))
    if "grants" in differing:
        # An unchanged line keeps its expiry.
        wishes = [wish for wish in payload.get("grants") or () if isinstance(wish, dict)]
        before = dict(zip(map(_line, approval_words.rights(payload)), wishes, strict=True))
        differing["grants"] = [
            before.get(_line(wish), wish) for wish in hire.wishes(differing["grants"])
        ]
    if visit.form.ticked("can_create") != approval_words.can_create(payload):
        differing["permissions"] = {"canCreateAgents": visit.form.ticked("can_create")}
    return differing


def _different(visit: Visit, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: visit.form.text(name)
        for name, was in values.items()
        if name in visit.form.fields and visit.form.text(name) != was.strip()
    }


def _amount(visit: Visit, key: str, parts: int) -> int:
    amount = settings_form.number_or_none(visit.form.text(key), key)
    if amount is None:
        raise settings_form.wrong(key, "must be a number, 0 or more")
    return round(amount * parts)
