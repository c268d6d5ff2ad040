"""Who is calling: tokens, names, and that nothing but the token says it."""

import asyncio
import base64
import inspect
import string
from typing import Any

import psycopg
import pytest

from remit.clock import DAY, HOUR, MINUTE
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, Unauthenticated
from remit.ids import TokenKind, new_token, token_digest
from remit.model.organisation.agent_spec import FIELDS
from remit.services.command import Kind, Verb
from remit.services.execution import run_queue, runs
from remit.services.hiring import hiring
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.people import companies, sessions, users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.screens import overview
from remit.services.work import outcomes
from remit.store.tables import metadata
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, keyed


def fails(company: Company, token: str) -> str:
    """The sentence with which a token is turned away, by every kind of call."""
    sentences = set()
    caller = Caller(token)
    for attempt in (
        lambda: company.call(caller, users.me),
        lambda: company.call(caller, overview.me),
        lambda: company.file(caller),
        lambda: company.call(caller, files.browse, company=None),
        lambda: company.call(keyed(caller, "key"), agents.create, company=None, name="x"),
    ):
        with pytest.raises(Unauthenticated) as refusal:
            attempt()
        sentences.add(refusal.value.sentence)
    assert len(sentences) == 1
    return sentences.pop()


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-05", "AG-58")
@pytest.mark.parametrize("kind", TokenKind)
def test_a_token_says_its_kind_and_has_256_random_bits(kind: TokenKind) -> None:
    made = {new_token(kind) for _ in range(200)}
    assert len(made) == 200
    for token in made:
        prefix, name, secret = token.split("_", 2)
        assert (prefix, name) == ("rmt", kind.value)
        assert set(secret) <= set(string.ascii_letters + string.digits + "-_")
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32
    # Every position varies, so no part of it is constant.
    secrets = [token.split("_", 2)[2] for token in made]
    assert all(len({secret[n] for secret in secrets}) > 1 for n in range(43))


@pytest.mark.requirement("HB-05", "HB-06", "AG-58", "AG-43")
def test_each_kind_of_token_is_issued_with_its_prefix(company: Company) -> None:
    run = company.run(company.ceo)
    link = company.call(company.board, sessions.create_link)
    session = company.call(as_system(), sessions.redeem, link=link["token"])
    assert company.ceo.caller.token.startswith("rmt_agent_")
    assert run.caller.token.startswith("rmt_run_")
    assert company.board.token.startswith("rmt_user_")
    assert link["token"].startswith("rmt_login_")
    assert session["token"].startswith("rmt_session_")


@pytest.mark.requirement("HB-07", "HB-06")
def test_only_the_digest_of_a_token_is_anywhere_in_the_database_or_the_home(
    company: Company,
) -> None:
    key = company.call(keyed(company.board, "k"), agents.create_key, agent="ceo", label="ci")
    run = company.run(company.ceo)
    link = company.call(company.board, sessions.create_link)
    session = company.call(as_system(), sessions.redeem, link=link["token"])
    tokens = [key["token"], run.caller.token, link["token"], session["token"]]
    tokens += [company.board.token, company.ceo.caller.token, company.token_of("board").token]
    dump = "\n".join(
        repr(company.sql(f'SELECT * FROM "{name}"'))  # noqa: S608
        for name in [*metadata.tables, "file_search"]
    )
    for token in tokens:
        secret = token.split("_", 2)[2]
        assert token_digest(token) in dump
        assert secret not in dump
        assert secret[:20] not in dump
    on_disk = [path for path in company.home.parent.rglob("*") if path.is_file()]
    for path in on_disk:
        if path.name == "board.token":
            continue
        content = path.read_bytes()
        assert not any(token.split("_", 2)[2].encode() in content for token in tokens)
    # The one exception is the board's own, for the owner of the home folder alone.
    assert company.app.settings.board_token_file.stat().st_mode & 0o077 == 0


@pytest.mark.requirement("HB-06")
def test_a_token_is_shown_once_and_a_repeat_of_the_request_does_not_show_it_again(
    company: Company,
) -> None:
    again = keyed(company.board, "make-a-key")
    first = company.call(again, agents.create_key, agent="ceo", label="ci")
    second = company.call(again, agents.create_key, agent="ceo", label="ci")
    assert first["token"].startswith("rmt_agent_")
    assert second == {**first, "token": None}
    listed = company.call(company.board, agents.keys, agent="ceo")
    assert [key["label"] for key in listed] == ["", "ci"]
    assert all("token" not in key and "digest" not in key for key in listed)
    people = company.call(company.board, users.tokens, company=company.id, user="board")
    assert all("token" not in key and "digest" not in key for key in people)


