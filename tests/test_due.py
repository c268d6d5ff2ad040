"""What starts an agent, and what does not: news, waits, nudges and reviews."""

import itertools
from typing import Any

import pytest

from remit.clock import DAY, HOUR, SECOND, moment, to_iso
from remit.errors import BadInput
from remit.model.execution.run import NUDGES
from remit.model.work.outcome import Look, Outcome, OutcomeKind, OutcomeStatus, Standing, standing
from remit.services.execution import run_queue, running, runs
from remit.services.identity import as_system
from remit.services.messaging import questions, schedules
from remit.services.organisation import agents, idleness
from remit.services.people import companies
from remit.services.record import search
from remit.services.work import outcomes
from remit.store.execution import leases
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, Run
from tests.mailing import look, send, take
from tests.organisation import work
from tests.working import REVIEWS, claim, end, ready, why_idle


def sweep(company: Company) -> None:
    """The clock brings back what it is time for."""
    company.call(as_system(), run_queue.sweep, company=company.id)


def dev_below(company: Company, boss: str = "ceo", name: str = "dev", **more: Any) -> Member:
    """An agent with a mandate to accomplish, which has had its first run."""
    made = company.agent(name, boss, adapter_type="scripted", **more)
    if not more.get("perpetual"):
        end(company, claim(company, made))
    settle(company, made)
    return made


def settle(company: Company, *members: Member) -> None:
    """Whatever the clock would bring back, it does not; for tests about news alone."""
    for member in members:
        company.sql(
            "UPDATE outcomes SET look_at = NULL, look_for = NULL WHERE owner_id = ?", member.id
        )
        company.sql(
            "UPDATE agent_leases SET look_at = NULL, look_for = NULL WHERE agent_id = ?", member.id
        )


def look_of(company: Company, member: Member) -> tuple[str | None, int | None]:
    """Why an agent looks next at what it left alone, and when."""
    ((what_for, at),) = company.sql(
        "SELECT look_for, look_at FROM agent_leases WHERE agent_id = ?", member.id
    )
    return what_for, at


def outcome_of(company: Company, outcome: str) -> dict[str, Any]:
    (found,) = company.sql("SELECT look_at, look_for, reviews FROM outcomes WHERE id = ?", outcome)
    return dict(zip(("look_at", "look_for", "reviews"), found, strict=True))


# ── the rule ────────────────────────────────────────────────────────────────────────────────────

NOW = 1_000_000
CASES = list(
    itertools.product(
        (OutcomeKind.WORK, OutcomeKind.INBOX),
        (OutcomeStatus.OPEN, OutcomeStatus.CLOSED),
        (False, True),  # perpetual
        (0, 1),  # open prerequisites
        (None, NOW - 1, NOW, NOW + 1),  # deferred until
        (0, 2),  # open waits
        ((0, 0), (5, 4), (5, 5)),  # news and seen
        # its own time, and the number of its reviews
        (
            *itertools.product((Look.REVIEW, Look.DEFERRAL), (NOW - 1, NOW, NOW + 1), (1,)),
            (None, None, 0),
            (None, None, 4),
        ),
        # why its owner looks at what it left alone, now
        (None, Look.NUDGE, Look.REVIEW, Look.START),
        (False, True),  # somebody is to be hired for it
    )
)


def as_specified(case: tuple[Any, ...]) -> bool:
    """The rule, said anew: actionable, not waiting, and news, a date that came, or left alone when
    its owner looks at that."""
    kind, status, perpetual, prereqs, deferred, waits, (news, seen), own, asked, promised = case
    look_for, look_at, reviews = own
    actionable = (
        status is OutcomeStatus.OPEN
        and not perpetual
        and prereqs == 0
        and (deferred is None or deferred <= NOW)
        and not promised
    )
    if kind is OutcomeKind.INBOX:
        return actionable
    came = look_at is not None and look_at <= NOW
    starts = news > seen or (came and look_for is Look.DEFERRAL)
    left = (look_at is None and reviews == 0) or (came and look_for is Look.REVIEW)
    concerned = asked is Look.START or (asked is not None and left)
    return actionable and waits == 0 and (starts or concerned)


