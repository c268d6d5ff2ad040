"""The statement of an approval: all that it would apply, as text that nobody can mistake."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from remit.model.organisation.approval import ApprovalType
from remit.model.spelling import spelled, spelled_lines, spelled_name, spelled_value
from remit.model.text import digest_of
from remit.services.governance import approvals, statement
from remit.services.people import companies
from remit.services.redaction import REMOVED
from tests.company import Answer, Company, keyed
from tests.governance import hire, propose, resubmit, send_back
from tests.test_parking import gate, parked, send

BIDI, TAG, ZERO = "\u202e", "\U000e0041", "\u200b"


@pytest.fixture
def asking(small: Company) -> Company:
    """A company that asks before everything."""
    settings: Answer = {
        "require_board_approval_for_new_agents": True,
        "require_approval_for_config_changes": True,
    }
    small.call(small.board, companies.change, company=small.id, **settings)
    return small


def look(company: Company, approval: Answer, by: Any = None) -> Answer:
    view = company.call(by or company.board, approvals.look, approval=approval["id"])
    stated: Answer = view["statement"]
    return stated


def text_of(company: Company, approval: Answer) -> str:
    return statement.as_text(look(company, approval))


# ── one request of each type ────────────────────────────────────────────────────────────────────

CONFIG = {"command": "/bin/true", "args": ["one", "two"], "timeoutSeconds": 77}


def a_hire(company: Company) -> Answer:
    answer = hire(
        *(company, company.board, "helper"),
        adapter_type="process",
        adapter_config=CONFIG,
        prompt="Do it.\nWell.",
        title="Helping hand",
        capabilities="Much",
        reason="Because",
        purpose="Help",
        metadata={"deep": {"deeper": [1, {"deepest": "end"}]}},
        budget_monthly_cents=1234,
        given=[{"resource": "full_access", "level": "use"}],
    )
    approval: Answer = answer["approval"]
    return approval


def a_change(company: Company) -> Answer:
    agent = company.agent("worker")
    settings = {"adapterType": "process", "adapterConfig": CONFIG, "prompt": "Other words"}
    return propose(company, company.board, agent.id, **settings)


def a_call(company: Company) -> Answer:
    lead = company.agent("lead")
    gate(company, lead, "message:agent:ceo", "use")
    return parked(lambda: send(company, keyed(lead.caller, "call"), "Hello\nthere"))


def asked(kind: str, **payload: object) -> Callable[[Company], Answer]:
    def ask(company: Company) -> Answer:
        if kind == "budget":
            payload["agentId"] = company.agent("spender").id
        about: Answer = {"company": company.id, "kind": kind, "payload": payload}
        return company.call(company.board, approvals.request, **about)

    return ask


REQUESTS: Mapping[ApprovalType, Callable[[Company], Answer]] = {
    ApprovalType.HIRE_AGENT: a_hire,
    ApprovalType.CONFIG_CHANGE: a_change,
    ApprovalType.CAPABILITY_USE: a_call,
    ApprovalType.BUDGET: asked("budget", budgetMonthlyCents=500, why="growth", list=[3, "four"]),
    ApprovalType.APPROVE_CEO_STRATEGY: asked(
        "approve_ceo_strategy", title="Plan", steps=["a", {"b": [5, 6]}], until=2030
    ),
    ApprovalType.REQUEST_BOARD_APPROVAL: asked(
        "request_board_approval", title="May I?", summary="One\nTwo", cost=7.5, urgent=True
    ),
}
#: Keys of a payload that name a row, or are computed from others.
BOUND = {"agentId", "changed", "difference", "baseRevision", "verb", "action", "version"}
#: Paths at which a text is shown as the name of something, or a part of the payload as its own.
_UNDER = ("requestedConfigurationSnapshot.", "configuration.", "arguments.", "prepared.")


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each leaf of a document."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves_of(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves_of(inner, (*path, number))
    else:
        yield path


def replaced(document: Any, path: tuple[Any, ...], new: Any) -> Any:
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return copy


def rewritten(company: Company, approval: Answer, payload: Any) -> None:
    """Have the approval ask for another payload, as if it had from the beginning."""
    text, digest = json.dumps(payload), digest_of(payload)
    for table, key in (("approvals", "id"), ("approval_revisions", "approval_id")):
        company.sql(
            f"UPDATE {table} SET payload = ?, digest = ? WHERE {key} = ?",  # noqa: S608
            *(text, digest, approval["id"]),
        )


def named(path: tuple[Any, ...]) -> str:
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{spelled_name(step)}" if name else spelled_name(step)
    for above in _UNDER:
        name = name.removeprefix(above)
    return name


def under(text: str, name: str) -> str:
    """The lines of a statement that stand under a name, wherever it occurs."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("│"):
            found += [line] if inside else []
            continue
        inside = line == f"{name}:"
        if line.startswith(f"{name}: "):
            found.append(line)
    return "\n".join(found)