@pytest.mark.requirement("AG-58")
def test_a_revoked_key_opens_nothing_and_the_others_still_do(company: Company) -> None:
    key = company.call(company.board, agents.create_key, agent="ceo")
    assert company.call(Caller(key["token"]), overview.me)["id"] == company.ceo.id
    company.call(company.board, agents.revoke_key, agent="ceo", key=key["id"])
    assert fails(company, key["token"]) == "The token was revoked."
    assert company.call(company.ceo.caller, overview.me)["id"] == company.ceo.id


@pytest.mark.requirement("AG-58")
def test_a_token_ends_at_its_expiry(company: Company, clock: VirtualClock) -> None:
    ends = clock.now() + HOUR
    key = company.call(company.board, agents.create_key, agent="ceo", expires_at=ends)
    clock.advance(HOUR - 1)
    assert company.call(Caller(key["token"]), overview.me)["id"] == company.ceo.id
    clock.advance(1)
    assert fails(company, key["token"]) == "The token has expired."
    with pytest.raises(BadInput):
        company.call(company.board, agents.create_key, agent="ceo", expires_at=clock.now())


@pytest.mark.requirement("AG-58", "BX-14")
def test_what_is_not_exactly_a_token_opens_nothing(company: Company) -> None:
    token = company.ceo.caller.token
    forged = new_token(TokenKind.AGENT)
    for text in (
        "",
        token[:-1],
        token + "A",
        token + " ",
        " " + token,
        token.upper(),
        token.replace("rmt_agent_", "rmt_user_"),
        token.replace("rmt_agent_", ""),
        token_digest(token),
        f"rmt_{token_digest(token)}",
        forged,
        company.ceo.id,
        "rmt_" + "x" * 1_000_000,
        "rmt_\x00",
        "rmt_\ud800",
        "Bearer " + token,
    ):
        fails(company, text)


@pytest.mark.tampers
@pytest.mark.requirement("AG-43", "AG-58")
def test_a_runs_token_is_bound_to_agent_and_run_and_dies_with_the_run(company: Company) -> None:
    run = company.run(company.ceo)
    me = company.call(run.caller, overview.me)
    assert (me["id"], me["run_id"]) == (company.ceo.id, run.id)
    company.call(as_system(), runs.end, run=run.id)
    assert fails(company, run.caller.token) == "The token was revoked."
    company.sql("UPDATE tokens SET revoked_at = NULL WHERE run_id = ?", run.id)
    assert fails(company, run.caller.token) == "The run that this token belonged to has ended."


@pytest.mark.requirement("AG-43")
@pytest.mark.requirement("BX-14")
@pytest.mark.parametrize("company", ["postgresql"], indirect=True)
def test_who_waited_for_their_turn_is_identified_again(company: Company) -> None:
    """On PostgreSQL a call waits for the one before it, and its token can end meanwhile."""
    worker = company.agent("worker")
    waiting = (
        "SELECT 1 FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    async def meanwhile() -> None:
        with psycopg.connect(company.url) as other:
            other.execute(
                "SELECT seq FROM event_heads WHERE company_id = %s FOR UPDATE", (company.id,)
            )
            late = company.app.gate(worker.caller, agents.submit_log, summary="Late")
            call = asyncio.create_task(late)
            with psycopg.connect(company.url, autocommit=True) as beside:
                while not beside.execute(waiting).fetchall():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)  # a database tells nobody that somebody waits
            other.execute("UPDATE tokens SET revoked_at = 1 WHERE agent_id = %s", (worker.id,))
        await call

    with pytest.raises(Unauthenticated, match="revoked"):
        company.wait(meanwhile())
    assert company.sql("SELECT count(*) FROM events WHERE action = 'log.submit'") == [(0,)]


