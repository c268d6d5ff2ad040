"""A whole company as a folder of text, and back."""

import io
import json
import re
import tarfile
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY, to_iso
from remit.entrypoints.cli.commands.company import archive as unpacking
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, RemitError, TooLarge
from remit.ids import is_id
from remit.services.acceptance import acceptance
from remit.services.archive import checking, reading, tar
from remit.services.archive.text import dump, load, split_prose, with_prose
from remit.services.chat import receivers
from remit.services.connections import bindings, folders, repo_checks, repos, secrets
from remit.services.declared import declared_company
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.messaging import inbox, questions, schedules
from remit.services.messaging import pending_items as waiting
from remit.services.organisation import agents, idleness, permissions, reorganise
from remit.services.people import companies
from remit.services.record import events
from remit.services.redaction import REMOVED, without_secrets
from remit.services.rights import capability_requests, grants
from remit.services.screens import needs_you, overview
from remit.services.work import delegation, outcomes, submitting
from remit.settings import load as load_settings
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, keyed, opened
from tests.http_client import serving
from tests.test_cli import Home, refused, remit
from tests.working import end

__all__ = ["remit"]  # the instance that the command line talks to

pytestmark = pytest.mark.requirement("BX-20")

Folder = dict[str, bytes]

#: Everything that must never be found in an export, wherever it was put.
CANARIES = {
    "env": "canary-environment",
    "flag": "canary-flag",
    "key": "canary-key",
    "url": "canary-password",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOiJqd3QifQ.c2lnbmF0dXJlLW9mLWNhbmFyeQ",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\ncanarypemcanarypem\n-----END RSA PRIVATE KEY-----",
    "api": "sk-ant-canaryapi0123456789abcdef",
    "seat": "canary-seat",
    "layer": "canary-layer",
    "hook": "canary-hook",
}
CONFIG = {
    "command": ["run", "--api-key", CANARIES["flag"], f"--token={CANARIES['flag']}", "--fast"],
    "env": {"API_KEY": CANARIES["env"], "HOME": CANARIES["env"]},
    "nested": [{"clientSecret": CANARIES["key"], "model": "m", "max_tokens": 4096}],
    "endpoint": f"https://user:{CANARIES['url']}@example.org/path",
    "note": f"use {CANARIES['jwt']} or {CANARIES['api']}",
    "pem": CANARIES["pem"],
    "nothing": None,
    "share": 0.5,
}


async def exported(company: Company, caller: Caller | None = None, which: str = "") -> bytes:
    outline = await company.app.archive.export(caller or company.board, which or company.id)
    found = [piece async for piece in company.app.archive.stream(outline)]
    assert sum(map(len, found)) == outline.size
    return b"".join(found)


def export(company: Company, caller: Caller | None = None) -> bytes:
    return company.wait(exported(company, caller))


async def pieces(archive: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(archive), 100_000):
        yield archive[start : start + 100_000]


def import_(company: Company, archive: bytes, caller: Caller | None = None, **options: Any) -> Any:
    return company.wait(
        company.app.archive.import_(caller or company.board, pieces(archive), **options)
    )


def accept(company: Company, which: str) -> None:
    """Let an imported company begin, as a person who has looked at it."""
    shown = company.call(company.board, acceptance.show, company=which)
    company.call(company.board, acceptance.accept, company=which, digest=shown["digest"])


def unpacked(archive: bytes) -> Folder:
    """As another program reads it."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened_archive:
        found: Folder = {}
        for entry in opened_archive:
            content = opened_archive.extractfile(entry)
            assert content is not None
            found[entry.name] = content.read()
        return found


def packed(folder: Folder) -> bytes:
    found = b""
    for path, content in folder.items():
        found += tar.header(path, len(content)) + content + bytes(tar.padding(len(content)))
    return found + tar.END


@dataclass(frozen=True)
class Built:
    """A company in which something of everything happened."""

    engineer: Member
    writer: Member
    file: str
    shipped: str
    waiting: str
    tokens: tuple[str, ...]


def build(company: Company) -> Built:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=False,
        commit_committer="Acme <bot@acme.example>",
        commit_co_authors="A <a@b>, B <b@b>",
        commit_signing="my-key",
    )
    engineer = company.agent(
        "engineer",
        title="Engineer é ☃",
        adapter_type="scripted",
        adapter_config={"script": [{"tool": "work", "arguments": CONFIG}]},
        prompt='Be brief.\n+++\n"""\n\nBe kind.',
    )
    writer = company.agent("writer", boss="engineer")
    gone = company.agent("helper")
    company.call(company.board, agents.terminate, agent=gone.id)
    company.agent("helper")
    made = company.file(engineer.caller, bytes(range(256)), 'Numbers & "bytes"\nof a file')
    made = company.write(engineer.caller, made, f"# See kb://{made['id']}\r\n".encode())
    company.file(company.board, b"", "an empty one", unlisted=True)
    ceo = company.ceo.caller
    shipped = _outcome(company, ceo, "Ship it", "Some *prose*.\n\n+++\n\nMore.")
    company.call(
        ceo, outcomes.change, outcome=shipped, version=1, description="+++\nNew\r\n+++ prose"
    )
    waiting = _outcome(company, ceo, 'Tell "them" # now', "", blocked_by=[shipped])
    hook = f"https://chat.example.org/{CANARIES['hook']}"
    bound: Any = {"agent": writer.id, "kind": "webhook", "config": {"url": hook}}
    company.call(company.board, bindings.add, company=company.id, **bound)
    later = _outcome(company, ceo, "Later", "x", urgent=True, deferred_until="2030-01-01T00:00:00Z")
    _outcome(company, ceo, "Part", "p", parent=later, blocked_by=[waiting], important=True)
    company.give(company.board, company.ceo, made, "write")
    company.give(ceo, engineer, made, "read", expires_at="2035-01-01T00:00:00Z")
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to="writer",
        resource="repo:main",
        level="use",
        mode="ask",
    )
    company.call(
        ceo, outcomes.complete, outcome=shipped, note="+++\nDone\n+++", evidence=[made["id"]]
    )
    company.call(company.board, outcomes.close, outcome=waiting, rationale="no more")
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[
            {
                "op": "seat",
                "agent": "writer",
                "adapter_type": "http",
                "adapter_config": {
                    "url": "https://example.org/run",
                    "headers": {"X": CANARIES["seat"]},
                },
            },
            {
                "op": "insert_layer",
                "agents": ["writer"],
                "name": "lead",
                "adapter_type": "process",
                "adapter_config": {"command": "run", "args": ["--password", CANARIES["layer"]]},
            },
        ],
    )
    _reorganise_much(company, made["id"])
    company.user("second")
    write_mail(company, engineer, writer, made["id"])
    govern(company, engineer)
    run = company.run(engineer)
    taken = company.call(run.caller, inbox.take)["messages"]
    assert [one["subject"] for one in taken] == ["Attached", "Only once"]
    company.call(run.caller, agents.submit_log, summary="I did it.")
    observer = company.user("eye", role="observer")
    tokens = (
        company.board.token,
        company.ceo.caller.token,
        engineer.caller.token,
        run.caller.token,
        observer.token,
    )
    return Built(engineer, writer, made["id"], shipped, waiting, tokens)


def govern(company: Company, engineer: Member) -> None:
    """A hire that was sent back and awaits a decision, a decided one, levels and settings."""
    ceo, board = company.ceo.caller, company.board
    company.call(
        board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=True,
        chat_llm_model="small",
    )
    company.call(
        board, permissions.change_policy, level="boss", settings={"governs": "company", "allow": []}
    )
    waiting = company.call(
        ceo,
        hiring.hire,
        company=None,
        name="hopeful",
        adapter_type="process",
        adapter_config={"command": "run", "env": {"API_KEY": CANARIES["layer"]}},
        capabilities="Draws",
        budget_monthly_cents=500,
        metadata={"team": "é"},
    )["approval"]["id"]
    company.call(board, approvals.request_revision, approval=waiting, note="Draws what?")
    said = company.call(ceo, approvals.comment, approval=waiting, body="Maps.")
    company.call(board, approvals.comment, approval=waiting, body="Good.", reply_to=said["id"])
    company.call(ceo, approvals.resubmit, approval=waiting, payload={"title": "Of maps"})
    refused = company.call(ceo, hiring.hire, company=None, name="never", adapter_type="scripted")[
        "approval"
    ]["id"]
    company.call(board, approvals.reject, approval=refused, note="No")
    company.call(board, permissions.change, agent=engineer.id, level="privileged")


def write_mail(company: Company, engineer: Member, writer: Member, file: str) -> None:
    """Mail in every state, to agents and to people, with everything that can hang on it."""
    ceo, board = company.ceo.caller, company.board
    company.call(board, companies.change, company=company.id, messaging="subtree")
    send(company, ceo, engineer, "Attached", attachments=[file])
    send(company, ceo, engineer, "Only once", at_most_once=True)
    for number in range(3):
        run = company.run(writer)
        if not number:
            send(company, ceo, writer, "Too hard")
        assert len(company.call(run.caller, inbox.take)["messages"]) == 1
        end(company, run, "failed", fault="message")
    asked = send(company, board, company.ceo, "", body="From a person, é ☃\n---\nfrom-board: no\n")
    company.call(ceo, inbox.acknowledge, ids=[asked["id"]])
    answer = send(company, ceo, "board", "For the board", reply_to=asked["id"])
    company.call(company.token_of("second"), inbox.acknowledge, ids=[answer["id"]])
    send(company, ceo, "user:second", "For one of them")
    for subject in ("Later", "Never"):
        at = "2040-01-01T00:00:00Z"
        later = send(company, ceo, "agent:ceo", subject, deliver_at=at)
    company.call(ceo, waiting.cancel, thread=later["id"])
    company.call(
        engineer.caller, questions.ask, question="Red or blue?\nOr both", options=["red", "blue"]
    )
    letter = company.call(ceo, inbox.take)["messages"][-1]
    send(company, ceo, engineer, "", body="red", reply_to=letter["id"], deliver_at=at)
    asked = company.call(ceo, questions.ask, question="May I?", to="board")
    company.call(board, questions.answer, question=asked["id"], answer="Yes")
    company.call(ceo, questions.ask, question="And now?", to="board")
    asked = company.call(ceo, questions.ask, question="Never mind?", to="board")
    company.call(ceo, waiting.cancel, thread=asked["id"])
    wanted = {"resource": f"kb_file:{file}", "level": "read", "why": "I need it"}
    key = company.call(board, agents.create_key, agent=writer.id)["token"]  # it was seated anew
    company.call(
        Caller(key), capability_requests.request_capability, **{**wanted, "level": "write"}
    )
    granted = company.call(Caller(key), capability_requests.request_capability, **wanted)
    company.call(board, capability_requests.grant_request, request=granted["id"])
    company.call(ceo, schedules.add, body="Stand up", cron="0 9 * * 1-5", timezone="Europe/Zurich")
    company.call(ceo, schedules.add, body="Tell", at=at, to="user:second", subject="Told")
    over = company.call(ceo, schedules.add, body="Over", at=at, to="board")
    company.call(ceo, waiting.cancel, thread=over["id"])


