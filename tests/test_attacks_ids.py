"""An id of another company answers like one that does not exist: everywhere, and to the byte.

Generated from the description of the API, the list of tools and the forms of the pages, so that a
new route, tool or form is tried without anybody thinking of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from starlette.datastructures import QueryParams

from remit.errors import NotFound, Refused
from remit.ids import random_name, short
from remit.services import lookup
from remit.testing import ScriptedAgent
from tests import declared
from tests.attack_stage import UUID, Estate, Stage, absent, estate, leaves, planted, same, staged
from tests.http_client import Answer, Client
from tests.web_attacks import OWN as OWN_ON_PAGES
from tests.web_attacks import FoundForm, Pages, address, forms_of, web_routes

PAGES = Path(__file__).parent.parent / "src" / "remit" / "entrypoints" / "web"

#: Fields that refer to nothing: texts of people's own, times, and words from a fixed list.
#: Whatever is not here is taken for a reference.
FREE = frozenset(
    {
        *("body", "title", "description", "content", "subject", "question", "answer", "note"),
        *("label", "purpose", "prompt", "capabilities", "reason", "rationale", "decisionNote"),
        *("text", "error", "session", "role", "value", "options", "summary", "why", "url"),
        *(
            "command",
            "place",
            "ref",
            "username",
            "fork",
            "forkUsername",
            "name",
            "query",
            "env",
            "headers",
        ),
        *("chatLLMProvider", "chatLLMModel", "adapterType", "permissionLevel", "messaging"),
        *("at", "expiresAt", "deferredUntil", "deliverAt", "cron", "timezone", "expect"),
        *("level", "mode", "op", "status", "type", "source", "what", "action", "entityType"),
        *(
            "idempotency_key",
            "encoding",
            "hash",
            "dir",
            "path",
            "after",
            "expires_at",
            "deferred_until",
        ),
        *(
            "deliver_at",
            "adapter",
            "webhook",
            "reviewHours",
            "fault",
            "allow",
            "deny",
            "governs",
            "until",
        ),
        "cursor",  # a place in an order, not a thing
        "q",  # words, looked for in what one may read
        *("since", "quiet", "digestAt", "timeZone", "kind", "variables"),
        *("paths", "branches", "base", "head", "check", "protected"),  # of a repository
        *("commitCommitter", "commitCoAuthors", "commitSigning"),  # people and a name, as it says
        *("api", "people"),  # of the forge around a repository, as that calls them
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
                    f"{where} with the {kind} of another company: {differing(found, nowhere[form])}"
                )


def differing(found: tuple[int, str], usual: tuple[int, str]) -> str:
    """Where two answers part."""
    pairs = enumerate(zip(found[1], usual[1], strict=False))
    at = next((at for at, (one, other) in pairs if one != other), 0)
    part = slice(max(0, at - 60), at + 120)
    return f"{found[0]} {found[1][part]!r} instead of {usual[0]} {usual[1][part]!r}"


_NOBODY = absent()


def like(reference: str) -> str:
    """Something of the same form that does not exist."""
    head, colon, rest = reference.rpartition(":")
    if re.fullmatch(r"[0-9a-f]{12}", rest):
        return f"{head}{colon}{_NOBODY[-12:]}"
    if not re.fullmatch(r"[0-9a-f-]{20,36}", rest):
        rest = rest.replace("their", "absent").replace("Theirs", "Absent")
        return f"{head}{colon}{rest}"
    if "-" not in rest:
        return f"{head}{colon}{'0123456789abcdef' * 2}"
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
        found[f"short id of the {kind}"] = short(stage.theirs.ids[kind])
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


def things(ours: Estate) -> dict[str, str]:
    """What stands for each kind of thing."""
    ids = ours.ids
    own = {"outcome": ids["own"], "agent": ids["report"], "resource": f"kb_file:{ids['file']}"}
    return {**ids, **own, "thread": ids["question"], "address": ids["report"]}


def bodies(ours: Estate) -> dict[str, Any]:
    """What each route takes so that nothing but a reference can be wrong."""
    ids = ours.ids
    file = f"kb_file:{ids['file']}"
    return declared.bodies(things(ours)) | {
        "PATCH /api/companies/{companyId}": {"messaging": "team"},
        "PATCH /api/companies/{companyId}/permission-policy": {
            "level": "boss",
            "governs": "company",
        },
        "POST /api/agents/{id}/terminate": {"subtree": True},
        "POST /api/companies/{companyId}/agents": {"name": "newcomer"},
        "POST /api/companies/{companyId}/users": {"name": "somebody", "role": "observer"},
        "POST /api/companies/{companyId}/files": {"description": "d", "content": "c"},
        "POST /api/companies/{companyId}/grants": {
            "to": ids["report"],
            "resource": file,
            "level": "read",
        },
        "POST /api/companies/{companyId}/messages": {"to": ids["report"], "body": "hello"},
        "POST /api/companies/{companyId}/questions": {"question": "Why?"},
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
        "POST /api/companies/{companyId}/folders": {"agent": ids["mover"], "path": "/srv/work"},
        "POST /api/companies/{companyId}/mounts": {"path": "/srv/tools"},
        "POST /api/companies/{companyId}/agent-hires": {"name": "another"},
        "POST /api/companies/{companyId}/secrets": {"name": "s", "source": "env", "place": "X"},
        "POST /api/companies/{companyId}/mcp-servers": {"name": "m", "command": ["true"]},
        "POST /api/companies/{companyId}/repos": {"name": "more", "url": "/srv/more.git"},
        "PATCH /api/companies/{companyId}/notify": {"webhook": "https://n.example/in"},
        "POST /api/outcomes/{id}/delegate": {"to": ids["report"]},
        "PATCH /api/agents/{id}": {"title": "Renamed"},
        "POST /api/agents/{id}/config-proposals": {"title": "Renamed"},
        "PATCH /api/agents/{id}/permissions": {"canCreateAgents": True},
        "PATCH /api/companies/{companyId}/folders/{id}": {"instructions": False},
        "PATCH /api/companies/{companyId}/repos/{name}": {"instructions": False},
        "POST /api/agents/{id}/lent": {
            "name": "more",
            "source": "/srv/site",
            "files": {"skills/a/SKILL.md": "QQ=="},
            "dryRun": True,
        },
        "POST /api/runs/{id}/report": {"ok": True},
        "POST /api/companies/{companyId}/bindings": {
            "agent": ids["report"],
            "adapterType": "webhook",
            "adapterConfig": {"url": "https://b.example/in"},
        },
        "POST /api/channels/{kind}": {
            "id": random_name(),
            "conversation": "room",
            "body": "hello",
        },
    }


def around(operation: str, place: tuple[str, ...], ours: Estate) -> Any:
    """The rest of a body in which this place is looked at; None for the usual one."""
    given = {"resource": f"kb_file:{ours.ids['file']}", "level": "read"}
    name = f"web-{random_name()}"
    # No level of a repository, which would be handed over whether it is there or not.
    handed = {**given, "level": "write"}
    wanted = {
        "POST /api/companies/{companyId}/messages fileId": {"to": ours.ids["report"]},
        "POST /api/companies/{companyId}/reorganise undo": {"dryRun": True},
        "POST /api/companies/{companyId}/repos secret": {
            "name": "more",
            "url": "https://git.example/more.git",
        },
        "POST /api/companies/{companyId}/agent-hires grants": {"name": name, "grants": [given]},
        "POST /api/companies/{companyId}/agents grants": {"name": name, "grants": [given]},
        "POST /api/outcomes/{id}/delegate grants": {"to": ours.ids["report"], "grants": [handed]},
        "POST /api/companies/{companyId}/folders repo": {"agent": ours.ids["mover"]},
        "POST /api/outcomes/{id}/delegate hire": {"hire": {"name": name}},
    }
    return wanted.get(f"{operation} {place[0]}")


#: What is not looked at: such a grant lasts as long as what is delegated; `boss` or `board`; what
#: the outside calls its own; the names of secrets, which may be set later and are looked up in
#: the company when they are used; a place in a repository, which cannot be reached here; a digest.
IGNORED = {
    "POST /api/agents/{id}/lent seen",
    "GET /api/companies/{companyId}/repos/{name}/lendable ?folder",
    "GET /api/companies/{companyId}/repos/{name}/lendable ?ref",
    "POST /api/companies/{companyId}/repos apiSecret",
    "POST /api/companies/{companyId}/repos hook",
    "POST /api/companies/{companyId}/repos forkSecret",
    "PATCH /api/companies/{companyId}/repos/{name} forkSecret",
    "POST /api/companies/{companyId}/repos/{name}/forge apiSecret",
    "POST /api/companies/{companyId}/repos/{name}/forge hook",
    "POST /api/channels/{kind} id",
    "POST /api/channels/{kind} conversation",
    "POST /api/outcomes/{id}/delegate grants.[].scope",
    "POST /api/companies/{companyId}/questions to",
}
#: What an address has to say besides, for the rest of it to be looked at.
ASKED = {"GET /api/companies/{companyId}/as-of": {"at": "2031-01-01T00:00:00Z", "what": "grants"}}

#: Which of ours stands in a path, by the part before it.
OWN = {
    "agents": "report",
    "files": "file",
    "grants": "grant",
    "outcomes": "own",
    "approvals": "approval",
    "messages": "message",
    "questions": "question",
    "schedules": "schedule",
    "runs": "run",
    "jobs": "job",
    "events": "event",
    "secrets": "secret name",
    "mcp-servers": "server name",
    "bindings": "binding",
    "changes": "change",
    "checks": "check name",
    "accounts": "account",
    "linked-accounts": "linked",
    "confirmations": "confirmation",
    "folders": "folder",
    "lent": "lent",
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
            if name not in ("adapterType", "revisionId", "kind"):
                yield ("{}", name)
        for name in self.query:
            if f"{self} ?{name}" not in IGNORED:
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
        named |= {"adapterType": "scripted", "kind": "webhook"}
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


def attack(
    stage: Stage, who: str, operation: Operation, tried: Tried, *, every: bool = True
) -> None:
    """Put each foreign reference, or a fifth of them, into each place that takes one."""
    client = stage.ours.outside if who == "outside" else stage.attackers[who]
    for place in operation.places():

        def put(one: str, place: tuple[str, ...] = place) -> tuple[int, str]:
            path, body = operation.request(stage.ours, place, one)
            return ask(client, operation, path, body, one)

        foreign = {**references(stage, who), **decorated(place[-1], stage)}
        where = f"{operation} {'.'.join(place)}"
        tried.compare(where, put, foreign if every else a_fifth(foreign, where))


def a_fifth(foreign: Mapping[str, str], where: str) -> dict[str, str]:
    """Those of the kinds that a place speaks of, and of the others each at every fifth place."""
    words = set(re.findall(r"[a-z]+", where.lower()))
    spoken = words | {word.removesuffix("s") for word in words} | {"company", "agent"}
    turn = sum(map(ord, where))
    return {
        kind: one
        for number, (kind, one) in enumerate(foreign.items())
        if (number + turn) % 5 == 0 or set(kind.lower().split()) & spoken
    }


@pytest.mark.parametrize(
    "every",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.campaign(
                "every kind at every place is four times as much as a fifth of them at each"
            ),
        ),
    ],
)
def test_no_route_tells_what_is_foreign_from_what_is_not_there(stage: Stage, every: bool) -> None:
    tried = Tried()
    document = stage.operator.must("GET", "/openapi.json")
    # The record first: it has what its own people tried, whatever that was.
    for operation in sorted(operations(document), key=lambda one: "/activity" not in str(one)):
        for who in ["outside"] if "/channels/" in operation.template else stage.attackers:
            attack(stage, who, operation, tried, every=every)
    assert tried.told_apart == []
    assert len(tried.places) >= 170
    assert tried.count >= (5000 if every else 1200)


#: Places that nothing of one's own opens here: whoever calls would have to be the run itself.
#: Or it would have to know how often an outcome was changed by then. Or to have something that can
#: be handed in. Or a token of its own. Or there would have to be a backup, which takes a while. Or
#: it ended with the part of its person in the company, or they would still have to be a member.
UNTRIED = {
    "DELETE /api/linked-accounts/{id} {}.id",
    "DELETE /api/confirmations/{id} {}.id",
    "DELETE /api/me/tokens/{tokenId} {}.tokenId",
    "DELETE /api/instance/backups/{name} {}.name",
    "GET /api/instance/backups/{name} {}.name",
    "POST /api/runs/{id}/report {}.id",
    "PATCH /api/outcomes/{id} blockedBy.[]",
    "POST /api/outcomes/{id}/submit evidence.[]",
}


def test_whatever_was_tried_is_looked_at(stage: Stage) -> None:
    """One's own reference is answered otherwise than one that does not exist, at each place."""
    spare = estate(stage.site, stage.operator, "Spare", "spare")
    document = stage.operator.must("GET", "/openapi.json")
    ending = ("DELETE", "terminate", "purge", "close", "complete", "cancel", "reject", "approve")
    dead = set()
    for operation in sorted(
        operations(document),
        key=lambda one: (
            any(word in str(one) for word in ending),
            one.method != "PATCH",  # takes the version that nothing else has changed yet
            -len(one.template),
        ),
    ):
        places = list(operation.places())[::-1]
        # What is ended by one place cannot be ended by another.
        for place in places if operation.method != "DELETE" else places[:1]:
            if not is_live(stage, spare, operation, place):
                dead.add(f"{operation} {'.'.join(place)}")
    assert dead == UNTRIED