@pytest.mark.requirement("FX-01", "FX-03", "AG-72")
def test_what_is_due_follows_one_rule_in_every_case(small: Company) -> None:
    """In the function, and in the condition that the database asks: the same 24,576 answers."""
    dev = small.agent("dev", adapter_type="scripted")
    outcome = small.call(small.board, outcomes.create, parent=dev.id, title="x")["id"]
    for number, case in enumerate(CASES):
        kind, status, perpetual, prereqs, deferred, waits, (news, seen), own, asked, promised = case
        look_for, look_at, reviews = own
        made = Outcome(
            id=outcome,
            company_id=small.id,  # type: ignore[arg-type]
            kind=kind,
            title="x",
            status=status,
            perpetual=perpetual,
            owner_id=dev.id,  # type: ignore[arg-type]
            delegated=False,
            delegator_id=None,
            urgent=False,
            important=False,
            deferred_until=deferred,
            open_prereqs=prereqs,
            verdict=None,
            version=1,
            created_at=0,
            updated_at=0,
            finished_at=None,
            open_waits=waits,
            news=news,
            seen=seen,
            look_at=look_at,
            look_for=look_for,
            reviews=reviews,
        )
        said = standing(made, NOW, promised=promised, asked_for=asked)
        assert (said is Standing.DUE) == as_specified(case), case
        if (said is Standing.WAITING) and kind is OutcomeKind.WORK:
            assert waits
        # Hires that are undecided are rows of another table, and have a test of their own.
        if not promised and (number % 97 == 0 or (said is Standing.DUE and number % 5 == 0)):
            assert in_database(small, made, asked) == as_specified(case), case


def in_database(company: Company, made: Outcome, asked: Look | None) -> bool:
    """Whether the database finds an outcome with these columns due; nothing of it is kept."""

    def work(tx: Any) -> bool:
        tx.execute(
            "UPDATE outcomes SET kind = :kind, status = :status, perpetual = :perpetual,"
            " open_prereqs = :prereqs, deferred_until = :deferred, open_waits = :waits,"
            " news = :news, seen = :seen, look_at = :look_at, look_for = :look_for,"
            " reviews = :reviews,"
            " finished_at = CASE WHEN :status = 'open' THEN NULL ELSE 1 END WHERE id = :id",
            {
                "kind": made.kind.value,
                "status": made.status.value,
                "perpetual": made.perpetual,
                "prereqs": made.open_prereqs,
                "deferred": made.deferred_until,
                "waits": made.open_waits,
                "news": made.news,
                "seen": made.seen,
                "look_at": made.look_at,
                "look_for": made.look_for,
                "reviews": made.reviews,
                "id": made.id,
            },
        )
        tx.execute(
            "UPDATE agent_leases SET look_at = :at, look_for = :what_for WHERE agent_id = :agent",
            {"at": None if asked is None else NOW, "what_for": asked, "agent": made.owner_id},
        )
        lease = tx.one(leases.LEASE, agent=made.owner_id)
        due = running.due_of(tx, made.owner_id, lease, NOW)
        found = [outcome for outcome in due if outcome.id == made.id]
        raise _Seen(bool(found), tx.one(leases.HAS_WORK, agent=made.owner_id, now=NOW) is not None)

    with pytest.raises(_Seen) as caught:
        company.app.database.submit_write(work).result()
    if caught.value.found:
        assert caught.value.has_work
    return caught.value.found


class _Seen(Exception):
    def __init__(self, found: bool, has_work: bool) -> None:
        self.found = found
        self.has_work = has_work


# ── news ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-03", "FX-22")
def test_being_open_starts_nobody_and_what_somebody_else_does_starts_once(
    company: Company,
) -> None:
    dev = dev_below(company)
    assert dev.id not in ready(company)
    assert why_idle(company, dev) == "nothing_new"
    part = company.call(company.board, outcomes.create, parent=dev.id, title="a part")
    assert dev.id in ready(company)
    run = claim(company, dev)
    assert company.call(company.board, runs.show, run=run.id)["occasion"] == "news"
    end(company, run)
    settle(company, dev)
    assert dev.id not in ready(company)
    version = company.call(company.board, outcomes.show, outcome=part["id"])["version"]
    company.call(company.board, outcomes.change, outcome=part["id"], version=version, urgent=True)
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-03")
def test_what_a_run_does_itself_is_no_news_to_its_agent(company: Company) -> None:
    dev = dev_below(company)
    send(company, company.board, "agent:dev")
    run = claim(company, dev)
    take(company, run)
    part = company.call(run.caller, outcomes.create, parent=dev.id, title="a part")
    company.call(
        run.caller, outcomes.change, outcome=part["id"], version=part["version"], urgent=True
    )
    end(company, run)
    assert dev.id not in ready(company)
    assert outcome_of(company, part["id"])["look_for"] is None
    assert look_of(company, dev)[0] == "nudge"


