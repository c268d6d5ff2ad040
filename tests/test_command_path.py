"""The one path that every verb takes: repeats, refusals, and what cannot happen on it."""

import asyncio
import json
import os
import signal
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remit.authority import Action
from remit.clock import DAY
from remit.entrypoints.http.server.stream import Announcer
from remit.errors import (
    BadInput,
    Conflict,
    KeyReused,
    NotFound,
    Refused,
    RemitError,
    Unauthenticated,
)
from remit.ids import AgentId
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.principal import ActorKind, Principal
from remit.services.command import Answer, Ask, Context, approved, command
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.people import companies, instance
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import outcomes
from remit.store.engine.database import Transaction
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import people
from remit.store.record import events as event_log
from remit.testing.clock import VirtualClock
from tests import cli_forks
from tests.company import Company, keyed, opened


def recorded(company: Company) -> int:
    count: int = company.call(company.board, events.verify, company=company.id)["events"]
    return count


# ── repeats ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-05")
def test_a_repeated_call_has_one_effect_and_the_first_answer(company: Company) -> None:
    again = keyed(company.board, "one")
    first = company.call(again, agents.create, company=company.id, name="worker")
    before = recorded(company)
    for _ in range(3):
        assert company.call(again, agents.create, company=company.id, name="worker") == first
    assert recorded(company) == before


@pytest.mark.requirement("BX-05")
def test_a_repeat_gets_the_first_answer_even_if_the_world_has_changed(company: Company) -> None:
    again = keyed(company.board, "one")
    first = company.call(again, agents.create, company=company.id, name="worker")
    company.call(company.board, agents.terminate, agent="worker")
    assert company.call(again, agents.create, company=company.id, name="worker") == first
    revoke = keyed(company.board, "two")
    grant = company.give(company.board, company.ceo, company.file(company.board), "read")
    answer = company.call(revoke, grants.revoke, grant=grant["id"])
    assert company.call(revoke, grants.revoke, grant=grant["id"]) == answer


@pytest.mark.requirement("BX-05")
def test_one_key_for_two_requests_is_refused_and_does_nothing(company: Company) -> None:
    again = keyed(company.board, "one")
    company.call(again, agents.create, company=company.id, name="worker")
    before = recorded(company)
    with pytest.raises(KeyReused):
        company.call(again, agents.create, company=company.id, name="other")
    with pytest.raises(KeyReused):
        company.call(again, agents.create_key, agent="worker")
    with pytest.raises(KeyReused):
        company.file(again)
    assert recorded(company) == before


@pytest.mark.requirement("BX-05", "BX-14")
def test_the_same_key_of_different_callers_is_not_the_same_key(company: Company) -> None:
    lead = company.agent("lead")
    callers = [company.board, company.ceo.caller, lead.caller]
    made = [company.file(keyed(caller, "one"), b"x") for caller in callers]
    assert len({file["id"] for file in made}) == 3
    # One agent is one caller, whichever of its tokens it uses.
    run = company.run(lead)
    assert company.file(keyed(run.caller, "one"), b"x") == made[2]


@pytest.mark.requirement("BX-05")
@pytest.mark.parametrize("verb", ["agent", "file", "write", "revoke", "complete"])
def test_16_repeats_at_once_have_one_effect_and_one_answer(company: Company, verb: str) -> None:
    worker = company.agent("worker")
    file = company.file(company.ceo.caller, b"one")
    grant = company.give(company.ceo.caller, worker, file, "read")
    before = recorded(company)
    gate, library = company.app.gate, company.app.library
    again = keyed(company.ceo.caller if verb == "write" else company.board, "one")

    def call() -> Any:
        if verb == "agent":
            return gate(again, agents.create, company=company.id, name="new")
        if verb == "file":
            return library.create(again, b"x", company=company.id, description="x")
        if verb == "write":
            return library.write(
                again, b"two", file=f"kb://{file['id']}", version=1, sha256=file["hash"]
            )
        if verb == "revoke":
            return gate(again, grants.revoke, grant=grant["id"])
        return gate(again, outcomes.complete, outcome=worker.id)

    answers = company.together([call() for _ in range(16)])
    assert all(answer == answers[0] for answer in answers)
    assert isinstance(answers[0], dict)
    # An agent comes with its mandate, and goes with it and its key. Its boss hears the verdict.
    assert recorded(company) == before + {"agent": 3, "complete": 5}.get(verb, 1)