def is_live(stage: Stage, spare: Estate, operation: Operation, place: tuple[str, ...]) -> bool:
    own = {**spare.ids, **spare.names}
    if place[-1] == "resource":
        own = {"file": f"kb_file:{spare.ids['file']}"}
    where = f"{operation} {place[-1]}".lower()
    likely = sorted(own, key=lambda kind: kind.split()[0] not in where)
    for client in (stage.operator, spare.board, spare.boss, spare.outside):

        @cache
        def answer(value: str, client: Client = client) -> tuple[int, str]:
            return ask(client, operation, *operation.request(spare, place, value), value)

        for one in map(own.__getitem__, likely):
            missing = answer(like(one).replace("spare", "absent").replace("Spare", "Absent"))
            found = answer(one)
            if found != missing and found[0] != 401:
                return True
    return False


def test_a_build_that_tells_foreign_ids_apart_is_noticed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = lookup._entered

    def leaky(ctx: Any, noun: lookup.Noun[Any], id_: str) -> Any:
        try:
            return honest(ctx, noun, id_)
        except NotFound:
            if ctx.tx.one(noun.by_id, **{noun.what: id_}) is None:
                raise
            raise Refused(f"That {noun.what} is not yours.") from None

    monkeypatch.setattr(lookup, "_entered", leaky)
    tried = Tried()
    document = stage.operator.must("GET", "/openapi.json")
    for operation in operations(document):
        if operation.template in ("/api/agents/{id}", "/api/files/{id}/content"):
            attack(stage, "board", operation, tried)
    assert len(tried.told_apart) >= 4


