"""What a release left behind, for tests of upgrades from it.

`python -m tests.release v0.2.0` makes it with the program that is checked out: an instance with
rows in every table and calls parked for approval, and one in which every changing verb was called
with an idempotency key. It is made once, when the release is tagged, and kept in `tests/releases`.
"""

from __future__ import annotations

import asyncio
import io
import json
import lzma
import shutil
import sqlite3
import sys
import tarfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from remit.app import App
from remit.clock import HOUR
from remit.errors import AwaitsApproval, RemitError
from remit.model.execution.run import FAILURES_TOLD
from remit.services.identity import Caller, as_system
from remit.services.messaging import questions
from remit.services.organisation import agents
from remit.services.rights import capability_requests, grants
from remit.services.verbs import all_verbs
from remit.settings import load
from remit.store.engine import migrate
from remit.testing.clock import A_DAY, VirtualClock
from tests import mailing, older
from tests.company import Company, opened
from tests.crashing import situations
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene
from tests.crashing.ways import WAYS
from tests.governance import approve, reject
from tests.organisation import work
from tests.working import claim, end

FOLDER = Path(__file__).parent / "releases"
RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
#: Where it is made: rows name paths, which should not be those of somebody's machine.
_WORKSHOP = Path("/tmp/remit-release")


@dataclass(frozen=True)
class Release:
    """What is known of the two instances of a release.

    `home` has a row in every table and calls that are parked; in `called` every verb was called.
    """

    schema: str
    #: By situation: the call, and what it answered.
    calls: dict[str, dict[str, Any]]
    #: By situation: the call, and the approval that it waits for.
    parked: dict[str, dict[str, Any]]
    #: By the stored name of a verb: the version and the names of its arguments.
    verbs: dict[str, dict[str, Any]]


def unpack(release: str, folder: Path) -> Release:
    """Lay the home folders of the release into `folder`."""
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Release(**json.loads(folder.joinpath("release.json").read_text()))


async def make_call(app: App, call: Call, key: str | None) -> Any:
    caller = Caller(call.token, key) if call.token else replace(as_system(), key=key)
    return json.loads(json.dumps(await WAYS[call.through](app, caller, call), default=str))


# ── making one ──────────────────────────────────────────────────────────────────────────────────


def main(release: str) -> None:
    shutil.rmtree(_WORKSHOP, ignore_errors=True)
    home, called = (_WORKSHOP / name for name in ("home", "called"))
    for folder in (home, called):
        folder.mkdir(parents=True)
    with opened(_url(home), home, VirtualClock(A_DAY)) as company:
        for schema in older.CHAPTERS:
            older.live_through(company, schema)
        _get_into_trouble(company)
        parked = _park(company)
    calls = situations.build(_url(called), called)["calls"]
    answered = asyncio.run(_call_everything(_url(called), called, calls))
    known = Release(migrate.HEAD, answered, parked, _verbs())
    _pack(known, [home, called], FOLDER / f"{release}.tar.xz")
    shutil.rmtree(_WORKSHOP)
    print(f"{release}: {len(answered)} answers, {len(parked)} parked calls")


def _url(home: Path) -> str:
    return f"sqlite:///{home}/remit.db"


async def _call_everything(url: str, home: Path, calls: dict[str, Any]) -> dict[str, Any]:
    """Make each call once; answers those whose repeat is told the same."""
    settings = load({"REMIT_HOME": str(home), "REMIT_DATABASE_URL": url})
    answered: dict[str, Any] = {}
    async with App(settings, VirtualClock(THEN)) as app:
        for name, fields in calls.items():
            call = Call(**fields)
            if not call.keyed or call.asks or call.later or call.home != "company":
                continue
            try:
                await make_call(app, call, name)
                again = await make_call(app, call, name)
            except RemitError:
                continue  # its situation went with another call
            answered[name] = {"call": asdict(call), "answer": again}
        for name in list(answered):
            try:
                repeat = await make_call(app, Call(**answered[name]["call"]), name)
            except RemitError:
                repeat = None
            if repeat != answered[name]["answer"]:
                del answered[name]  # its caller went with another call
    return answered


