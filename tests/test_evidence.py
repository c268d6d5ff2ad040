"""Requests and tokens that were written past Remit: `event verify` finds them."""

from typing import Any

import pytest

from remit.errors import Unauthenticated
from remit.ids import TokenKind, new_token, token_digest
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.services.people import sessions, tokens, users
from remit.services.record import events
from tests.company import Answer, Company
from tests.governance import ask, resubmit, send_back
from tests.organisation import member, refusal
from tests.working import end


def faults(company: Company, of: str | None = None) -> set[tuple[str, str]]:
    """The kinds of faults, each with the token or approval that it is about."""
    answer: Answer = company.call(company.board, events.verify, company=of or company.id)
    assert answer["ok"] == (not answer["faults"])
    return {(one["kind"], one["sentence"].split()[0]) for one in answer["faults"]}


def insert(
    company: Company, kind: TokenKind, *, event: str | None, **holder: Any
) -> tuple[str, str]:
    """Write a token past Remit; returns its id and the token."""
    token_id, secret = company.app.ids.new(), new_token(kind)
    names = ("id", "digest", "kind", "label", "created_at", "event_id", *holder)
    company.sql(
        f"INSERT INTO tokens ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",  # noqa: S608
        *(token_id, token_digest(secret), kind.value, "", 0, event, *holder.values()),
    )
    return token_id, secret


@pytest.mark.tampers
@pytest.mark.requirement("BX-14")
def test_a_token_that_was_inserted_opens_nothing_or_is_found(company: Company) -> None:
    """The findings' attack: one INSERT made an operator's token."""
    ((operator,),) = company.sql("SELECT id FROM users WHERE operator")
    ((event,),) = company.sql(
        "SELECT e.id FROM events e JOIN tokens t ON e.id = t.event_id WHERE t.user_id = ?"
        " AND t.kind = 'user'",
        operator,
    )
    unknown, secret = insert(company, TokenKind.USER, event=None, user_id=operator)
    with pytest.raises(Unauthenticated, match="not in the record"):
        company.call(Caller(secret), users.me)
    assert faults(company) == {("unrecorded", f"token:{unknown}")}
    # Who knows how names the event of another token, which opens, and verify still finds it.
    borrowed, secret = insert(company, TokenKind.USER, event=event, user_id=operator)
    assert company.call(Caller(secret), users.me)["id"] == operator
    key, _ = insert(
        company,
        TokenKind.AGENT,
        event=event,
        company_id=company.id,
        agent_id=company.ceo.id,
    )
    assert faults(company) == {("unrecorded", f"token:{one}") for one in (unknown, borrowed, key)}


@pytest.mark.tampers
@pytest.mark.requirement("BX-14")
@pytest.mark.parametrize(
    "harm",
    [
        "expires_at = NULL",
        "expires_at = expires_at + 1",
        "user_id = (SELECT id FROM users WHERE operator)",
        "kind = 'session'",
        "digest = 'other'",
        "event_id = NULL",
    ],
)
def test_a_token_whose_terms_were_changed_is_found(small: Company, harm: str) -> None:
    bea = small.user("bea")
    made = small.call(bea, tokens.create, days=3)
    assert faults(small) == set()
    small.sql(f"UPDATE tokens SET {harm} WHERE id = ?", made["id"])  # noqa: S608
    kind = "unrecorded" if "event_id" in harm else "altered"
    assert faults(small) == {(kind, f"token:{made['id']}")}


@pytest.mark.tampers
@pytest.mark.requirement("BX-14")
def test_every_end_of_a_token_is_on_record(small: Company) -> None:
    """However it ended: brought back to life, it is found."""
    bea, lead = small.user("bea"), small.agent("lead")
    ends: dict[str, str] = {}

    def ends_with(name: str, made: Answer, verb: Any, caller: Caller, /, **more: Any) -> None:
        small.call(caller, verb, **more)
        ends[name] = made["id"]

    own = small.call(bea, tokens.create)
    opened = small.call(Caller(own["token"]), sessions.open_)
    ends_with("own token", own, tokens.revoke, bea, token=own["id"])
    ends["a session that was opened with it"] = opened["id"]
    link = small.call(bea, sessions.create_link)
    session = small.call(as_system(), sessions.redeem, link=link["token"])
    ends["a link that was used"] = link["id"]
    ends_with(
        "a session", session, sessions.end, Caller(session["token"]), session=session["token"]
    )
    other = small.call(bea, sessions.open_)
    ends_with("another session", other, sessions.end_one, bea, session=other["id"])
    third = small.call(bea, sessions.open_)
    ends_with("all others", third, sessions.end_others, bea)
    key = small.call(small.board, agents.create_key, agent=lead.id)
    ends_with("a key", key, agents.revoke_key, small.board, agent=lead.id, key=key["id"])
    last = small.call(small.board, agents.create_key, agent=lead.id)
    ends_with("who is gone", last, agents.terminate, small.board, agent=lead.id)
    invited = small.call(small.board, tokens.invite, company=small.id, name="cleo")
    again = small.call(small.board, tokens.create_link, company=small.id, user="cleo")
    ends["an earlier invitation"] = invited["link_id"]
    hers = small.call(small.board, users.create_token, company=small.id, user="cleo")
    ends_with("who left", hers, users.remove, small.board, company=small.id, user="cleo")
    ends["the invitation of who left"] = again["id"]
    assert faults(small) == set()
    for name, token in ends.items():
        changed = small.sql("UPDATE tokens SET revoked_at = NULL WHERE id = ? RETURNING id", token)
        assert changed == [(token,)], name
        assert faults(small) == {("revived", f"token:{token}")}, name
        small.sql("UPDATE tokens SET revoked_at = 1 WHERE id = ?", token)


