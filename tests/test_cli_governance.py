"""Governance on the command line: child processes against a real instance."""

import contextlib
import json
import os
import pty
import re
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, SystemClock
from remit.ids import Ids
from remit.testing import ScriptedAgent
from tests.company import run_sql
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]  # fixtures

IDS = Ids()
SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
CONFIG = json.dumps({"command": "x", "env": {"API_KEY": SECRET, "LANG": "C"}})


class Firm:
    """A company with a CEO that calls with its own token."""

    def __init__(self, home: Home) -> None:
        self.home = home
        home.json("agent", "create", "chief", "--role", "ceo", "--adapter", "scripted")
        home.json("agent", "create", "worker", "--boss", "chief", "--adapter", "scripted")
        token = home("agent", "token", "chief").out.strip()
        self.chief = Home(home.folder, {**home.environment, "REMIT_TOKEN": token})

    def hire(self, name: str, *options: str) -> str:
        """Ask for an agent; the id of the approval."""
        made = self.chief.json("agent", "hire", name, *options)
        return str(made["approval"]["id"])


@pytest.fixture
def firm(only: Home) -> Firm:
    return Firm(only)


def test_a_hire_is_shown_sent_back_revised_and_approved(firm: Firm) -> None:
    board, chief = firm.home, firm.chief
    said = chief(
        *("agent", "hire", "designer", "--role", "designer", "--title", "Designs"),
        *("--adapter", "process", "--config", CONFIG, "--prompt", "Draw.\nWell."),
        *("--capabilities", "Draws", "--budget", "5000"),
    )
    assert said.out.splitlines()[0] == "designer waits for approval."
    (asked,) = board.json("approval", "list")
    listed = board("approval", "list").out.splitlines()
    assert listed[0].split() == ["ID", "STATUS", "TITLE", "ASKED", "BY", "REVISION", "SINCE"]
    assert "hire designer as designer (Designs)" in listed[1]
    short = listed[1].split()[0]

    shown = board("approval", "show", short).out
    assert shown.startswith("chief asks to hire designer as designer (Designs).\n")
    assert "\nadapterConfig.env.API_KEY: ***REDACTED*** (a secret, which is not shown)\n" in shown
    assert "\nprompt:\n│ Draw.\n│ Well.\n" in shown
    assert SECRET not in shown
    assert f"remit approval approve {asked['id'][-12:]} --revision 1" in shown

    back = board("approval", "revise", short, "--note", "With what?")
    assert back.out == "hire designer as designer (Designs): revision requested.\n"
    refused(board("approval", "approve", short, "--revision", "1"), 4, "sent back for changes")
    assert "With what?" in chief("approval", "show", short).out
    question = board.json("approval", "comment", short, "A pen?")
    chief("approval", "comment", short, "--reply-to", question["id"], stdin=b"A pen.\nTwo.")
    again = chief("approval", "resubmit", short, "--payload", '{"prompt": "Draw with a pen."}')
    assert again.out == "Submitted as revision 2; it awaits a decision.\n"

    shown = board("approval", "show", short).out
    assert "CHANGED SINCE REVISION 1, WHICH YOU SAW\n" in shown
    assert "\nprompt:\n│ - Draw.\n│ - Well.\n│ + Draw with a pen.\n" in shown
    assert re.search(r"\n  \S+, \S+  \S+\n    A pen\?\n    chief, \S+  \S+\n      A pen.\n", shown)

    refused(board("approval", "approve", short, "--revision", "1"), 4, "revision 1")
    done = board.json("approval", "approve", short, "--revision", "2", "--note", "Go")
    assert (done["status"], done["decision_note"]) == ("approved", "Go")
    # What is somebody's data keeps its keys.
    assert "requestedConfigurationSnapshot" in done["payload"]
    assert board.json("agent", "show", "designer")["status"] == "idle"
    assert board("approval", "list").out == "Nothing waits for a decision.\n"
    assert "approved" in board("approval", "list", "--all").out
    assert [one["id"] for one in board.json("approval", "list", "--status", "approved")][:1] == [
        asked["id"]
    ]


