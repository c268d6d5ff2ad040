"""The walks of the documents from nothing to the first message, each command as it is there:
through the command line, an instance and what stands in for the other side."""

import json
import os
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import email_stage, slack_stage, telegram_server
from tests.test_cli import Home
from tests.working import eventually

DOCS = Path(__file__).parent.parent / "docs"
#: A command in a block or in a sentence.
_COMMAND = re.compile(r"^(remit .*)$|`(remit (?:secret set|bind add|doctor|link) ?[^`]*)`", re.M)


class Walk:
    """The other side of a channel, and what a person has in their hands before they begin."""

    document, begins = "channels.md", "## Telegram"
    kind, agent = "telegram", "ceo"

    def __init__(self, stack: ExitStack) -> None:
        self.server = stack.enter_context(telegram_server.serving())
        self.environment = {"REMIT_CHANNEL_SERVERS": f"telegram={self.server.url}"}
        self.secret, self.place = self.server.token, "5"

    def filled(self, text: str) -> str:
        return text

    def say(self, text: str) -> None:
        self.server.say(text)

    def seen(self) -> list[str]:
        return [one["text"] for one in self.server.seen()]


class InSlack(Walk):
    document, begins = "slack.md", "## From nothing"
    kind, agent = "slack", "ada"

    def __init__(self, stack: ExitStack) -> None:
        self.server: Any = stack.enter_context(slack_stage.serving())
        self.environment = {"REMIT_CHANNEL_SERVERS": f"slack={self.server.url}"}
        self.secret, self.place = f"{slack_stage.BOT} {slack_stage.APP}", slack_stage.DIRECT

    def say(self, text: str) -> None:
        self.server.says(text)

    def seen(self) -> list[str]:
        return [one.text for one in slack_stage.SlackStand(self.server).shown()]


class InEmail(Walk):
    document, begins = "email.md", "## From nothing"
    kind, agent = "email", "ada"

    def __init__(self, stack: ExitStack) -> None:
        self.server: Any = stack.enter_context(email_stage.serving())
        certificate = os.environ["SSL_CERT_FILE"]
        self.environment = {"REMIT_PRIVATE_CHANNELS": "yes", "SSL_CERT_FILE": certificate}
        self.secret, self.place = email_stage.PASSWORD, email_stage.ANN

    def filled(self, text: str) -> str:
        """With the servers that are there instead of those of the example."""
        here = {"imapHost": "localhost", "imapPort": self.server.imap_port, "username": "agents"}
        here |= {"smtpHost": "localhost", "smtpPort": self.server.smtp_port}
        given = {"address": email_stage.ADDRESS, "authservId": email_stage.SERVER}
        example = json.loads(text)
        assert set(example) <= {*here, *given}
        return json.dumps({**example, **here, **given})

    def say(self, text: str) -> None:
        self.server.bring(email_stage.written(text))

    def seen(self) -> list[str]:
        return [one.get_content() for one in self.server.sent.got]


@pytest.fixture
def walk(request: pytest.FixtureRequest) -> Iterator[Walk]:
    with ExitStack() as stack:
        yield request.param(stack)


def commands(walk: Walk) -> list[str]:
    """Those of the walk, in the order of the document."""
    text = (DOCS / walk.document).read_text().partition(walk.begins)[2].partition("\n## ")[0]
    # What a list says about it afterwards is no part of the walk.
    return [block or inline for block, inline in _COMMAND.findall(text.partition("\n- ")[0])]


@pytest.mark.requirement("FX-24", "FX-25")
@pytest.mark.campaign("seconds each; test_docs.py looks whether their commands are there")
@pytest.mark.parametrize("walk", [Walk, InSlack, InEmail], indirect=True)
def test_the_walk_leads_from_nothing_to_the_first_message(walk: Walk, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    home = Home(tmp_path / "home", {**walk.environment})
    for block in re.findall(r"```json\n(.*?)```", (DOCS / walk.document).read_text(), re.DOTALL):
        (tmp_path / f"{walk.kind}.json").write_text(walk.filled(block))
    with home.start("up", "--port", "0", "--slots", "0", "--json") as instance:
        assert instance.stdout is not None
        while instance.stdout.readline() != b"}\n":
            assert instance.poll() is None, "the instance did not start"
        if walk.agent != "ceo":
            home.json("agent", "create", walk.agent, "--boss", "ceo", "--adapter", "human")
        said = {line: played(home, walk, line, tmp_path) for line in commands(walk)}
        assert {line.split()[1] for line in said} >= {"secret", "bind", "link"}
        eventually(lambda: listens(home))
        [code] = [
            re.findall(r"[A-Z2-9]{10}", out)[0] for line, out in said.items() if "link" in line
        ]
        walk.say(code)
        eventually(lambda: any("is linked to board" in one for one in walk.seen()))
        walk.say("Good morning.")
        inbox = ("inbox", "--agent", walk.agent, "--json")
        eventually(lambda: "Good morning." in home(*inbox).out)
        [letter] = home(*inbox).answer
        assert letter["from_board"]
        as_agent = Home(
            home.folder, {"REMIT_TOKEN": home("agent", "token", walk.agent).out.strip()}
        )
        assert as_agent("reply", letter["id"], "And to you.").code == 0
        eventually(lambda: any("And to you." in one for one in walk.seen()))
        instance.send_signal(signal.SIGTERM)
        assert instance.wait(30) == 0


def played(home: Home, walk: Walk, line: str, place: Path) -> str:
    """A line that a person types; a secret is pasted or comes from a file."""
    words = shlex.split(line.replace("@", f"@{place}/"))
    stdin = walk.secret.encode() if words[1:3] == ["secret", "set"] else b""
    done = home(*words[1 : words.index("<") if "<" in words else None], stdin=stdin)
    assert done.code == 0 or words[1] == "doctor", f"{line}: {done.err}"
    return done.out


def listens(home: Home) -> bool:
    [found] = home.json("bind", "list")
    assert not found["problem"], found
    return bool(found["state"] == "listening")
