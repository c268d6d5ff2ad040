"""Upgrades from every release: its rows, the answers it kept, and the calls it parked."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remit.app import App
from remit.clock import HOUR, MINUTE, SystemClock
from remit.errors import AwaitsApproval, Conflict, KeyReused, Refused
from remit.services.identity import Caller
from remit.services.verbs import (
    Added,
    Answer,
    Removed,
    Renamed,
    Verb,
    all_verbs,
    command,
    verb_named,
)
from remit.store.backups import copying
from remit.store.engine import migrate
from remit.testing.clock import A_DAY, VirtualClock
from tests import release
from tests.company import Company, keyed, opened, run_sql, settings
from tests.crashing.call import THEN, Call
from tests.governance import approve
from tests.older import connected, had, rows
from tests.release import RELEASES, Release
from tests.test_backup import check_whole
from tests.test_store import differences
from tests.test_upgrades import work_on


@dataclass(frozen=True)
class Left:
    """What a release left behind, on one of the two databases."""

    known: Release
    url: str
    home: Path


@pytest.fixture(params=RELEASES)
def left(request: pytest.FixtureRequest, empty_database_url: str, tmp_path: Path) -> Left:
    return _laid(request.param, "home", empty_database_url, tmp_path)


@pytest.fixture(params=RELEASES)
def called(request: pytest.FixtureRequest, empty_database_url: str, tmp_path: Path) -> Left:
    return _laid(request.param, "called", empty_database_url, tmp_path)


def _laid(name: str, home: str, url: str, folder: Path) -> Left:
    known = release.unpack(name, folder)
    file = folder / home / "remit.db"
    if migrate.is_sqlite(url):
        file.rename(migrate.sqlite_path(url))
    else:
        with connected(url) as target:
            copying.into_postgres(file, known.schema, target)
        file.unlink()
    return Left(known, url, folder / home)


def test_the_first_release_is_there() -> None:
    assert RELEASES[0] == "v0.1.0"


@pytest.mark.requirement("PC-80")
def test_an_upgrade_keeps_every_row_and_the_company_works_on(left: Left) -> None:
    columns = had(left.url)
    before = rows(left.url, columns)
    assert [table for table, found in before.items() if not found] == []
    switched_off = run_sql(left.url, "SELECT id FROM agents WHERE status = 'error' ORDER BY id")
    assert migrate.migrate(left.url) == left.known.schema
    after = rows(left.url, columns)
    # The upgrade records tokens that no event made.
    changed = {"events", "event_heads"} | ({"agents", "agent_leases"} if switched_off else set())
    assert {table for table in before if before[table] != after[table]} == changed
    assert run_sql(left.url, "SELECT count(*) FROM outcomes WHERE news > seen") == [(0,)]
    assert differences(left.url) == []
    with opened(left.url, left.home, VirtualClock(THEN)) as company:
        check_whole(company)
        work_on(company)
        check_whole(company)


def test_agents_that_were_switched_off_work_again_one_after_the_other(tmp_path: Path) -> None:
    """Those that idleness or failures had stopped; whom a person paused stays paused."""
    release.unpack("v0.1.0", tmp_path)
    url = f"sqlite:///{tmp_path}/home/remit.db"
    before = dict(run_sql(url, "SELECT id, status FROM agents"))
    switched_off = sorted(agent for agent, status in before.items() if status == "error")
    assert len(switched_off) == 2
    assert "paused" in before.values()
    began = SystemClock().now()
    migrate.migrate(url)
    after = dict(run_sql(url, "SELECT id, status FROM agents"))
    assert after == before | dict.fromkeys(switched_off, "idle")
    found = run_sql(
        url, "SELECT agent_id, wake_seq > done_seq, idle_runs, failures, due_at FROM agent_leases"
    )
    leases = {agent: lease for agent, *lease in found if agent in switched_off}
    assert [lease[:3] for lease in leases.values()] == [[1, 0, 0]] * 2
    first, second = (leases[agent][3] for agent in switched_off)
    assert began <= first < began + MINUTE
    assert second - first == HOUR // 2


@pytest.mark.requirement("FX-01", "FX-06")
def test_what_was_undecided_is_waited_for_and_the_rest_is_looked_at_within_an_hour(
    tmp_path: Path,
) -> None:
    """Nobody could say then what a question was about, so it concerns all that its agent could do;
    whatever else can be worked on is looked at once, not all at the same time."""
    release.unpack("v0.1.0", tmp_path)
    url = f"sqlite:///{tmp_path}/home/remit.db"
    began = SystemClock().now()
    migrate.migrate(url)
    kinds = {kind for (kind,) in run_sql(url, "SELECT kind FROM waits")}
    assert {"question", "approval", "capability"} <= kinds
    undecided = run_sql(url, "SELECT id FROM questions WHERE status = 'open'")
    waited_for = run_sql(url, "SELECT subject_id FROM waits WHERE kind = 'question'")
    assert set(waited_for) <= set(undecided)
    (counted,) = run_sql(url, "SELECT sum(open_waits) FROM outcomes")[0]
    assert [(counted,)] == run_sql(url, "SELECT count(*) FROM wait_outcomes")
    looks = [
        at
        for (at,) in run_sql(
            url, "SELECT look_at FROM outcomes WHERE look_for = 'review' ORDER BY look_at"
        )
    ]
    assert looks
    assert began <= looks[0]
    assert looks[-1] < began + HOUR + MINUTE
    assert run_sql(
        url, "SELECT count(*) FROM outcomes WHERE look_for = 'review' AND open_waits > 0"
    ) == [(0,)]


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-05")
def test_every_answer_is_given_again_to_a_repeat(called: Left) -> None:
    """The very calls, by the same callers and with the same keys; none has another effect."""
    assert len(called.known.calls) > 100

    async def repeat() -> dict[str, Any]:
        async with App(settings(called.url, called.home), VirtualClock(THEN)) as app:
            return {
                name: await release.make_call(app, carried_over(Call(**one["call"])), name)
                for name, one in called.known.calls.items()
            }

    migrate.migrate(called.url)
    before = rows(called.url)
    assert asyncio.run(repeat()) == {
        name: one["answer"] for name, one in called.known.calls.items()
    }
    assert rows(called.url) == before


def carried_over(call: Call) -> Call:
    """As whoever made it makes it today."""
    if call.through:
        return call
    return Call(call.verb, verb_named(call.verb).carry_over(call.given, 1), call.token)


# ── parked calls ────────────────────────────────────────────────────────────────────────────────


def again(company: Company, parked: dict[str, Any]) -> Any:
    return company.wait(release.make_call(company.app, Call(**parked["call"]), None))


@pytest.fixture
def company(left: Left) -> Iterator[Company]:
    with opened(left.url, left.home, VirtualClock(A_DAY)) as company:
        yield company
        check_whole(company)


@pytest.mark.requirement("AG-121", "BX-10")
def test_a_parked_call_is_found_again_approved_and_carried_out_once(
    left: Left, company: Company
) -> None:
    decided = ("mail.send (approved)", "mail.send (rejected)")
    waiting = {name: one for name, one in left.known.parked.items() if name not in decided}
    assert len(waiting) >= 5
    for name, one in waiting.items():
        with pytest.raises(AwaitsApproval) as asked:
            again(company, one)
        assert asked.value.details["approval_id"] == one["approval"], name
        answer = approve(company, {"id": one["approval"]})
        collected = again(company, one)
        if all_verbs()[one["call"]["verb"]].kind.value == "command":
            assert collected == answer["result"], name
        with pytest.raises((AwaitsApproval, Refused, Conflict)):
            again(company, one)  # it was approved once


def test_what_was_decided_before_the_upgrade_holds(left: Left, company: Company) -> None:
    told = again(company, left.known.parked["mail.send (approved)"])
    assert told["subject"] == "Hi"
    with pytest.raises(Refused, match=r"Exactly this was rejected \(No\.\)"):
        again(company, left.known.parked["mail.send (rejected)"])


# ── names and arguments of verbs ────────────────────────────────────────────────────────────────


#: Removed queries that asked for no right, or that only people could ask: no call of them waited
#: for approval, no row names them.
NEVER_STORED = {"agents.me", "glance.at_work", "job_work.expired", "waiting.has_loose_ends"}


@pytest.mark.parametrize("name", RELEASES)
def test_no_stored_name_or_argument_of_a_verb_is_lost(name: str, tmp_path: Path) -> None:
    """A verb that changes its parameters declares it; then calls of the release can be made."""
    verbs = all_verbs()
    for stored, then in release.unpack(name, tmp_path).verbs.items():
        if stored in NEVER_STORED:
            continue
        assert stored in verbs, f"{stored} is gone; calls that wait for approval name it"
        names = set(then["parameters"])
        for change in verbs[stored].changes[then["version"] - 1 :]:
            names = after(change, names)
        # Nothing said about a field of a description means its default.
        names |= {*verbs[stored].described}
        assert names == set(verbs[stored].parameters), (
            f"the parameters of {stored} are not those of {name}: declare what changed "
            "(Renamed, Added, Removed) beside its name"
        )


def after(change: Renamed | Added | Removed, names: set[str]) -> set[str]:
    match change:
        case Renamed(old, new):
            assert old in names
            return names - {old} | {new}
        case Added(name):
            assert name not in names
            return names | {name}
        case Removed(name):
            assert name in names
            return names - {name}


def test_a_verb_is_found_by_its_name_in_a_process_that_has_imported_none() -> None:
    program = (
        "from remit.services.verbs import _VERBS, verb_named\n"
        "assert not _VERBS\n"
        "print(verb_named('outcomes.reopen').body.__name__)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout == "reopen\n", said.stderr


def test_two_verbs_do_not_share_a_name() -> None:
    with pytest.raises(ValueError, match=r"outcomes\.reopen is declared by remit\.services"):
        command("outcomes.reopen")(lambda ctx: {})


# ── verbs whose parameters change ───────────────────────────────────────────────────────────────


def note_of_first_version(ctx: Any, *, agent: str, text: str, loud: bool = False) -> Answer:
    raise AssertionError("it is not called")


CHANGES = (Renamed("text", "note"), Added("colour", "grey"), Removed("loud", False))


def later(verb: Verb[..., Any], *changes: Renamed | Added | Removed) -> Verb[..., Any]:
    return Verb(verb.name, verb.kind, verb.body, (*verb.changes, *changes))


def test_arguments_are_carried_over_from_every_version() -> None:
    verb = command("test.note", *CHANGES)(note_of_first_version)
    assert verb.version == 4
    first = {"agent": "a", "text": "x", "loud": False}
    assert verb.carry_over(first, 1) == {"agent": "a", "note": "x", "colour": "grey"}
    assert verb.carry_over({"agent": "a", "text": "x"}, 1) == {
        "agent": "a",
        "note": "x",
        "colour": "grey",
    }
    second = {"agent": "a", "note": "x", "loud": False}
    assert verb.carry_over(second, 2) == {"agent": "a", "note": "x", "colour": "grey"}
    now = {"agent": "a", "note": "x", "colour": "red"}
    assert verb.carry_over(now, 4) == now


def test_a_call_that_cannot_be_said_any_more_is_not_carried_out_as_something_else() -> None:
    verb = command("test.note", *CHANGES)(note_of_first_version)
    with pytest.raises(Conflict, match="no argument loud any more"):
        verb.carry_over({"agent": "a", "text": "x", "loud": True}, 1)
    with pytest.raises(Conflict, match="a newer program stored it"):
        verb.carry_over({"agent": "a"}, 5)
    with pytest.raises(Conflict, match=r"there is no test\.gone any more"):
        verb_named("test.gone")


def test_a_parked_call_of_an_older_version_is_found_and_carried_out_as_it_was_asked(
    left: Left, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`outcomes.complete` has called its note otherwise since, and has one argument more."""
    from remit.services import verbs
    from remit.services.work import outcomes

    made = outcomes.complete
    seen: list[dict[str, Any]] = []

    def complete(
        ctx: Any, /, *, outcome: str, remark: str = "", mood: str = "", **_: Any
    ) -> Answer:
        seen.append({"remark": remark, "mood": mood})
        return made.body(ctx, outcome=outcome, note=remark)

    newer = Verb(made.name, made.kind, complete, (Renamed("note", "remark"), Added("mood", "calm")))
    monkeypatch.setitem(verbs._VERBS, made.name, newer)
    parked = left.known.parked["outcomes.complete"]
    caller = Caller(parked["call"]["token"])
    request: dict[str, Any] = {
        "outcome": parked["call"]["given"]["outcome"],
        "remark": "Done",
        "mood": "calm",
    }
    with pytest.raises(AwaitsApproval) as asked:
        company.call(caller, newer, **request)
    assert asked.value.details["approval_id"] == parked["approval"]
    with pytest.raises(AwaitsApproval) as other:
        company.call(caller, newer, **{**request, "mood": "glad"})
    assert other.value.details["approval_id"] != parked["approval"]
    seen.clear()
    done = approve(company, {"id": parked["approval"]})
    assert seen == [{"remark": "Done", "mood": "calm"}]
    assert company.call(caller, newer, **request) == done["result"]


def test_a_key_is_believed_across_versions_and_compared_within_one(
    company: Company,
) -> None:
    from remit.services.work import outcomes

    lead = company.agent("fresh")
    once = keyed(lead.caller, "once")
    asked: dict[str, Any] = {"parent": lead.id, "title": "One", "new_id": company.app.ids.new()}
    first = company.call(once, outcomes.create, **asked)
    with pytest.raises(KeyReused):
        company.call(once, outcomes.create, **{**asked, "title": "Two"})
    newer = later(outcomes.create, Added("colour", "grey"))
    assert company.call(once, newer, **asked, colour="grey") == first
    twice = keyed(lead.caller, "twice")
    second = company.call(
        twice, later(outcomes.create), **{**asked, "new_id": company.app.ids.new()}
    )
    assert second["id"] != first["id"]
    with pytest.raises(KeyReused):
        company.call(twice, outcomes.complete, outcome=second["id"])