def test_a_rejected_agent_is_deleted_after_asking(firm: Firm) -> None:
    board = firm.home
    asked = firm.hire("rejected")
    refused(firm.chief("approval", "approve", asked), 1, "Nobody decides about what they asked for")
    assert "rejected" in board("approval", "reject", asked, "--note", "No").out
    refused(board("approval", "delete-agent", asked, "--json"), 2, "--yes")
    assert board("approval", "delete-agent", asked, stdin=b"n\n").code == 1
    assert board.json("agent", "show", board.json("approval", "show", asked)["agent_id"])
    deleted = board("approval", "delete-agent", asked, stdin=b"y\n")
    assert deleted.out == "The agent is deleted; the approval stays.\n"
    assert "Delete rejected for good?" in deleted.err
    assert board.json("approval", "show", asked)["status"] == "rejected"
    withdrawn = firm.hire("withdrawn")
    assert firm.chief("approval", "cancel", withdrawn).code == 0
    assert board.json("approval", "delete-agent", withdrawn, "--yes")["deleted"] is True


def test_a_company_that_does_not_ask_hires_at_once(firm: Firm) -> None:
    board = firm.home
    changed = board("company", "set", "--approve-hires", "no", "--approve-config", "no")
    assert "take effect at once" in changed.out
    said = firm.chief("agent", "hire", "ready").out
    assert said == 'ready is idle and can be given work.\n  remit send ready "…"\n'
    proposed = firm.chief("agent", "set", "worker", "title=Senior", "--propose")
    assert proposed.out == "worker was changed.\n"
    board("company", "set", "--chat-provider", "anthropic", "--chat-model", "large")
    assert board.json("company", "show")["chat_llm_model"] == "large"
    assert "2, 8 hours" in board("company", "set", "--review-hours", "2,8").out
    refused(board("company", "set", "--review-hours", "soon"), 2, "reviewHours")
    refused(board("company", "set"), 2, "Nothing")
    said = board(
        "company", "set", "--committer", "Acme <a@b.c>", "--co-authors", "A <a@b>,B <b@b>"
    ).out
    assert "Acme <a@b.c>" in said
    assert "A <a@b>, B <b@b>" in said
    assert "not signed" in board("company", "signing-key").out
    refused(board("company", "signing-key", "--new"), 1, "operator")
    refused(board("company", "set", "--approve-hires", "perhaps"), 2, "perhaps")


def test_an_agent_s_configuration_is_set_by_key_and_from_a_file(firm: Firm, tmp_path: Path) -> None:
    board = firm.home
    board.json(
        *("agent", "create", "program", "--adapter", "process", "--config", CONFIG),
        *("--boss", "chief"),
    )
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Be brief.")
    done = board("agent", "set", "program", "title=Runs", f"prompt=@{prompt}")
    assert done.out == "program is at revision 2.\n"
    # One setting inside; the secret beside it stays what it was, though nobody saw it.
    board("agent", "set", "program", "adapterConfig.timeoutSeconds=7", "budgetMonthlyCents=9")
    shown = board.json("agent", "show", "program")
    assert shown["adapter_config"] == {
        "command": "x",
        "env": {"API_KEY": "***REDACTED***", "LANG": "C"},
        "timeoutSeconds": 7,
    }
    assert (shown["prompt"], shown["budget_monthly_cents"]) == ("Be brief.", 9)
    whole = tmp_path / "agent.json"
    whole.write_text(json.dumps({"title": "Walks", "metadata": {"madeBy": 1}}))
    board("agent", "set", "program", str(whole))
    shown = board.json("agent", "show", "program")
    assert (shown["title"], shown["metadata"]) == ("Walks", {"madeBy": 1})
    refused(board("agent", "set", "program", "title=x", "--revision", "1"), 4, "revision 4")
    refused(board("agent", "set", "program", "color=red"), 2, "color")
    refused(board("agent", "set", "program", "role=king"), 2, "role")
    refused(board("agent", "set", "program", "adapterConfig.color=red"), 2, "color")
    refused(board("agent", "set", "program"), 2, "KEY=VALUE")
    refused(firm.chief("agent", "set", "program", "title=x"), 1, "others propose")
    proposed = firm.chief("agent", "set", "program", "title=Flies", "--propose", "--reason", "Wind")
    asked = proposed.out.splitlines()[1].split()[-1]
    shown_to_board = board("approval", "show", asked).out
    assert "chief asks to change title of program." in shown_to_board
    assert "\ntitle:\n│ - Walks\n│ + Flies\n" in shown_to_board
    assert "\nreason:\n│ Wind\n" in shown_to_board


