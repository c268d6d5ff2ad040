"""The knowledge base, on both databases."""

import hashlib
import io
import os
import unicodedata
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, to_iso
from remit.errors import (
    BadInput,
    Conflict,
    NotFound,
    Refused,
    RemitError,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from remit.ids import TokenKind, new_token
from remit.runtime.runs.workspace import open_inside
from remit.services.execution import runs
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.rights import grants
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, keyed, opened
from tests.governance import statements_counted


@pytest.fixture
def reader(company: Company) -> Member:
    return company.agent("reader")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def refusal(attempt: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        attempt()
    return refused.value.reason


# ── files and levels ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-01", "AG-20")
def test_a_new_file_has_an_id_a_description_and_its_first_version(company: Company) -> None:
    made = company.file(company.ceo.caller, b"hello", "  How we greet ")
    assert made["description"] == "How we greet"
    assert (made["version"], made["hash"], made["size"]) == (1, sha256(b"hello"), 5)
    shown = company.call(company.ceo.caller, files.show, file=made["id"])
    assert (shown["id"], shown["level"]) == (made["id"], "write")


@pytest.mark.requirement("AG-01", "AG-20")
@pytest.mark.parametrize("description", ["", "  ", "x" * 2001, "a\x00", "\udcff", None, 7])
def test_a_file_needs_a_proper_description(company: Company, description: Any) -> None:
    with pytest.raises(BadInput):
        company.file(company.ceo.caller, b"x", description)
    assert company.found(company.board) == []


@pytest.mark.requirement("AG-02", "AG-03", "AG-53")
def test_without_a_grant_a_file_is_known_and_its_contents_are_refused(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"secret", "salaries")
    shown = company.call(reader.caller, files.show, file=file["id"])
    assert (shown["description"], shown["level"]) == ("salaries", "none")
    assert "links" not in shown
    for attempt in (
        lambda: company.read(reader.caller, file["id"]),
        lambda: company.read(reader.caller, file["id"], 1),
        lambda: company.write(reader.caller, file, b"x"),
        lambda: company.call(reader.caller, files.history, file=file["id"]),
        lambda: company.call(reader.caller, files.accesses, file=file["id"]),
        lambda: company.call(reader.caller, files.describe, file=file["id"], description="x"),
    ):
        assert refusal(attempt) == "no_capability"


def listed(company: Company, reader: Member) -> list[str]:
    """The ids of what an agent lists, besides its own memory and log."""
    found = company.call(reader.caller, files.listing, company=None)
    return [file["id"] for file in found if file["kind"] == "file"]


@pytest.mark.requirement("AG-02", "AG-03")
def test_an_explicit_none_shows_the_description_and_nothing_more(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"secret", "salaries")
    company.give(company.ceo.caller, reader, file, "none")
    assert company.call(reader.caller, files.show, file=file["id"])["level"] == "none"
    assert refusal(lambda: company.read(reader.caller, file["id"])) == "no_capability"
    assert listed(company, reader) == []


@pytest.mark.requirement("AG-02", "AG-04")
def test_read_gives_the_contents_and_refuses_changes(company: Company, reader: Member) -> None:
    file = company.file(company.ceo.caller, b"text", "plan")
    company.give(company.ceo.caller, reader, file, "read")
    view, content = company.read(reader.caller, file["id"])
    assert (view["description"], content) == ("plan", b"text")
    assert refusal(lambda: company.write(reader.caller, file, b"x")) == "no_capability"
    attempt = lambda: company.call(reader.caller, files.describe, file=file["id"], unlisted=True)  # noqa: E731
    assert refusal(attempt) == "no_capability"
    assert company.read(company.ceo.caller, file["id"])[1] == b"text"


@pytest.mark.requirement("AG-02", "AG-05")
def test_write_gives_reading_and_new_versions(company: Company, reader: Member) -> None:
    file = company.file(company.ceo.caller, b"one", "plan")
    company.give(company.ceo.caller, reader, file, "write")
    assert company.read(reader.caller, file["id"])[1] == b"one"
    written = company.write(reader.caller, file, b"two")
    assert (written["version"], written["hash"]) == (2, sha256(b"two"))
    assert company.read(company.ceo.caller, file["id"])[1] == b"two"


@pytest.mark.requirement("AG-18")
def test_a_read_tells_the_version_and_hash_that_a_write_needs(company: Company) -> None:
    file = company.file(company.ceo.caller, b"one")
    view, content = company.read(company.ceo.caller, file["id"])
    assert (view["version"], view["hash"], content) == (1, sha256(b"one"), b"one")
    assert company.write(company.ceo.caller, view, b"two")["version"] == 2


# ── grants and time ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-06", "AG-14")
def test_a_grant_counts_from_the_next_call_on_and_so_does_its_end(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"text")
    run = company.run(reader)
    for _ in range(2):
        assert refusal(lambda: company.read(run.caller, file["id"])) == "no_capability"
        grant = company.give(company.ceo.caller, reader, file, "read")
        assert company.read(run.caller, file["id"])[1] == b"text"
        company.call(company.ceo.caller, grants.revoke, grant=grant["id"])
    assert refusal(lambda: company.read(run.caller, file["id"])) == "no_capability"


@pytest.mark.requirement("AG-06")
def test_an_expired_grant_ends_between_two_calls(database_url: str, tmp_path: Path) -> None:
    clock = VirtualClock()
    with opened(database_url, tmp_path / "home", clock) as company:
        reader = company.agent("reader")
        file = company.file(company.ceo.caller, b"text")
        ends = to_iso(clock.now() + HOUR)
        company.give(company.ceo.caller, reader, file, "read", expires_at=ends)
        clock.advance(HOUR - 1)
        assert company.read(reader.caller, file["id"])[1] == b"text"
        clock.advance(1)
        assert refusal(lambda: company.read(reader.caller, file["id"])) == "no_capability"
        assert listed(company, reader) == []


@pytest.mark.requirement("AG-06", "AG-14", "BX-01")
def test_a_call_under_way_when_its_grant_ends_happened_before_or_is_refused(
    company: Company, reader: Member
) -> None:
    """Writes race with a revocation; in the record none comes after it."""
    library = company.app.library
    for turn in range(4):
        file = company.file(company.ceo.caller, b"0")
        grant = company.give(company.ceo.caller, reader, file, "write")

        async def one(n: int, file: Any = file) -> str:
            try:
                await library.write(
                    reader.caller,
                    b"%d" % n,
                    file=file["id"],
                    version=file["version"],
                    sha256=file["hash"],
                )
            except RemitError as error:
                return error.reason
            return "written"

        async def revoke(grant: Any = grant) -> str:
            await company.app.gate(company.ceo.caller, grants.revoke, grant=grant["id"])
            return "revoked"

        work = [one(n) for n in range(12)]
        work.insert(3 * turn, revoke())
        outcomes = company.together(work)
        assert set(outcomes) <= {"written", "revoked", "conflict", "no_capability"}
        history = company.call(company.ceo.caller, files.history, file=file["id"])
        assert len(history) == 1 + outcomes.count("written")
        log = company.call(company.board, events.listing, company=company.id, limit=200)
        revoked = next(e["seq"] for e in log if e["resource"] == f"grant:{grant['id']}")
        writes = [
            e["seq"]
            for e in log
            if e["resource"] == f"kb_file:{file['id']}" and e["action"] == "file.write"
        ]
        allowed = {e["seq"]: e["allowed"] for e in log}
        assert all(seq < revoked for seq in writes if allowed[seq])
        assert all(seq > revoked for seq in writes if not allowed[seq])


# ── versions ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-07")
def test_a_version_is_a_blob_named_by_its_hash_in_a_folder_named_by_its_file(
    company: Company,
) -> None:
    file = company.file(company.ceo.caller, b"one")
    company.write(company.ceo.caller, file, b"two")
    stored = {
        path.name: path.read_bytes()
        for path in (company.home / "blobs").rglob("*")
        if path.is_file() and path.parent.name == file["id"]
    }
    assert stored == {sha256(b"one"): b"one", sha256(b"two"): b"two"}
    rows = company.sql(
        "SELECT number, sha256 FROM file_versions WHERE file_id = ? ORDER BY number", file["id"]
    )
    assert rows == [(1, sha256(b"one")), (2, sha256(b"two"))]


@pytest.mark.requirement("AG-08", "AG-21", "AG-22")
def test_history_has_number_hash_time_and_author_and_each_version_can_be_read(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"one")
    company.give(company.ceo.caller, reader, file, "write")
    assert isinstance(company.clock, VirtualClock)
    company.clock.advance(HOUR)
    run = company.run(reader)
    second = company.write(run.caller, file, b"two")
    company.write(company.board, second, b"one")
    history = company.call(reader.caller, files.history, file=file["id"])
    assert [(v["number"], v["hash"]) for v in history] == [
        (3, sha256(b"one")),
        (2, sha256(b"two")),
        (1, sha256(b"one")),
    ]
    assert [bool(v["user_id"]) for v in history] == [True, False, False]
    assert (history[1]["agent_id"], history[1]["run_id"]) == (reader.id, run.id)
    assert history[2]["agent_id"] == company.ceo.id
    assert history[2]["at"] < history[1]["at"]
    for number, content in ((1, b"one"), (2, b"two"), (3, b"one")):
        view, found = company.read(reader.caller, file["id"], number)
        assert (view["version"], view["current_version"], found) == (number, 3, content)
    assert company.call(reader.caller, files.history, file=file["id"], before=2, limit=5) == [
        history[2]
    ]


@pytest.mark.requirement("AG-22")
@pytest.mark.parametrize("version", [0, -1, 2, 2**31, 2**70, "1", 1.0, True])
def test_a_version_that_does_not_exist_is_an_error(company: Company, version: Any) -> None:
    file = company.file(company.ceo.caller)
    with pytest.raises((NotFound, BadInput)):
        company.read(company.ceo.caller, file["id"], version)


@pytest.mark.requirement("AG-09", "AG-19")
@pytest.mark.parametrize(
    ("version", "digest"),
    [(None, None), (1, None), (None, sha256(b"one")), ("1", sha256(b"one")), (True, "x")],
)
def test_an_overwrite_must_name_the_version_and_hash(
    company: Company, version: Any, digest: Any
) -> None:
    file = company.file(company.ceo.caller, b"one")
    with pytest.raises(BadInput):
        company.write(
            company.ceo.caller, {"id": file["id"], "version": version, "hash": digest}, b"two"
        )
    assert company.read(company.ceo.caller, file["id"])[1] == b"one"


@pytest.mark.requirement("AG-09", "AG-10")
@pytest.mark.parametrize(
    ("version", "digest"), [(1, sha256(b"one")), (2, sha256(b"one")), (1, sha256(b"two")), (3, "")]
)
def test_a_stale_overwrite_changes_nothing_and_tells_the_current_pair(
    company: Company, version: int, digest: str
) -> None:
    first = company.file(company.ceo.caller, b"one")
    company.write(company.ceo.caller, first, b"two")
    before = company.call(company.board, events.verify, company=company.id)
    with pytest.raises(Conflict) as conflict:
        company.write(
            company.ceo.caller, {"id": first["id"], "version": version, "hash": digest}, b"three"
        )
    assert conflict.value.reason == "conflict"
    assert conflict.value.details == {"version": 2, "hash": sha256(b"two")}
    assert len(company.call(company.ceo.caller, files.history, file=first["id"])) == 2
    assert company.call(company.board, events.verify, company=company.id) == before


@pytest.mark.requirement("AG-09", "AG-10")
def test_of_64_writers_one_wins_each_version_and_the_others_learn_the_current_pair(
    company: Company, reader: Member
) -> None:
    current = company.file(company.ceo.caller, b"start")
    company.give(company.ceo.caller, reader, current, "write")
    library = company.app.library
    contents = {1: b"start"}
    for turn in range(3):
        seen = dict(current)
        work = [
            library.write(
                company.ceo.caller if n % 2 else reader.caller,
                b"round %d writer %d" % (turn, n),
                file=seen["id"],
                version=seen["version"],
                sha256=seen["hash"],
            )
            for n in range(64)
        ]
        answers = company.together(work)
        winners = [answer for answer in answers if isinstance(answer, dict)]
        assert len(winners) == 1
        current = winners[0]
        assert current["version"] == seen["version"] + 1
        contents[current["version"]] = b"round %d writer %d" % (turn, answers.index(current))
        for answer in answers:
            if answer is not current:
                assert isinstance(answer, Conflict)
                assert answer.reason == "conflict"
                assert answer.details == {"version": current["version"], "hash": current["hash"]}
    history = company.call(company.ceo.caller, files.history, file=current["id"])
    assert [version["number"] for version in history] == [4, 3, 2, 1]
    for number, content in contents.items():
        assert company.read(company.ceo.caller, current["id"], number)[1] == content


@pytest.mark.requirement("AG-11")
def test_many_readers_at_once_all_read_and_are_all_on_record(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"text")
    company.give(company.ceo.caller, reader, file, "read")
    library = company.app.library
    work = [library.read(reader.caller, file=file["id"]) for _ in range(100)]
    answers = company.together(work)
    assert [answer[1] for answer in answers if isinstance(answer, tuple)] == [b"text"] * 100
    log = company.call(reader.caller, files.accesses, file=file["id"], limit=500)
    assert [entry["access"] for entry in log].count("read") == 100


@pytest.mark.requirement("AG-11")
def test_who_reads_does_not_take_the_company_s_turn(
    company: Company, reader: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes something holds the head of the record; readers do not even look at it."""
    file = company.file(company.ceo.caller, b"text")
    company.give(company.ceo.caller, reader, file, "read")
    for read in (
        lambda: company.read(reader.caller, file["id"]),
        lambda: company.call(reader.caller, files.show, file=file["id"]),
        lambda: company.found(reader.caller, "notes"),
    ):
        with statements_counted(monkeypatch) as run:
            read()
        assert run
        assert not [one for one in run if "event_heads" in one]


def test_two_changes_of_a_description_at_once_lose_nothing(company: Company) -> None:
    for _ in range(5):
        file = company.file(company.ceo.caller, b"x", "before")
        gate = company.app.gate
        company.together(
            [
                gate(company.ceo.caller, files.describe, file=file["id"], description="after"),
                gate(company.ceo.caller, files.describe, file=file["id"], unlisted=True),
            ]
        )
        shown = company.call(company.ceo.caller, files.show, file=file["id"])
        assert (shown["description"], shown["unlisted"]) == ("after", True)


# ── contents ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-18")
@pytest.mark.parametrize(
    "content",
    [b"", b"\x00", bytes(range(256)) * 5, "ümläut 🎉".encode(), b"\xff\xfe", b"x" * 65_537],
    ids=["empty", "nul", "binary", "unicode", "invalid", "large"],
)
def test_every_content_comes_back_as_it_was(company: Company, content: bytes) -> None:
    file = company.file(company.ceo.caller, content)
    assert company.read(company.ceo.caller, file["id"])[1] == content
    second = company.write(company.ceo.caller, file, content + b"!")
    assert company.read(company.ceo.caller, file["id"])[1] == content + b"!"
    third = company.write(company.ceo.caller, second, content)
    assert company.read(company.ceo.caller, file["id"])[1] == content
    assert (third["version"], third["hash"], third["size"]) == (3, sha256(content), len(content))


async def pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.mark.requirement("AG-18")
@pytest.mark.slow
def test_20_mib_go_in_and_come_out_whether_whole_or_as_they_arrive(company: Company) -> None:
    content = os.urandom(20 * 1024 * 1024)
    library, me = company.app.library, company.ceo.caller
    for source in (content, io.BytesIO(content), pieces(content, 700_001)):
        made = company.wait(library.create(me, source, company=None, description="a lot of data"))
        assert company.read(me, made["id"])[1] == content


@pytest.mark.requirement("AG-20")
def test_more_than_32_mib_is_refused_and_leaves_nothing_behind(company: Company) -> None:
    library, me = company.app.library, company.ceo.caller
    small = company.file(me, b"small")
    too_much = bytes(33 * 1024 * 1024)
    for source in (too_much, io.BytesIO(too_much), pieces(too_much, 1 << 20)):
        with pytest.raises(TooLarge):
            company.wait(library.create(me, source, company=None, description="too much"))
    with pytest.raises(TooLarge):
        company.write(me, small, too_much)
    assert company.found(me) == [small["id"]]
    left = [path for path in (company.home / "blobs").rglob("*") if path.is_file()]
    assert [path.name for path in left] == [sha256(b"small")]


# ── workspaces ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-12", "AG-13", "AG-19", "AG-20", "AG-43")
def test_a_run_imports_files_of_its_workspace_as_versions(company: Company, reader: Member) -> None:
    run = company.run(reader)
    assert company.call(run.caller, runs.workspace) == str(run.workspace)
    (run.workspace / "report.md").write_bytes(b"draft")
    library = company.app.library
    with open_inside(run.workspace, "report.md") as stream:
        made = company.wait(library.create(run.caller, stream, company=None, description="report"))
    (run.workspace / "report.md").write_bytes(b"final")
    with open_inside(run.workspace, "report.md") as stream:
        written = company.wait(
            library.write(run.caller, stream, file=made["id"], version=1, sha256=sha256(b"draft"))
        )
    assert written["version"] == 2
    (run.workspace / "report.md").write_bytes(b"scribbled over")
    assert company.read(reader.caller, made["id"], 2)[1] == b"final"
    log = company.call(reader.caller, files.accesses, file=made["id"])
    assert [(e["access"], e["agent_id"], e["run_id"]) for e in log] == [
        ("read", reader.id, None),
        ("write", reader.id, run.id),
        ("write", reader.id, run.id),
    ]


@pytest.mark.requirement("AG-12")
def test_a_workspace_does_not_lead_to_the_blobs(company: Company, reader: Member) -> None:
    company.file(company.ceo.caller, b"secret")
    blob = next(path for path in (company.home / "blobs").rglob("*") if path.is_file())
    run = company.run(reader)
    (run.workspace / "link").symlink_to(blob)
    (run.workspace / "folder").symlink_to(blob.parent)
    os.link(blob, run.workspace / "hard")
    for path in ("link", f"folder/{blob.name}", "hard", str(blob), f"../../../blobs/{blob.name}"):
        with pytest.raises(BadInput):
            open_inside(run.workspace, path)
    assert not run.workspace.is_relative_to(company.home / "blobs")
    # Nobody but the instance's own user gets at what is stored.
    assert company.home.stat().st_mode & 0o077 == 0


def test_a_token_without_a_run_has_no_workspace(company: Company) -> None:
    assert company.call(company.ceo.caller, runs.workspace) is None
    assert company.call(company.board, runs.workspace) is None


# ── who did what ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-15", "AG-43")
def test_the_access_log_names_agent_run_user_version_and_time(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"one")
    company.give(company.ceo.caller, reader, file, "read")
    run = company.run(reader)
    company.write(company.ceo.caller, file, b"two")
    assert isinstance(company.clock, VirtualClock)
    company.clock.advance(HOUR)
    company.read(run.caller, file["id"], 1)
    company.read(company.board, file["id"])
    refusal(lambda: company.write(run.caller, file, b"x"))
    log = company.call(reader.caller, files.accesses, file=file["id"])
    assert [(e["access"], e["version"], e["agent_id"], e["run_id"]) for e in log] == [
        ("read", 2, None, None),
        ("read", 1, reader.id, run.id),
        ("write", 2, company.ceo.id, None),
        ("write", 1, company.ceo.id, None),
    ]
    assert log[0]["user_id"] is not None
    assert log[1]["at"] > log[2]["at"]
    older = company.call(
        reader.caller, files.accesses, file=file["id"], before=log[1]["id"], limit=1
    )
    assert older == [log[2]]


@pytest.mark.requirement("AG-16")
def test_the_listing_has_what_one_can_read_or_write_and_nothing_else(
    company: Company, reader: Member
) -> None:
    made = [company.file(company.ceo.caller, b"x", f"file {n}") for n in range(4)]
    company.give(company.ceo.caller, reader, made[0], "read")
    company.give(company.ceo.caller, reader, made[1], "write")
    company.give(company.ceo.caller, reader, made[2], "none")
    denied = company.give(company.board, reader, made[1], "write", mode="deny")
    own = company.file(reader.caller, b"own", "own")

    def listed(**paging: Any) -> list[tuple[str, str]]:
        found = company.call(reader.caller, files.listing, company=None, **paging)
        return [(file["id"], file["level"]) for file in found if file["kind"] == "file"]

    books = company.call(reader.caller, files.listing, company=None, limit=2)
    kinds = [(book["kind"], book["level"]) for book in books]
    assert kinds == [("state", "write"), ("log", "read")]
    assert listed() == [(made[0]["id"], "read"), (made[1]["id"], "read"), (own["id"], "write")]
    company.call(company.board, grants.revoke, grant=denied["id"])
    assert listed() == [(made[0]["id"], "read"), (made[1]["id"], "write"), (own["id"], "write")]
    assert listed(limit=3) == [(made[0]["id"], "read")]
    assert listed(after=made[1]["id"]) == [(own["id"], "write")]


# ── links ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-23")
def test_links_name_files_and_web_addresses_stay_as_they_are(company: Company) -> None:
    target = company.file(company.ceo.caller, b"target", "target")
    missing = company.app.ids.new()
    text = (
        f"See kb://{target['id']} and kb://{target['id'].upper()}, also kb://{missing}, "
        f"https://example.com/{target['id']} and kb://not-an-id."
    ).encode()
    source = company.file(company.ceo.caller, text, "source")
    shown = company.call(company.ceo.caller, files.show, file=source["id"])
    assert shown["links"] == sorted([target["id"], missing])
    assert company.read(company.ceo.caller, source["id"])[1] == text
    back = company.call(company.ceo.caller, files.show, file=f"kb://{target['id']}")
    assert back["linked_from"] == [{"id": source["id"], "description": "source"}]
    company.write(company.ceo.caller, source, b"no links any more")
    back = company.call(company.ceo.caller, files.show, file=target["id"])
    assert back["linked_from"] == []


@pytest.mark.requirement("AG-23", "AG-03")
def test_who_links_here_does_not_betray_unlisted_files(company: Company, reader: Member) -> None:
    target = company.file(company.ceo.caller, b"target", "target")
    text = f"kb://{target['id']}".encode()
    hidden = company.file(company.ceo.caller, text, "hidden", unlisted=True)
    listed = company.file(company.ceo.caller, text, "listed")

    def sources(caller: Caller) -> list[str]:
        shown = company.call(caller, files.show, file=target["id"])
        return [source["id"] for source in shown["linked_from"]]

    assert sources(reader.caller) == [listed["id"]]
    assert sources(company.ceo.caller) == [hidden["id"], listed["id"]]
    company.give(company.ceo.caller, reader, hidden, "read")
    assert sources(reader.caller) == [hidden["id"], listed["id"]]
    company.give(company.board, reader, hidden, "read", mode="deny")
    assert sources(reader.caller) == [listed["id"]]


# ── unlisted files ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-03")
def test_an_unlisted_file_exists_for_its_readers_and_writers_alone(
    company: Company, reader: Member
) -> None:
    file = company.file(company.ceo.caller, b"merger", "merger plans", unlisted=True)
    for attempt in (
        lambda: company.call(reader.caller, files.show, file=file["id"]),
        lambda: company.call(reader.caller, files.show, file=file["id"][:23]),
        lambda: company.read(reader.caller, file["id"]),
        lambda: company.write(reader.caller, file, b"x"),
        lambda: company.call(reader.caller, files.history, file=file["id"]),
        lambda: company.call(reader.caller, files.accesses, file=file["id"]),
        lambda: company.call(reader.caller, files.describe, file=file["id"], unlisted=False),
        lambda: company.give(reader.caller, reader, file, "read"),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert company.found(reader.caller) == company.found(reader.caller, "merger") == []
    company.give(company.ceo.caller, reader, file, "read")
    assert company.found(reader.caller) == company.found(reader.caller, "merger") == [file["id"]]
    assert company.call(reader.caller, files.show, file=file["id"][:23])["id"] == file["id"]
    assert refusal(lambda: company.write(reader.caller, file, b"x")) == "no_capability"


def test_what_somebody_elses_outcome_says_is_as_absent_as_a_file_that_is_not(
    small: Company,
) -> None:
    one, other = small.agent("one"), small.agent("other")
    told = []
    for id_ in (other.id, small.app.ids.new()):
        with pytest.raises(NotFound) as refused:
            small.call(one.caller, files.show, file=id_)
        told.append((refused.value.sentence, refused.value.step, refused.value.what))
    assert told[0] == told[1] == ("There is no such file.", NotFound.next_step, "file")


@pytest.mark.requirement("AG-03")
@pytest.mark.parametrize("level", ["none", "read"])
def test_an_unlisted_file_is_hidden_again_from_whom_the_board_denies_it(
    company: Company, reader: Member, level: str
) -> None:
    file = company.file(company.ceo.caller, b"merger", "merger plans", unlisted=True)
    company.give(company.ceo.caller, reader, file, "write")
    denied = company.give(company.board, reader, file, level, mode="deny")
    assert company.found(reader.caller) == company.found(reader.caller, "merger") == []
    for name in (file["id"], file["id"][:23]):
        with pytest.raises(NotFound):
            company.call(reader.caller, files.show, file=name)
    company.call(company.board, grants.revoke, grant=denied["id"])
    assert company.found(reader.caller, "merger") == [file["id"]]


@pytest.mark.requirement("AG-03")
def test_a_file_can_be_hidden_and_listed_again(company: Company, reader: Member) -> None:
    file = company.file(company.ceo.caller, b"x", "plans")
    company.call(company.ceo.caller, files.describe, file=file["id"], unlisted=True)
    assert company.found(reader.caller, "plans") == []
    company.call(
        company.ceo.caller, files.describe, file=file["id"], description="ideas", unlisted=False
    )
    assert company.found(reader.caller, "plans") == []
    assert company.found(reader.caller, "ideas") == [file["id"]]
    assert company.read(company.ceo.caller, file["id"])[0]["version"] == 1


# ── search ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-17")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("strategy", ["plan", "old"]),
        ("STRATEGY", ["plan", "old"]),
        ("strat", ["plan", "old"]),
        ("strategy 2027", ["plan"]),
        ("2027 strategy", ["plan"]),
        ("trategy", []),
        ("resume", ["cv"]),
        ("Résumé", ["cv"]),
        (unicodedata.normalize("NFD", "résumé"), ["cv"]),
        ("STRASSE", ["street"]),
        ("straße", ["street"]),
        ("東京", ["tokyo"]),
        ("東", ["tokyo"]),
        ("".join(chr(ord(c) + 0xFEE0) for c in "strategy"), ["plan", "old"]),
        ("snake_case", ["snake"]),
        ("case", ["snake"]),
        ("3.14", ["pi"]),
        ("1e5", ["pi"]),
        ("strategy nothing", []),
    ],
)
def test_search_finds_the_same_on_both_databases(
    company: Company, reader: Member, words: str, expected: list[str]
) -> None:
    made = {
        name: company.file(company.ceo.caller, b"x", description)["id"]
        for name, description in {
            "old": "strategy",
            "plan": "strategy for 2027",
            "cv": "Résumé of the founder",
            "street": "Große Straße 5",
            "tokyo": "東京都 office",
            "snake": "a snake_case name",
            "pi": "3.14 is pi, 1e5 is not",
        }.items()
    }
    names = {value: name for name, value in made.items()}
    assert sorted(names[found] for found in company.found(reader.caller, words)) == sorted(expected)


@pytest.mark.requirement("AG-17")
def test_search_puts_the_better_match_first(company: Company, reader: Member) -> None:
    once = company.file(company.ceo.caller, b"x", "budget alpha beta gamma")
    thrice = company.file(company.ceo.caller, b"x", "budget budget budget alpha")
    twice = company.file(company.ceo.caller, b"x", "budget budget alpha beta")
    assert company.found(reader.caller, "budget") == [thrice["id"], twice["id"], once["id"]]
    limited = company.call(reader.caller, files.browse, company=None, words="budget", limit=1)
    assert [file["id"] for file in limited] == [thrice["id"]]


@pytest.mark.requirement("AG-17")
def test_among_equal_matches_and_without_words_the_newest_comes_first(
    company: Company, reader: Member
) -> None:
    made = [company.file(company.ceo.caller, b"x", "minutes")["id"] for _ in range(5)]
    assert company.found(reader.caller, "minutes") == made[::-1]
    assert company.found(reader.caller) == made[::-1]
    page = company.call(reader.caller, files.browse, company=None, before=made[3], limit=2)
    assert [file["id"] for file in page] == [made[2], made[1]]


HOSTILE = (
    "\" OR * NEAR( ' : & | ! <->",
    'plans" OR "1"="1',
    "plans OR secret",
    "plans AND NOT words",
    "NEAR(plans, 5)",
    "words:plans",
    "file_id:plans",
    "{words}: plans",
    "plans*",
    "^plans",
    "-plans",
    "plans & !secret",
    "plans <-> secret",
    "'plans':*B",
    "plans:*",
    "\\",
    "'",
    '"',
    "%",
    "(" * 200,
    "㌖" * 500,
    "ﷺ" * 27,
    "x" * 500,
    " ".join(["plans"] * 80),
    "\u202eplans",
    "🎉",
    "a\u0301" * 200,
)


@pytest.mark.requirement("AG-17")
@pytest.mark.parametrize("words", HOSTILE)
def test_search_takes_every_text_as_words_and_never_as_syntax(
    company: Company, reader: Member, words: str
) -> None:
    hidden = company.file(company.ceo.caller, b"x", f"secret {words[:1500]}", unlisted=True)
    listed = company.file(company.ceo.caller, b"x", f"plans {words[:1500]}")
    assert hidden["id"] not in company.found(reader.caller, words)
    # Whatever is in the description can be found by it, unless no word is in it at all.
    readable = unicodedata.normalize("NFKD", words)
    expected = [listed["id"]] if any(char.isalnum() for char in readable) else []
    assert company.found(reader.caller, words) == expected
    assert set(company.found(company.board, words)) == (
        {listed["id"], hidden["id"]} if expected else set()
    )


@pytest.mark.requirement("AG-17")
@pytest.mark.parametrize("words", ["a\x00b", "\ud800", "x" * 501, None, 5])
def test_what_is_not_text_cannot_be_searched_for(company: Company, words: Any) -> None:
    with pytest.raises(BadInput):
        company.call(company.ceo.caller, files.browse, company=None, words=words)


@pytest.mark.requirement("AG-17")
def test_search_shows_the_level_one_has(company: Company, reader: Member) -> None:
    file = company.file(company.ceo.caller, b"x", "plans")
    levels = []
    for level in (None, "read", "write"):
        if level:
            company.give(company.ceo.caller, reader, file, level)
        found = company.call(reader.caller, files.browse, company=None, words="plans")
        levels.append(found[0]["level"])
    assert levels == ["none", "read", "write"]


# ── repeats ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-05", "AG-19", "AG-20")
@pytest.mark.parametrize("size", [5, 100_000])
def test_a_repeated_create_or_write_has_one_effect_and_the_first_answer(
    company: Company, size: int
) -> None:
    content = b"x" * size
    once, again = keyed(company.ceo.caller, "create-1"), keyed(company.ceo.caller, "write-1")
    made = company.file(once, content)
    assert company.file(once, content) == made
    written = company.write(again, made, content + b"!")
    company.write(company.ceo.caller, written, b"later")
    # The file has moved on meanwhile; the repeat still gets the answer it would have got.
    assert company.write(again, made, content + b"!") == written
    short = {**made, "id": f"kb://{made['id']}"}
    assert company.write(again, short, content + b"!") == written
    assert company.found(company.board) == [made["id"]]
    assert len(company.call(company.board, files.history, file=made["id"])) == 3


@pytest.mark.requirement("AG-06", "BX-14")
def test_an_agent_that_was_terminated_reads_nothing_any_more(
    company: Company, reader: Member
) -> None:
    file = company.file(reader.caller, b"own work", "own")
    company.call(company.board, agents.terminate, agent=reader.id)
    with pytest.raises(RemitError) as error:
        company.read(reader.caller, file["id"])
    assert error.value.reason == "unauthenticated"
    assert company.read(company.board, file["id"])[1] == b"own work"


def test_a_refusal_is_said_when_the_bytes_cannot_be_removed(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, removed = company.app.library, list[str]()

    def fail(file_id: str, _sha256: str) -> None:
        removed.append(file_id)
        raise Unavailable("The disk does not answer.")

    monkeypatch.setattr(library.blobs, "discard", fail)
    stranger = Caller(new_token(TokenKind.SESSION))
    with pytest.raises(Unauthenticated):
        company.wait(library.create(stranger, b"x", company=company.id, description="x"))
    assert len(removed) == 1
