"""E-mail: a mailbox for receiving (IMAP IDLE), and a server for sending (SMTP).

Each agent has an address of its own in the mailbox, by plus-addressing. Stored e-mails are marked
in the mailbox, so the channel needs no state, and after a crash the unmarked ones are read again.
"""

import asyncio
import contextlib
import hashlib
import importlib.util
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address as Mailbox
from email.message import EmailMessage
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from remit.adapters import guarded_http
from remit.adapters.contract import Check, Environment
from remit.adapters.settings import Config, Line, SecretName
from remit.channels import mail_text
from remit.channels.contract import (
    Channel,
    Connection,
    Incoming,
    IncomingFile,
    Parcel,
    Sender,
    Undelivered,
    Unreachable,
)
from remit.clock import SystemClock
from remit.extras import how_to_install
from remit.model.messaging.authorship import parted
from remit.model.messaging.mail import answer_subject
from remit.threads import alone

if TYPE_CHECKING:
    from imapclient import IMAPClient

log = logging.getLogger(__name__)

#: Prefix of the IMAP keyword on stored e-mails, where the mailbox accepts keywords.
TAKEN = "RemitTaken"
_SEEN = "\\Seen"
#: Older e-mails in the mailbox are ignored.
OLDEST_DAYS = 30
SECONDS = 30.0
#: Longest time in IDLE, and the polling interval of a mailbox without IDLE.
IDLE_SECONDS = 45.0
MOST_AT_ONCE = 20
LARGEST = 25 * 1024 * 1024
#: Pause after a busy server.
BUSY_SECONDS = 60.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _address(text: str) -> str:
    address = mail_text.plain_address(text)
    if address is None:
        raise ValueError("must be an address such as agents@example.org")
    return address


def _pattern(text: str) -> str:
    if text.startswith("@"):
        _address(f"x{text}")
        return text.lower()
    return _address(text)


Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,253}$")]
Port = Annotated[int, Field(ge=1, le=65_535)]


class EmailConfig(Config):
    address: Annotated[str, Field(max_length=100), AfterValidator(_address)] = Field(
        description="The agent's address, such as agents+ada@example.org. Mail to it is for "
        "the agent, whatever else the mailbox has."
    )
    username: Line = Field(description="The user of the mailbox, to read and to send.")
    secret_ref: SecretName = Field(
        description="Name of a secret of the company: the password, best one for programs alone."
    )
    imap_host: Host = Field(description="Where the mailbox is. TLS, whose certificate is verified.")
    imap_port: Port = Field(default=993, description="For TLS from the beginning.")
    folder: Line = Field(default="INBOX", description="The folder that is listened to.")
    smtp_host: Host = Field(description="Which server sends. TLS, whose certificate is verified.")
    smtp_port: Port = Field(default=465, description="465 for `tls`, 587 for `starttls`.")
    smtp_security: Literal["tls", "starttls"] = Field(
        default="tls", description="Whether TLS begins at once or after a greeting."
    )
    authserv_id: Line = Field(
        description="Name of your receiving server in the headers "
        "`Authentication-Results` that it writes. Mail is ignored if it did not authenticate its "
        "sender."
    )
    allow: Annotated[
        list[Annotated[str, Field(max_length=200), AfterValidator(_pattern)]], Field(max_length=200)
    ] = Field(
        default=[],
        description="Addresses, or `@example.org` for whole domains, that are heard though they "
        "are not linked, and that the agent may write to first. Other senders get answers and "
        "nothing else.",
    )