def test_permissions_are_shown_and_changed(firm: Firm) -> None:
    board = firm.home
    assert board("agent", "permissions", "worker").out == ("worker may not hire; level standard.\n")
    assert board("agent", "permissions", "worker", "--hire", "yes").out == (
        "worker may hire; level standard.\n"
    )
    assert board("agent", "permissions", "worker", "--level", "restricted").out == (
        "worker may not hire; level restricted.\n"
    )
    refused(
        board("agent", "permissions", "worker", "--level", "boss", "--hire", "no"), 2, "exclude"
    )
    refused(firm.chief("agent", "permissions", "chief", "--hire", "yes"), 1, "their own")
    token = board("agent", "token", "worker").out.strip()
    seen = board("agent", "permissions", "chief", environment={"REMIT_TOKEN": token})
    assert seen.out == "You may not see what chief is permitted.\n"


def test_an_agent_is_woken_but_not_from_limbo(firm: Firm) -> None:
    assert firm.home("agent", "wake", "worker", "Look").out == (
        "worker has mail and will look at it.\n"
    )
    firm.home("stop", "worker", "--note", "Audit")
    woken = firm.home("agent", "wake", "worker").out
    assert woken.startswith("worker has mail. worker does not start for it now: ")
    assert "Audit" in woken
    firm.home("go", "worker")
    firm.hire("limbo")
    refused(firm.home("agent", "wake", "limbo"), 4, "pending approval")
    refused(firm.home("agent", "token", "limbo"), 4, "pending approval")


def test_adapters_are_listed_explained_and_tried(firm: Firm) -> None:
    board = firm.home
    assert re.search(r"^scripted  +\w", board("adapter", "list").out, re.MULTILINE)
    shown = board("adapter", "show", "scripted").out
    assert shown.startswith("# scripted\n")
    assert re.search(r"^Tools of every agent: \d+, about \d+ tokens\.$", shown, re.MULTILINE)
    assert board("adapter", "test", "scripted").code == 0
    assert board("adapter", "test", "scripted", "--config", '{"color": 1}').code == 2
    missing = '{"command": "/nowhere/program"}'
    broken = board("adapter", "test", "process", "--config", missing)
    assert broken.code == 1
    assert broken.out
    refused(board("adapter", "show", "none"), 3, "none")
    assert firm.chief("adapter", "show", "human").code == 0
    refused(firm.chief("adapter", "test", "scripted"), 1, "board")


def test_an_approval_that_is_not_there_is_not_found(firm: Firm) -> None:
    refused(firm.home("approval", "show", "0" * 12), 3, "approval")
    refused(firm.home("approval", "show", "x"), 3, "concerns 'x'")


def tool(home: Home, name: str, /, **arguments: object) -> dict[str, Any]:
    """An agent calls a tool."""
    url = home.json("status")["url"]
    with ScriptedAgent(url, home.environment["REMIT_TOKEN"]) as agent:
        return agent.call(name, **arguments)


def typed(home: Home, answer: str, *arguments: str) -> tuple[int, str]:
    """A command at a terminal where somebody answers its question; its code, and what is seen."""
    main, terminal = pty.openpty()
    with subprocess.Popen(
        home.command(*arguments),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**home.environment, "TERM": "dumb"},
        start_new_session=True,
    ) as process:
        try:
            os.close(terminal)
            os.write(main, answer.encode())
            seen = b""
            with contextlib.suppress(OSError):  # the other end is closed
                while select.select([main], [], [], 60)[0]:
                    seen += os.read(main, 65536)
            os.close(main)
            return process.wait(60), seen.decode()
        finally:
            process.kill()