# ── MCP ─────────────────────────────────────────────────────────────────────────────────────────


def arguments(ours: Estate) -> dict[str, dict[str, Any]]:
    """What each tool takes so that nothing but a reference can be wrong."""
    ids, file = ours.ids, f"kb_file:{ours.ids['file']}"
    name = f"web-{random_name()}"
    return declared.arguments(things(ours)) | {
        "kb_read": {"id": ids["file"]},
        "kb_create": {"content": "c", "description": "d"},
        "kb_write": {"id": ids["file"], "version": 1, "hash": "0" * 64, "content": "c"},
        # Not a part of `own`, which could not be completed then.
        "outcome_create": {"parent_id": ids["agent"], "title": "t"},
        "outcome_submit": {"id": ids["agent"]},
        "outcome_return": {"id": ids["report"], "note": "n"},
        "delegate": {"outcome_id": ids["more"], "to": ids["report"]},
        "reclaim": {"outcome_id": ids["outcome"], "reason": "r"},
        "mail_send": {"to": ids["report"], "body": "b"},
        "capability_request": {"resource": file, "level": "read", "why": "w"},
        "remind": {"body": "b", "cron": "0 9 * * 1"},
        "capability_grant": {"to": ids["report"], "resource": file, "level": "read"},
        "hire_agent": {"name": name},
        "propose_config": {"agent": ids["report"], "changes": {"title": "t"}},
        "agent_control": {"agent": ids["report"], "action": "logs"},
        "create_agent": {"name": name, "role": "r"},
    }