@pytest.mark.tampers
@pytest.mark.requirement("BX-14")
def test_a_revived_token_is_found_where_it_ended_and_where_it_opens(company: Company) -> None:
    """Its person is a member of another company alone by now."""
    company.user("cleo")
    there = company.second_company().id
    made = company.call(company.board, users.create_token, company=company.id, user="cleo")
    company.call(company.board, users.revoke_token, company=company.id, token=made["id"])
    company.call(company.board, users.add, company=there, name="cleo")
    company.call(company.board, users.remove, company=company.id, user="cleo")
    assert faults(company) == faults(company, there) == set()
    company.sql("UPDATE tokens SET revoked_at = NULL WHERE id = ?", made["id"])
    assert company.call(Caller(made["token"]), users.me)["name"] == "cleo"  # it opens again
    assert faults(company) == faults(company, there) == {("revived", f"token:{made['id']}")}


@pytest.mark.tampers
@pytest.mark.requirement("AG-43", "BX-14")
def test_the_token_of_a_run_is_on_record_and_ends_with_it(small: Company) -> None:
    run = small.run(small.ceo)
    assert faults(small) == set()
    ((token,),) = small.sql("SELECT id FROM tokens WHERE run_id = ?", run.id)
    forged, _ = insert(
        small,
        TokenKind.RUN,
        event=None,
        company_id=small.id,
        agent_id=small.ceo.id,
        run_id=run.id,
    )
    assert faults(small) == {("unrecorded", f"token:{forged}")}
    small.sql("DELETE FROM tokens WHERE id = ?", forged)

    end(small, run)
    small.sql("UPDATE tokens SET revoked_at = NULL WHERE id = ?", token)
    assert faults(small) == {("revived", f"token:{token}")}


@pytest.mark.tampers
def test_a_request_that_no_event_asks_for_is_found(small: Company) -> None:
    made = ask(small, member(small, {"id": small.ceo.id, "name": "ceo"}).caller)
    forged = small.app.ids.new()
    names = [row[1] for row in small.sql("PRAGMA table_info(approvals)") if row[1] != "id"]
    columns = ", ".join(names)
    small.sql(
        f"INSERT INTO approvals (id, {columns}) SELECT ?, {columns} FROM approvals WHERE id = ?",  # noqa: S608
        *(forged, made["id"]),
    )
    assert faults(small) == {("unrecorded", f"approval:{forged}")}


@pytest.mark.tampers
@pytest.mark.requirement("BX-10")
def test_a_request_that_no_event_asks_for_is_not_approved(small: Company) -> None:
    made = ask(small, small.ceo.caller)
    forged = small.app.ids.new()
    for table, key, own in (
        ("approvals", "id", forged),
        ("approval_revisions", "approval_id", forged),
    ):
        names = [row[1] for row in small.sql(f"PRAGMA table_info({table})") if row[1] != key]
        columns = ", ".join(names)
        small.sql(
            f"INSERT INTO {table} ({key}, {columns}) SELECT ?, {columns} FROM {table}"  # noqa: S608
            f" WHERE {key} = ?",
            *(own, made["id"]),
        )
    assert refusal(small, small.board, approvals.approve, approval=forged) == "altered"


@pytest.mark.tampers
@pytest.mark.requirement("BX-10")
def test_a_request_that_was_put_back_to_an_earlier_revision_is_not_approved(
    small: Company,
) -> None:
    made = ask(small, small.ceo.caller)
    send_back(small, made)
    resubmit(small, small.ceo.caller, made, cost=5)
    small.sql(
        "UPDATE approvals SET revision = 1,"
        " (payload, digest) = (SELECT payload, digest FROM approval_revisions"
        " WHERE number = 1 AND approval_id = approvals.id) WHERE id = ?",
        made["id"],
    )
    assert refusal(small, small.board, approvals.approve, approval=made["id"]) == "altered"


def test_events_never_hold_what_finds_a_token(company: Company) -> None:
    """The event has the digest of the digest, and an export of it opens nothing."""
    company.call(company.board, tokens.create, days=1)
    details = " ".join(row[0] for row in company.sql("SELECT details FROM events"))
    digests = [row[0] for row in company.sql("SELECT digest FROM tokens")]
    assert digests
    assert not any(digest in details for digest in digests)
    assert all(token_digest(digest) in details for digest in digests)