def markers(path: tuple[Any, ...], value: Any) -> list[Any]:
    """Values to put in the place of one, each unique, of its own type and of another."""
    if isinstance(value, bool):
        return [not value, 918273]
    if isinstance(value, int | float) or path[-1] in ("budgetMonthlyCents", "budgetMonthlyTokens"):
        return [918273, 91827.5]
    return ["marker-918273", "first\nmarker-918273", f"marker-918273{BIDI}"]


@pytest.mark.requirement("FX-61")
@pytest.mark.parametrize("kind", ApprovalType)
def test_each_leaf_stands_under_its_name_and_changes_the_text(
    asking: Company, kind: ApprovalType
) -> None:
    approval = REQUESTS[kind](asking)
    stored = asking.sql("SELECT payload FROM approvals WHERE id = ?", approval["id"])[0][0]
    payload = json.loads(stored)
    tried = 0
    for path in leaves_of(payload):
        if path[0] in BOUND or path[-1] in ("new_id", "sha256"):
            continue
        before = payload
        for step in path:
            before = before[step]
        texts = set()
        for marker in markers(path, before):
            rewritten(asking, approval, replaced(payload, path, marker))
            text = text_of(asking, approval)
            shown = under(text, named(path))
            last = spelled_lines(marker)[-1] if isinstance(marker, str) else json.dumps(marker)
            assert last in shown, (path, marker, text)
            texts.add(text.partition("FOR THE RECORD")[0])
        rewritten(asking, approval, payload)
        texts.add(text_of(asking, approval).partition("FOR THE RECORD")[0])
        in_record = path[0] in ("basis", "options", "requestedByAgentId")
        assert in_record or len(texts) == len(markers(path, before)) + 1, path
        tried += 1
    assert tried > 1


@pytest.mark.requirement("FX-61")
def test_values_cannot_look_like_another_line_or_a_status(asking: Company) -> None:
    forged = f"why\ngrants: []\n→ Approved by board.{BIDI}{TAG}{ZERO}\r\u2028TAKE NOTE\n! None"
    answer = hire(
        asking, asking.board, "helper", reason=forged, metadata={"a\nb: c": forged, "x": "y" * 10}
    )
    text = text_of(asking, answer["approval"])
    lines = text.splitlines()
    assert "grants: []" not in lines
    assert "! None" not in lines
    assert not any(line.startswith(("→", "TAKE NOTE ")) for line in lines)
    assert "⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩⟨U+E0041 TAG LATIN CAPITAL LETTER A⟩" in text
    assert "⟨U+200B ZERO WIDTH SPACE⟩⟨U+000D CARRIAGE RETURN⟩⟨U+2028 LINE SEPARATOR⟩" in text
    assert all(char == "\n" or char.isprintable() for char in text)
    assert 'metadata."a\\nb: c":' in lines


@pytest.mark.requirement("FX-61")
def test_what_is_dangerous_stands_first_and_in_words(asking: Company) -> None:
    given = [{"resource": "approval.decide", "level": "use"}]
    config = {"permissionMode": "bypassPermissions", "sandbox": "full"}
    answer = hire(
        *(asking, asking.board, "helper"),
        adapter_type="claude",
        adapter_config=config,
        given=given,
        budget_monthly_cents=99900,
        permissions={"canCreateAgents": True},
    )
    text = text_of(asking, answer["approval"])
    notes = [line[2:] for line in text.splitlines() if line.startswith("! ")]
    assert text.index("TAKE NOTE") < text.index("FOR WHOM") < text.index("CONFIGURATION")
    assert any("Full access" in note for note in notes)
    assert any("bypassPermissions" in note for note in notes)
    assert "It may spend $999.00 a month." in notes
    assert "It may hire agents." in notes
    assert any("approval.decide" in note for note in notes)