def given_to(tool: str, place: tuple[str, ...], ours: Estate) -> dict[str, Any]:
    """The rest of the arguments, without what excludes this one."""
    given = arguments(ours).get(tool, {})
    if place[0] == "file_id":
        return {name: value for name, value in given.items() if name != "body"}
    if place[0] == "request" and tool == "capability_grant":
        return {}
    if place[0] == "grants":
        grant = {"resource": f"kb_file:{ours.ids['file']}", "level": "read"}
        return {**given, "grants": [grant]}
    return given


def mcp_places(tool: Mapping[str, Any]) -> list[tuple[str, ...]]:
    schema = tool["inputSchema"]
    found = {path for path in leaves(schema, schema) if path and not free(path)}
    return sorted(found if tool["name"] != "ask" else found - {("to",)})  # boss or board


def called(agent: ScriptedAgent, tool: str, given: dict[str, Any], value: str) -> tuple[int, str]:
    result = agent._request("tools/call", {"name": tool, "arguments": given})
    text = "\n".join(block.get("text", "") for block in result["content"])
    return int(bool(result.get("isError"))), same(text, value)


def test_no_tool_tells_what_is_foreign_from_what_is_not_there(stage: Stage) -> None:
    tried = Tried()
    with ScriptedAgent(stage.site.url, stage.ours.boss_key) as agent:
        tools = agent._request("tools/list", {})["tools"]
        for name, place in ((tool["name"], place) for tool in tools for place in mcp_places(tool)):

            def put(one: str, name: str = name, place: tuple[str, ...] = place) -> tuple[int, str]:
                given = given_to(name, place, stage.ours)
                return called(agent, name, planted(given, place, one), one)

            foreign = {**references(stage, "board"), **decorated(place[-1], stage)}
            tried.compare(f"{name} {'.'.join(place)}", put, foreign)
    assert tried.told_apart == []
    assert len(tools) >= 35
    assert len(tried.places) >= 45
    assert tried.count >= 1500