def test_the_only_request_is_shown_and_asked_about(firm: Firm) -> None:
    board = firm.home
    assert board("approve").out == "Nothing waits for a decision.\n"
    ann = firm.hire("ann", "--purpose", "Draw what is asked for")
    nobody_there = board("approve")
    assert nobody_there.code == 2
    assert "asks to hire ann as general" in nobody_there.out
    assert f"remit approve {ann[-12:]}" in nobody_there.err
    refused(board("approve", "--json"), 2, "needs ID or AGENT")
    code, seen = typed(board, "n\n", "reject")
    assert code == 1
    assert "You decided nothing." in seen
    assert board.json("approval", "show", ann)["status"] == "pending"
    code, seen = typed(board, "y\n", "approve")
    assert (code, "Approve this?" in seen) == (0, True)
    assert "hire ann as general: approved." in seen
    assert board.json("approval", "show", ann)["status"] == "approved"


def _by_mail(home: Home, act: str, approval: str) -> str:
    """A decision that came by e-mail in the caller's name; the id of what waits to be confirmed."""
    url, id_ = f"sqlite:///{home.folder}/remit.db", IDS.new()
    ((digest,),) = run_sql(url, "SELECT digest FROM approvals WHERE id = ?", approval)
    what = {"act": act, "approval": approval, "revision": 1, "digest": digest, "note": ""}
    now = SystemClock().now()
    run_sql(
        url,
        "INSERT INTO confirmations (id, company_id, user_id, account, subject, title, act,"
        " created_at, expires_at) SELECT ?, company_id, memberships.user_id,"
        " 'email:ann@people.example', ?, 'Decide: it', ?, ?, ?"
        " FROM approvals JOIN memberships USING (company_id) JOIN users ON users.id = user_id"
        " WHERE approvals.id = ? AND users.name <> 'board'",
        *(id_, f"approval:{approval}", json.dumps(what), now, now + HOUR, approval),
    )
    return id_


@pytest.mark.requirement("FX-61")
def test_an_approval_by_mail_is_shown_whole_before_it_is_confirmed(firm: Firm) -> None:
    board = firm.home
    ann = firm.hire("ann", "--prompt", "Draw.\nWell.")
    waits = _by_mail(board, "approve", ann)
    unread = board("confirm", waits)
    assert unread.code == 2
    assert f"remit confirm {waits[-12:]} --revision 1" in unread.err
    assert "│ Well." in unread.out
    refused(board("confirm", waits, "--json"), 2, "--revision 1")
    refused(board("confirm", waits, "--revision", "2"), 4, "at revision 1")
    code, seen = typed(board, "n\n", "confirm", waits)
    assert (code, "You decided nothing." in seen) == (1, True)
    assert board.json("approval", "show", ann)["status"] == "pending"
    code, seen = typed(board, "y\n", "confirm", waits)
    assert (code, "│ Well." in seen, "Approve this?" in seen) == (0, True, True)
    assert board.json("approval", "show", ann)["status"] == "approved"

    bob = firm.hire("bob")
    assert board("confirm", _by_mail(board, "approve", bob), "--revision", "1").code == 0
    assert board.json("approval", "show", bob)["status"] == "approved"
    eve = firm.hire("eve")  # nothing is applied by a refusal
    assert board("confirm", _by_mail(board, "reject", eve)).code == 0
    assert board.json("approval", "show", eve)["status"] == "rejected"


def test_a_request_goes_by_whom_it_concerns(firm: Firm) -> None:
    board = firm.home
    ann, bob = firm.hire("ann"), firm.hire("bob")
    several = board("approve")
    assert (several.code, len(several.out.splitlines())) == (2, 3)
    assert "2 approvals wait" in several.err
    both = board("approval", "approve", "chief")
    refused(both, 2, "Several approvals concern chief")
    assert ann[-12:] in both.err
    assert bob[-12:] in both.err
    assert board("approval", "show", "Ann").out.startswith("chief asks to hire ann")
    unread = board("approve", "ann")
    assert (unread.code, "--revision 1" in unread.err) == (2, True)
    assert "\nname: ann\n" in unread.out
    refused(board("approve", "ann", "--json"), 2, "--revision 1")
    welcome = board("approve", "ann", "--revision", "1", "--note", "Welcome")
    assert welcome.out == "hire ann as general: approved.\n"
    assert board.json("approval", "show", "ann")["decision_note"] == "Welcome"
    refused(board("approve", "ann"), 3, "concerns 'ann'")
    assert board("reject", "chief").out == "hire bob as general: rejected.\n"
    refused(board("approve", "worker"), 3, "concerns 'worker'")