@pytest.mark.requirement("BX-05")
def test_a_refused_call_is_not_remembered_as_an_answer(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(company.ceo.caller, b"one")
    again = keyed(worker.caller, "one")
    for _ in range(2):
        with pytest.raises(Refused):
            company.write(again, file, b"two")
    company.give(company.ceo.caller, worker, file, "write")
    assert company.write(again, file, b"two")["version"] == 2
    with pytest.raises(Conflict):
        company.write(keyed(worker.caller, "two"), file, b"three")


@pytest.mark.requirement("BX-05")
@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "a\x00", "\ud800"])
def test_a_key_is_1_to_255_printable_characters(company: Company, key: str) -> None:
    with pytest.raises(BadInput):
        company.call(keyed(company.board, key), agents.create, company=company.id, name="x")
    with pytest.raises(NotFound):
        company.call(company.board, agents.show, agent="x")


@pytest.mark.requirement("BX-05")
def test_answers_are_kept_for_30_days_and_forgotten_by_remit_alone(
    company: Company,
) -> None:
    clock = company.clock
    assert isinstance(clock, VirtualClock)
    company.call(keyed(company.board, "one"), agents.create, company=company.id, name="worker")
    with pytest.raises(NotFound):
        company.call(company.board, events.forget_answers, before=clock.now() + 1)
    assert company.call(as_system(), events.forget_answers, before=clock.now()) == 0
    clock.advance(30 * DAY)
    assert company.call(as_system(), events.forget_answers, before=clock.now()) == 1


