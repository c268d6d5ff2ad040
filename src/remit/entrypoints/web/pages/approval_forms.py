"""Forms to resubmit a person's request that was returned.

A hire and a configuration change have the fields of an agent's declaration, a budget has its two
amounts, and a call is repeated unchanged. Only a request of an undeclared form is edited as JSON.
"""

from collections.abc import Mapping
from typing import Any, Final

from remit.entrypoints.web.pages import agent_forms, hire
from remit.entrypoints.web.site import Done, Visit
from remit.entrypoints.web.text import approval_words, common_queries, pickers, settings_form
from remit.errors import BadInput, RemitError
from remit.model.organisation.agent_spec import CONFIGURED, FORM, AgentRole
from remit.services.governance import approvals
from remit.services.hiring import configuration

#: Keys of a payload with the requested configuration.
_CONFIGURATION: Final = {
    "hire_agent": "requestedConfigurationSnapshot",
    "config_change": "configuration",
}
#: The two amounts of a budget, with the number of stored units in one typed unit.
_AMOUNTS: Final = {"budgetMonthlyCents": 100, "budgetMonthlyTokens": 1}


def shown(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the form for a person's returned request; `form` is empty if there is none."""
    if approval["status"] != "revision_requested" or not approval["requested_by_user_id"]:
        return {"form": ""}
    kind = approval["type"]
    if kind in _CONFIGURATION:
        return _configured(visit, approval)
    if kind == "budget":
        return {"form": "budget", "typed": _kept(visit, _budget(approval["payload"]))}
    if kind == "capability_use":
        return {"form": "call"}
    return {
        "form": "document",
        "typed": {
            "payload": visit.form.text("payload") or agent_forms.as_json(approval["payload"])
        },
    }


def _configured(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any]:
    try:
        agent: dict[str, Any] = visit.ask(configuration.show, agent=approval["agent_id"])
    except RemitError:
        return {"form": ""}  # a deleted agent cannot be requested again
    now = _now(approval, agent)
    hires = approval["type"] == "hire_agent"
    own = _hire(approval["payload"]) if hires else {"reason": _text(approval["payload"], "reason")}
    typed: dict[str, Any] = {**agent_forms.typed(visit, now), **_kept(visit, own)}
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
        "described": FORM,
        "roles": [(role.value, role.value) for role in AgentRole],
        "adapters": agent_forms.adapters(now["adapter_type"]),
        "at_field": agent_forms.at_field(visit.problem),
        "picks": pickers.of(visit, "secret", "repo"),
        "grantable": common_queries.grantable(visit, approval["company_id"]) if hires else [],
        **agent_forms.settings(visit, now),
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


def _kept(visit: Visit, values: Mapping[str, str]) -> dict[str, str]:
    """Values as typed if the form failed, else as given."""
    kept = visit.form.fields if visit.problem is not None else {}
    return {
        name: visit.form.text(name) if name in kept else value for name, value in values.items()
    }


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
        return dict(_different(visit, {"reason": _text(payload, "reason")}))
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
    differing: dict[str, Any] = dict(_different(visit, _hire(payload)))
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


def _different(visit: Visit, values: Mapping[str, str]) -> dict[str, str]:
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