def test_each_run_has_its_own_id_and_is_on_record_with_it(company: Company) -> None:
    seen = []
    for _ in range(2):
        run = company.run(company.ceo)
        company.file(run.caller)
        company.call(as_system(), runs.end, run=run.id)
        seen.append(run.id)
    log = company.call(company.board, events.listing, company=company.id)
    created = [event for event in log if event["action"] == "file.create"]
    assert [event["run_id"] for event in created] == seen[::-1]
    assert {event["actor"] for event in created} == {f"agent:{company.ceo.id}"}


@pytest.mark.tampers
@pytest.mark.requirement("AG-58")
def test_terminating_an_agent_ends_all_its_tokens_and_its_run(company: Company) -> None:
    lead = company.agent("lead")
    run = company.run(lead)
    company.call(company.board, agents.terminate, agent="lead")
    fails(company, lead.caller.token)
    fails(company, run.caller.token)
    rows = company.sql("SELECT status FROM runs WHERE id = ?", run.id)
    assert rows == [("cancelled",)]
    with pytest.raises(Conflict):
        company.call(company.board, agents.create_key, agent=lead.id)
    # Even a token that came back from a backup is of no use.
    company.sql("UPDATE tokens SET revoked_at = NULL WHERE agent_id = ?", lead.id)
    with pytest.raises(Refused) as refused:
        company.call(lead.caller, agents.show, agent="ceo")
    assert refused.value.reason == "agent_inactive"


def test_an_agent_runs_once_at_a_time(company: Company) -> None:
    company.run(company.ceo)
    with pytest.raises(Conflict):
        company.run(company.ceo)


def test_of_many_starts_at_once_one_wins(company: Company) -> None:
    gate = company.app.gate
    for _ in range(3):
        answers = company.together(
            [
                gate(
                    as_system(),
                    runs.start,
                    agent=company.ceo.id,
                    run=company.app.ids.new(),
                    workspace=None,
                )
                for _ in range(12)
            ]
        )
        started = [answer for answer in answers if isinstance(answer, dict)]
        assert len(started) == 1
        assert all(isinstance(answer, dict | Conflict) for answer in answers)
        company.call(as_system(), runs.end, run=started[0]["run_id"])


def test_an_agent_terminated_while_its_run_starts_does_not_run(company: Company) -> None:
    gate = company.app.gate
    for n in range(6):
        agent = company.agent(f"short-lived-{n}")
        start = gate(
            as_system(), runs.start, agent=agent.id, run=company.app.ids.new(), workspace=None
        )
        end = gate(company.board, agents.terminate, agent=agent.id)
        company.together([end, start] if n % 2 else [start, end])
        assert company.call(company.board, agents.show, agent=agent.id)["status"] == "terminated"
        live = company.sql(
            "SELECT id FROM runs WHERE agent_id = ? AND status = 'running'", agent.id
        )
        assert live == []


# ── signing in ──────────────────────────────────────────────────────────────────────────────────


def test_a_login_link_opens_one_session_once(company: Company, clock: VirtualClock) -> None:
    link = company.call(company.board, sessions.create_link)["token"]
    fails(company, link)
    session = company.call(as_system(), sessions.redeem, link=link)["token"]
    assert company.call(Caller(session), users.me) == company.call(company.board, users.me)
    with pytest.raises(Unauthenticated):
        company.call(as_system(), sessions.redeem, link=link)
    company.call(Caller(session), sessions.end, session=session)
    fails(company, session)
    late = company.call(company.board, sessions.create_link)["token"]
    clock.advance(15 * MINUTE)
    with pytest.raises(Unauthenticated):
        company.call(as_system(), sessions.redeem, link=late)


def test_of_many_who_redeem_a_link_at_once_one_gets_a_session(company: Company) -> None:
    link = company.call(company.board, sessions.create_link)["token"]
    gate = company.app.gate
    answers = company.together([gate(as_system(), sessions.redeem, link=link) for _ in range(8)])
    assert sum(isinstance(answer, dict) for answer in answers) == 1


def test_a_session_ends_by_itself(company: Company, clock: VirtualClock) -> None:
    link = company.call(company.board, sessions.create_link)["token"]
    session = company.call(as_system(), sessions.redeem, link=link)["token"]
    clock.advance(7 * DAY)
    assert fails(company, session) == "The token has expired."