CRASH = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    from pathlib import Path
    from remit.app import App
    from remit.services.organisation import agents
    from remit.services.identity import Caller
    from tests.company import settings

    async def main(url: str, home: str) -> None:
        app = App(settings(url, Path(home)))
        token = app.settings.board_token_file.read_text().strip()
        if sys.argv[3] == "die":
            app.gate.listeners.append(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        caller = Caller(token, "the-key")
        made = await app.gate(caller, agents.create, company=None, name="phoenix")
        print(made["id"], flush=True)
        await app.aclose()

    asyncio.run(main(sys.argv[1], sys.argv[2]))
    """
)


@pytest.mark.requirement("BX-05")
@pytest.mark.slow
def test_a_process_killed_between_commit_and_reply_has_done_it_once(
    database_url: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home) as company:
        before = recorded(company)

    def attempt(how: str) -> tuple[int, bytes, bytes]:
        return cli_forks.instances().run([database_url, str(home), how], os.environ, script=CRASH)

    assert attempt("die")[:2] == (-signal.SIGKILL, b"")
    repeated = [attempt("live"), attempt("live")]
    assert [code for code, _, _ in repeated] == [0, 0], repeated
    with opened(database_url, home) as company:
        made = company.call(company.board, agents.show, agent="phoenix")
        assert [said.decode().strip() for _, said, _ in repeated] == [made["id"]] * 2
        # The agent and its mandate; and the builder makes a key whenever it opens the company.
        assert recorded(company) == before + 3 + 1


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-03", "AG-41")
def test_a_refusal_is_recorded_with_reason_sentence_and_basis(company: Company) -> None:
    worker = company.agent("worker")
    run = company.run(worker)
    file = company.file(company.ceo.caller)
    denied = company.give(company.board, worker, file, "write", mode="deny")
    tried: list[tuple[Callable[[], Any], str, str]] = [
        (lambda: company.read(run.caller, file["id"]), "file.read", "no_capability"),
        (lambda: company.write(run.caller, file, b"x"), "file.write", "denied_by_grant"),
        (lambda: company.give(run.caller, worker, file, "read"), "grant.give", "not_your_report"),
        (
            lambda: company.call(run.caller, agents.create, company=None, name="x"),
            "agent.appoint",
            "board_only",
        ),
        (
            lambda: company.call(run.caller, events.listing, company=None),
            "event.read",
            "board_only",
        ),
    ]
    for attempt, action, reason in tried:
        with pytest.raises(Refused) as refusal:
            attempt()
        event = company.call(company.board, events.listing, company=company.id, limit=1)[0]
        decision = refusal.value.details["decision"]
        assert (event["action"], event["reason"]) == (action, reason)
        assert (event["allowed"], event["actor"], event["run_id"]) == (
            False,
            f"agent:{worker.id}",
            run.id,
        )
        assert refusal.value.reason == decision["reason"] == reason
        assert decision["effect"] == "deny"
        assert decision["basis"] == event["basis"]
        assert decision["sentence"] == refusal.value.sentence == event["details"]["sentence"]
        assert refusal.value.step.endswith(".")
    log = company.call(company.board, events.listing, company=company.id, limit=5)
    bases = {event["action"]: event["basis"] for event in log}
    assert bases["file.write"] == f"grant:{denied['id']}"
    assert bases["file.read"].startswith("rule:")


@pytest.mark.requirement("BX-03")
def test_what_is_hidden_from_somebody_is_recorded_all_the_same(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(company.ceo.caller, b"x", "hidden", unlisted=True)
    with pytest.raises(NotFound) as error:
        company.read(worker.caller, file["id"])
    assert "decision" not in error.value.details
    event = company.call(company.board, events.listing, company=company.id, limit=1)[0]
    assert (event["allowed"], event["resource"]) == (False, f"kb_file:{file['id']}")


# ── several queries at once ─────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-03")
def test_queries_together_see_one_moment_and_are_refused_one_by_one(company: Company) -> None:
    worker = company.agent("worker")

    def look(ask: Ask) -> tuple[str, str]:
        before = ask(companies.show, company=company.id)["name"]
        with pytest.raises(Refused):
            ask(events.listing, company=company.id)
        company.app.gate.database.submit_write(
            lambda tx: _rename(tx, company.id, "meanwhile")
        ).result()
        return before, ask(companies.show, company=company.id)["name"]

    known = recorded(company)
    before, after = company.wait(company.app.gate.together(worker.caller, look))
    assert before == after != name_of(company)
    event = company.call(company.board, events.listing, company=company.id, limit=1)[0]
    assert (event["action"], event["actor"]) == ("event.read", f"agent:{worker.id}")
    assert recorded(company) == known + 1


def test_a_refusal_that_ends_queries_together_is_recorded(company: Company) -> None:
    worker, known = company.agent("worker"), recorded(company)
    with pytest.raises(Refused):
        company.wait(
            company.app.gate.together(
                worker.caller, lambda ask: ask(events.listing, company=company.id)
            )
        )
    assert recorded(company) == known + 1


def test_only_queries_of_a_good_token_run_together(company: Company) -> None:
    for caller, error in ((Caller("x" * 43), Unauthenticated), (company.board, AssertionError)):
        with pytest.raises(error):
            company.wait(
                company.app.gate.together(
                    caller, lambda ask: ask(companies.change, company=company.id, name="x")
                )
            )


# ── what cannot happen ──────────────────────────────────────────────────────────────────────────


def _rename(tx: Transaction, company: str, name: str) -> None:
    found = tx.one(people.COMPANY, company=company)
    assert found is not None
    values = companies.new_values(replace(found, name=name))
    tx.run(people.CHANGE_COMPANY, **values, new_key=name)


@command("test_command_path.quietly_rename")
def quietly_rename(ctx: Context, *, company: str) -> Answer:
    ctx.enter(company)
    ctx.require(Action.COMPANY_CHANGE)
    _rename(ctx.tx, company, "quiet")
    return {}


@command("test_command_path.rename_undecided")
def rename_undecided(ctx: Context, *, company: str) -> Answer:
    ctx.enter(company)
    _rename(ctx.tx, company, "rash")
    ctx.record("company.change", f"company:{company}")
    return {}


@command("test_command_path.rename_then_ask")
def rename_then_ask(ctx: Context, *, company: str) -> Answer:
    ctx.enter(company)
    ctx.require(Action.COMPANY_READ)
    _rename(ctx.tx, company, "early")
    ctx.record("company.change", f"company:{company}")
    ctx.require(Action.COMPANY_CHANGE)
    return {}


@command("test_command_path.rename_then_fail")
def rename_then_fail(ctx: Context, *, company: str) -> Answer:
    ctx.enter(company)
    ctx.require(Action.COMPANY_READ)
    _rename(ctx.tx, company, "failed")
    ctx.record("company.change", f"company:{company}")
    raise Conflict("Something else was wrong.")


@command("test_command_path.record_and_look")
def record_and_look(ctx: Context, *, company: str) -> Answer:
    ctx.enter(company)
    ctx.require(Action.COMPANY_READ)
    seen = []
    for action in ("company.change", "company.apply", "company.change"):
        ctx.record(action, "company:looked-at")
        found = ctx.tx.all(event_log.EVENTS_ON, resource="company:looked-at", limit=10)
        seen.append([one.action for one in found])
    return {"seen": seen, "head": ctx.tx.existing(event_log.READ_HEAD, company=company).seq}


@command("test_command_path.move_and_ask")
def move_and_ask(ctx: Context, *, company: str, agent: str, boss: str) -> Answer:
    """Whether a boss may stop an agent, before it is put elsewhere and afterwards."""
    ctx.enter(company)
    ctx.require(Action.COMPANY_CHANGE)
    above = Principal(
        ActorKind.AGENT, AgentId(boss), "boss", ctx.company, agent_status=AgentStatus.IDLE
    )
    with ctx.acting_as(above):
        before = ctx.decide(Action.AGENT_CONTROL, over=agent).allowed
    elsewhere = {"new_boss": None, "new_boss_user": ctx.actor.id}
    ctx.tx.run(agent_statements.MOVE_AGENT, agent=agent, **elsewhere)
    with ctx.acting_as(above):
        afterwards = ctx.decide(Action.AGENT_CONTROL, over=agent).allowed
    ctx.record("agent.move", f"agent:{agent}")
    return {"before": before, "afterwards": afterwards}


@command("test_command_path.leave_and_ask")
def leave_and_ask(ctx: Context, *, company: str) -> Answer:
    """Whether a person may change a company, before leaving it and afterwards."""
    ctx.enter(company)
    me = ctx.actor
    allowed = []
    for _ in range(2):
        with ctx.acting_as(me):
            allowed.append(ctx.decide(Action.COMPANY_CHANGE).allowed)
        ctx.tx.run(people.DELETE_MEMBERSHIP, user=me.id)
    ctx.record("user.leave", me.address, decision=approved("test"))
    return {"allowed": allowed}


def name_of(company: Company) -> str:
    name: str = company.sql("SELECT name FROM companies WHERE id = ?", company.id)[0][0]
    return name


@pytest.mark.requirement("PC-49")
def test_a_command_that_records_nothing_does_not_commit(company: Company) -> None:
    before = recorded(company)
    with pytest.raises(AssertionError, match="recorded nothing"):
        company.call(keyed(company.board, "one"), quietly_rename, company=company.id)
    assert name_of(company) == instance.FIRST_COMPANY
    assert recorded(company) == before
    assert company.sql("SELECT * FROM answers") == []


def test_a_command_that_records_before_deciding_does_not_commit(company: Company) -> None:
    with pytest.raises(AssertionError, match="before anything was decided"):
        company.call(company.board, rename_undecided, company=company.id)
    assert name_of(company) == instance.FIRST_COMPANY


def test_a_refusal_undoes_what_the_command_did_and_keeps_that_it_was_refused(
    company: Company,
) -> None:
    before = recorded(company)
    with pytest.raises(Refused):
        company.call(keyed(company.ceo.caller, "one"), rename_then_ask, company=company.id)
    assert name_of(company) == instance.FIRST_COMPANY
    assert recorded(company) == before + 1
    event = company.call(company.board, events.listing, company=company.id, limit=1)[0]
    assert (event["action"], event["allowed"]) == ("company.change", False)
    assert company.sql("SELECT * FROM answers") == []
    assert company.call(company.board, events.verify, company=company.id)["ok"]


def test_a_call_sees_what_it_has_recorded_itself(company: Company) -> None:
    before = recorded(company)
    answer = company.call(company.board, record_and_look, company=company.id)
    done = ["company.change", "company.apply", "company.change"]
    assert answer == {"seen": [done[:1], done[:2], done], "head": before + 3}
    assert recorded(company) == before + 3
    assert company.call(company.board, events.verify, company=company.id)["ok"]


@pytest.mark.tampers
def test_a_call_decides_by_what_it_has_changed_itself(company: Company) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", boss="lead")
    ask = {"company": company.id, "agent": worker.id, "boss": lead.id}
    answer = company.call(company.board, move_and_ask, **ask)
    assert answer == {"before": True, "afterwards": False}
    answer = company.call(company.board, leave_and_ask, company=company.id)
    assert answer == {"allowed": [True, False]}


@pytest.mark.tampers
@pytest.mark.parametrize("company", ["postgresql"], indirect=True)
def test_a_call_sees_what_others_did_before_it_had_its_turn(company: Company) -> None:
    """On SQLite nobody else writes meanwhile."""

    def look(tx: Transaction) -> list[str]:
        seen = []
        for name in ("first", "second"):
            company.sql("UPDATE companies SET name = ? WHERE id = ?", name, company.id)
            seen.append(tx.existing(people.COMPANY, company=company.id).name)
        return seen

    assert company.app.database.submit_write(look).result() == ["first", "second"]


def test_an_error_undoes_everything_and_records_nothing(company: Company) -> None:
    before = recorded(company)
    with pytest.raises(Conflict):
        company.call(keyed(company.board, "one"), rename_then_fail, company=company.id)
    assert name_of(company) == instance.FIRST_COMPANY
    assert recorded(company) == before
    assert company.sql("SELECT * FROM answers") == []


def test_a_commit_is_announced_only_while_somebody_follows_the_record(small: Company) -> None:
    listeners = small.app.gate.listeners
    before, announcer = list(listeners), Announcer(small.app)

    async def follow() -> None:
        with announcer.subscribe(small.id), announcer.subscribe("another"):
            assert len(listeners) == len(before) + 1
            with announcer.subscribe(small.id):
                pass
            assert len(listeners) == len(before) + 1
        assert listeners == before

    assert listeners == before
    asyncio.run(follow())


def test_listeners_hear_of_each_commit_that_recorded_something(company: Company) -> None:
    heard: list[str] = []
    company.app.gate.listeners.append(heard.append)
    file = company.file(company.board)
    assert heard == [company.id]
    company.call(company.board, files.show, file=file["id"])
    company.read(company.board, file["id"])
    assert heard == [company.id]
    with pytest.raises(RemitError):
        company.read(company.ceo.caller, file["id"])
    assert heard == [company.id] * 2
    with pytest.raises(NotFound):
        company.call(company.board, agents.show, agent="nobody")
    assert heard == [company.id] * 2


def test_after_a_close_every_call_says_that_the_instance_is_shutting_down(
    database_url: str, tmp_path: Path
) -> None:
    with opened(database_url, tmp_path / "home") as company:
        company.app.database.close()
        for caller in (company.board, Caller("nobody")):
            with pytest.raises(RemitError) as error:
                company.call(caller, agents.listing, company=None)
            assert error.value.reason == "unavailable"


def test_the_answers_are_plain_documents(company: Company) -> None:
    """What a repeat gets is what the first call got, not something like it."""
    made = company.call(keyed(company.board, "k"), agents.create, company=company.id, name="w")
    assert json.loads(json.dumps(made)) == made
