"""How an export looks: where everything is, and how each thing is written down.

People are not part of it: where a person stands, it says `person`, and whoever imports the company
stands in for them. So a company that was imported gives the same export again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remit.clock import Micros, to_iso
from remit.model.agent import Agent, AgentStatus
from remit.model.company import Company
from remit.model.event import Event
from remit.model.file import File, FileKind, Version
from remit.model.grant import Grant
from remit.model.outcome import Outcome, OutcomeKind
from remit.model.permission import can_create_agents
from remit.services.archive.text import Noted
from remit.services.redaction import text_without_secrets, without_secrets
from remit.store.agents import Place
from remit.store.people import Member
from remit.store.whole import Named

FORMAT = 3
#: Before there was mail.
WITHOUT_MAIL = 1
#: The first with approvals and configurations.
WITH_GOVERNANCE = 3
PERSON = "person"

COMPANY = "company.toml"
GRANTS = "grants.jsonl"
MAIL = "mail.jsonl"
QUESTIONS = "questions.jsonl"
SCHEDULES = "schedules.jsonl"
APPROVALS = "approvals.jsonl"
CONFIGURATIONS = "configurations.jsonl"
EVENTS = "events.jsonl"
README = "README.txt"
#: Git must keep every byte, also of what looks like text.
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
events.jsonl      what happened, for reading

There are no tokens, passwords or keys in what Remit itself keeps: settings that look like one
were taken out and are listed as `removed`. What people and agents wrote into files and outcomes is
here as they wrote it. Treat the folder like the company itself.

`remit company import DIR` makes the company again, in another instance. Whoever does that stands
in for the people of this one. A file whose content was changed is refused, because its hash is no
longer the one in its meta.toml.
"""


def agent_path(agent: Agent) -> str:
    if agent.status is AgentStatus.TERMINATED:
        return f"agents/former/{agent.name}/{agent.id}.md"  # a name can be used again
    return f"agents/{agent.name}.md"


def outcome_path(outcome_id: str) -> str:
    return f"outcomes/{outcome_id}.md"


def meta_path(file_id: str) -> str:
    return f"files/{file_id}/meta.toml"


def version_path(file: File, number: int) -> str:
    """Where the bytes of a version are; the latest prose of an outcome is in its own document."""
    if file.kind is FileKind.OUTCOME and number == file.version:
        return outcome_path(file.id)
    return f"files/{file.id}/v{number}"