def send(
    company: Company, caller: Caller, to: Member | str, subject: str, body: str = "b", **more: Any
) -> Any:
    address = to if isinstance(to, str) else f"agent:{to.id}"
    return send_to(company, company.id, caller, address, subject, body=body, **more)


def send_to(
    at: Company,
    company_id: str,
    caller: Caller,
    to: str,
    subject: str,
    body: str = "b",
    **more: Any,
) -> Any:
    return at.wait(
        at.app.library.send(caller, body=body, company=company_id, to=to, subject=subject, **more)
    )


def _reorganise_much(company: Company, file: str) -> None:
    """Hand over, take back, remove a layer and undo that: what leaves odd traces."""
    ceo = company.ceo.caller
    for title in ("Kept", "Reclaimed"):
        part = _outcome(company, ceo, title, "p")
        handed = company.call(
            ceo,
            delegation.delegate,
            outcome=part,
            hire={"name": f"for-{title}"},
            given=[{"resource": f"kb_file:{file}", "level": "read"}],
        )
        worker = company.call(company.board, agents.create_key, agent=handed["agent"]["id"])
        inner = _outcome(company, Caller(worker["token"]), "Inner", "i", parent=part)
        company.call(
            Caller(worker["token"]),
            delegation.delegate,
            outcome=inner,
            hire={"name": f"below-{title}"},
            given=[{"resource": f"kb_file:{file}", "level": "read"}],
        )
    company.call(ceo, delegation.reclaim, outcome=part, reason="too slow")
    change = {"company": company.id}
    removed = company.call(
        company.board,
        reorganise.reorganise,
        operations=[{"op": "remove_layer", "agent": "for-Kept"}],
        **change,
    )
    company.call(company.board, reorganise.undo, event=removed["event_id"], **change)
    company.call(
        company.board,
        reorganise.reorganise,
        operations=[{"op": "move", "agent": "for-Kept", "to": "helper"}],
        **change,
    )


def _outcome(
    company: Company, caller: Caller, title: str, prose: str, *, parent: str = "", **more: Any
) -> str:
    made = company.wait(
        company.app.library.create_outcome(
            caller,
            parent=parent or company.ceo.id,
            title=title,
            description=prose,
            **more,
        )
    )
    return str(made["id"])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The archive of a small company."""
    home = tmp_path_factory.mktemp("sample")
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        build(company)
        return export(company)


@pytest.fixture
def other(database_url: str, tmp_path: Path) -> Iterator[Company]:
    """Another instance, with a company of its own."""
    with opened(database_url, tmp_path / "other") as company:
        company.call(company.board, companies.change, company=company.id, name="Theirs")
        yield company


# Out


def test_an_export_is_text_that_says_everything(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as company:
        built = build(company)
        folder = unpacked(export(company))
        table, prompt = split_prose("", folder["agents/engineer.md"])
        assert prompt.decode() == 'Be brief.\n+++\n"""\n\nBe kind.'
        assert (table["boss"], table["status"], table["title"]) == (
            company.ceo.id,
            "idle",  # it has a run, and runs stay where they are
            "Engineer é ☃",
        )
        config = json.loads(table["adapter_config"])["script"][0]["arguments"]
        assert config["nested"] == [{"clientSecret": REMOVED, "model": "m", "max_tokens": 4096}]
        assert config["env"] == {"API_KEY": REMOVED, "HOME": REMOVED}
        inside = ("env.API_KEY", "nested[0].clientSecret", "command[2]")
        assert {f"script[0].arguments.{path}" for path in inside} <= set(table["removed"])
        assert split_prose("", folder["agents/ceo.md"])[0]["boss"] == "person"
        assert any(path.startswith("agents/former/helper/") for path in folder)
        assert "agents/helper.md" in folder

        table, prose = split_prose("", folder[f"outcomes/{built.shipped}.md"])
        assert prose == b"+++\nNew\r\n+++ prose"
        assert table["verdict"]["note"] == "+++\nDone\n+++"
        assert table["verdict"]["evidence"][0]["file"] == built.file
        assert table["parents"] == [company.ceo.id]
        waiting = split_prose("", folder[f"outcomes/{built.waiting}.md"])[0]
        assert (waiting["status"], waiting["blocked_by"]) == ("closed", [built.shipped])
        assert waiting["verdict"]["by"] == "person"

        assert folder[f"files/{built.file}/v1"] == bytes(range(256))
        assert folder[f"files/{built.file}/v2"].endswith(b"\r\n")
        meta = load("", folder[f"files/{built.file}/meta.toml"])
        assert meta["description"] == 'Numbers & "bytes"\nof a file'
        assert meta["versions"][0]["size"] == 256
        given = [json.loads(line) for line in folder["grants.jsonl"].splitlines()]
        assert any(grant["mode"] == "ask" and grant["granted_by"] == "person" for grant in given)
        happened = [json.loads(line) for line in folder["events.jsonl"].splitlines()]
        assert happened[-1]["action"] == "company.export"
        assert [event["seq"] for event in happened] == list(range(1, len(happened) + 1))
        assert b"not" not in folder["company.toml"]
        assert "README.txt" in folder
        assert in_the_folder(folder) == in_the_database(company)


def lines_of(folder: Folder, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder[path].splitlines()]


def in_the_folder(folder: Folder) -> dict[str, Any]:
    """What an export holds, as another program would count it."""
    found = {
        kind: {one["id"] for one in lines_of(folder, f"{kind}.jsonl")}
        for kind in ("mail", "questions", "schedules", "approvals", "configurations")
    }
    heads = [split_prose("", folder[one])[0] for one in folder if re.match(r"agents/.+\.md", one)]
    found["agents"] = {head["id"] for head in heads}
    found["outcomes"] = {Path(one).stem for one in folder if one.startswith("outcomes/")}
    found["files"] = {
        one.split("/")[1] for one in folder if re.fullmatch(r"files/.+/meta.toml", one)
    }
    fields = ("id", "holder", "resource", "level", "mode", "scope", "parent", "expires_at")
    given = lines_of(folder, "grants.jsonl")
    letters = lines_of(folder, "mail.jsonl")
    return {
        **found,
        "grants": {tuple(grant[field] for field in fields) for grant in given},
        "deliveries": sorted((one["id"], len(one["deliveries"])) for one in letters),
        "subjects": sorted((one["id"], one["subject"]) for one in letters),
        "events": [event["seq"] for event in lines_of(folder, "events.jsonl")],
        "comments": sum(len(one["comments"]) for one in lines_of(folder, "approvals.jsonl")),
        "revisions": sum(len(one["revisions"]) for one in lines_of(folder, "approvals.jsonl")),
    }


def in_the_database(company: Company) -> dict[str, Any]:
    """The same from the rows; an export that leaves something out is compared with no export."""

    def rows(columns: str, table: str, where: str = "1 = 1") -> list[tuple[Any, ...]]:
        return company.sql(
            f"SELECT {columns} FROM {table} WHERE company_id = ? AND {where} ORDER BY 1",  # noqa: S608
            company.id,
        )

    def ids(table: str, where: str = "1 = 1") -> set[str]:
        return {row[0] for row in rows("id", table, where)}

    levels = ("none", "read", "write", "use")
    held = rows(
        "id, holder_id, kind, resource_id, level, mode, scope_id, parent_id, expires_at",
        "grants",
        "revoked_at IS NULL",
    )
    travels = "NOT (type = 'capability_use' AND status IN ('pending', 'revision_requested'))"
    return {
        "mail": ids("messages"),
        "questions": ids("questions"),
        "schedules": ids("schedules"),
        "approvals": ids("approvals", travels),
        "configurations": ids("config_revisions"),
        "agents": ids("agents"),
        "outcomes": ids("outcomes"),
        "files": ids("files"),
        "grants": {
            (
                *(grant, holder, thing if kind == "action" else f"{kind}:{thing}", levels[level]),
                *(mode, scope, parent, None if until is None else to_iso(until)),
            )
            for grant, holder, kind, thing, level, mode, scope, parent, until in held
        },
        "deliveries": sorted(
            # However many people got it, there is one for people.
            (message, len(set(rows("agent_id", "deliveries", f"message_id = '{message}'"))))
            for message in ids("messages")
        ),
        "subjects": sorted(rows("id, subject", "messages")),
        "events": [row[0] for row in rows("seq", "events")],
        "comments": len(rows("id", "approval_comments")),
        "revisions": sum(row[0] for row in rows("revision", "approvals", travels)),
    }