def _park(company: Company) -> dict[str, Any]:
    """Calls that wait for a person, that were decided, and that were not yet told so."""
    scene = Scene(company, "parked", 1)
    lead = scene.agent()
    file, other = company.file(lead.caller, b"old"), company.file(company.board)
    plan, second = (work(company, lead.caller, lead.id) for _ in range(2))
    gates = {
        f"message:{company.ceo.id}": "use",
        f"kb_file:{file['id']}": "write",
        f"kb_file:{other['id']}": "read",
        f"outcome:{plan}": "write",
        f"outcome:{second}": "write",
    }
    for resource, level in gates.items():
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to=lead.id,
            resource=resource,
            level=level,
            mode="ask",
        )
    seen = {"file": file["id"], "version": file["version"], "sha256": file["hash"]}
    part = {"parent": plan, "title": "A part", "description": "In words."}
    letter = {"to": "agent:ceo", "subject": "Hi"}
    calls: dict[str, Call] = {
        "mail.send": _by(lead.caller, "mail.send", "library.send", **letter, body="Waits"),
        "mail.send (approved)": _by(lead.caller, "mail.send", "library.send", **letter, body="Yes"),
        "mail.send (rejected)": _by(lead.caller, "mail.send", "library.send", **letter, body="No"),
        "files.write": _by(lead.caller, "files.write", "library.write", **seen, source="new"),
        "files.history": _by(lead.caller, "files.history", file=other["id"]),
        "outcomes.create": _by(lead.caller, "outcomes.create", "library.create_outcome", **part),
        "outcomes.complete": _by(lead.caller, "outcomes.complete", outcome=second, note="Done"),
    }
    parked: dict[str, Any] = {}
    for name, call in calls.items():
        parked[name] = {"call": asdict(call), "approval": _parked(company, call)}
    approve(company, {"id": parked["mail.send (approved)"]["approval"]})
    reject(company, {"id": parked["mail.send (rejected)"]["approval"]}, note="No.")
    return parked


def _get_into_trouble(company: Company) -> None:
    """Agents that were switched off or paused, one that is slowed, and a letter that died."""
    clock = company.clock
    assert isinstance(clock, VirtualClock)
    runs = {"idle": 3, "failing": FAILURES_TOLD, "slowed": 1, "paused": 0}
    for name, count in runs.items():
        agent = company.agent(name, adapter_type="scripted")
        if name == "failing":
            mailing.send(company, company.board, f"agent:{agent.id}", "A wish")
        for _ in range(count):
            clock.advance(2 * HOUR)
            run = claim(company, agent)
            if name == "idle":
                end(company, run)
            else:
                mailing.take(company, run)
                end(company, run, "failed", error="overloaded (529)", exit_reason="error")
    company.call(company.board, agents.pause, agent="paused")
    asker = company.agent("asker", adapter_type="scripted")
    company.call(asker.caller, questions.ask, question="Which colour?", to="board")
    wish: Any = {"resource": "agent.create", "level": "use", "why": "To grow."}
    company.call(asker.caller, capability_requests.request_capability, **wish)


def _by(caller: Caller, verb: str, through: str = "", **arguments: Any) -> Call:
    return Call(verb, arguments, caller.token, through)


def _parked(company: Company, call: Call) -> str:
    try:
        company.wait(make_call(company.app, call, None))
    except AwaitsApproval as waits:
        return str(waits.details["approval_id"])
    raise AssertionError("it was not parked")


def _verbs() -> dict[str, Any]:
    return {
        name: {"version": verb.version, "parameters": list(verb.parameters)}
        for name, verb in sorted(all_verbs().items())
    }


def _pack(known: Release, homes: list[Path], place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    described = _WORKSHOP / "release.json"
    described.write_text(json.dumps(asdict(known)))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in (described, _WORKSHOP / "archive"):  # what is imported comes along
            archive.add(path, path.name, filter=_nobody)
        for home in homes:
            _settle(home / "remit.db")
            for path in sorted(home.rglob("*")):
                name = path.relative_to(_WORKSHOP)
                if not path.is_symlink() and name.parts[1] not in ("run", "logs"):
                    archive.add(path, str(name), recursive=False, filter=_nobody)
    place.write_bytes(lzma.compress(packed.getvalue()))


def _settle(database: Path) -> None:
    """One file, with nothing left in a log beside it."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


if __name__ == "__main__":
    main(sys.argv[1])