def company(value: Company, members: Sequence[Member], seats: Mapping[str, str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "id": value.id,
        "name": value.name,
        "messaging": value.messaging.value,
        "require_board_approval_for_new_agents": value.require_board_approval_for_new_agents,
        "require_approval_for_config_changes": value.require_approval_for_config_changes,
        "chat_llm_provider": value.chat_llm_provider,
        "chat_llm_model": value.chat_llm_model,
        "review_hours": value.review_hours,
        # Only what was set: where there is no limit it is 0.
        "limits": {name: limit or 0 for name, limit in json.loads(value.limits).items()} or None,
        "permission_policy": value.permission_policy,
        "created_at": to_iso(value.created_at),
        "people": [
            {
                "name": member.name,
                "role": member.role.value,
                "scope": member.scope_agent_id,
                "seats": [agent for agent, user in seats.items() if user == member.user_id],
            }
            for member in members
        ],
    }


def agent(
    value: Agent, mandate: str, names: Mapping[str, str], places: Sequence[Place]
) -> tuple[dict[str, Any], str]:
    """The head of an agent's document, and its prompt; `mandate` is that outcome's title."""
    config, removed = without_secrets(json.loads(value.adapter_config))
    documents: dict[str, str | None] = {}
    for name, text in (
        ("runtime_config", value.runtime_config),
        ("metadata", value.metadata),
    ):
        clean, paths = without_secrets(json.loads(text))
        documents[name] = json.dumps(clean, indent=2) if clean else None
        removed += [f"{name}.{path}" for path in paths]
    capabilities, told = text_without_secrets(value.capabilities)
    removed += ["capabilities"] if told else []
    prompt, cut = text_without_secrets(value.prompt)
    removed += ["prompt"] if cut else []
    running = value.status is AgentStatus.RUNNING
    head = {
        "id": value.id,
        "name": value.name,
        "role": value.role.value,
        "title": value.title,
        # Runs stay where they run.
        "status": (AgentStatus.IDLE if running else value.status).value,
        "boss": _named(value.boss_id, names) or PERSON,
        "mandate": Noted(value.id, mandate),
        "adapter_type": value.adapter_type,
        "adapter_config": json.dumps(config, indent=2) if config else None,
        **documents,
        "capabilities": capabilities or None,
        "can_create_agents": can_create_agents(value.permissions),
        "permission_level": value.permission_level.value,
        "budget_monthly_cents": value.budget_monthly_cents,
        "budget_monthly_tokens": value.budget_monthly_tokens,
        "config_revision": value.config_revision,
        "removed": removed,
        "state_file": value.state_file_id,
        "log_file": value.log_file_id,
        "created_at": to_iso(value.created_at),
        "updated_at": to_iso(value.updated_at),
        "places": [
            {
                "boss": _named(place.boss_id, names) or PERSON,
                "since": to_iso(place.since),
                "until": time(place.until),
            }
            for place in places
        ],
    }
    return head, prompt


def outcome(
    value: Outcome,
    names: Mapping[str, str],
    parents: Sequence[Named],
    blockers: Sequence[Named],
) -> dict[str, Any]:
    return {
        "title": value.title,
        "kind": None if value.kind is OutcomeKind.WORK else value.kind.value,
        "status": value.status.value,
        "owner": _named(value.owner_id, names),
        "mandate": value.id in names or None,
        "perpetual": value.perpetual or None,
        "delegated": value.delegated or None,
        "delegator": _named(value.delegator_id, names),
        "urgent": value.urgent or None,
        "important": value.important or None,
        "deferred_until": time(value.deferred_until),
        "parents": [Noted(one.id, one.title) for one in parents],
        "blocked_by": [Noted(one.id, one.title) for one in blockers],
        "version": value.version,
        "created_at": to_iso(value.created_at),
        "updated_at": to_iso(value.updated_at),
        "finished_at": time(value.finished_at),
        "verdict": None if value.verdict is None else _verdict(json.loads(value.verdict)),
    }


def _verdict(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "note": value.get("note", ""),
        "by": author(value.get("by")),
        "run": value.get("run_id"),
        "evidence": [
            {"file": seen["id"], "version": seen["version"], "sha256": seen["hash"]}
            for seen in value.get("evidence", ())
        ],
    }


def file(value: File, names: Mapping[str, str], versions: Sequence[Version]) -> dict[str, Any]:
    return {
        "kind": value.kind.value,
        "description": value.description,
        "unlisted": value.unlisted or None,
        "home": _named(value.home_agent_id, names),
        "created_at": to_iso(value.created_at),
        "updated_at": to_iso(value.updated_at),
        "versions": [
            {
                "number": version.number,
                "sha256": version.sha256,
                "size": version.size,
                "at": to_iso(version.at),
                "by": by_whom(version.agent_id, version.user_id, names),
            }
            for version in versions
        ],
    }


def grant(value: Grant) -> dict[str, Any]:
    return {
        "id": value.id,
        "holder": value.holder_id,
        "resource": str(value.resource),
        "level": value.level.word,
        "mode": value.mode.value,
        "scope": value.scope_id,
        "parent": value.parent_id,
        "granted_by": by_whom(value.granted_by_agent, value.granted_by_user, {}),
        "created_at": to_iso(value.created_at),
        "expires_at": time(value.expires_at),
        "used_at": time(value.used_at),
    }


def event(value: Event) -> dict[str, Any]:
    """As it was recorded, except for secrets; so its hash may be of more than is here."""
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


def by_whom(agent_id: str | None, user_id: str | None, names: Mapping[str, str]) -> str | None:
    if agent_id is not None:
        return Noted(f"agent:{agent_id}", names.get(agent_id))
    return None if user_id is None else PERSON


def author(text: object) -> str | None:
    """Whoever is meant by an address, without telling which person."""
    if not isinstance(text, str) or not text or text.startswith("system:"):
        return None
    return PERSON if text.startswith("user:") else text


def _named(agent_id: str | None, names: Mapping[str, str]) -> str | None:
    return None if agent_id is None else Noted(agent_id, names.get(agent_id))


def time(at: Micros | None) -> str | None:
    return None if at is None else to_iso(at)
