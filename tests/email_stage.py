"""A mailbox and a server that sends, for tests: a real Dovecot, and an SMTP server, both with TLS,
on loopback, in a folder that goes away."""

import contextlib
import datetime
import getpass
import grp
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from imapclient import IMAPClient

from remit.channels import mail_text
from remit.channels.contract import Connection
from remit.channels.email import EmailConfig
from remit.testing.channels import Shown
from tests.certificate import write_certificate

PASSWORD = "mailbox-password"  # of a server that the test makes
SERVER = "mx.agents.example"
ADDRESS = "agents+ada@agents.example"
ANN = "ann@people.example"
_CONFIG = """
protocols = imap
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = required
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:{folder}/mail/%n
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%n
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
"""


@dataclass
class Sent:
    """What the SMTP server took, and what it is to do next."""

    got: list[EmailMessage] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, to: str, _: Any) -> str:  # noqa: N802
        del server, session
        if self.answers:
            return self.answers.pop(0)
        envelope.rcpt_tos.append(to)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        del server, session
        message = message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default)
        message["X-Envelope-To"] = ", ".join(envelope.rcpt_tos)
        self.got.append(message)
        return "250 OK"


@dataclass
class MailStage:
    imap_port: int
    smtp_port: int
    sent: Sent

    def config(self, **more: Any) -> EmailConfig:
        settings = {
            "address": ADDRESS,
            "username": "agents",
            "secretRef": "mailbox",
            "imapHost": "localhost",
            "imapPort": self.imap_port,
            "smtpHost": "localhost",
            "smtpPort": self.smtp_port,
            "authservId": SERVER,
            "allow": ["@people.example"],
            **more,
        }
        return EmailConfig.model_validate(settings)

    def connection(self, **more: Any) -> Connection:
        key = PASSWORD.encode()
        return Connection(binding="b", config=self.config(**more), key=key, private=True)

    @contextlib.contextmanager
    def mailbox(self) -> Iterator[IMAPClient]:
        client = IMAPClient("localhost", self.imap_port, ssl_context=ssl.create_default_context())
        try:
            client.login("agents", PASSWORD)
            client.select_folder("INBOX")
            yield client
        finally:
            client.logout()

    def empty(self) -> None:
        self.sent.got.clear()
        self.sent.answers.clear()
        with self.mailbox() as client:
            client.delete_messages(client.search("ALL"))
            client.expunge()

    def bring(self, message: EmailMessage) -> None:
        """As the receiving server puts it into the mailbox."""
        self.bring_raw(message.as_bytes(policy=policy.SMTP))

    def bring_raw(self, raw: bytes) -> None:
        with self.mailbox() as client:
            client.append("INBOX", raw)


_COUNT = iter(range(1, 1 << 30))


def written(
    text: str,
    *,
    sender: str = f"Ann <{ANN}>",
    to: str = ADDRESS,
    auth: str | None = "",
    **more: str,
) -> EmailMessage:
    """An e-mail that a person wrote, vouched for by the receiving server unless `auth` is None."""
    message = EmailMessage()
    domain = sender.rpartition("@")[2].rstrip(">")
    if auth is not None:
        results = auth or f"dmarc=pass header.from={domain}"
        message["Authentication-Results"] = f"{SERVER}; {results}"
    message["From"] = sender
    message["To"] = to
    message["Subject"] = more.pop("Subject", "Hello")
    message["Message-ID"] = more.pop("Message-ID", f"<m{next(_COUNT)}@{domain}>")
    message["Date"] = more.pop("Date", format_datetime(datetime.datetime.now(datetime.UTC)))
    for name, value in more.items():
        message[name] = value
    message.set_content(text)
    return message


class EmailStand:
    """Plays the other side of the e-mail channel for the suite."""

    direct = room = ANN

    def __init__(self, stage: MailStage) -> None:
        self.stage = stage
        self.connection = stage.connection()

    async def say(
        self,
        text: str,
        *,
        room: bool = False,
        reply_to: str | None = None,
        file: tuple[str, str, bytes] | None = None,
    ) -> None:
        more = {"Cc": "others@people.example"} if room else {}
        message = written(text, **more, **({"In-Reply-To": reply_to} if reply_to else {}))
        if file is not None:
            name, media_type, content = file
            main, _, sub = media_type.partition("/")
            message.add_attachment(content, maintype=main, subtype=sub, filename=name)
        self.stage.bring(message)

    async def tap(self, message: str, label: str) -> None:
        raise NotImplementedError("nothing can be tapped in an e-mail")

    def shown(self) -> list[Shown]:
        return [_shown(message) for message in self.stage.sent.got if message["To"] == self.direct]

    def fail(self, how: str) -> None:
        self.stage.sent.answers.append("550 no" if how == "refused" else "451 later")


def _shown(message: EmailMessage) -> Shown:
    body = message.get_body(("plain",))
    text = body.get_content().replace("\r\n", "\n") if body is not None else ""
    files = tuple(content.decode() for _, _, _, content in mail_text.files(message))
    answered = message["In-Reply-To"]
    trimmed = text.removesuffix("\n") if not text.endswith(".\n") or text.count("\n") == 1 else text
    return Shown(str(message["Message-ID"]), trimmed, (), files, answered and str(answered))


@contextlib.contextmanager
def serving() -> Iterator[MailStage]:
    program = shutil.which("dovecot") or "/usr/sbin/dovecot"
    if not Path(program).exists():
        pytest.skip("Dovecot is not installed; `scripts/test-deps` does so")
    folder = Path(tempfile.mkdtemp(prefix="remit-mail-"))
    folder.chmod(0o755)  # its processes may be those of another user
    before = os.environ.get("SSL_CERT_FILE")
    try:
        write_certificate(folder)
        os.environ["SSL_CERT_FILE"] = str(folder / "cert.pem")
        sent = Sent()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        controller = Controller(
            sent,
            hostname="127.0.0.1",
            port=_free_port(),
            ssl_context=context,
            auth_require_tls=False,
            authenticator=_signs_in,
            server_hostname="localhost",
        )
        controller.start()
        try:
            with _dovecot(program, folder) as port:
                yield MailStage(port, controller.port, sent)
        finally:
            controller.stop()
    finally:
        if before is None:
            os.environ.pop("SSL_CERT_FILE", None)
        else:
            os.environ["SSL_CERT_FILE"] = before
        shutil.rmtree(folder, ignore_errors=True)


def _signs_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    del server, session, envelope, mechanism
    good = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=good, handled=False)


@contextlib.contextmanager
def _dovecot(program: str, folder: Path) -> Iterator[int]:
    # It does not serve mail as root.
    who = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwnam(getpass.getuser())
    port = _free_port()
    (folder / "mail").mkdir()
    if os.geteuid() == 0:
        os.chown(folder / "mail", who.pw_uid, who.pw_gid)
    text = _CONFIG.format(
        folder=folder,
        user=who.pw_name,
        group=grp.getgrgid(who.pw_gid).gr_name,
        uid=who.pw_uid,
        gid=who.pw_gid,
        port=port,
        password=PASSWORD,
    )
    file = folder / "dovecot.conf"
    file.write_text(text)
    process = subprocess.Popen([program, "-F", "-c", file], stderr=subprocess.PIPE)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None:
                complaint = process.stderr.read().decode() if process.stderr else ""
                raise RuntimeError(f"Dovecot ended: {complaint}")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)
        if process.stderr:
            process.stderr.close()


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])
