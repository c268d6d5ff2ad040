"""Building organisations, and judging them by queries that share nothing with the services."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from remit.errors import RemitError
from remit.services.identity import Caller
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.work import delegation, outcomes
from remit.store.engine.migrate import is_sqlite, sqlite_path
from tests.company import Answer, Company, Member

# ── building ────────────────────────────────────────────────────────────────────────────────────


def work(company: Company, caller: Caller, parent: str, title: str = "work", **more: Any) -> str:
    """A new part of an outcome; answers its id."""
    outcome = company.call(caller, outcomes.create, parent=parent, title=title, **more)
    return str(outcome["id"])


def hire(company: Company, caller: Caller, outcome: str, name: str, **more: Any) -> Member:
    """Delegate to a new agent, which gets a key to call with."""
    answer = company.call(caller, delegation.delegate, outcome=outcome, hire={"name": name}, **more)
    return member(company, answer["agent"])


def member(company: Company, agent: Answer) -> Member:
    key = company.call(company.board, agents.create_key, agent=agent["id"])
    return Member(agent["id"], agent["name"], Caller(key["token"]))


def given(company: Company, caller: Caller, outcome: str, to: Member, **more: Any) -> Answer:
    return company.call(caller, delegation.delegate, outcome=outcome, to=to.name, **more)


def many(company: Company, parent: str, count: int) -> None:
    """Parts of an outcome and parts of those, ten each, written around Remit."""
    (owner,) = company.sql("SELECT owner_id FROM outcomes WHERE id = ?", parent)[0]
    ids = [parent] + [company.app.ids.new() for _ in range(count)]
    edges = [(company.id, ids[n // 10], ids[n + 1]) for n in range(count)]
    waiting = Counter(above for _, above, _ in edges)
    rows = [(id_, company.id, owner, waiting[id_]) for id_ in ids[1:]]
    with _connected(company.url) as (database, mark):
        new = (
            "INSERT INTO outcomes (id, company_id, title, status, perpetual, owner_id,"
            " delegated, urgent, important, open_prereqs, version, created_at, updated_at)"
            " VALUES (?, ?, 'Many', 'open', false, ?, false, false, false, ?, 1, 0, 0)"
        )
        edge = "INSERT INTO outcome_edges (company_id, parent_id, child_id) VALUES (?, ?, ?)"
        count_parts = "UPDATE outcomes SET open_prereqs = ? WHERE id = ?"
        database.executemany(new.replace("?", mark), rows)
        database.executemany(edge.replace("?", mark), edges)
        database.execute(count_parts.replace("?", mark), (waiting[parent], parent))


@contextmanager
def _connected(url: str) -> Iterator[tuple[Any, str]]:
    connection: Any = sqlite3.connect(sqlite_path(url)) if is_sqlite(url) else psycopg.connect(url)
    yield connection.cursor(), "?" if is_sqlite(url) else "%s"
    connection.commit()
    connection.close()


def shown(company: Company, outcome: str) -> Answer:
    return company.call(company.board, outcomes.show, outcome=outcome)


def change(company: Company, caller: Caller, outcome: str, **what: Any) -> Answer:
    """A change that has seen the latest version."""
    version = shown(company, outcome)["version"]
    return company.call(caller, outcomes.change, outcome=outcome, version=version, **what)


def code(error: BaseException) -> str:
    assert isinstance(error, RemitError), error
    return error.reason


def refusal(at: Company, caller: Caller, verb: Any, /, **arguments: Any) -> str:
    """The reason code with which a call is refused."""
    with pytest.raises(RemitError) as caught:
        at.call(caller, verb, **arguments)
    return caught.value.reason


# ── judging ─────────────────────────────────────────────────────────────────────────────────────


def has_cycle(edges: Iterable[tuple[str, str]]) -> bool:
    """Take away whatever depends on nothing, until nothing is left or a cycle is."""
    needs: dict[str, set[str]] = {}
    for whole, part in edges:
        needs.setdefault(whole, set()).add(part)
        needs.setdefault(part, set())
    while needs:
        done = {node for node, parts in needs.items() if not parts}
        if not done:
            return True
        needs = {node: parts - done for node, parts in needs.items() if node not in done}
    return False


def problems(company: Company, *, verify: bool = True) -> list[str]:
    """Whatever is wrong with the organisation, as the database has it."""
    faults: list[str] = []
    people = {
        row[0]: row[1:]
        for row in company.sql("SELECT id, status, boss_id, boss_user_id, company_id FROM agents")
    }
    alive = {agent for agent, row in people.items() if row[0] != "terminated"}
    work_of = {
        row[0]: row[1:]
        for row in company.sql(
            "SELECT id, status, owner_id, delegated, delegator_id, open_prereqs, company_id"
            " FROM outcomes"
        )
    }
    for agent in alive:
        _, boss, user, _ = people[agent]
        if (boss is None) == (user is None):
            faults.append(f"agent {agent} has not exactly one boss")
        if boss is not None and boss not in alive:
            faults.append(f"agent {agent} lives below {boss}, which does not")
        status, owner, delegated, delegator, _, _ = work_of[agent]
        if people[agent][0] == "pending_approval" and owner != agent:
            # It is to take an outcome over, which has an owner until then.
            if status != "open":
                faults.append(f"agent {agent} awaits approval for what is finished")
            continue
        if status != "open" or owner != agent or not delegated:
            faults.append(f"agent {agent} lives without its mandate")
        elif delegator != boss:
            faults.append(f"the mandate of {agent} is judged by {delegator}, its boss is {boss}")
    if has_cycle((agent, row[1]) for agent, row in people.items() if row[1] is not None):
        faults.append("the tree has a cycle")
    edges = company.sql("SELECT parent_id, child_id FROM outcome_edges")
    blockers = company.sql("SELECT outcome_id, blocker_id FROM outcome_blockers")
    if has_cycle([(a, b) for a, b in [*edges, *blockers]]):
        faults.append("the graph has a cycle")
    waiting = Counter(whole for whole, part in [*edges, *blockers] if work_of[part][0] == "open")
    for outcome, (status, owner, delegated, delegator, counted, its_company) in work_of.items():
        if counted != waiting[outcome]:
            faults.append(f"outcome {outcome} counts {counted}, there are {waiting[outcome]}")
        if owner not in people or people[owner][3] != its_company:
            faults.append(f"outcome {outcome} belongs to nobody of its company")
        elif status == "open" and owner not in alive:
            faults.append(f"outcome {outcome} is open and {owner} is gone")
        elif status == "open" and delegated and delegator != people[owner][1]:
            faults.append(f"outcome {outcome} is judged by {delegator}, not by the boss of {owner}")
        if not delegated and delegator is not None:
            faults.append(f"outcome {outcome} is not delegated and has a delegator")
    faults += _leftovers(company, alive, {key for key, row in work_of.items() if row[0] == "open"})
    faults += _places(company, {agent: people[agent][1:3] for agent in alive})
    faults += _approvals(company)
    if verify and not company.call(company.board, events.verify, company=company.id)["ok"]:
        faults.append("the record does not verify")
    return faults


def _leftovers(company: Company, alive: set[str], still_open: set[str]) -> list[str]:
    """Rights, tokens and runs that should have ended."""
    faults = []
    for grant, holder, scope in company.sql(
        "SELECT id, holder_id, scope_id FROM grants"
        " WHERE revoked_at IS NULL AND scope_id IS NOT NULL"
    ):
        if scope not in still_open:
            faults.append(f"grant {grant} outlives outcome {scope}")
        if holder not in alive:
            faults.append(f"grant {grant} outlives its holder {holder}")
    for (agent,) in company.sql(
        "SELECT agent_id FROM tokens WHERE revoked_at IS NULL AND agent_id IS NOT NULL"
    ):
        if agent not in alive:
            faults.append(f"a token of {agent} outlives it")
    for (agent,) in company.sql("SELECT agent_id FROM runs WHERE status = 'running'"):
        if agent not in alive:
            faults.append(f"a run of {agent} outlives it")
    return faults


def _places(company: Company, bosses: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """The memory of who reports to whom must end at what is so now."""
    now = Counter[str]()
    faults = []
    for agent, boss, user in company.sql(
        "SELECT agent_id, boss_id, boss_user_id FROM agent_places WHERE until IS NULL"
    ):
        now[agent] += 1
        if agent in bosses and bosses[agent] != (boss, user):
            faults.append(f"agent {agent} is remembered below {boss or user}")
        if agent not in bosses:
            faults.append(f"agent {agent} is gone and has a place")
    faults += [f"agent {agent} has {now[agent]} places" for agent in bosses if now[agent] != 1]
    return faults


def _approvals(company: Company) -> list[str]:
    """Every revision is what was hashed, and the last of them is what is asked for."""
    last = {
        (approval, number): content
        for approval, number, *content in company.sql(
            "SELECT id, revision, payload, digest FROM approvals"
        )
    }
    faults = []
    for approval, number, payload, digest in company.sql(
        "SELECT approval_id, number, payload, digest FROM approval_revisions"
    ):
        plain = json.dumps(json.loads(payload), sort_keys=True, separators=(",", ":"))
        if hashlib.sha256(plain.encode()).hexdigest() != digest:
            faults.append(f"revision {number} of approval {approval} is not what was hashed")
        if last.pop((approval, number), [payload, digest]) != [payload, digest]:
            faults.append(f"approval {approval} is not its last revision")
    return faults + [f"approval {approval} has no revision {number}" for approval, number in last]


def tables(company: Company) -> list[str]:
    if is_sqlite(company.url):
        listing = "SELECT name FROM sqlite_master WHERE type = 'table'"
    else:
        listing = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    return sorted(name for (name,) in company.sql(listing))


#: What only grows and takes note of refusals too.
RECORD = frozenset({"events", "event_heads"})


def dump(company: Company, without: Iterable[str] = ()) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    return {
        name: sorted(map(repr, company.sql(f'SELECT * FROM "{name}"')))  # noqa: S608
        for name in tables(company)
        if name not in without
    }