def test_a_hire_says_what_one_says_yes_to(firm: Firm) -> None:
    file = firm.home.json("kb", "create", "Brand", stdin=b"Blue.")["id"]
    firm.home.json("grant", "give", "chief", f"kb_file:{file}", "read")
    grant = {"resource": f"kb_file:{file}", "level": "read"}
    tool(firm.chief, "hire_agent", name="ann", purpose="Draw what is asked for", grants=[grant])
    shown = firm.home("approval", "show", "ann").out
    for line in (
        "purpose:\n│ Draw what is asked for",
        "monthly budget: none of its own; only the company's limits hold what it spends",
        f"grants[0].resource: kb_file:{file} (file “Brand”)",
        "grants[0].level: read",
    ):
        assert f"\n{line}\n" in shown, shown


def test_names_stand_for_ids_where_one_thing_is_meant(firm: Firm) -> None:
    board = firm.home
    made = board("outcome", "create", "Launch the site", "--parent", "chief").out.splitlines()
    id_ = re.fullmatch(r"Created ([0-9a-f]{12}): Launch the site .* which chief owns\.", made[0])
    assert id_ is not None
    assert made[1].startswith(f"Next: remit outcome delegate {id_[1]} --to ")
    assert board.json("outcome", "show", "launch the SITE")["id"].endswith(id_[1])
    assert "version" in board("-v", "outcome", "update", "Launch the site", "--urgent").out
    board.json("outcome", "create", "Launch the site", "--parent", "worker")
    refused(board("outcome", "show", "Launch the site"), 2, "Several match")
    assert board("outcome", "close", id_[1], "no").out == "Launch the site: closed.\n"
    assert board.json("outcome", "show", "Launch the site")["owner_id"]
    stored = board("kb", "create", "A plan", stdin=b"x").out
    assert re.match(r"Stored kb://[0-9a-f]{12}, 1 B: A plan\nNext: remit send ", stored)
    assert board("kb", "cat", "a plan").out == "x"
    given = board("grant", "give", "worker", "kb_file:A plan", "read").out.splitlines()
    assert re.fullmatch(r"worker has read on kb_file:[0-9a-f]{12}\.", given[0])
    assert board(*given[1].split()[1:4]).out == "Revoked 1 grant.\n"
    created = board("agent", "create", "ann", "--boss", "chief", "--adapter", "scripted").out
    assert (
        created.splitlines()[0] == "Agent ann created: it reports to chief and is run by scripted."
    )
    assert len(created.splitlines()) == 2
    assert "may hire" in board("agent", "create", "bob", "--boss", "chief", "-v").out
    asked = tool(firm.chief, "ask", question="Which?")
    assert board("question", "answer", "chief", "This.").out == "Answered; chief gets it as mail.\n"
    assert board.json("question", "list", "--all")[0]["id"] == asked["id"]
    refused(board("question", "answer", "chief", "That."), 3, "asks nothing")


@pytest.mark.requirement("FX-61")
def test_a_request_names_the_file_that_it_would_change(firm: Firm) -> None:
    file = firm.home.json("kb", "create", "Brand\u202e", stdin=b"Blue.")["id"]
    firm.home.json("grant", "give", "chief", f"kb_file:{file}", "write", "--mode", "ask")
    assert "approval" in firm.chief("kb", "write", file, stdin=b"Red.").err
    named = "change “Brand⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩”"
    (listed,) = firm.home("approval", "list").out.splitlines()[1:]
    assert named in listed
    assert firm.home("approval", "show", "chief").out.startswith(f"chief asks to {named}.\n")


def test_what_others_wrote_cannot_steer_the_terminal(firm: Firm) -> None:
    asked = firm.hire("odd", "--title", "a b", "--prompt", "\x1b[31mred\u202e")
    firm.chief("approval", "comment", asked, "\x1b]0;title\x07 hello")
    for out in (firm.home("approval", "show", asked).out, firm.home("approval", "list").out):
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\x07" not in out


