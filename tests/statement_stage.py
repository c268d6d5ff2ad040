"""Requests of every type, and markers in each leaf of them, for tests of their statement."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from remit.model.organisation.decision import BY_REMIT
from remit.model.spelling import spelled_lines, spelled_name
from remit.model.text import digest_of
from remit.services import lookup
from remit.services.command import Context, Kind, Verb
from remit.services.governance import approval_engine, approvals, statement
from remit.services.hiring import helper_creation
from remit.services.people import companies
from remit.store.organisation import governance
from tests.company import Answer, Company, keyed
from tests.governance import hire, propose
from tests.test_parking import gate, parked, send

BIDI = "\u202e"


def asks_before_everything(company: Company) -> Company:
    settings: Answer = {
        "require_board_approval_for_new_agents": True,
        "require_approval_for_config_changes": True,
    }
    company.call(company.board, companies.change, company=company.id, **settings)
    return company


def look(company: Company, approval: Answer, by: Any = None) -> Answer:
    view = company.call(by or company.board, approvals.look, approval=approval["id"])
    stated: Answer = view["statement"]
    return stated


def text_of(company: Company, approval: Answer) -> str:
    return statement.as_text(look(company, approval))


# ── one request of each type ────────────────────────────────────────────────────────────────────

CONFIG = {"command": "/bin/true", "args": ["one", "two"], "timeoutSeconds": 77}


def a_hire(company: Company) -> Answer:
    answer = hire(
        *(company, company.board, "helper"),
        adapter_type="process",
        adapter_config=CONFIG,
        prompt="Do it.\nWell.",
        title="Helping hand",
        capabilities="Much",
        reason="Because",
        purpose="Help",
        metadata={"deep": {"deeper": [1, {"deepest": "end"}]}},
        budget_monthly_cents=1234,
        given=[{"resource": "full_access", "level": "use"}],
    )
    approval: Answer = answer["approval"]
    return approval


def a_change(company: Company) -> Answer:
    agent = company.agent("worker")
    settings = {"adapterType": "process", "adapterConfig": CONFIG, "prompt": "Other words"}
    return propose(company, company.board, agent.id, **settings)


def a_call(company: Company) -> Answer:
    lead = company.agent("lead")
    gate(company, lead, "message:agent:ceo", "use")
    return parked(lambda: send(company, keyed(lead.caller, "call"), "Hello\nthere"))


def asked(kind: str, **payload: object) -> Callable[[Company], Answer]:
    def ask(company: Company) -> Answer:
        if kind == "budget":
            payload["agentId"] = company.agent("spender").id
        about: Answer = {"company": company.id, "kind": kind, "payload": payload}
        return company.call(company.board, approvals.request, **about)

    return ask


def a_write(company: Company) -> Answer:
    writer = company.agent("writer")
    file = company.file(company.board, b"One\nTwo\nThree\n", description="Rule book")
    gate(company, writer, f"kb_file:{file['id']}", "write")
    seen = {"file": file["id"], "version": file["version"], "sha256": file["hash"]}
    new, caller = b"One\nTwo and a half\nThree\n", keyed(writer.caller, "write")
    return parked(lambda: company.wait(company.app.library.write(caller, new, **seen)))


def a_helper(company: Company) -> Answer:
    lead = company.agent("maker")
    about = {"name": "scout", "role": "Scouts ahead.", "next_agent": "human"}
    return parked(lambda: company.call(lead.caller, helper_creation.create_agent, **about))


REQUESTS: Mapping[str, Callable[[Company], Answer]] = {
    "hire": a_hire,
    "configuration": a_change,
    "letter": a_call,
    "write": a_write,
    "helper": a_helper,
    "budget": asked("budget", budgetMonthlyCents=500, why="growth", list=[3, "four"]),
    "strategy": asked("approve_ceo_strategy", title="Plan", steps=["a", {"b": [5, 6]}], until=2030),
    "request": asked(
        "request_board_approval", title="May I?", summary="One\nTwo", cost=7.5, urgent=True
    ),
}
#: Keys of a payload that name a row, or are computed from others.
IDENTITIES = {"new_id", "sha256", "file", "seen_hash"}
BOUND = {"agentId", "changed", "difference", "baseRevision", "verb", "action", "version"}
#: Paths at which a text is shown as the name of something, or a part of the payload as its own.
_UNDER = ("requestedConfigurationSnapshot.", "configuration.", "arguments.", "prepared.")


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each leaf of a document."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves_of(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves_of(inner, (*path, number))
    else:
        yield path


def replaced(document: Any, path: tuple[Any, ...], new: Any) -> Any:
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return copy


def rewritten(company: Company, approval: Answer, payload: Any) -> None:
    """Have the approval ask for another payload, as if it had from the beginning: the record, too,
    says that this was submitted."""
    text, digest = json.dumps(payload), digest_of(payload)
    for table, key in (("approvals", "id"), ("approval_revisions", "approval_id")):
        company.sql(
            f"UPDATE {table} SET payload = ?, digest = ? WHERE {key} = ?",  # noqa: S608
            *(text, digest, approval["id"]),
        )
    company.call(company.board, _SUBMITTED, approval=approval["id"])


def _submit(ctx: Context, *, approval: str) -> Answer:
    lookup.company_of_caller(ctx, None)
    ctx.allow_by_rule(BY_REMIT)
    row = ctx.tx.existing(governance.APPROVAL_ANYWHERE, approval=approval)
    ctx.record("approval.request", f"approval:{approval}", approval_engine.details(row))
    return {}


_SUBMITTED = Verb("tests.submitted", Kind.COMMAND, _submit)


def named(path: tuple[Any, ...]) -> str:
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{spelled_name(step)}" if name else spelled_name(step)
    for above in _UNDER:
        name = name.removeprefix(above)
    return name


def under(text: str, name: str) -> str:
    """The lines of a statement that stand under a name, wherever it occurs."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("│"):
            found += [line] if inside else []
            continue
        inside = line == f"{name}:"
        if line.startswith(f"{name}: "):
            found.append(line)
    return "\n".join(found)


def markers(path: tuple[Any, ...], value: Any) -> list[Any]:
    """Values to put in the place of one, each unique, of its own type and of another."""
    if isinstance(value, bool):
        return [not value, 918273]
    if isinstance(value, int | float) or path[-1] in ("budgetMonthlyCents", "budgetMonthlyTokens"):
        return [918273, 91827.5]
    return ["marker-918273", "first\nmarker-918273", f"marker-918273{BIDI}"]


def last_line(marker: Any) -> str:
    """The last line of a marker, as a statement spells it."""
    return spelled_lines(marker)[-1] if isinstance(marker, str) else json.dumps(marker)


def marked(company: Company, approval: Answer) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Put a marker into each leaf of a request in turn, and yield its path and the marker."""
    stored = company.sql("SELECT payload FROM approvals WHERE id = ?", approval["id"])[0][0]
    payload = json.loads(stored)
    for path in leaves_of(payload):
        if path[0] in BOUND or path[-1] in IDENTITIES:
            continue
        before = payload
        for step in path:
            before = before[step]
        for marker in markers(path, before):
            rewritten(company, approval, replaced(payload, path, marker))
            yield path, marker
    rewritten(company, approval, payload)