UNTRIED_TOOLS = {
    # A person looks it up who reads the request.
    "capability_request resource",
    # It is looked up once a person said yes.
    "create_agent nextAgent",
    # An outcome of somebody who is not there yet.
    "hire_agent grants.[].scope",
    # By then it would have to know how often the outcome was changed.
    "outcome_update blocked_by.[]",
    # Nobody delegated anything to it that it could hand in.
    "outcome_submit evidence.[]",
}


def test_whatever_was_tried_of_tools_is_looked_at(stage: Stage) -> None:
    spare = estate(stage.site, stage.operator, "Other", "other")
    with ScriptedAgent(stage.site.url, spare.boss_key) as agent:
        tools = agent._request("tools/list", {})["tools"]
        # What one of them has ended, none that comes later can change.
        ending = ["outcome_submit", "outcome_complete", "reclaim", "outcome_close"]
        tools.sort(key=lambda tool: [tool["name"] == name for name in ending])
        dead = {
            f"{tool['name']} {'.'.join(place)}"
            for tool in tools
            for place in mcp_places(tool)[::-1]
            if not tool_looks(agent, spare, tool["name"], place)
        }
    assert dead == UNTRIED_TOOLS


def tool_looks(agent: ScriptedAgent, spare: Estate, tool: str, place: tuple[str, ...]) -> bool:
    own = {**spare.ids, **spare.names}
    if place[-1] == "resource":
        own = {"file": f"kb_file:{spare.ids['file']}"}
    for one in own.values():
        missing = like(one).replace("other", "absent").replace("Other", "Absent")
        given = given_to(tool, place, spare)
        answers = [
            called(agent, tool, planted(given, place, value), value) for value in (missing, one)
        ]
        if answers[0] != answers[1]:
            return True
    return False


# ── pages ───────────────────────────────────────────────────────────────────────────────────────

#: Fields of forms that refer to nothing.
FREE_ON_PAGES = FREE | {
    *("key", "version", "unlisted", "crlf", "role", "do", "decision", "before", "quiet", "v"),
    *("actionable", "live", "q", "refused", "show", "tab", "terminated", "view", "step", "verb"),
    *("revision", "urgent", "important", "ends", "person", "grants", "json", "mail"),
    *("close_rationale", "complete_note"),
}
#: Beginnings of such fields: settings, and what something was or is to be called.
_SETTINGS = ("was_", "c-", "new_", "can_", "chat_", "commit_", "require_")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Where nobody has written yet what was tried, which pages would show."""
    with staged(tmp_path_factory.mktemp("calm")) as found:
        yield found


def shown(answer: Answer, given: str) -> tuple[int, str]:
    return answer.status, same(answer.body, given, quote(given), given[:60])


def arguments_of_pages() -> list[str]:
    """What the pages read from their address, besides its path."""
    found: set[str] = set()
    for path in sorted(PAGES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and (node.func.attr == "argument" or ast.unparse(node.func).endswith("_params.get"))
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(str(node.args[0].value))
    return sorted(found - FREE_ON_PAGES - (set(OWN_ON_PAGES) - {"agent"}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the pages look for in their addresses, as it is looked for."""
    found: set[str] = set()

    def get(self: QueryParams, key: str, default: Any = None) -> Any:
        found.add(key)
        return self._dict.get(key, default)

    monkeypatch.setattr(QueryParams, "get", get)
    for other in ("__getitem__", "__iter__", "getlist", "items", "keys", "multi_items", "values"):
        monkeypatch.setattr(QueryParams, other, _is_not_recorded)
    return found


