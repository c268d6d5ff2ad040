"""An id of another company answers like one that does not exist: everywhere, and to the byte.

Generated from the description of the API, the list of tools and the forms of the pages, so that a
new route, tool or form is tried without anybody thinking of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from remit.ids import Ids
from tests.attack_stage import Estate, Stage, absent, estate, leaves, planted, same, staged
from tests.http_client import Client

#: Fields that refer to nothing: texts of people's own, times, and words from a fixed list.
#: Whatever is not here is taken for a reference.
FREE = frozenset(
    {
        *("body", "title", "description", "content", "subject", "question", "answer", "note"),
        *("label", "purpose", "prompt", "capabilities", "reason", "rationale", "decisionNote"),
        *("text", "error", "session", "role", "value", "options", "summary", "why", "url"),
        *("command", "place", "ref", "username", "name", "query", "env", "headers"),
        *("chatLLMProvider", "chatLLMModel", "adapterType", "permissionLevel", "messaging"),
        *("at", "expiresAt", "deferredUntil", "deliverAt", "cron", "timezone", "expect"),
        *("level", "mode", "op", "status", "type", "source", "what", "action", "entityType"),
        *("idempotency_key", "encoding", "hash", "dir", "after", "expires_at", "deferred_until"),
        *("deliver_at", "adapter"),
        "cursor",  # a place in an order, not a thing
    }
)


@dataclass
class Tried:
    """What was asked, and which answers told apart what is foreign from what is not there."""

    count: int = 0
    places: set[str] = field(default_factory=set)
    told_apart: list[str] = field(default_factory=list)
    took: list[str] = field(default_factory=list)

    def compare(
        self, where: str, ask: Callable[[str], tuple[int, str]], foreign: Mapping[str, str]
    ) -> None:
        """Each foreign reference beside one of the same form that leads nowhere."""
        self.places.add(where)
        nowhere: dict[str, tuple[int, str]] = {}
        for kind, reference in foreign.items():
            missing = like(reference)
            form = re.sub(r"[0-9a-f]{8,}", "", missing)
            if form not in nowhere:
                nowhere[form] = ask(missing)
                if nowhere[form][0] >= 500:
                    self.told_apart.append(f"{where}: broke for {missing!r}: {nowhere[form]}")
            found = ask(reference)
            self.count += 1
            if found != nowhere[form]:
                self.told_apart.append(
                    f"{where} with the {kind} of another company: {found} instead of "
                    f"{nowhere[form]}"
                )


_NOBODY = absent()
_IDS = Ids()


def like(reference: str) -> str:
    """Something of the same form that does not exist."""
    head, colon, rest = reference.rpartition(":")
    if not re.fullmatch(r"[0-9a-f-]{20,36}", rest):
        rest = rest.replace("their", "absent").replace("Theirs", "Absent")
        return f"{head}{colon}{rest}"
    return f"{head}{colon}{_NOBODY[: len(rest)]}"


def references(stage: Stage, who: str) -> dict[str, str]:
    """Whatever can be named of the other company: ids, their beginnings, names.

    An agent knows less than a board, so of what is alike it tries one.
    """
    found = dict(stage.foreign())
    if who == "agent":
        tried = ("company", "agent", "unlisted", "outcome", "message", "approval", "agent name")
        return {kind: found[kind] for kind in tried}
    for kind in ("agent", "file", "outcome", "message"):
        # Long enough to be this one and no other.
        found[f"beginning of the {kind}"] = stage.theirs.ids[kind][:28]
    return found


def decorated(name: str, stage: Stage) -> dict[str, str]:
    """The forms that some fields have besides a bare reference."""
    theirs = stage.theirs
    if name == "resource":
        found = {
            "file": f"kb_file:{theirs.ids['file']}",
            "unlisted": f"kb_file:{theirs.ids['unlisted']}",
            "outcome": f"outcome:{theirs.ids['outcome']}",
            "agent": f"message:agent:{theirs.ids['agent']}",
            "server": f"mcp_server:{theirs.names['server name']}",
            "repo": f"repo:{theirs.names['repo name']}",
        }
        return {f"{kind} as a resource": one for kind, one in found.items()}
    if name in ("to", "agent"):
        return {
            "agent by address": f"agent:{theirs.names['agent name']}",
            "agent by id": f"agent:{theirs.ids['agent']}",
            "person by address": f"user:{theirs.names['user name']}",
        }
    return {}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("home")) as found:
        yield found


# ── HTTP ────────────────────────────────────────────────────────────────────────────────────────


def bodies(ours: Estate) -> dict[str, Any]:
    """What each route takes so that nothing but a reference can be wrong."""
    ids = ours.ids
    file = f"kb_file:{ids['file']}"
    return {
        "PATCH /api/companies/{companyId}": {"messaging": "team"},
        "POST /api/companies": {"name": "Third"},
        "POST /api/companies/{companyId}/agents": {"name": "newcomer"},
        "POST /api/companies/{companyId}/users": {"name": "somebody", "role": "observer"},
        "POST /api/companies/{companyId}/files": {"description": "d", "content": "c"},
        "POST /api/companies/{companyId}/grants": {
            "to": ids["report"],
            "resource": file,
            "level": "read",
        },
        "POST /api/companies/{companyId}/outcomes": {"parentId": ids["own"], "title": "another"},
        "POST /api/companies/{companyId}/messages": {"to": ids["report"], "body": "hello"},
        "POST /api/companies/{companyId}/questions": {"question": "Why?", "to": ids["report"]},
        "POST /api/companies/{companyId}/questions/{id}/answer": {"answer": "So."},
        "POST /api/questions/{id}/answer": {"answer": "So."},
        "POST /api/companies/{companyId}/schedules": {
            "agent": ids["report"],
            "to": ids["report"],
            "body": "look again",
            "cron": "0 9 * * *",
        },
        "POST /api/companies/{companyId}/reorganise": {
            "operations": [{"op": "move", "agent": ids["report"], "to": ids["agent"]}],
            "dryRun": True,
        },
        "POST /api/companies/{companyId}/apply": {
            "document": {"company": {"messaging": "team"}},
            "dryRun": True,
        },
        "POST /api/companies/{companyId}/agent-hires": {"name": "another"},
        "POST /api/companies/{companyId}/approvals": {"type": "request_board_approval"},
        "POST /api/companies/{companyId}/secrets": {"name": "s", "source": "env", "place": "X"},
        "POST /api/companies/{companyId}/mcp-servers": {"name": "m", "command": ["true"]},
        "POST /api/companies/{companyId}/repos": {"name": "more", "url": "/srv/more.git"},
        "PATCH /api/outcomes/{id}": {"version": 1},
        "POST /api/outcomes/{id}/complete": {"evidence": [ids["file"]], "note": "done"},
        "POST /api/outcomes/{id}/close": {"rationale": "not needed"},
        "POST /api/outcomes/{id}/reopen": {"note": "not done"},
        "POST /api/outcomes/{id}/delegate": {"to": ids["report"]},
        "POST /api/outcomes/{id}/reclaim": {"reason": "too slow"},
        "PATCH /api/files/{id}": {"description": "other"},
        "PATCH /api/agents/{id}": {"title": "Renamed"},
        "POST /api/agents/{id}/config-proposals": {"title": "Renamed"},
        "PATCH /api/agents/{id}/permissions": {"canCreateAgents": True},
        "PATCH /api/agents/{id}/permission-level": {"permissionLevel": "boss"},
        "POST /api/approvals/{id}/comments": {"body": "Why?"},
        "POST /api/runs/{id}/report": {"ok": True},
    }


def around(operation: str, place: tuple[str, ...], ours: Estate) -> Any:
    """The rest of a body in which this place is looked at; None for the usual one."""
    given = {"resource": f"kb_file:{ours.ids['file']}", "level": "read"}
    wanted = {
        "POST /api/companies/{companyId}/messages fileId": {"to": ours.ids["report"]},
        "POST /api/companies/{companyId}/reorganise undo": {"dryRun": True},
        "POST /api/companies/{companyId}/repos secret": {
            "name": "more",
            "url": "https://git.example/more.git",
        },
        "POST /api/companies/{companyId}/agent-hires grants": {"name": "x", "grants": [given]},
        "POST /api/companies/{companyId}/agents grants": {"name": "x", "grants": [given]},
        "POST /api/outcomes/{id}/delegate grants": {"to": ours.ids["report"], "grants": [given]},
        "POST /api/outcomes/{id}/delegate hire": {"hire": {"name": "x"}},
    }
    return wanted.get(f"{operation} {place[0]}")


#: What is not looked at: such a grant lasts as long as what is delegated.
IGNORED = {"POST /api/outcomes/{id}/delegate grants.[].scope"}
#: What an address has to say besides, for the rest of it to be looked at.
ASKED = {"GET /api/companies/{companyId}/as-of": {"at": "2031-01-01T00:00:00Z", "what": "grants"}}

#: Which of ours stands in a path, by the part before it.
OWN = {
    **{"agents": "report", "files": "file", "grants": "grant", "outcomes": "own"},
    **{"approvals": "approval", "messages": "message", "questions": "question"},
    **{"schedules": "schedule", "runs": "run", "jobs": "job", "events": "event"},
    **{"secrets": "secret name", "mcp-servers": "server name"},
}


@dataclass(frozen=True)
class Operation:
    method: str
    template: str
    query: tuple[str, ...]
    #: Places of texts in the body.
    texts: tuple[tuple[str, ...], ...]

    def places(self) -> Iterator[tuple[str, ...]]:
        """Where a reference may stand."""
        for name in re.findall(r"\{(\w+)\}", self.template):
            if name not in ("adapterType", "revisionId"):
                yield ("{}", name)
        for name in self.query:
            yield ("?", name)
        yield from (path for path in self.texts if f"{self} {'.'.join(path)}" not in IGNORED)

    def request(self, ours: Estate, place: tuple[str, ...], value: str) -> tuple[str, Any]:
        """The address and the body with a value at a place, and everything else as it should be."""
        asked = dict(ASKED.get(str(self), {}))
        body = bodies(ours).get(str(self))
        instead = {}
        if place[0] == "{}":
            instead[place[1]] = value
        elif place[0] == "?":
            asked[place[1]] = value
        else:
            usual = around(str(self), place, ours)
            body = planted(body if usual is None else usual, place, value)
        path = self.path(ours, **instead)
        return (f"{path}?{urlencode(asked)}" if asked else path), body

    def path(self, ours: Estate, **instead: str) -> str:
        own = {**ours.ids, **ours.names}
        named = {"companyId": ours.company, "user": own["user"], "tokenId": own["token"]}
        named |= {"keyId": own["key"], "name": own["repo name"], "revisionId": "1"}
        named |= {"adapterType": "scripted"}
        parts = self.template.split("/")
        for number, part in enumerate(parts):
            wanted = re.fullmatch(r"\{(\w+)\}(\.txt)?", part)
            if wanted is None:
                continue
            usual = named.get(wanted[1]) or own[OWN[parts[number - 1]]]
            if parts[number + 1 : number + 2] == ["keys"]:
                usual = own["agent"]
            parts[number] = quote(instead.get(wanted[1], usual), safe="") + (wanted[2] or "")
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def operations(document: Mapping[str, Any]) -> list[Operation]:
    """Every operation of the description, with all the places that take a reference."""
    found = []
    for template, methods in document["paths"].items():
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            texts = {path for path in leaves(schema, document) if path and not free(path)}
            query = tuple(
                one["name"]
                for one in described.get("parameters", ())
                if one["in"] == "query"
                and one["name"] not in FREE
                and any(True for _ in leaves(one["schema"], document))
            )
            found.append(Operation(method.upper(), template, query, tuple(sorted(texts))))
    return found


def free(path: tuple[str, ...]) -> bool:
    return any(step in FREE for step in path)


def ask(client: Client, operation: Operation, path: str, body: Any, given: str) -> tuple[int, str]:
    headers = {"If-Match": f'"1:{"0" * 64}"'} if operation.method == "PUT" else {}
    answer = client(operation.method, path, body, headers=headers)
    link = answer.headers.get("Link", "")
    return answer.status, same(answer.body, given, quote(given)) + same(link, given)


def attack(stage: Stage, who: str, operation: Operation, tried: Tried) -> None:
    """Put each foreign reference into each place that takes one."""
    client = stage.attackers[who]
    for place in operation.places():

        def put(one: str, place: tuple[str, ...] = place) -> tuple[int, str]:
            path, body = operation.request(stage.ours, place, one)
            return ask(client, operation, path, body, one)

        foreign = {**references(stage, who), **decorated(place[-1], stage)}
        tried.compare(f"{operation} {'.'.join(place)}", put, foreign)


def test_no_route_tells_what_is_foreign_from_what_is_not_there(stage: Stage) -> None:
    tried = Tried()
    document = stage.operator.must("GET", "/openapi.json")
    # The record first: it has what its own people tried, whatever that was.
    for operation in sorted(operations(document), key=lambda one: "/activity" not in str(one)):
        for who in stage.attackers:
            attack(stage, who, operation, tried)
    assert tried.told_apart == []
    assert len(tried.places) >= 170
    assert tried.count >= 5000
    print(len(tried.places), tried.count)


#: Places that nothing of one's own opens here: whoever calls would have to be the run itself.
UNTRIED = {"POST /api/runs/{id}/report {}.id"}


def test_whatever_was_tried_is_looked_at(stage: Stage) -> None:
    """One's own reference is answered otherwise than one that does not exist, at each place."""
    spare = estate(stage.site, stage.operator, "Spare", "spare")
    document = stage.operator.must("GET", "/openapi.json")
    ending = ("DELETE", "terminate", "purge", "close", "complete", "cancel", "reject", "approve")
    found = sorted(
        operations(document), key=lambda one: any(word in str(one) for word in ending)
    )
    dead = set()
    for operation in found:
        places = list(operation.places())
        # What is ended by one place cannot be ended by another.
        for place in places if operation.method != "DELETE" else places[-1:]:
            if not is_live(stage, spare, operation, place):
                dead.add(f"{operation} {'.'.join(place)}")
    assert dead == UNTRIED


def is_live(stage: Stage, spare: Estate, operation: Operation, place: tuple[str, ...]) -> bool:
    own = {**spare.ids, **spare.names}
    if place[-1] == "resource":
        own = {"file": f"kb_file:{spare.ids['file']}"}
    for client in (stage.operator, spare.board, spare.boss):
        for one in own.values():
            missing = like(one).replace("spare", "absent").replace("Spare", "Absent")
            answers = [
                ask(client, operation, *operation.request(spare, place, value), value)
                for value in (missing, one)
            ]
            if answers[0] != answers[1] and answers[1][0] != 401:
                return True
    return False