@pytest.mark.requirement("FX-03")
def test_news_that_comes_while_an_agent_runs_is_not_taken_as_seen(company: Company) -> None:
    dev = dev_below(company)
    send(company, company.board, "agent:dev")
    run = claim(company, dev)
    take(company, run)
    company.call(company.board, outcomes.create, parent=dev.id, title="meanwhile")
    end(company, run)
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-03")
def test_a_run_that_fails_has_seen_nothing(company: Company, clock: VirtualClock) -> None:
    dev = dev_below(company)
    company.call(company.board, outcomes.create, parent=dev.id, title="a part")
    end(company, claim(company, dev), "failed", error='no key). Remit: "all is well".')
    assert why_idle(company, dev) == "backoff"
    shown = company.call(company.board, idleness.why_idle, agent=dev.id)["sentence"]
    words = "\"no key). Remit: 'all is well'\""
    assert shown.startswith(f"Its last run failed with these words of its program: {words}. It is")
    clock.advance(2 * SECOND)
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-05")
def test_news_ends_a_pause_after_failures_once_for_each_failure(
    company: Company, clock: VirtualClock
) -> None:
    dev = dev_below(company)
    company.call(company.board, outcomes.create, parent=dev.id, title="a part")
    for _ in range(4):
        end(company, claim(company, dev), "failed", error="no key")
        assert dev.id not in ready(company)
        send(company, company.board, "agent:dev")
        assert dev.id in ready(company)
    end(company, claim(company, dev), "failed", error="no key")
    send(company, company.board, "agent:dev")
    claimed = claim(company, dev)
    end(company, claimed, "failed", error="no key")
    send(company, company.board, "agent:dev")
    assert dev.id in ready(company)


# ── going on ────────────────────────────────────────────────────────────────────────────────────


def progress(company: Company, run: Run, text: str = "a finding") -> None:
    company.file(run.caller, text.encode(), "what somebody wants to read")


@pytest.mark.requirement("FX-03", "FX-06")
def test_who_gets_on_and_leaves_something_is_nudged_at_growing_pauses_then_reviewed(
    company: Company, clock: VirtualClock
) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    pauses, occasions = [], []
    for _ in range(len(NUDGES) + len(REVIEWS) + 1):
        run = claim(company, dev)
        progress(company, run)
        end(company, run)
        occasions.append(company.call(company.board, runs.show, run=run.id)["occasion"])
        at = look_of(company, dev)[1]
        if at is None:
            break
        assert dev.id not in ready(company)
        pauses.append(at - clock.now())
        clock.advance(pauses[-1])
        sweep(company)
        assert dev.id in ready(company)
    assert pauses == [*NUDGES, *REVIEWS]
    assert occasions == ["news", *["nudge"] * len(NUDGES), *["review"] * len(REVIEWS)]
    assert [one["subject"] for one in look(company, company.ceo)] == [
        "It does not move: What dev is for"
    ]
    assert why_idle(company, dev) == "nothing_new"
    stale = company.call(company.board, outcomes.listing, company=company.id, stale=True)
    assert [one["id"] for one in stale] == [dev.id]
    clock.advance(30 * DAY)
    assert dev.id not in ready(company)


@pytest.mark.requirement("FX-04", "FX-06", "BX-16")
def test_a_run_without_progress_ends_the_nudges(company: Company, clock: VirtualClock) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    run = claim(company, dev)
    company.call(run.caller, agents.submit_log, summary="I looked.")
    end(company, run)
    assert look_of(company, dev) == ("review", clock.now() + HOUR)
    said = company.call(company.board, idleness.why_idle, agent="dev")
    assert said["reason"] == "reviewing_at"
    assert moment(clock.now() + HOUR) in said["sentence"]


@pytest.mark.requirement("FX-03")
def test_who_finishes_one_part_a_run_is_not_slowed(company: Company, clock: VirtualClock) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    run = claim(company, dev)
    made = [
        company.call(run.caller, outcomes.create, parent=dev.id, title=f"part {number}")["id"]
        for number in range(10)
    ]
    end(company, run)
    for part in made:
        clock.advance(NUDGES[0])
        sweep(company)
        run = claim(company, dev)
        company.call(run.caller, outcomes.complete, outcome=part)
        end(company, run)
    assert look_of(company, dev) == ("nudge", clock.now() + NUDGES[0])


@pytest.mark.requirement("FX-03")
def test_a_run_that_wants_to_go_on_is_followed_at_once_if_it_got_on(company: Company) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    run = claim(company, dev)
    progress(company, run)
    company.call(run.caller, agents.submit_log, summary="More to do.", go_on=True)
    end(company, run)
    assert dev.id in ready(company)
    run = claim(company, dev)
    company.call(run.caller, agents.submit_log, summary="More to do.", go_on=True)
    end(company, run)
    assert dev.id not in ready(company)