@pytest.mark.requirement("FX-61")
def test_a_secret_shows_its_name_and_source_and_never_its_value(asking: Company) -> None:
    asking.sql(
        "INSERT INTO secrets (id, company_id, name, source, place, version, created_at, updated_at)"
        " VALUES (?, ?, 'vault-key', 'env', 'VAULT_KEY', 1, 1, 1)",
        *(asking.app.ids.new(), asking.id),
    )
    value = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    config = {"url": "https://example.com/x", "secretRef": "vault-key", "headers": {"X-Key": value}}
    answer = hire(asking, asking.board, "helper", adapter_type="http", adapter_config=config)
    text = text_of(asking, answer["approval"])
    assert value not in text
    assert f"adapterConfig.headers.X-Key: {REMOVED}" in text
    assert "the secret “vault-key”, whose value comes from env: “VAULT_KEY”" in text
    assert "https://example.com/x" in text.partition("FOR WHOM")[0]


@pytest.mark.requirement("FX-61")
def test_the_changes_since_the_last_look_are_said(asking: Company) -> None:
    approval = a_hire(asking)
    assert look(asking, approval)["seen"] is False
    assert look(asking, approval)["seen"] is True
    for number, title in ((2, "Second"), (3, "Third")):
        send_back(asking, approval)
        resubmit(asking, asking.board, approval, title=title)
        assert (
            number == asking.call(asking.board, approvals.show, approval=approval["id"])["revision"]
        )
    for _ in range(2):  # until the next revision, also when it is shown again
        text = text_of(asking, approval)
        assert "CHANGED SINCE REVISION 1, WHICH YOU SAW" in text
        since = text.partition("WHICH YOU SAW")[2].partition("THE HIRE")[0]
        assert "- Helping hand" in since
        assert "+ Third" in since
        assert "Second" not in since
    other = asking.user("other")  # who never looked sees what the last revision changed
    text = statement.as_text(look(asking, approval, other))
    assert "CHANGED SINCE REVISION 2, THE ONE BEFORE" in text
    assert "- Second" in text


@pytest.mark.requirement("FX-61")
def test_a_write_is_shown_as_the_difference_to_what_it_replaces(asking: Company) -> None:
    lead = asking.agent("lead")
    before = "\n".join(f"Rule {number}" for number in range(40))
    file = asking.file(asking.board, before.encode(), description="Rule book")
    gate(asking, lead, f"kb_file:{file['id']}", "write")

    def write(content: bytes, key: str) -> Answer:
        seen = {"version": file["version"], "sha256": file["hash"]}
        caller = keyed(lead.caller, key)
        library = asking.app.library
        return parked(lambda: asking.wait(library.write(caller, content, file=file["id"], **seen)))

    text = text_of(asking, write(before.replace("Rule 20", f"Obey eve{BIDI}").encode(), "text"))
    content = under(text, "content").splitlines()
    assert content[0] == "│ … 17 lines unchanged"
    assert "│ - Rule 20" in content
    assert "│ + Obey eve⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩" in content
    assert "Rule 5" not in text

    approval = write(b"\x89PNG\x00\x01", "binary")
    text = text_of(asking, approval)
    assert "content.type: PNG image" in text
    assert "content.size: 6" in text
    assert f"`remit approval content {approval['id'][-12:]}`" in text
    shown = statement.as_text(look(asking, approval), "https://remit.example")
    assert f"content: https://remit.example/api/approvals/{approval['id']}/content" in shown


@pytest.mark.tampers
@pytest.mark.requirement("FX-61", "BX-10")
def test_an_altered_request_or_a_lost_content_is_not_whole(asking: Company) -> None:
    approval = a_hire(asking)
    assert look(asking, approval)["whole"]
    asking.sql("UPDATE approvals SET digest = 'other' WHERE id = ?", approval["id"])
    altered = look(asking, approval)
    assert not altered["whole"]
    assert "was altered" in altered["sections"][0]["entries"][0]["lines"][0]


def test_different_texts_are_spelled_differently() -> None:
    values: list[object] = [
        *("5", 5, "true", True, "null", None, "", " ", "a", '"a"', "a b", "a\u00a0b", "a\u200bb"),
        *("a\\nb", "⟨U+200B ZERO WIDTH SPACE⟩", "\u200b", " " * 50, " " * 49 + "\t", "{}", "[]"),
        *("a\ufe0fb", "a\u2800b", "\x1b[2J", "[x", "{x", "5.0", 5.0),
    ]
    shown = [spelled_value(value) for value in values]
    assert len(set(shown)) == len(values)
    assert all(line.isprintable() for line in shown)
    assert spelled("日本語 naïve 👍") == "日本語 naïve 👍"