def test_agents_do_not_sign_in(company: Company) -> None:
    with pytest.raises(NotFound):
        company.call(company.ceo.caller, sessions.create_link)
    with pytest.raises(Unauthenticated):
        company.call(as_system(), sessions.redeem, link=company.ceo.caller.token)


# ── names ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-01", "AG-42")
def test_an_agent_has_a_name_a_token_and_the_id_of_its_mandate(company: Company) -> None:
    lead = company.agent("lead", purpose="Ship the product")
    mandate = company.call(company.board, outcomes.show, outcome=lead.id)
    assert (mandate["id"], mandate["owner_id"]) == (lead.id, lead.id)
    assert mandate["title"] == "Ship the product"
    assert company.call(lead.caller, overview.me)["name"] == "lead"
    for name in ("lead", "LEAD", "agent:lead", lead.id, lead.id[:23]):
        assert company.call(company.board, agents.show, agent=name)["id"] == lead.id
    rows = company.sql("SELECT a.id FROM agents a JOIN outcomes o ON o.id = a.id")
    assert len(rows) == len(company.sql("SELECT id FROM agents")) == 2


@pytest.mark.requirement("HB-02")
@pytest.mark.parametrize("name", ["a", "A1", "0", "web-designer", "a-b-c-1", "x" * 64])
def test_good_names_are_taken(company: Company, name: str) -> None:
    assert company.agent(name).name == name


@pytest.mark.requirement("HB-02")
@pytest.mark.parametrize(
    "name",
    [
        "", "-a", "a-", "a--b", "a b", "a_b", "a.b", "ä", "a\n", "a/b", "agent:a", "x" * 65,
        "a\x00", "\ud800", "\uff11", "\u0430", None, 5,
    ],
)  # fmt: skip
def test_bad_names_are_refused(company: Company, name: Any) -> None:
    with pytest.raises(BadInput):
        company.call(company.board, agents.create, company=company.id, name=name)


@pytest.mark.requirement("HB-03")
def test_names_are_unique_among_the_living_without_regard_to_case(company: Company) -> None:
    first = company.agent("Web-Designer")
    for name in ("web-designer", "WEB-DESIGNER", "Web-Designer"):
        with pytest.raises(AlreadyExists):
            company.agent(name)
    company.call(company.board, agents.terminate, agent="web-designer")
    second = company.agent("WEB-designer")
    assert company.call(company.board, agents.show, agent="web-designer")["id"] == second.id
    assert company.call(company.board, agents.show, agent=first.id)["status"] == "terminated"


@pytest.mark.requirement("HB-03")
def test_of_many_agents_of_one_name_made_at_once_one_comes_to_be(company: Company) -> None:
    gate = company.app.gate
    names = ["worker", "Worker", "WORKER"] * 5
    answers = company.together(
        [gate(company.board, agents.create, company=company.id, name=name) for name in names]
    )
    assert sum(isinstance(answer, dict) for answer in answers) == 1
    assert all(isinstance(answer, dict | AlreadyExists) for answer in answers)


@pytest.mark.requirement("HB-04")
@pytest.mark.parametrize("name", ["background", "Background", "BOARD", "human", "system"])
def test_reserved_names_are_refused(company: Company, name: str) -> None:
    with pytest.raises(BadInput):
        company.agent(name)


# ── identity comes from the token alone ─────────────────────────────────────────────────────────

VERBS = [
    verb
    for module in (agents, companies, events, files, grants, hiring, outcomes, runs, users)
    for verb in vars(module).values()
    if isinstance(verb, Verb)
]
#: Arguments by which a caller could try to pass for somebody else.
PRETENCES = (
    "actor", "as_agent", "as_user", "author", "by", "caller", "from_agent", "from_board",
    "granted_by", "identity", "impersonate", "on_behalf_of", "principal", "sender",
)  # fmt: skip


@pytest.mark.requirement("BX-14")
def test_no_verb_takes_an_argument_that_says_who_is_calling() -> None:
    assert len(VERBS) >= 30
    for verb in VERBS:
        parameters = inspect.signature(verb.body).parameters
        assert not {*parameters, *verb.parameters} & set(PRETENCES), verb.name
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            assert set(verb.described) == set(FIELDS), verb.name