def _is_not_recorded(*_: Any) -> Any:
    raise AssertionError("a page looks into its address otherwise than by a name")


def test_no_page_tells_what_is_foreign_from_what_is_not_there(calm: Stage, asked: set[str]) -> None:
    tried, ours = Tried(), calm.ours
    pages, routes = Pages.of(ours.board), web_routes(calm.site.app)
    foreign = {kind: calm.foreign()[kind] for kind in ("agent", "outcome")}
    arguments, read = set(arguments_of_pages()), set[str]()
    every = [path for method, path in routes if method == "GET" and path not in ("/live", "/login")]
    for template in every:
        asked.clear()
        for name in re.findall(r"\{(\w+)\}", template):

            def go(one: str, name: str = name, to: str = template) -> tuple[int, str]:
                return shown(pages.get(address(to, ours, **{name: one}) + "?quiet=1"), one)

            tried.compare(f"GET {template} {name}", go, references(calm, "agent"))
        pages.get(f"{address(template, ours)}?quiet=1")
        done: set[str] = set()
        # One argument may make a page look for another.
        while left := sorted((asked & arguments) - done):
            done.add(name := left[0])

            def look(one: str, name: str = name, to: str = template) -> tuple[int, str]:
                given = urlencode({name: one, "quiet": 1})
                return shown(pages.get(f"{address(to, ours)}?{given}"), one)

            tried.compare(f"GET {template} ?{name}", look, foreign)
        read |= done
    assert tried.told_apart == []
    assert read == arguments
    assert len(tried.places) >= 55


def test_no_form_tells_what_is_foreign_from_what_is_not_there(calm: Stage) -> None:
    tried, ours = Tried(), calm.ours
    pages, routes = Pages.of(ours.board), web_routes(calm.site.app)
    forms = forms_of_pages(pages, routes, ours)
    assert len(forms) >= 20
    posted = [path for method, path in routes if method == "POST"]
    for template in sorted(set(posted) - {"/login", "/logout"}):
        names = re.findall(r"\{(\w+)\}", template)
        fields = forms.get(re.sub(r"\{\w+\}", "{}", template), FoundForm("")).fields
        # Whatever the rest of an address says, the last part is what is changed.
        for name in names[-1:]:

            def go(
                one: str, name: str = name, to: str = template, fields: Any = fields
            ) -> tuple[int, str]:
                return shown(pages.send(address(to, ours, **{name: one}), fields), one)

            tried.compare(f"POST {template} {name}", go, references(calm, "agent"))
    for action, form in forms.items():
        for name in sorted(set(form.fields) - FREE_ON_PAGES):
            if name.startswith(_SETTINGS):
                continue

            def send(one: str, name: str = name, form: FoundForm = form) -> tuple[int, str]:
                return shown(pages.send(form.action, {**form.fields, name: one}), one)

            tried.compare(f"POST {action} {name}=", send, references(calm, "agent"))
    assert tried.told_apart == []
    assert len(tried.places) >= 40


def forms_of_pages(
    pages: Pages, routes: list[tuple[str, str]], ours: Estate
) -> dict[str, FoundForm]:
    """Every form that the pages show, by where it goes."""
    found: dict[str, FoundForm] = {}
    for method, template in routes:
        if method == "GET" and template != "/live":
            for form in forms_of(pages.get(address(template, ours)).body):
                known = found.setdefault(UUID.sub("{}", form.action), form)
                known.fields.update(form.fields)
    found.pop("/logout")
    return found