def test_no_secret_leaves_with_an_export(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as company:
        built = build(company)
        archive = export(company)
        digests = [row[0] for row in company.sql("SELECT digest FROM tokens")]
        assert len(digests) > 5
    for secret in (*CANARIES.values(), *built.tokens, *digests, "canary", "canarypem"):
        assert secret.encode() not in archive, secret
        assert json.dumps(secret)[1:-1].encode() not in archive, secret
    assert b"rmt_" not in archive


def test_an_export_has_no_calls_that_wait_and_no_work_of_runs(
    small: Company, tmp_path: Path
) -> None:
    dev = small.agent("dev")
    gated = small.file(small.board, b"secret", "gated")
    small.give(small.board, dev, gated, "read", mode="ask")
    with pytest.raises(RemitError) as caught:
        small.read(dev.caller, gated["id"])
    assert caught.value.reason == "pending_approval"
    send(small, small.ceo.caller, dev, "Only once", at_most_once=True)
    run = small.run(dev)
    assert len(small.call(run.caller, inbox.take)["messages"]) == 1
    archive = export(small)
    check(archive, tmp_path)
    folder = unpacked(archive)
    assert not [
        one for one in lines_of(folder, "approvals.jsonl") if one["type"] == "capability_use"
    ]
    # The letter counts as tried, so nothing is left in the inbox.
    (letter,) = lines_of(folder, "mail.jsonl")
    assert [one["status"] for one in letter["deliveries"]] == ["done"]
    (box,) = [one for one in folder.values() if b'kind = "inbox"' in one]
    assert b'status = "completed"' in box


def test_the_same_state_is_the_same_bytes(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as company:
        build(company)
        first, second = unpacked(export(company)), unpacked(export(company))
    assert list(first) == list(second)
    assert [path for path in first if first[path] != second[path]] == ["events.jsonl"]
    assert second["events.jsonl"].startswith(first["events.jsonl"])


def test_only_the_board_over_the_whole_company_exports(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as company:
        company.agent("part")
        scoped = company.user("scoped", scope="part")
        observer = company.user("observer", role="observer")
        stranger = company.second_company().board
        for caller in (scoped, observer, company.ceo.caller):
            with pytest.raises(Refused):
                export(company, caller)
        with pytest.raises(NotFound):
            export(company, stranger)
        found = company.call(company.board, events.listing, company=company.id, limit=3)
        assert {(one["action"], one["allowed"]) for one in found} == {("company.export", False)}
        export(company)
        (newest,) = company.call(company.board, events.listing, company=company.id, limit=1)
        assert (newest["action"], newest["allowed"]) == ("company.export", True)


def test_a_large_company_is_not_held_in_memory(tmp_path: Path) -> None:
    size, count = 1024 * 1024, 24
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path) as company:
        for number in range(count):
            company.file(company.board, bytes([number]) * size, f"file {number}")

        async def measure() -> tuple[int, int]:
            tracemalloc.start()
            try:
                total = 0
                outline = await company.app.archive.export(company.board, company.id)
                async for piece in company.app.archive.stream(outline):
                    total += len(piece)
                return total, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        total, peak = company.wait(measure())
        assert total > count * size
        assert peak < 6 * size


# And back


def test_a_company_survives_the_way_there_and_back(
    database_url: str, other: Company, tmp_path: Path
) -> None:
    home = tmp_path / "first"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        built = build(company)
        archive = export(company)
        before = company.call(company.board, outcomes.listing, company=company.id)
    answer = import_(other, archive)
    assert answer["id"] == company.id
    assert answer["removed"]["engineer"]
    after = other.call(other.board, outcomes.listing, company=company.id)
    assert _without_people(after) == _without_people(before)
    first, second = unpacked(archive), unpacked(_export_of(other, company.id))
    assert list(first) == list(second)
    differ = [path for path in first if first[path] != second[path]]
    assert differ in (["company.toml", "events.jsonl"], ["events.jsonl"])
    assert _only_people_differ(first["company.toml"], second["company.toml"])

    # Once it is accepted, it works as the first one did.
    accept(other, company.id)
    key = other.call(other.board, agents.create_key, agent=built.engineer.id)
    engineer = Caller(key["token"])
    view, content = other.read(engineer, built.file)
    assert content.startswith(b"# See kb://")
    assert other.read(engineer, built.file, 1)[1] == bytes(range(256))
    assert view["version"] == 2
    found = other.call(other.board, files.browse, company=company.id, words="numbers")
    assert [one["id"] for one in found] == [built.file]
    shown = other.call(other.board, files.show, file=built.file)
    assert [one["id"] for one in shown["linked_from"]] == [built.file]
    assert other.call(other.board, events.verify, company=company.id)["ok"]
    written = other.write(engineer, view, b"new")
    assert written["version"] == 3
    last = other.call(other.board, events.listing, company=company.id, limit=1)[0]
    assert other.call(other.board, events.why, event=last["id"])["authorised_by"] == "user:board"
    for token in built.tokens[1:]:
        with pytest.raises(RemitError):
            other.call(Caller(token), overview.me)


def _export_of(company: Company, company_id: str) -> bytes:
    async def work() -> bytes:
        outline = await company.app.archive.export(company.board, company_id)
        return b"".join([piece async for piece in company.app.archive.stream(outline)])

    return company.wait(work())


def _without_people(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    text = json.dumps(found)
    return json.loads(re.sub(r'"user:[0-9a-f-]{36}"', '"person"', text))  # type: ignore[no-any-return]


def _only_people_differ(first: bytes, second: bytes) -> bool:
    one, other = load("", first), load("", second)
    one.pop("people")
    other.pop("people")
    return one == other


def test_the_counters_that_make_work_ready_are_worked_out_again(
    database_url: str, other: Company, tmp_path: Path
) -> None:
    home = tmp_path / "first"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        build(company)
        archive = export(company)
        query = "SELECT id, open_prereqs FROM outcomes WHERE company_id = ? ORDER BY id"
        before = company.sql(query, company.id)
    import_(other, archive)
    assert other.sql(query, company.id) == before
    assert any(count for _, count in before)


def test_an_import_is_a_command_of_an_operator_and_happens_once(
    sample: bytes, other: Company
) -> None:
    friend = other.user("friend")
    for caller in (friend, other.ceo.caller):
        with pytest.raises(RemitError):
            import_(other, sample, caller)
    with pytest.raises(AlreadyExists, match="theirs"):
        import_(other, sample, name="theirs")
    again = keyed(other.board, "once")
    first = import_(other, sample, again, name="Renamed")
    assert first["name"] == "Renamed"
    assert import_(other, sample, again, name="Renamed") == first
    with pytest.raises(Conflict, match="in this instance already"):
        import_(other, sample, name="Third")
    with pytest.raises(Conflict):
        import_(other, sample, again, name="Fourth")
    record = other.call(other.board, events.listing, company=first["id"], after=0, limit=1000)
    kinds = [event["action"] for event in record]
    assert kinds[0] == "company.import"
    assert kinds.count("company.import") == 1
    assert set(kinds) == {
        *("company.import", "halt.stop", "agent.import", "grant.import", "approval.import")
    }


def test_an_id_that_is_taken_elsewhere_is_a_conflict(sample: bytes, other: Company) -> None:
    company = import_(other, sample)["id"]
    before = _rows(other)
    folder = unpacked(sample)
    for path, what in (
        ("outcomes/", "outcome"),
        ("files/", "file"),
        ("grants", "grants"),
        ("mail", "mail"),
        ("questions", "questions"),
        ("schedules", "schedules"),
    ):
        fresh = {
            name: content.replace(company.encode(), _uuid("5").encode())
            for name, content in folder.items()
        }
        with pytest.raises(Conflict, match=f"{path}.*: its id, .*, is in this instance already"):
            import_(other, packed(_with_new_ids(fresh, keep=what)), name="Another")
    assert _rows(other) == before


def _with_new_ids(folder: Folder, keep: str) -> Folder:
    """The same company under other ids, except for one kind of thing."""
    outcome_ids = {path[9:-3] for path in folder if path.startswith("outcomes/")}
    file_ids = {path.split("/")[1] for path in folder if path.startswith("files/")} - outcome_ids
    changed = {"outcome": outcome_ids, "file": file_ids}
    for name in ("grants", "mail", "questions", "schedules"):
        rows = folder[f"{name}.jsonl"].splitlines()
        changed[name] = {json.loads(line)["id"] for line in rows}
    changed.pop(keep)
    text = re.compile(b"|".join(one.encode() for ids in changed.values() for one in ids))
    content_is_fixed = re.compile(r"^files/.*/v\d+$")
    return {
        text.sub(lambda found: found[0][:14] + b"0" + found[0][15:], path.encode()).decode(): (
            content
            if content_is_fixed.match(path)
            else text.sub(lambda found: found[0][:14] + b"0" + found[0][15:], content)
        )
        for path, content in folder.items()
    }


def test_what_has_expired_meanwhile_is_left_behind(tmp_path: Path) -> None:
    clock = VirtualClock()
    with opened(f"sqlite:///{tmp_path}/a.db", tmp_path / "a", clock) as company:
        made = company.file(company.board)
        soon = "2027-02-01T00:00:00+00:00"
        company.give(company.board, company.ceo, made, "read", expires_at=soon)
        worker = company.agent("worker")
        company.give(company.ceo.caller, worker, made, "read")
        archive = export(company)
        assert archive.count(soon[:19].encode()) >= 2
    later = VirtualClock(clock.now() + 60 * DAY)
    with opened(f"sqlite:///{tmp_path}/b.db", tmp_path / "b", later) as other:
        answer = import_(other, archive, name="Copy")
        held = other.call(other.board, grants.listing, company=answer["id"], agent="worker")
        assert held == []


def test_mail_comes_along_in_the_state_it_was_in(other: Company, tmp_path: Path) -> None:
    home = tmp_path / "first"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        built = build(company)
        archive = export(company)
        told = company.call(company.ceo.caller, inbox.take)["messages"]
    letters = {
        row["subject"]: row for row in map(json.loads, unpacked(archive)["mail.jsonl"].splitlines())
    }
    # Nobody learns which person it was, and who was one of several is the one there is.
    assert letters["For the board"]["to"] == "board"
    (reached,) = letters["For the board"]["deliveries"]
    assert (reached["to"], reached["status"]) == ("person", "queued")
    assert letters["For one of them"]["to"] == "person"
    # What a run had taken up is as it is without that run.
    (reached,) = letters["Attached"]["deliveries"]
    assert (reached["status"], reached["attempt"], reached["begun"]) == ("queued", 1, True)
    (reached,) = letters["Only once"]["deliveries"]
    assert (reached["status"], reached["ended_why"]) == ("done", "tried once, as asked")

    imported = import_(other, archive)
    company_id, company_name = imported["id"], imported["name"]
    waits = {
        (one["kind"], one["title"])
        for one in other.call(other.board, needs_you.listing, company=company_id)
    }
    assert waits == {
        ("acceptance", f"{company_name} waits to be accepted"),
        ("approval", "hire hopeful as general"),
        ("mail", "For the board"),
        ("mail", "For one of them"),
        ("question", "And now?"),
        ("dead_letter", "Too hard"),
    }
    accept(other, company_id)
    ceo = Caller(other.call(other.board, agents.create_key, agent=company.ceo.id)["token"])
    again = other.call(ceo, inbox.take)["messages"]
    same = ("id", "subject", "body", "attempt", "position", "from_board", "attachments", "request")
    assert [{name: one[name] for name in same} for one in again] == [
        {name: one[name] for name in same} for one in told
    ]
    run = other.run(Member(built.engineer.id, "engineer", ceo))
    taken = other.call(run.caller, inbox.take)["messages"]
    found = [(one["subject"], one["may_have_been_handled"]) for one in taken]
    assert found == [("Attached", True)]
    assert other.read(run.caller, built.file)[1].startswith(b"# See")
    other.call(run.caller, inbox.acknowledge, ids=[taken[0]["id"]])
    # New mail comes after all that was there.
    sent = send_to(other, company_id, ceo, "agent:ceo", "New")
    newest = other.call(ceo, inbox.take)["messages"][-1]
    assert newest["id"] == sent["id"]
    assert newest["position"] > max(one["position"] for one in again)
    active = other.call(ceo, schedules.listing)
    assert [(one["body"], one["to"].partition(":")[0]) for one in active] == [
        ("Stand up", "agent"),
        ("Tell", "user"),
    ]
    requested = [json.loads(row[0]) for row in other.sql(REQUESTS)]
    assert [set(one) - {"agent", "resource", "level"} for one in requested] == [set(), {"grant"}]
    (question,) = other.call(ceo, questions.listing)
    other.call(other.board, questions.answer, question=question["id"], answer="Well")
    assert other.call(other.board, events.verify, company=company_id)["ok"]


def test_what_was_handed_in_and_not_judged_is_handed_in_again_after_an_import(
    small: Company, tmp_path: Path
) -> None:
    dev = small.agent("dev")
    small.call(dev.caller, submitting.submit, outcome=dev.id, note="Done.")
    archive = export(small)
    home = tmp_path / "other"
    with opened(f"sqlite:///{home}/remit.db", home, small.clock) as other:
        other.call(other.board, companies.change, company=other.id, name="Theirs")
        import_(other, archive)
        assert other.call(other.board, idleness.why_idle, agent=dev.id)["reason"] == "halted"
        accept(other, small.id)
        assert other.call(other.board, idleness.why_idle, agent=dev.id)["reason"] == "waking"
        again = Caller(other.call(other.board, agents.create_key, agent=dev.id)["token"])
        other.call(again, submitting.submit, outcome=dev.id, note="Done, as before.")


REQUESTS = "SELECT request FROM messages WHERE request IS NOT NULL ORDER BY id"


def test_an_export_from_before_there_was_mail_is_imported(other: Company, tmp_path: Path) -> None:
    home = tmp_path / "first"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        company.agent("lead")
        archive = unpacked(export(company))
    for path in ("mail.jsonl", "questions.jsonl", "schedules.jsonl"):
        assert archive.pop(path) == b""
    _before_governance(archive)
    about = archive["company.toml"]
    archive["company.toml"] = about.replace(b"format = 2", b"format = 1").replace(
        b'messaging = "chain"\n', b""
    )
    assert archive["company.toml"] != about
    company_id = import_(other, packed(archive))["id"]
    shown = other.call(other.board, companies.show, company=company_id)
    assert shown["messaging"] == "chain"
    accept(other, company_id)
    key = other.call(other.board, agents.create_key, agent=company.ceo.id)["token"]
    send_to(other, company_id, Caller(key), "agent:lead", "It works")


def _before_governance(archive: Folder) -> None:
    """As an export was before there were approvals."""
    for name in ("approvals", "configurations", "bindings"):
        del archive[f"{name}.jsonl"]
    older = re.compile(
        rb"^(require_\w+|chat_\w+|permission_level|config_revision|can_create_agents) = .*\n", re.M
    )
    for path, content in archive.items():
        if path.startswith("agents/") or path == "company.toml":
            archive[path] = older.sub(b"", content)
    archive["company.toml"] = archive["company.toml"].replace(b"format = 4", b"format = 2")


def test_an_export_from_before_there_were_approvals_is_imported(
    other: Company, tmp_path: Path
) -> None:
    home = tmp_path / "first"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        lead = company.agent("lead", prompt="Lead.")
        archive = unpacked(export(company))
    _before_governance(archive)
    company_id = import_(other, packed(archive))["id"]
    shown = other.call(other.board, companies.show, company=company_id)
    assert shown["require_board_approval_for_new_agents"] is True
    (first,) = other.call(other.board, configuration.revisions, agent=lead.id)
    assert (first["number"], first["configuration"]["prompt"]) == (1, "Lead.")


@pytest.mark.requirement("FX-24")
def test_an_imported_binding_waits_until_somebody_here_says_its_secret(
    other: Company, tmp_path: Path
) -> None:
    home = tmp_path / "first"
    rooms = {"rooms": ["C0123456789"]}
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        place = {"name": "slack", "source": "env", "place": "SLACK"}
        company.call(company.board, secrets.put, company=company.id, **place)
        for kind, config in (
            ("slack", {"secretRef": "slack", **rooms}),
            ("webhook", {"url": "https://chat.example.org/key"}),
        ):
            about: Any = {"agent": company.ceo.id, "kind": kind, "config": config}
            company.call(company.board, bindings.add, company=company.id, **about)
        archive = export(company)
    company_id = import_(other, archive)["id"]
    here: Any = {"company": company_id}
    # Whoever made the archive may have named a server of theirs, and a secret that is there.
    other.call(other.board, secrets.put, **here, **place)
    held = other.call(other.board, bindings.listing, **here)
    assert [one["state"] for one in held] == ["held", "held"]
    assert other.call(as_system(), receivers.ready) == []
    accept(other, company_id)
    assert other.call(as_system(), receivers.ready) == []
    ceo = Caller(other.call(other.board, agents.create_key, agent=company.ceo.id)["token"])
    with pytest.raises(Refused, match="not bound"):
        send_to(other, company_id, ceo, "channel:slack:D1", "Hello")
    anew: Any = {**here, "agent": company.ceo.id}
    with pytest.raises(NotFound, match="no secret 'other'"):
        other.call(other.board, bindings.add, **anew, kind="slack", config={"secretRef": "other"})
    with pytest.raises(BadInput, match="The export left out url"):
        other.call(other.board, bindings.add, **anew, kind="webhook")
    made = other.call(other.board, bindings.add, **anew, kind="slack")
    assert made["adapter_config"] == {"secretRef": "slack", **rooms}
    assert other.call(as_system(), receivers.ready) == [made["id"]]
    send_to(other, company_id, ceo, "channel:slack:D1", "Hello")


@pytest.mark.requirement("FX-32")
def test_repositories_checks_and_copies_wait_in_an_export_until_they_are_applied(
    other: Company, tmp_path: Path
) -> None:
    home, elsewhere = tmp_path / "first", "https://example.org/a/site.git"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        here: Any = {"company": company.id}
        board = company.board
        forge: Any = {"forge": "github", "api_secret": "forge-key", "people": "ann"}
        company.call(board, repos.add, **here, name="site", url=elsewhere, **forge)
        company.call(board, repos.add, **here, name="near", url="/srv/near.git")
        for name, command in (("test", "make test"), ("call", f"curl -H {CANARIES['jwt']} x")):
            asked: Any = {"repo": "site", "check": name, "command": command, "protected": []}
            company.call(board, repo_checks.set_check, **here, **asked)
        company.agent("writer")
        company.call(board, folders.bind, **here, agent=company.ceo.id, repo="site", megabytes=50)
        company.call(board, folders.bind, **here, agent="writer", path="/srv/handbook")
        company.call(board, folders.mount, **here, path="/opt/go", programs=["bin"])
        archive = export(company)
    written = unpacked(archive)["setup.toml"]
    assert not re.search(rb"/srv|/opt|canary", written), written
    assert CANARIES["jwt"].encode() not in written
    made = import_(other, archive)
    there: Any = {"company": made["id"]}
    assert made["setup"] == 5
    assert other.call(other.board, repos.listing, **there) == []
    assert other.call(other.board, folders.listing, **there) == []
    document = load("", written)
    folder = {"agent": "ceo", "repo": "site", "megabytes": 50, "instructions": True}
    assert document["folders"] == [folder]
    with pytest.raises(BadInput, match=r"repos\[0\].*url"):
        other.call(other.board, declared_company.apply, **there, document=document)
    document["repos"][0]["url"] = "/srv/here.git"
    with pytest.raises(BadInput, match="command: something was taken out"):
        other.call(other.board, declared_company.apply, **there, document=document)
    document["checks"][0]["command"] = "true"
    plan = other.call(other.board, declared_company.preview, **there, document=document)
    about: Any = {"document": document, "accepted": plan["digest"]}
    done = other.call(other.board, declared_company.apply, **there, **about)
    assert (done["created"], done["changed"]) == (5, 0)
    site = other.call(other.board, repos.listing, **there)[1]
    assert (site["url"], site["api_secret"], site["people"]) == (elsewhere, "forge-key", ["ann"])
    assert [one["protected"] for one in site["checks"]] == [[], []]
    again = load("", unpacked(other.wait(exported(other, which=made["id"])))["setup.toml"])
    del document["repos"][0]["url"]
    assert again == document


def test_what_awaits_a_decision_travels_and_is_decided_there(sample: bytes, other: Company) -> None:
    company_id = import_(other, sample)["id"]
    (waiting,) = other.call(other.board, approvals.listing, company=company_id, status="pending")
    seen = other.call(other.board, approvals.show, approval=waiting["id"])
    assert [one["number"] for one in seen["revisions"]] == [1, 2]
    assert [one["body"] for one in seen["comments"]] == ["Draws what?", "Maps.", "Good."]
    other.call(other.board, approvals.approve, approval=waiting["id"], expected_revision=2)
    taken_on = other.call(other.board, agents.show, agent=waiting["agent_id"])
    assert (taken_on["status"], taken_on["title"]) == ("idle", "Of maps")
    assert other.call(other.board, events.verify, company=company_id)["ok"]


# What is not an export

Change = Callable[[Folder], None]


def swap(pattern: str, old: str, new: str) -> Change:
    """Replace a text in the first file whose path and content match."""

    def change(folder: Folder) -> None:
        for path, content in folder.items():
            if re.search(pattern, path) and re.search(old.encode(), content):
                folder[path] = re.sub(old.encode(), new.encode(), content, count=1)
                return
        raise AssertionError(f"nothing matches {pattern} with {old}")

    return change


def drop(pattern: str) -> Change:
    def change(folder: Folder) -> None:
        path = next(path for path in folder if re.search(pattern, path))
        del folder[path]

    return change


def add(path: str, content: bytes = b"") -> Change:
    return lambda folder: folder.update({path: content})


def _boss_circle(folder: Folder) -> None:
    ceo = split_prose("", folder["agents/ceo.md"])[0]["id"]
    lead = split_prose("", folder["agents/engineer.md"])[0]["id"]
    assert ceo != lead
    folder["agents/ceo.md"] = folder["agents/ceo.md"].replace(b'"person"', f'"{lead}"'.encode(), 1)


def _outcome_circle(folder: Folder) -> None:
    ceo = split_prose("", folder["agents/ceo.md"])[0]["id"]
    engineer = split_prose("", folder["agents/engineer.md"])[0]["id"]
    path = f"outcomes/{engineer}.md"
    folder[path] = folder[path].replace(
        b"version =", f'blocked_by = ["{ceo}"]\nversion ='.encode(), 1
    )


def _deep_tree(folder: Folder) -> None:
    table, _ = split_prose("", folder["agents/helper.md"])
    boss = table["id"]
    for number in range(33):
        new, state, log = (_uuid(f"{kind}{number:031x}") for kind in "abc")
        head = {**table, "id": new, "mandate": new, "name": f"deep{number}", "boss": boss}
        head |= {"state_file": state, "log_file": log, "places": None}
        folder[f"agents/deep{number}.md"] = with_prose(head)
        boss = new
        for id_, kind in ((new, "outcome"), (state, "state"), (log, "log")):
            folder[f"files/{id_}/meta.toml"] = dump(
                {
                    "kind": kind,
                    "description": "d",
                    "home": new,
                    "created_at": table["created_at"],
                    "updated_at": table["created_at"],
                    "versions": [
                        {
                            "number": 1,
                            "sha256": "e3b0c44298fc1c149afbf4c8996fb924"
                            "27ae41e4649b934ca495991b7852b855",
                            "size": 0,
                            "at": table["created_at"],
                        }
                    ],
                }
            ).encode()
            if kind != "outcome":
                folder[f"files/{id_}/v1"] = b""
        folder[f"outcomes/{new}.md"] = with_prose(
            {
                "title": "t",
                "status": "open",
                "owner": new,
                "version": 1,
                "created_at": table["created_at"],
                "updated_at": table["created_at"],
            }
        )


def _uuid(text: str) -> str:
    bare = text.replace("-", "")[:32].ljust(32, "0")
    return f"{bare[:8]}-{bare[8:12]}-{bare[12:16]}-{bare[16:20]}-{bare[20:]}"


Rows = list[dict[str, Any]]


def _lines(path: str, change: Callable[[Rows], None]) -> Change:
    def apply(folder: Folder) -> None:
        rows = [json.loads(line) for line in folder[path].splitlines()]
        change(rows)
        folder[path] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return apply


def _grants(change: Callable[[Rows], None]) -> Change:
    return _lines("grants.jsonl", change)


def _letter(subject: str, /, **changed: Any) -> Change:
    """Change a message, found by its subject."""
    return _lines(
        "mail.jsonl",
        lambda rows: next(row for row in rows if row["subject"] == subject).update(changed),
    )


def _delivered(subject: str, **changed: Any) -> Change:
    return _lines(
        "mail.jsonl",
        lambda rows: next(row for row in rows if row["subject"] == subject)["deliveries"][0].update(
            changed
        ),
    )


_NOW = "2026-05-01T09:00:00.000000+00:00"


def _with_status(rows: Rows, status: str) -> dict[str, Any]:
    return next(row for row in rows if row["status"] == status)


def _first(path: str, **changed: Any) -> Change:
    return _lines(path, lambda rows: rows[0].update(changed))


def _answers_itself(rows: Rows) -> None:
    answer = next(row for row in rows if row["subject"] == "For the board")
    first = next(row for row in rows if row["id"] == answer["reply_to"])
    first["reply_to"] = answer["id"]


def _same_place(rows: Rows) -> None:
    one, other = (
        row["deliveries"][0] for row in rows if row["subject"] in ("Attached", "Too hard")
    )
    one["position"] = other["position"]


def _derived(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["parent"])


def _without_mandate(folder: Folder) -> None:
    helper = _id_of(folder, "agents/helper.md")
    del folder[f"outcomes/{helper}.md"], folder[f"files/{helper}/meta.toml"]


def _namesake(folder: Folder) -> None:
    engineer = folder.pop("agents/engineer.md")
    folder["agents/HELPER.md"] = engineer.replace(b'"engineer"', b'"HELPER"', 1)


def _judged_and_open(folder: Folder) -> None:
    swap("outcomes/", '"completed"', '"open"')(folder)
    judged = next(
        path for path in folder if b'"open"' in folder[path] and b"[verdict]" in folder[path]
    )
    folder[judged] = re.sub(b"finished_at.*\n", b"", folder[judged])


def _second_inbox(folder: Folder) -> None:
    first, second, *_ = sorted(path for path in folder if b'kind = "inbox"' in folder[path])
    owner = re.search(rb'owner = "[^"]+"', folder[first])
    assert owner is not None
    folder[second] = re.sub(rb'owner = "[^"]+"', owner[0], folder[second])


def _bound_though_gone(folder: Folder) -> None:
    gone = _id_of(folder, next(path for path in folder if path.startswith("agents/former/")))
    _first("bindings.jsonl", agent=gone)(folder)


def _id_of(folder: Folder, path: str) -> str:
    return str(split_prose(path, folder[path])[0]["id"])


def _comment(rows: Rows) -> dict[str, Any]:
    comments: Rows = next(row["comments"] for row in rows if row["comments"])
    return comments[0]


DAMAGES: dict[str, tuple[Change, str]] = {
    "no company": (drop("company.toml"), "company.toml: is missing"),
    "no grants": (drop("grants.jsonl"), "grants.jsonl: is missing"),
    "another format": (swap("company", "format = 4", "format = 5"), "format must be"),
    "company id": (swap("company", 'id = "[^"]+"', 'id = "../x"'), "id must be an id"),
    "company name": (swap("company", 'name = "[^"]+"', 'name = "a\\\\u0007b"'), "name is refused"),
    "not toml": (swap("company", "format", "= ="), "company.toml: is not TOML"),
    "not utf-8": (add("company.toml", b"\xff\xfe"), "company.toml: is not TOML"),
    "deep toml": (add("company.toml", b"a = " + b"[" * 100_000), "company.toml: is not TOML"),
    "no block": (add("agents/engineer.md", b"hello"), "must begin with a block"),
    "agent status": (swap("agents/e", '"idle"', '"asleep"'), "status must be one of"),
    "agent role": (swap("agents/e", '"general"', '"king"'), "role must be one of"),
    "agent name": (swap("agents/e", '"engineer"', '"../../x"'), "name is refused"),
    "reserved name": (swap("agents/e", '"engineer"', '"system"'), "name is refused"),
    "agent elsewhere": (swap("agents/e", '"engineer"', '"designer"'), "belongs at agents/designer"),
    "adapter": (swap("agents/e", '"scripted"', '"magic"'), "adapter_type is refused"),
    "settings": (swap("agents/e", r'(?s)config = """.*?"""', 'config = "[]"'), "a JSON object"),
    "settings type": (swap("agents/e", r'(?s)config = """.*?"""', "config = 3"), "a JSON object"),
    "settings number": (
        swap("agents/e", r'(?s)config = """.*?"""', f"config = '{{\"a\":{'9' * 5000}}}'"),
        "a JSON object",
    ),
    "prompt": (swap("agents/e", "Be brief.", "Be\x00brief."), "the prompt must be"),
    "no boss": (swap("agents/e", 'boss = "[^"]+"', "boss = 1"), "boss must be an id"),
    "unknown boss": (
        swap("agents/e", 'boss = "[^"]{8}', 'boss = "00000000'),
        "agents/engineer.md: boss, 00000000.*is not here",
    ),
    "boss circle": (_boss_circle, "bosses go round in a circle"),
    "deep tree": (_deep_tree, "more than 32 agents deep"),
    "mandate": (swap("agents/e", 'mandate = "[^"]+"', 'mandate = "x"'), "mandate must be an id"),
    "unknown field": (swap("agents/e", "role =", "operator = true\nrole ="), "not a field"),
    "removed": (
        swap("agents/e", r"(?s)removed = \[.*?\n\]", "removed = 7"),
        "removed must be a list",
    ),
    "place": (swap("agents/e", 'since = "[^"]+"', 'since = "soon"'), "since is not a time"),
    "far time": (
        swap("agents/e", 'created_at = "2', 'created_at = "92'),
        "created_at is not a time",
    ),
    "time type": (swap("agents/e", 'created_at = "[^"]+"', "created_at = 1e400"), "must be a time"),
    "two of a name": (
        lambda folder: folder.update(
            {"agents/HELPER.md": folder["agents/helper.md"].replace(b'"helper"', b'"HELPER"')}
        ),
        "has the id of agents/",
    ),
    "outcome status": (swap("outcomes/", '"open"', '"maybe"'), "status must be one of"),
    "finished": (swap("outcomes/", '"completed"', '"open"'), "finished_at belongs"),
    "not finished": (swap("outcomes/", '"open"', '"closed"'), "finished_at belongs"),
    "outcome version": (
        swap("outcomes/", "version = 1\n", "version = 99999999999\n"),
        "version must be",
    ),
    "outcome flag": (swap("outcomes/", "urgent = true", 'urgent = "yes"'), "urgent must be true"),
    "outcome title": (swap("outcomes/", 'title = "Part"', 'title = " Part"'), "title has blanks"),
    "outcome owner": (
        swap("outcomes/", 'owner = "[^"]{8}', 'owner = "00000000'),
        "owner.*is not here",
    ),
    "outcome parent": (
        swap("outcomes/", r'parents = \[\n  "[^"]{8}', 'parents = [\n  "00000000'),
        "a parent",
    ),
    "outcome twice": (
        swap("outcomes/", r"(?s)parents = \[(.*?)\n\]", r"parents = [\1\1\n]"),
        "names something twice",
    ),
    "outcome name": (
        lambda f: f.update(
            {"outcomes/x.md": f.pop(next(p for p in f if p.startswith("outcomes/")))}
        ),
        "named by the outcome's id",
    ),
    "outcome circle": (_outcome_circle, "wait for each other"),
    "no outcome": (drop("^outcomes/"), "is missing|not here"),
    "prose": (swap("outcomes/", "prose\n$", "PROSE\n"), "was changed; its hash"),
    "longer prose": (swap("outcomes/", "prose\n$", "prose!\n"), "bytes, and files/"),
    "verdict": (swap("outcomes/", 'by = "agent:', 'by = "board:'), "by must be person or agent"),
    "evidence": (swap("outcomes/", 'sha256 = "..', 'sha256 = "zz'), "sha256 must be 64 hex"),
    "no version": (drop("^files/.*/v1$"), "v1: is missing"),
    "no meta": (drop("^files/.*/meta.toml$"), "is missing|not part of an export"),
    "changed content": (swap("^files/.*/v2$", "See", "sEE"), "v2: was changed; its hash"),
    "cut content": (swap("^files/.*/v2$", "See", ""), "v2: is .* bytes, and"),
    "file kind": (swap("^files/.*toml", 'kind = "file"', 'kind = "state"'), "is not the state"),
    "file home": (
        swap("^files/.*toml", 'home = "[^"]{8}', 'home = "00000000'),
        "is not here|not a",
    ),
    "file author": (
        swap("^files/.*toml", 'by = "agent:[^"]{8}', 'by = "agent:00000000'),
        "an author",
    ),
    "file size": (swap("^files/.*toml", "size = 256", "size = -1"), "size must be a whole number"),
    "file number": (swap("^files/.*toml", "number = 2", "number = 3"), "number must be 2"),
    "huge number": (
        swap("^files/.*toml", "number = 2", f"number = {'9' * 400}"),
        "number must be|not TOML",
    ),
    "boolean number": (swap("^files/.*toml", "number = 1", "number = true"), "number must be"),
    "stray file": (add("files/notes.txt", b"hi"), "notes.txt: is not part of an export"),
    "stray folder": (add("outcome/x.md", b"hi"), "is not part of an export"),
    "file name": (add("files/x/meta.toml", b'kind = "file"'), "named by the file's id"),
    "not json": (add("grants.jsonl", b"{"), "grants.jsonl, line 1: is not JSON"),
    "deep json": (add("grants.jsonl", b"[" * 100_000), "line 1: is not JSON"),
    "no object": (add("grants.jsonl", b"[]"), "line 1: must be a table"),
    "grant level": (_grants(lambda rows: rows[0].update(level="all")), "level is refused"),
    "grant mode": (_grants(lambda rows: rows[0].update(mode=[])), "mode is refused"),
    "grant resource": (
        _grants(lambda rows: rows[0].update(resource="kb_file:*")),
        "resource is refused",
    ),
    "grant case": (
        _grants(lambda rows: rows[0].update(resource=rows[0]["resource"].upper())),
        "resource is",
    ),
    "grant on nothing": (
        _grants(lambda rows: rows[0].update(resource=f"kb_file:{_uuid('0')}")),
        "kb_file:.* is not here",
    ),
    "grant holder": (_grants(lambda rows: rows[0].update(holder=_uuid("0"))), "holder.*not here"),
    "grant twice": (_grants(lambda rows: rows.append(rows[0])), "has the id of"),
    "grant without source": (
        _grants(lambda rows: _derived(rows).update(parent=None)),
        "what an agent gives",
    ),
    "wider grant": (
        _grants(lambda rows: _widen(rows)),
        "exceeds its parent",
    ),
    "longer grant": (
        _grants(lambda rows: _parent(rows).update(expires_at="2034-01-01T00:00:00Z")),
        "exceeds its parent",
    ),
    "freer grant": (_grants(lambda rows: _parent(rows).update(mode="ask")), "exceeds its parent"),
    "denied source": (
        _grants(lambda rows: _parent(rows).update(mode="deny")),
        "exceeds its parent",
    ),
    "another's source": (
        _grants(lambda rows: _derived(rows).update(granted_by=f"agent:{_derived(rows)['holder']}")),
        "its parent is not a grant of its granter",
    ),
    "denied holder": (
        _grants(
            lambda rows: rows.append(
                {**_parent(rows), "id": _uuid("7"), "mode": "deny", "level": "none"}
            )
        ),
        "exceeds what its granter holds",
    ),
    "grant circle": (_grants(lambda rows: _circle(rows)), "some grants rest on each other"),
    "finished scope": (
        lambda folder: _finish_scope(folder),
        "its scope is finished",
    ),
    "no approvals": (drop("approvals.jsonl"), "approvals.jsonl: is missing"),
    "approval twice": (
        _lines("approvals.jsonl", lambda rows: rows.append(rows[0])),
        "has the id of",
    ),
    "approval status": (_first("approvals.jsonl", status="pending"), "decided_at belongs"),
    "approval of nobody": (_first("approvals.jsonl", agent=_uuid("0")), "agent,.*is not here"),
    "requested by nobody": (_first("approvals.jsonl", requested_by=None), "must be person or"),
    "revision lost": (_first("approvals.jsonl", revision=7), "revisions must be all of them"),
    "payload": (
        _lines("approvals.jsonl", lambda rows: rows[0]["revisions"][0].update(payload=[])),
        "payload must be an object",
    ),
    "used though rejected": (
        _lines("approvals.jsonl", lambda rows: _with_status(rows, "rejected").update(used_at=_NOW)),
        "used_at belongs",
    ),
    "hired by nobody": (
        _lines("approvals.jsonl", lambda rows: rows.remove(_with_status(rows, "pending"))),
        "approval,.*is not here|has a hire that awaits it",
    ),
    "configuration twice": (
        _lines(
            "configurations.jsonl", lambda rows: rows[1].update(number=1, agent=rows[0]["agent"])
        ),
        "is there twice",
    ),
    "configuration keys": (_first("configurations.jsonl", configuration={}), "must have exactly"),
    "changed keys": (_first("configurations.jsonl", changed=["soul"]), "does not have"),
    "configuration of nobody": (
        _first("configurations.jsonl", agent=_uuid("0")),
        "agent,.*is not here",
    ),
    "level": (swap("agents/engineer.md", '"privileged"', '"root"'), "permission_level must be"),
    "hiring": (
        swap("agents/engineer.md", "can_create_agents = true", "can_create_agents = 1"),
        "must be true or false",
    ),
    "no bindings": (drop("bindings.jsonl"), "bindings.jsonl: is missing"),
    "setup": (lambda folder: folder.update({"setup.toml": b"= ="}), "setup.toml: is not TOML"),
    "binding twice": (
        _lines("bindings.jsonl", lambda rows: rows.append(rows[0])),
        "has the id of",
    ),
    "binding of nobody": (_first("bindings.jsonl", agent=_uuid("0")), "agent,.*is not here"),
    "binding to nothing": (_first("bindings.jsonl", kind="Web Hook"), "kind is refused"),
    "binding without settings": (_first("bindings.jsonl", config="x"), "config is refused"),
    "no mail": (drop("mail.jsonl"), "mail.jsonl: is missing"),
    "no questions": (drop("questions.jsonl"), "questions.jsonl: is missing"),
    "no schedules": (drop("schedules.jsonl"), "schedules.jsonl: is missing"),
    "messaging": (swap("company", '"subtree"', '"all"'), "messaging must be one of"),
    "mail in an older export": (
        swap("company", "format = 4", "format = 1"),
        "mail.jsonl: is not part",
    ),
    "letter twice": (_lines("mail.jsonl", lambda rows: rows.append(rows[0])), "has the id of"),
    "letter from nobody": (
        _letter("Attached", **{"from": f"agent:{_uuid('0')}"}),
        "from,.*not here",
    ),
    "letter from a user": (_letter("Attached", **{"from": "user:board"}), "from must be person or"),
    "forged board": (_letter("Attached", from_board=True), "from_board is true and no person"),
    "letter to a user": (_letter("Attached", to="user:board"), "to names a person"),
    "letter to nobody": (_letter("Attached", to=f"agent:{_uuid('0')}"), "to,.*is not here"),
    "letter to nowhere": (_letter("Attached", to="channel"), "to,.*is not here"),
    "subject": (_letter("Attached", subject="a\nb"), "subject (is refused|has blanks)"),
    "no body": (_letter("Attached", body=_uuid("0")), "body,.*is not here"),
    "body version": (_letter("Attached", body_version=7), "body_version 7 is not here"),
    "attachment": (_letter("Attached", attachments=[_uuid("0")]), "an attachment.*not here"),
    "hops": (_letter("Attached", hops=-1), "hops must be"),
    "thread": (_letter("Attached", thread=_uuid("0")), "thread,.*is not here"),
    "reply to nothing": (_letter("Attached", reply_to=_uuid("0")), "reply_to,.*is not here"),
    "another thread": (
        _lines("mail.jsonl", lambda rows: rows[0].update(reply_to=rows[1]["id"])),
        "in another thread",
    ),
    "letter circle": (_lines("mail.jsonl", _answers_itself), "answer each other"),
    "unknown question": (_letter("Attached", question=_uuid("0")), "question,.*is not here"),
    "request": (_letter("Attached", request={"agent": "x"}), "request: resource is refused"),
    "request for all": (
        _letter("Attached", request={"agent": _uuid("0"), "resource": "repo:main", "level": "all"}),
        "request: level is refused",
    ),
    "request of nobody": (
        _letter("Attached", request={"agent": _uuid("0"), "resource": "repo:main", "level": "use"}),
        "request, agent,.*is not here",
    ),
    "letter field": (_letter("Attached", urgent=True), "'urgent' is not a field"),
    "receiver": (_delivered("Attached", to=None), "deliveries 1: to must be"),
    "unknown receiver": (_delivered("Attached", to=f"agent:{_uuid('0')}"), "a receiver.*not here"),
    "delivery status": (_delivered("Attached", status="lost"), "status must be one of"),
    "delivery without end": (_delivered("Too hard", ended_at=None), "ended_at belongs"),
    "waiting with end": (_delivered("Too hard", status="queued"), "ended_at belongs"),
    "no place in line": (_delivered("Attached", position=None), "position is missing"),
    "place of what is deferred": (_delivered("Later", position=1), "position is given when"),
    "place in line": (_delivered("Attached", position=-5), "position must be"),
    "attempts": (_delivered("Attached", attempt=9), "attempt must be"),
    "same place in line": (_lines("mail.jsonl", _same_place), "position .* is given twice"),
    "reached twice": (
        _lines("mail.jsonl", lambda rows: rows[0].update(deliveries=rows[0]["deliveries"] * 2)),
        "reaches somebody twice",
    ),
    "open inbox without mail": (
        _delivered("Attached", status="done", ended_at="2026-01-01T00:00:00Z"),
        "an inbox is open exactly while",
    ),
    "mail without inbox": (
        swap("outcomes/", 'kind = "inbox"\n', ""),
        "mail waits for it, and it has no inbox",
    ),
    "perpetual inbox": (
        swap("outcomes/", 'kind = "inbox"\n', 'kind = "inbox"\nperpetual = true\n'),
        "neither delegated nor perpetual|perpetual, so it cannot",
    ),
    "outcome kind": (swap("outcomes/", '"inbox"', '"play"'), "kind must be one of"),
    "question status": (
        _first("questions.jsonl", status="open"),
        "answer belongs|ended_at belongs",
    ),
    "question without answer": (
        _lines(
            "questions.jsonl",
            lambda rows: next(row for row in rows if row["answer"]).update(answer=None),
        ),
        "answer belongs to what was answered",
    ),
    "question end": (
        _lines(
            "questions.jsonl",
            lambda rows: next(row for row in rows if row["answer"]).update(ended_at=None),
        ),
        "ended_at belongs to what was answered",
    ),
    "question to": (_first("questions.jsonl", to="person"), "to must be board or agent"),
    "question of": (_first("questions.jsonl", agent=_uuid("0")), "agent,.*is not here"),
    "options": (_first("questions.jsonl", options=["a\nb"]), "options is refused|options have"),
    "many options": (_first("questions.jsonl", options=["a"] * 21), "options must be at most 20"),
    "schedule of": (_first("schedules.jsonl", agent=_uuid("0")), "agent,.*is not here"),
    "cron": (_first("schedules.jsonl", cron="61 * * * *"), "cron is refused"),
    "time zone": (_first("schedules.jsonl", timezone="../Mars"), "timezone is refused"),
    "schedule body": (_first("schedules.jsonl", body=" "), "body is refused"),
    "schedule status": (_first("schedules.jsonl", status="done"), "next_at belongs"),
    "schedule to": (_first("schedules.jsonl", to="user:x"), "to names a person"),
    "lost mandate": (_without_mandate, "agents/helper.md: its mandate, outcomes/.*, is missing"),
    "another's state": (
        swap("agents/e", 'state_file = "[^"]+"', f'state_file = "{_uuid("0")}"'),
        "agents/engineer.md: state_file is not a state of this agent",
    ),
    "same name": (_namesake, "has the name of agents/"),
    "mandate of another": (
        swap("agents/e", 'mandate = "[^"]+"', f'mandate = "{_uuid("0")}"'),
        "mandate must be the id of the agent",
    ),
    "blanks behind a prompt": (
        swap("agents/e", r"Be kind\.\n$", "Be kind. \n"),
        "the prompt must be trimmed",
    ),
    "no empty line": (swap("agents/e", r"\n\nBe brief", "\nBe brief"), "an empty line must follow"),
    "removed numbers": (
        swap("agents/e", r"(?s)removed = \[.*?\n\]", "removed = [7]"),
        "removed must be a list of texts",
    ),
    "verdict on what is open": (_judged_and_open, "has a verdict and is open"),
    "perpetual and completed": (
        swap("outcomes/", 'status = "completed"\n', 'status = "completed"\nperpetual = true\n'),
        "is perpetual, so it cannot be completed",
    ),
    "delegator alone": (
        swap("outcomes/", "delegated = true\ndelegator", "delegator"),
        "has a delegator and is not delegated",
    ),
    "outcome parents": (
        swap("outcomes/", r"(?s)parents = \[.*?\n\]", "parents = 3"),
        "parents must be a list of ids",
    ),
    "two inboxes": (_second_inbox, "its owner has another inbox"),
    "file without versions": (
        swap("^files/.*toml", r"(?s)\[\[versions.*", ""),
        "versions is missing",
    ),
    "grant spelled otherwise": (
        _grants(lambda rows: rows[0].update(resource=f" {rows[0]['resource']}")),
        "resource is not written as Remit writes it",
    ),
    "no payload": (
        _lines("approvals.jsonl", lambda rows: rows[0]["revisions"][0].pop("payload")),
        "payload is missing",
    ),
    "large payload": (
        _lines(
            "approvals.jsonl",
            lambda rows: rows[0]["revisions"][0].update(payload={"a": "x" * 1_000_000}),
        ),
        "payload must be at most .* KiB",
    ),
    "call that waits": (
        _lines(
            "approvals.jsonl",
            lambda rows: _with_status(rows, "pending").update(type="capability_use"),
        ),
        "status is that of a call that waits",
    ),
    "reply to no comment": (
        _lines("approvals.jsonl", lambda rows: _comment(rows).update(reply_to=_uuid("0"))),
        "reply_to must be an earlier comment on the same approval",
    ),
    "configuration behind": (
        swap("agents/e", "config_revision = 1", "config_revision = 2"),
        "agents/engineer.md: config_revision is not its latest",
    ),
    "binding of the terminated": (_bound_though_gone, "agent is terminated, so it is bound to"),
    "came from no channel": (
        _letter("Attached", channel="board"),
        "channel is not the address of a channel",
    ),
    "came from outside and from an agent": (
        _letter("Attached", channel="channel:webhook:room"),
        "channel is given and somebody here wrote it",
    ),
    "background of an agent": (
        _letter("Attached", background=True),
        "background is true and somebody wrote it",
    ),
    "request spelled otherwise": (
        _letter("Attached", request={"agent": _uuid("0"), "resource": "repo:main "}),
        "request: resource is not written as Remit writes it",
    ),
    "deliveries": (_letter("Attached", deliveries=3), "deliveries must be a list"),
    "wide cron": (
        _first("schedules.jsonl", cron=f"0{' ' * 100}9 * * 1-5"),
        "cron must be a text of at most 100 characters",
    ),
}


def _parent(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["id"] == _derived(rows)["parent"])


def _widen(rows: list[dict[str, Any]]) -> None:
    _parent(rows).update(level="read")
    _derived(rows).update(level="write")


def _circle(rows: list[dict[str, Any]]) -> None:
    child = _derived(rows)
    child.update(expires_at=None)
    _parent(rows).update(
        parent=child["id"], granted_by=f"agent:{child['holder']}", level=child["level"]
    )


def _finish_scope(folder: Folder) -> None:
    closed = next(
        path for path in folder if path.startswith("outcomes/") and b'"closed"' in folder[path]
    )
    outcome = closed.removeprefix("outcomes/").removesuffix(".md")
    _grants(lambda rows: rows[-1].update(scope=outcome))(folder)


def check(archive: bytes, place: Path) -> None:
    """Read an archive as an import does before it touches a database."""
    with (place / "archive.tar").open("w+b") as file:
        file.write(archive)
        file.flush()
        file.seek(0)
        plan = reading.read(tar.Folder(file), _IMPORTER)
        checking.check(plan, 1_800_000_000_000_000)


_IMPORTER: Any = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Another instance, which no import of a damaged archive may change."""
    home = tmp_path_factory.mktemp("untouched")
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        company.call(company.board, companies.change, company=company.id, name="Theirs")
        yield company


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_export_is_refused_with_path_and_reason(
    name: str, sample: bytes, untouched: Company
) -> None:
    change, reason = DAMAGES[name]
    folder = unpacked(sample)
    change(folder)
    before = _rows(untouched)
    with pytest.raises(BadInput, match=reason) as caught:
        import_(untouched, packed(folder))
    assert len(caught.value.sentence) < 600
    assert _rows(untouched) == before


def _rows(company: Company) -> list[Any]:
    tables = ["companies", "agents", "outcomes", "files", "file_versions", "grants", "memberships"]
    tables += ["messages", "deliveries", "questions", "schedules"]
    counted = [company.sql(f"SELECT count(*) FROM {table}") for table in tables]  # noqa: S608
    return [*counted, company.sql("SELECT count(*) FROM events")]


def test_a_refused_import_leaves_nothing_but_what_is_swept(sample: bytes, other: Company) -> None:
    """The last check of all is made when everything else is stored."""
    folder = unpacked(sample)
    swap("^files/.*/v2$", "See", "sEE")(folder)
    before = _rows(other)
    with pytest.raises(BadInput, match="was changed"):
        import_(other, packed(folder))
    assert _rows(other) == before
    assert import_(other, sample)["agents"] > 3


def test_an_undamaged_export_is_fine(sample: bytes, tmp_path: Path) -> None:
    check(sample, tmp_path)
    folder = unpacked(sample)
    check(packed(dict(sorted(folder.items(), reverse=True))), tmp_path)
    del folder["README.txt"], folder["events.jsonl"], folder[".gitattributes"]
    check(packed(folder), tmp_path)
    # Other programs write the folders down, too.
    check(entry("agents/", type=tarfile.DIRTYPE) + packed(folder), tmp_path)


def test_an_export_that_an_editor_and_an_older_version_touched_is_fine(
    sample: bytes, small: Company
) -> None:
    folder = unpacked(sample)
    path = next(p for p in folder if p.startswith("outcomes/") and folder[p].endswith(b"prose\n"))
    folder[path] = folder[path].removesuffix(b"\n")
    # Once, what a run had in its hands was exported as that.
    _delivered("Attached", status="leased")(folder)
    taken = import_(small, packed(folder), name="Taken over")
    outcome = path.removeprefix("outcomes/").removesuffix(".md")
    _, prose = small.read(small.board, outcome)
    assert prose.endswith(b"prose")
    letter = next(
        one
        for one in lines_of(unpacked(_export_of(small, taken["id"])), "mail.jsonl")
        if one["subject"] == "Attached"
    )
    assert [one["status"] for one in letter["deliveries"]] == ["queued"]


def test_an_archive_of_too_many_files_or_of_a_large_one_is_refused(
    sample: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tar, "LARGEST_TEXTS", 2_000)
    with pytest.raises(BadInput, match="is too large for what it is"):
        check(sample, tmp_path)
    monkeypatch.setattr(tar, "MOST_ENTRIES", 3)
    with pytest.raises(BadInput, match="more than 3 files"):
        check(sample, tmp_path)


def entry(name: str, **more: Any) -> bytes:
    """An entry as another program would write it."""
    info = tarfile.TarInfo(name)
    content: bytes = more.pop("content", b"")
    kind: Any = more.pop("format", tarfile.USTAR_FORMAT)
    info.size = len(content)
    for field, value in more.items():
        setattr(info, field, value)
    head = info.tobuf(kind)
    return head + content + bytes(-len(content) % 512)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "absolute": (entry("/etc/passwd", content=b"x"), "not a name that an export has"),
    "upward": (entry("files/../../x", content=b"x"), "not a name that an export has"),
    "dots": (entry("..", content=b"x"), "not a name that an export has"),
    "backslash": (entry("files\\..\\x", content=b"x"), "not a name that an export has"),
    "drive": (entry("C:x", content=b"x"), "not a name that an export has"),
    "control": (entry("a\x1b[31m", content=b"x"), "not a name that an export has"),
    "empty": (entry("", content=b"x"), "not a name that an export has"),
    "slashes": (entry("files//x", content=b"x"), "not a name that an export has"),
    "hidden": (entry("files/.git/config", content=b"x"), "not a name that an export has"),
    "symbolic link": (entry("x", type=tarfile.SYMTYPE, linkname="/etc"), "a symbolic link"),
    "hard link": (entry("x", type=tarfile.LNKTYPE, linkname="/etc/passwd"), "a hard link"),
    "device": (entry("x", type=tarfile.CHRTYPE), "a device"),
    "block device": (entry("x", type=tarfile.BLKTYPE), "a device"),
    "pipe": (entry("x", type=tarfile.FIFOTYPE), "a pipe"),
    "sparse": (entry("x", type=tarfile.GNUTYPE_SPARSE), "a sparse file"),
    "long name": (entry("x" * 150, content=b"x", format=tarfile.GNU_FORMAT), "a long name"),
    "extended": (
        entry("x", content=b"x", format=tarfile.PAX_FORMAT, pax_headers={"path": "/etc/x"}),
        "an extended header",
    ),
    "twice": (entry("x", content=b"x") * 2, "x: is in the archive twice"),
    "unknown kind": (entry("x", type=b"Z"), "not a plain file"),
    "folder with bytes": (entry("x/", type=tarfile.DIRTYPE, size=512), "a folder with content"),
    "upward folder": (entry("../x/", type=tarfile.DIRTYPE), "not a name that an export has"),
    "broken sum": (
        b"x" + entry("x", content=b"x")[1:].replace(b"0", b"1", 3),
        "archive is damaged",
    ),
    "not a tar": (b"PK\x03\x04" * 256, "archive is damaged"),
    "huge": (tar.header("x", 8 * 1024**3 - 1), "x: is cut off"),
    "negative": (entry("x")[:124] + b"-0000000001\0" + entry("x")[136:], "archive is damaged"),
    "base 256": (
        entry("x")[:124] + b"\x80" + b"\xff" * 11 + entry("x")[136:],
        "archive is damaged",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_on_both_sides(name: str, tmp_path: Path) -> None:
    archive, reason = HOSTILE[name]
    archive += tar.END
    with pytest.raises(BadInput, match=reason):
        check(archive, tmp_path)
    target = tmp_path / "there" / "unpacked"
    with pytest.raises(BadInput, match=reason if name != "huge" else "ends too early"):
        unpacking._unpack(io.BytesIO(archive), target)
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("kept", [0, 100, 512, 700, 5_000, -1024, -512])
def test_an_archive_that_was_cut_off_is_noticed_on_both_sides(
    kept: int, sample: bytes, tmp_path: Path
) -> None:
    short = sample[:kept] if kept != -512 else sample[:-1000]
    with pytest.raises(BadInput, match=r"too early|cut off"):
        check(short, tmp_path)
    with pytest.raises(BadInput, match="too early"):
        unpacking._unpack(io.BytesIO(short), tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_our_tar_is_everybodys_tar(tmp_path: Path) -> None:
    folder = {"a.txt": b"x" * 700, f"agents/former/{'n' * 64}/{'i' * 36}.md": b"", "b/c": b"y"}
    assert unpacked(packed(folder)) == folder
    theirs = io.BytesIO()
    with tarfile.open(fileobj=theirs, mode="w", format=tarfile.USTAR_FORMAT) as made:
        for path, content in folder.items():
            info = tarfile.TarInfo(f"./{path}")
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    unpacking._unpack(io.BytesIO(theirs.getvalue()), tmp_path / "there")
    assert {
        path.relative_to(tmp_path / "there").as_posix(): path.read_bytes()
        for path in (tmp_path / "there").rglob("*")
        if path.is_file()
    } == folder


# Secrets


@pytest.mark.parametrize(
    "config",
    [
        {"apiKey": "s3"},
        {"API-KEY": "s3"},
        {"x": {"y": [{"access_token": "s3"}]}},
        {"Authorization": "s3"},
        {"env": ["A=s3"]},
        {"ENVIRONMENT": {"A": "s3"}},
        {"httpHeaders": {"A": "s3"}},
        {"db_password": "s3"},
        {"args": ["--password", "s3"]},
        {"args": ["--client-secret=s3"]},
        {"line": "OPENAI_API_KEY=s3"},
        {"inner": json.dumps({"token": "s3"})},
        {"pin": 1, "privateKey": "s3"},
        {"key": "s3"},
        {"url": "postgresql://me:s3@host/db"},
        {"header": "Bearer s3aaaaaaaaaaaaaaaa"},
        {"github": "ghp_s3aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"aws": "AKIAS3AAAAAAAAAAAAAA".replace("S3", "S3")},
        {"ghp_s3aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": 1},
        {"connection": {"dsn": "s3"}},
        {"credentials": {"a": "s3"}},
    ],
)
def test_what_looks_like_a_secret_is_taken_out_and_named(config: dict[str, Any]) -> None:
    clean, removed = without_secrets(config)
    assert "s3" not in json.dumps(clean).lower()
    assert removed
    assert "s3" not in json.dumps(removed).lower()
    assert without_secrets(clean) == (clean, removed)


def test_ordinary_settings_stay() -> None:
    config = {
        "model": "large",
        "max_tokens": 4096,
        "maxTokens": 5,
        "tokenBudget": 7,
        "command": ["python", "-m", "worker", "--verbose"],
        "monkey": "yes",
        "keyboard": "qwerty",
        "author": "me",
        "url": "https://example.org/a?b=c",
        "secret": False,
        "token": None,
        "env": {},
        "text": "{not json",
        "nested": {"list": [1, 2.5, None, True, "a=b"]},
    }
    assert without_secrets(config) == (config, [])


def test_settings_of_any_depth_are_looked_through() -> None:
    deep: Any = {"password": "s3"}
    for _ in range(500):
        deep = [deep]
    clean, removed = without_secrets(deep)
    assert "s3" not in str(clean)
    assert removed


# Over HTTP and on the command line


def test_a_company_travels_over_http(tmp_path: Path, sample: bytes, database_url: str) -> None:
    with serving(tmp_path / "home", database_url) as running:
        board = running.board
        (mine,) = board.must("GET", "/api/companies")
        board.must("PATCH", f"/api/companies/{mine['id']}", {"name": "Theirs"})
        sent = {"Content-Type": "application/x-tar", "Idempotency-Key": "k"}
        made = board.must("POST", "/api/companies/import", body=sample, headers=sent)
        assert made["name"] == "My company"
        assert board.must("POST", "/api/companies/import", body=sample, headers=sent) == made
        assert made["awaitsAcceptance"] is True
        here = f"/api/companies/{made['id']}"
        assert board("POST", f"{here}/go").code == "not_accepted"
        shown = board.must("GET", f"{here}/acceptance")
        assert shown["awaits"] is True
        wrong = board("POST", f"{here}/acceptance", {"digest": "0" * 64})
        assert (wrong.status, wrong.code) == (409, "stale_revision")
        assert board("POST", f"{here}/acceptance", {}).status == 422
        accepted = board.must("POST", f"{here}/acceptance", {"digest": shown["digest"]})
        assert accepted["accepted"] is True
        assert board.must("GET", f"{here}/halts") == []
        target = f"{here}/export"
        answer = board("GET", target)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/x-tar"
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert unpacked(answer.body)["grants.jsonl"] == unpacked(sample)["grants.jsonl"]
        chunked = board("POST", "/api/companies/import", body=iter([sample[:5000], sample[5000:]]))
        assert (chunked.status, chunked.code) == (409, "conflict")
        assert board("POST", "/api/companies/import", {"a": 1}).status == 422
        assert board("POST", "/api/companies/import", body=b"").code == "invalid"
        key = board.must("POST", f"/api/agents/{_root(board, mine['id'])}/keys", {})["token"]
        assert running.client(key)("GET", target).status == 404
        own = f"/api/companies/{mine['id']}/export"
        assert running.client(key)("GET", own).code == "board_only"
        assert running.client(key)("POST", "/api/companies/import", body=sample).status == 403
        assert running.client()("GET", target).status == 401


def _root(board: Any, company: str) -> str:
    (agent,) = board.must("GET", f"/api/companies/{company}/agents")
    return str(agent["id"])


def test_an_archive_over_the_limit_is_too_large(tmp_path: Path, sample: bytes) -> None:
    with serving(tmp_path) as running:
        running.app.archive.largest = 10_000
        answer = running.board("POST", "/api/companies/import", body=iter([sample]))
        assert (answer.status, answer.code) == (413, "too_large")


def test_the_limit_of_an_import_is_a_setting(tmp_path: Path) -> None:
    home = {"REMIT_HOME": str(tmp_path)}
    assert load_settings(home).largest_import is None
    assert load_settings({**home, "REMIT_LARGEST_IMPORT": "4096"}).largest_import == 4096
    for wrong in ("-1", "4 GiB", "²", "9" * 9):
        with pytest.raises(BadInput, match="largest_import"):
            load_settings({**home, "REMIT_LARGEST_IMPORT": wrong})
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path) as company:
        assert company.app.archive.largest == 2 * 1024**3


def test_a_file_larger_than_the_instance_takes_is_named(tmp_path: Path) -> None:
    home = tmp_path / "first"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        made = company.file(company.board, b"x" * 5000, "large")
        archive = export(company)
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "other") as other:
        other.app.library.largest = 4000
        with pytest.raises(TooLarge, match=f"files/{made['id']}/v1"):
            import_(other, archive, name="Copy")


@pytest.mark.slow
def test_a_folder_is_made_by_one_command_and_read_by_another(remit: Home, tmp_path: Path) -> None:
    company = remit.json("company", "create", "Acme")
    config = ("--adapter", "process", "--config", '{"command": "a", "env": {"KEY": "canary"}}')
    remit.json("--company", "Acme", "agent", "create", "lead", *config)
    folder = tmp_path / "deep" / "acme"
    done = remit("--company", "Acme", "company", "export", str(folder))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Acme is in {folder} (")
    assert (folder / "agents" / "lead.md").read_text().startswith("+++\nid = ")
    assert not any(b"canary" in file.read_bytes() for file in folder.rglob("*") if file.is_file())
    again = remit("--company", "Acme", "company", "export", str(folder))
    refused(again, 4, "is not empty")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    assert (folder / "setup.toml").read_text() == "\n"
    (folder / "setup.toml").write_text('[[repos]]\nname = "site"\n')
    refused(remit("company", "import", str(folder)), 4, company["id"])

    elsewhere = Home(tmp_path / "home")
    with elsewhere.start("up", "--port", "0", "--json") as instance:
        assert instance.stdout is not None
        while instance.stdout.readline() != b"}\n":
            pass
        made = elsewhere("company", "import", str(folder), "--name", "Acme again")
        assert made.code == 0, made.err
        assert "give again what was taken out: env.KEY" in made.err
        assert f"`remit apply {folder / 'setup.toml'} --dry-run`" in made.err
        assert "`remit company accept 'Acme again'` shows what it would run" in made.out
        assert {one["name"] for one in elsewhere.json("company", "list")} >= {"Acme again"}
        _accept_by_command(elsewhere)
        back = tmp_path / "back"
        answer = elsewhere.json("--company", "Acme again", "company", "export", str(back))
        assert answer["files"] == len([one for one in back.rglob("*") if one.is_file()])
        same = (folder / "agents" / "lead.md").read_bytes()
        assert (back / "agents" / "lead.md").read_bytes() == same
        instance.terminate()
        instance.wait(30)


def _accept_by_command(elsewhere: Home) -> None:
    """The preview, the ways in which nothing is accepted, and the one in which it is."""
    seen = elsewhere("company", "accept", "Acme again", "--dry-run")
    assert seen.code == 0, seen.err
    assert "  program: command: a" in seen.out.splitlines()
    digest = seen.out.splitlines()[-1].removeprefix("Digest: ")
    refused(elsewhere("company", "accept", "Acme again"), 2, "Nobody can be asked to accept it.")
    other = elsewhere("company", "accept", "Acme again", "--digest", "0" * 64)
    refused(other, 4, "is not as it was shown to you")
    refused(elsewhere("--company", "Acme again", "go"), 4, "nobody has accepted it")
    (needed,) = (one for one in elsewhere.json("needs-you") if one["kind"] == "acceptance")
    assert needed["next"] == "remit company accept 'Acme again'"
    assert "came from outside" in elsewhere("status").out
    done = elsewhere("company", "accept", "Acme again", "--digest", digest)
    assert done.out == "Acme again is accepted, and its work starts.\n"
    again = elsewhere("company", "accept", "Acme again", "--yes")
    refused(again, 4, "does not wait to be accepted")
    assert "came from outside" not in elsewhere("status").out


@pytest.mark.slow
def test_the_command_line_takes_no_links_and_no_other_folders(remit: Home, tmp_path: Path) -> None:
    refused(remit("company", "import", str(tmp_path)), 2, "has no company.toml")
    (tmp_path / "company.toml").write_text("format = 1\n")
    (tmp_path / "grants.jsonl").symlink_to("/etc/passwd")
    refused(remit("company", "import", str(tmp_path)), 2, "is not a plain file")
    (tmp_path / "grants.jsonl").unlink()
    refused(remit("company", "import", str(tmp_path)), 2, "company.toml: name is refused")
    (tmp_path / "ä ö").write_text("x")
    refused(remit("company", "import", str(tmp_path)), 2, "not a name that an export has")


@pytest.mark.slow
def test_a_drawing_is_written_by_the_command_line(remit: Home, tmp_path: Path) -> None:
    company = remit.json("company", "create", "Drawn")
    remit.json("--company", "Drawn", "agent", "create", "lead", "--purpose", "Lead <them>")
    file = tmp_path / "outcomes.svg"
    done = remit("--company", "Drawn", "outcome", "graph", "--svg", str(file))
    assert "2 outcomes (2 open) in Drawn." in done.out
    assert "Lead &lt;them&gt;" in file.read_text()
    summary = remit("--company", company["id"], "outcome", "graph", "lead").out
    assert "--svg FILE" in summary
    assert "Lead <them>" in summary
    found = remit.json("--company", "Drawn", "outcome", "graph")
    assert is_id(found["nodes"][0]["id"])
    missing = remit("--company", "Drawn", "outcome", "graph", "nobody")
    assert missing.code == 3