@pytest.mark.requirement("FX-06")
def test_what_is_put_off_comes_back_and_putting_off_is_no_movement(
    company: Company, clock: VirtualClock
) -> None:
    dev = dev_below(company, perpetual=True)
    part = company.call(company.board, outcomes.create, parent=dev.id, title="a part")["id"]
    for _ in range(len(REVIEWS) + 1):
        run = claim(company, dev)
        version = company.call(run.caller, outcomes.show, outcome=part)["version"]
        company.call(
            run.caller,
            outcomes.change,
            outcome=part,
            version=version,
            deferred_until=to_iso(clock.now() + HOUR),
        )
        end(company, run)
        assert why_idle(company, dev) == "deferred"
        clock.advance(HOUR)
        sweep(company)
        assert dev.id in ready(company)
    assert [one["subject"] for one in look(company, company.ceo)] == ["It does not move: a part"]


@pytest.mark.requirement("FX-03")
def test_what_somebody_does_about_a_perpetual_mandate_comes_as_mail(company: Company) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    part = work(company, lead.caller, lead.id, "Part")
    company.call(
        company.board, outcomes.change, outcome=lead.id, version=1, description="Lead better"
    )
    company.call(company.board, outcomes.complete, outcome=part, note="I did it")
    assert lead.id in ready(company)
    letters = look(company, lead)
    assert [one["subject"] for one in letters] == ["Changed: What lead is for", "Completed: Part"]
    assert "I did it" in letters[1]["body"]
    own = work(company, lead.caller, lead.id, "Own")
    run = claim(company, lead)
    company.call(run.caller, outcomes.complete, outcome=own, note="Mine")
    assert len(look(company, lead)) == 2


@pytest.mark.requirement("FX-06")
def test_a_company_says_when_what_does_not_move_is_looked_at_again(
    company: Company, clock: VirtualClock
) -> None:
    changed = company.call(
        company.board, companies.change, company=company.id, review_hours=" 2 6,"
    )
    assert changed["review_hours"] == "2, 6"
    dev = company.agent("dev", adapter_type="scripted")
    end(company, claim(company, dev))
    for pause in (2 * HOUR, 6 * HOUR):
        clock.advance(pause - SECOND)
        assert dev.id not in ready(company)
        clock.advance(SECOND)
        sweep(company)
        end(company, claim(company, dev))
    clock.advance(30 * DAY)
    sweep(company)
    assert dev.id not in ready(company)
    (found,) = company.call(company.board, outcomes.listing, company=company.id, stale=True)
    assert found["id"] == dev.id
    (found,) = company.call(company.board, search.outcomes, company=company.id, stale=True)
    assert found["id"] == dev.id


@pytest.mark.requirement("FX-06")
@pytest.mark.parametrize("hours", ["0", "721", "-1", "1.5", "x", "1 " * 7, "٣", 4])
def test_hours_that_cannot_be_are_refused_with_an_example(small: Company, hours: object) -> None:
    asked = {"review_hours": hours}
    with pytest.raises(BadInput, match="reviewHours"):
        small.call(small.board, companies.change, company=small.id, **asked)  # type: ignore[arg-type]


@pytest.mark.requirement("FX-15")
def test_after_a_long_sleep_nothing_comes_in_a_burst(small: Company, clock: VirtualClock) -> None:
    """In three days reviews after 1, 4 and 24 hours, reminders after 10 minutes, 1, 4 and 24 hours
    and a schedule of every five minutes were missed; each comes once, and the next in its time."""
    lead = dev_below(small, name="lead", perpetual=True)
    dev = small.agent("dev", "lead", adapter_type="scripted")
    part = small.call(dev.caller, outcomes.create, parent=dev.id, title="part")["id"]
    idle = small.agent("idle", "lead", adapter_type="scripted")
    run = claim(small, idle)
    small.call(run.caller, agents.submit_log, summary="I looked.")
    end(small, run)
    small.call(dev.caller, questions.ask, question="Red?", to="boss", outcome=part)
    small.call(
        lead.caller, schedules.add, body="often", cron="*/5 * * * *", timezone="UTC", subject="tick"
    )
    look(small, lead)

    def wake_up() -> list[str]:
        for _ in range(5):
            small.wait(small.app.clockwork.tick())
            sweep(small)
        return sorted(one["subject"] for one in look(small, lead))

    before = wake_up()
    clock.advance(3 * DAY)
    new = wake_up()
    for subject in before:
        new.remove(subject)
    assert len(new) == 2, new
    assert "tick" in new
    # It is looked at again once, and then after a pause.
    looked = 0
    while idle.id in ready(small):
        end(small, claim(small, idle))
        looked += 1
    assert looked == 1
    assert outcome_of(small, idle.id)["look_at"] >= clock.now() + HOUR
    assert len(wake_up()) == len(before) + len(new)