@pytest.mark.requirement("HB-08")
def test_the_permission_policy_is_shown_and_set(firm: Firm) -> None:
    board = firm.home
    shown = board("company", "policy", "show").out
    assert shown.splitlines()[0].split() == [
        *("LEVEL", "CREATES", "AGENTS", "ALLOWS", "DENIES", "GOVERNS", "AGENTS"),
    ]
    assert "boss        yes" in shown
    refused(firm.chief("company", "policy", "show"), 1, "Only the board")
    refused(board("company", "policy", "set", "boss"), 2, "Nothing")
    board("agent", "permissions", "worker", "--level", "privileged")
    done = board("company", "policy", "set", "privileged", "--allow", "approval.decide")
    assert done.out.splitlines()[-1] == "Changed with it: worker."
    assert "changed" in done.out
    refused(board("company", "policy", "set", "standard", "--governs", "below"), 2, "govern nobody")
    back = board.json("company", "policy", "set", "privileged", "--shipped")
    assert back["levels"]["privileged"]["shipped"] is True
    off = board.json(
        "company", "policy", "set", "restricted", "--no-deny", "--create-agents", "default"
    )
    assert (off["levels"]["restricted"]["deny"], off["version"]) == ([], 3)


@pytest.mark.requirement("HH-12", "HH-27", "HH-41")
def test_an_agent_is_updated_and_a_subtree_ended_after_a_look(firm: Firm) -> None:
    board = firm.home
    seen = board("agent", "update", "worker", "--dry-run").out
    assert seen.startswith("This would change (nothing was changed):\n")
    assert "Its settings stay as they are." in seen
    assert board("agent", "update", "worker").out.splitlines()[-1] == "worker is at revision 2."
    board.json("agent", "create", "below", "--boss", "worker", "--adapter", "scripted")
    refused(board("agent", "terminate", "worker"), 4, "still has reports")
    preview = board("agent", "terminate", "worker", "--subtree", "--dry-run").out
    assert preview.splitlines()[0] == "2 agents would end: worker, below."
    refused(board("agent", "terminate", "worker", "--subtree", "--json"), 2, "--yes")
    assert board("agent", "terminate", "worker", "--subtree", stdin=b"n\n").code == 1
    assert board.json("agent", "show", "below")["status"] == "idle"
    done = board("agent", "terminate", "worker", "--subtree", stdin=b"y\n")
    assert done.out.splitlines()[-1] == "2 agents ended: worker, below."
    assert "End all of them?" in done.err


@pytest.mark.requirement("FX-02")
def test_accepting_says_who_ends_and_reopening_who_is_back(firm: Firm) -> None:
    board = firm.home
    board.json(
        *("agent", "create", "writer", "--boss", "chief", "--adapter", "scripted"),
        *("--purpose", "A text", "--once"),
    )
    writer = board.json("agent", "show", "writer")["id"]
    token = board("agent", "token", "writer").out.strip()
    own = Home(board.folder, {**board.environment, "REMIT_TOKEN": token})
    # The person of the chief is not its boss, and judges all the same.
    handed_in = own("outcome", "submit", writer, "--note", "It is written.").out.splitlines()
    assert handed_in[-1].endswith("submitted; it waits for the verdict.")
    returned = board("outcome", "return", writer, "Too long.").out.splitlines()
    assert returned[-1].endswith("sent back.")
    assert "Too long." in own("inbox").out
    own("outcome", "submit", writer, "--note", "Shorter.")
    assert board("outcome", "list", "--stale").out == "There are no outcomes.\n"
    board.json("agent", "create", "helper", "--boss", "writer", "--adapter", "scripted")
    said = board("outcome", "accept", writer).out.splitlines()[-1]
    assert (
        said == f"Ends writer and 1 below; `remit outcome reopen {writer[-12:]}` brings them back."
    )
    back, more = board("outcome", "reopen", writer).out.splitlines()[-2:]
    assert back == "Back at work: writer, helper, with new credentials and a new session."
    assert more == "Also back: 1 letter."
    assert board.json("agent", "show", "helper")["status"] == "idle"