class Email(Channel):
    """A mailbox in which each agent has an address of its own."""

    type = "email"
    Config = EmailConfig
    receives = True
    vouches = True
    #: More than any request has.
    longest_shown = 2_000_000
    forgeable = True  # IMAP's APPEND cannot be told from a delivery
    most_files = 10
    safety = (
        (
            "Everybody with access to the mailbox reads what was sent to the agent, and can put "
            "e-mails of any sender into it."
        ),
        (
            "Only people who linked their address, and those of `allow`, are heard, and only when "
            "the receiving server says that their domain sent it."
        ),
    )
    examples = {  # noqa: RUF012  # read only
        "An address in a mailbox for agents": {
            "address": "agents+ada@example.org",
            "username": "agents@example.org",
            "secretRef": "mailbox",
            "imapHost": "imap.example.org",
            "smtpHost": "smtp.example.org",
            "authservId": "mx.example.org",
            "allow": ["@example.org"],
        }
    }

    def check(
        self, config: EmailConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del environment
        missing = [
            name for name in ("imapclient", "aiosmtplib") if importlib.util.find_spec(name) is None
        ]
        if missing:
            sentence = f"The packages for e-mail are not installed: {', '.join(missing)}."
            return Check(False, sentence, how_to_install("email"))
        if config is None:
            return Check(True, "It can be used; each binding names its own mailbox.")
        return Check(True, f"{config.address}, in the mailbox at {config.imap_host}.")

    def place(self, config: EmailConfig) -> str:
        """Return the agent's address, because agents share a mailbox but no address."""
        return config.address.casefold()

    def realm(self, config: EmailConfig) -> str:
        server = f"{config.imap_host}:{config.imap_port}/{config.authserv_id}"
        return f"{config.username}@{server}".lower()

    async def probe(self, connection: Connection) -> Check:
        """Sign in to both servers, and disconnect."""
        try:
            client = await _opened(connection)
            await alone(_close, client)
            await _leave(await _smtp(connection))
        except Unreachable as error:
            return Check(False, f"The mailbox cannot be read: {error.sentence}.", _STEP)
        except Undelivered as error:
            return Check(False, f"Nothing can be sent: {error.sentence}.", _STEP)
        return Check(True, "Both servers take the password.")

    # ── out ─────────────────────────────────────────────────────────────────────────────────────

    async def deliver(self, parcel: Parcel) -> str:
        import aiosmtplib

        message = composed(parcel)
        smtp = await _smtp(parcel)
        sending = False
        try:
            sender = parcel.config.address
            await smtp.mail(sender)
            await smtp.rcpt(parcel.conversation)
            sending = True
            await smtp.data(message.as_bytes(policy=message.policy.clone(linesep="\r\n")))
        except aiosmtplib.SMTPResponseException as error:
            raise _refused(error) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            sentence = f"the server did not take it ({type(error).__name__})"
            raise Undelivered(sentence, unsure=sending) from error
        finally:
            await _leave(smtp)
        return str(message["Message-ID"])

    # ── in ──────────────────────────────────────────────────────────────────────────────────────

    async def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
        config: EmailConfig = connection.config
        client = await _opened(connection)
        try:
            passed: set[int] = set()  # e-mails to other addresses, which stay unmarked
            while True:
                emails = await _guarded(_new, client, config, passed)
                yield [message for _, message in emails if message is not None]
                if emails:
                    await _guarded(_take, client, config, [number for number, _ in emails])
                elif not await _guarded(_idle, client):
                    await asyncio.sleep(IDLE_SECONDS)
        finally:
            await alone(_close, client)

    async def fetch(self, connection: Connection, reference: str, most: int) -> bytes:
        validity, number, part = (int(word) for word in reference.split("."))
        try:
            client = await _opened(connection)
            try:
                message = await _guarded(_message, client, connection.config, validity, number)
            finally:
                await alone(_close, client)
        except Unreachable as error:
            raise Undelivered(error.sentence) from error
        files = {number: content for number, _, _, content in mail_text.files(message)}
        if part not in files:
            raise Undelivered("the file is gone", for_good=True)
        if len(files[part]) > most:
            raise Undelivered("it is too large", for_good=True)
        return files[part]


_STEP = "See `remit bind channels email`."


def composed(parcel: Parcel) -> EmailMessage:
    """Compose the e-mail to one address; that of an agent must answer one, or be to an address in
    `allow`."""
    config: EmailConfig = parcel.config
    to = mail_text.plain_address(parcel.conversation)
    if to is None:
        raise Undelivered("that is not an e-mail address", for_good=True)
    answered = (parcel.reply_to_outside or "").partition("#")[0]
    if not (answered or parcel.sender == "remit" or is_allowed(to, config.allow)):
        raise Undelivered(
            f"{to} did not write to {config.address} and is not in its `allow`", for_good=True
        )
    message = EmailMessage()
    name = parcel.sender.removeprefix("agent:")
    local, _, domain = config.address.rpartition("@")
    message["From"] = Mailbox("Remit" if name == "remit" else f"{name} (Remit)", local, domain)
    message["To"] = to
    earlier = [named for outside in parcel.earlier if (named := outside.partition("#")[0])]
    earlier += [answered] if answered and answered not in earlier else []
    message["Subject"], body = _worded(parcel, name, answers=bool(answered))
    message["Date"] = _EPOCH + timedelta(microseconds=parcel.created_at)
    # The same for every attempt, so that receivers can deduplicate.
    message["Message-ID"] = f"<{parcel.id}.remit@{domain}>"
    if earlier:
        message["In-Reply-To"] = answered or earlier[-1]
        message["References"] = " ".join(earlier)
    # Prevents automatic answers (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(body)
    for file in parcel.files:
        main, _, sub = file.media_type.partition("/")
        message.add_attachment(
            file.content, maintype=main, subtype=sub or "octet-stream", filename=file.name
        )
    return message


def _worded(parcel: Parcel, name: str, *, answers: bool) -> tuple[str, str]:
    """Return the subject and the text of an e-mail.

    What goes on with a thread keeps its subject, because mail programs tell conversations apart by
    it; another subject that an agent chose stands above its text.
    """
    author, words = parted(parcel.body)
    own = " ".join(parcel.subject.split())
    title = " ".join(parcel.title.split())
    if title:
        is_new = own and answer_subject(own).casefold() != title.casefold()
        return title, f"{author}{own}\n\n{words}" if is_new else parcel.body
    first = next((line for line in words.splitlines() if line.strip()), "")
    subject = own or " ".join(first.split())[:80] or f"From {name}"
    return (answer_subject(subject) if answers else subject), parcel.body


def _now() -> datetime:
    return _EPOCH + timedelta(microseconds=SystemClock().now())


def is_allowed(address: str, allow: Sequence[str]) -> bool:
    return address in allow or f"@{address.rpartition('@')[2]}" in allow


def incoming(raw: bytes, config: EmailConfig, place: str) -> Incoming | None:
    """Convert an e-mail to a message for the agent; None for one that must be ignored.

    A signed e-mail can be replayed by anyone who has it. So it has to be younger than the memory of
    duplicates, and carries its author's authority only to addresses that the author named.
    """
    head = mail_text.head(raw)
    author = mail_text.sender(head)
    if (
        author is None
        or author.address == config.address
        or mail_text.plain_address(author.address) is None
        or mail_text.why_automatic(head) is not None
        or not mail_text.is_authentic(head, config.authserv_id)
        or not mail_text.is_recent(head, _now(), timedelta(days=OLDEST_DAYS))
    ):
        return None
    message = mail_text.parse(raw)  # only after the checks, which need the headers alone
    domain = config.address.rpartition("@")[2]
    ours = [
        message_id
        for message_id in mail_text.ids_answered(message)
        if message_id.endswith(f".remit@{domain}>")
    ]
    return Incoming(
        id=mail_text.id_of(message, raw),
        conversation=author.address,
        sender=Sender(
            author.address,
            f"{author.name} <{author.address}>",
            sure=mail_text.is_written_to(head, config.address),
        ),
        text=mail_text.text(message, answers=bool(ours)),
        subject=" ".join(str(message.get("Subject", "")).split()),
        reply_to=ours[0] if ours else None,
        files=[
            IncomingFile(f"{place}.{number}", name, kind, len(content))
            for number, name, kind, content in mail_text.files(message)
        ],
        direct=not mail_text.has_other_readers(message, config.address),
        heard=is_allowed(author.address, config.allow),
    )


# ── the mailbox; blocking ───────────────────────────────────────────────────────────────────────


async def _opened(connection: Connection) -> "IMAPClient":
    config: EmailConfig = connection.config
    try:
        wire = await guarded_http.connected(
            config.imap_host, config.imap_port, private=connection.private, seconds=SECONDS
        )
    except OSError as error:
        raise Unreachable(str(error) or "the mailbox does not answer") from error
    return await _guarded(_open, config, connection.key.decode(), wire)


def _open(config: EmailConfig, password: str, wire: socket.socket) -> "IMAPClient":
    """Sign in over a connected socket; TLS is verified for the name of the host."""
    from imapclient import IMAPClient, imap4

    class OverSocket(imap4.IMAP4WithTimeout):  # type: ignore[misc]
        def _create_socket(self, timeout: float | None = None) -> ssl.SSLSocket:
            del timeout
            wire.settimeout(SECONDS)
            return ssl.create_default_context().wrap_socket(wire, server_hostname=self.host)

    class Client(IMAPClient):  # type: ignore[misc]
        def _create_IMAP4(self) -> OverSocket:  # noqa: N802
            return OverSocket(self.host, self.port, SECONDS)

    try:
        client = Client(config.imap_host, config.imap_port, timeout=SECONDS, use_uid=True)
    except BaseException:
        wire.close()
        raise
    try:
        client.login(config.username, password)
        client.select_folder(config.folder)
    except BaseException:
        _close(client)
        raise
    return client


def _close(client: "IMAPClient") -> None:
    with contextlib.suppress(Exception):
        client.shutdown()


async def _guarded(work: Any, *arguments: Any) -> Any:
    """Run some work in a thread; errors are translated without text of the server."""
    from imapclient.exceptions import IMAPClientError, LoginError

    try:
        return await alone(work, *arguments)
    except LoginError as error:
        raise Unreachable("the mailbox refused the password", retry_after=300.0) from error
    except ssl.SSLError as error:
        raise Unreachable(f"the connection is not secure ({error.reason})") from error
    except (IMAPClientError, OSError, EOFError) as error:
        raise Unreachable(f"the mailbox does not answer ({type(error).__name__})") from error


def _new(
    client: "IMAPClient", config: EmailConfig, passed: set[int]
) -> list[tuple[int, Incoming | None]]:
    """Return new e-mails to the agent's address, oldest first, with None for ignored ones."""
    since = (_now() - timedelta(days=OLDEST_DAYS)).date()
    mark = _mark(client, config)
    fresh = ["UNSEEN"] if mark == _SEEN else ["UNKEYWORD", mark]
    named: list[Any] = []
    for header in mail_text.ADDRESSED_BY:
        term = ["HEADER", header, config.address]
        named = ["OR", *named, *term] if named else term
    numbers = [uid for uid in client.search([*fresh, "SINCE", since, *named]) if uid not in passed]
    validity = _validity(client, config)
    emails: list[tuple[int, Incoming | None]] = []
    for number, size in _sizes(client, sorted(numbers)[:MOST_AT_ONCE]):
        raw = _raw(client, number) if size <= LARGEST else b""
        try:
            if raw and not mail_text.is_for(mail_text.head(raw), config.address):
                passed.add(number)
                continue
            message = incoming(raw, config, f"{validity}.{number}") if raw else None
        except Exception as error:
            # One malformed e-mail must not block the others.
            log.warning("an e-mail cannot be read (%s)", type(error).__name__)
            message = None
        emails.append((number, message))
    return emails


def _sizes(client: "IMAPClient", numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    if numbers:
        sizes = client.fetch(numbers, ["RFC822.SIZE"])
        yield from (
            (number, int(sizes[number][b"RFC822.SIZE"])) for number in numbers if number in sizes
        )


def _raw(client: "IMAPClient", number: int) -> bytes:
    return bytes(client.fetch([number], ["BODY.PEEK[]"]).get(number, {}).get(b"BODY[]", b""))


def _message(client: "IMAPClient", config: EmailConfig, validity: int, number: int) -> EmailMessage:
    """Return the e-mail of a reference; empty if the mailbox was recreated since (UIDVALIDITY)."""
    there = _raw(client, number) if _validity(client, config) == validity else b""
    return mail_text.parse(there)


def _validity(client: "IMAPClient", config: EmailConfig) -> int:
    return int(client.folder_status(config.folder, ["UIDVALIDITY"])[b"UIDVALIDITY"])


def _take(client: "IMAPClient", config: EmailConfig, numbers: Sequence[int]) -> None:
    client.add_flags(numbers, [_mark(client, config), _SEEN])


def taken_by(address: str) -> str:
    """Return an agent's IMAP keyword; its own, because an e-mail may be to several agents."""
    return f"{TAKEN}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def _mark(client: "IMAPClient", config: EmailConfig) -> str:
    """Return the agent's keyword, or the flag `Seen` where the mailbox accepts no keywords."""
    flags = client.select_folder(config.folder).get(b"PERMANENTFLAGS", ())
    word = taken_by(config.address)
    return word if b"\\*" in flags or word.encode() in flags else _SEEN


def _idle(client: "IMAPClient") -> bool:
    """Wait for new e-mail with IDLE; returns False if the server does not support that."""
    if not client.has_capability("IDLE"):
        return False
    client.idle()
    client.idle_check(timeout=IDLE_SECONDS)
    client.idle_done()
    return True


async def _smtp(connection: Connection) -> Any:
    """Connect to the SMTP server and sign in."""
    import aiosmtplib

    config: EmailConfig = connection.config
    host, port = config.smtp_host, config.smtp_port
    try:
        wire = await guarded_http.connected(host, port, private=connection.private, seconds=SECONDS)
    except guarded_http.NotAllowed as error:
        raise Undelivered(str(error), for_good=True) from error
    except OSError as error:
        raise Undelivered(str(error) or "the server does not answer") from error
    smtp = aiosmtplib.SMTP(
        hostname=host,  # TLS is verified for it
        sock=wire,
        use_tls=config.smtp_security == "tls",
        start_tls=config.smtp_security == "starttls",
        tls_context=ssl.create_default_context(),
        timeout=SECONDS,
    )
    try:
        await smtp.connect()
        await smtp.login(config.username, connection.key.decode())
    except (aiosmtplib.SMTPException, OSError) as error:
        await _hang_up(smtp)
        if isinstance(error, aiosmtplib.SMTPAuthenticationError):
            raise Undelivered("the server refused the password") from error
        if isinstance(error, aiosmtplib.SMTPResponseException):
            raise _refused(error) from error
        raise Undelivered(f"the server does not answer ({type(error).__name__})") from error
    return smtp


async def _leave(smtp: Any) -> None:
    import aiosmtplib

    transport = smtp.transport  # `quit` forgets it
    with contextlib.suppress(aiosmtplib.SMTPException, OSError):
        await smtp.quit()
    await _hang_up(smtp, transport)


async def _hang_up(smtp: Any, transport: Any = None) -> None:
    """Abort the connection: the closing handshake of TLS could outlast the event loop."""
    transport = transport or smtp.transport
    smtp.close()
    if transport is not None:
        transport.abort()
        await asyncio.sleep(0)


def _refused(error: Any) -> Undelivered:
    """Translate a refusal without the server's text, which may quote the message."""
    if error.code < 500:
        return Undelivered(f"the server is busy ({error.code})", retry_after=BUSY_SECONDS)
    return Undelivered(f"the server refused it ({error.code})", for_good=True)