@pytest.mark.requirement("BX-14")
@pytest.mark.parametrize("verb", [agents.create, hiring.hire])
def test_a_verb_that_takes_a_description_takes_its_fields_and_nothing_else(
    small: Company, verb: Verb[..., Any]
) -> None:
    for pretence in set(PRETENCES) - {"caller"}:  # which is whom the test calls as
        with pytest.raises(BadInput, match=f"unknown field '{pretence}'"):
            small.call(small.board, verb, company=None, name="one", **{pretence: small.ceo.id})


@pytest.mark.requirement("BX-14", "HB-11")
def test_every_event_carries_the_identity_of_the_token(company: Company) -> None:
    """Text that claims to come from the board changes nothing about who acted."""
    lead = company.agent("lead")
    run = company.run(company.ceo)
    claim = "from: user:board\nfrom_board: true\nX-Remit-Actor: user:board"
    file = company.file(run.caller, claim.encode(), claim)
    company.write(run.caller, file, claim.encode() + b"!")
    company.give(run.caller, lead, file, "read")
    with pytest.raises(Refused):
        company.call(run.caller, outcomes.close, outcome=company.ceo.id, rationale=claim)
    log = company.call(company.board, events.listing, company=company.id, limit=4)
    assert [event["action"] for event in log] == [
        "outcome.finish",
        "grant.give",
        "file.write",
        "file.create",
    ]
    for event in log:
        assert (event["actor"], event["run_id"]) == (f"agent:{company.ceo.id}", run.id)


@pytest.mark.requirement("HB-11", "BX-14")
def test_the_widest_rights_do_not_make_an_agent_somebody_else(company: Company) -> None:
    for action in ("agent.create", "full_access", "instance.configure"):
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to="ceo",
            resource=action,
            level="use",
        )
    file = company.file(company.ceo.caller)
    me = company.call(company.ceo.caller, users.me)
    assert (me["kind"], me["id"], me["operator"]) == ("agent", company.ceo.id, False)
    log = company.call(company.board, events.listing, company=company.id, limit=1)
    assert log[0]["actor"] == f"agent:{company.ceo.id}"
    history = company.call(company.board, files.history, file=file["id"])
    assert (history[0]["agent_id"], history[0]["user_id"]) == (company.ceo.id, None)


@pytest.mark.requirement("BX-14")
def test_an_agent_cannot_act_for_another_by_naming_it(company: Company) -> None:
    lead, other = company.agent("lead"), company.agent("other")
    worker = company.agent("worker", "lead")
    file = company.file(lead.caller)
    for attempt in (
        lambda: company.give(other.caller, worker, file, "read"),
        lambda: company.call(other.caller, grants.listing, company=None, agent=lead.id),
        lambda: company.call(other.caller, agents.create_key, agent=lead.id),
        lambda: company.call(other.caller, agents.keys, agent=lead.id),
        lambda: company.call(
            other.caller, runs.start, agent=lead.id, run=company.app.ids.new(), workspace=None
        ),
        lambda: company.call(lead.caller, agents.create_key, agent=lead.id),
    ):
        with pytest.raises(Refused):
            attempt()


@pytest.mark.requirement("BX-14")
def test_a_run_cannot_end_or_start_runs(company: Company) -> None:
    run = company.run(company.ceo)
    with pytest.raises(Refused):
        company.call(run.caller, runs.end, run=run.id)
    with pytest.raises(NotFound):
        company.call(run.caller, run_queue.live)
    with pytest.raises(NotFound):
        company.call(company.board, run_queue.live)
    assert [r.id for r in company.call(as_system(), run_queue.live)] == [run.id]


def test_a_board_member_cannot_make_a_token_for_an_operator(company: Company) -> None:
    ann = company.user("ann")
    with pytest.raises(Conflict):
        company.call(ann, users.create_token, company=company.id, user="board", expires_at=None)


def test_an_agents_place_is_at_most_32_deep(company: Company) -> None:
    boss: Member = company.ceo
    for n in range(31):
        boss = company.agent(f"level-{n}", boss.name)
    with pytest.raises(BadInput):
        company.agent("too-deep", boss.name)


def test_every_change_is_a_command() -> None:
    """What does not look like a question is decided and recorded."""
    questions = {verb.name for verb in VERBS if verb.kind is not Kind.COMMAND}
    changing = ("create", "change", "terminate", "revoke", "give", "add", "remove", "start", "end")
    assert not [name for name in questions if name.split(".")[1].startswith(changing)]
