"""Parser of e-mails: sender, authentication, signs of automatic mail, text and files.
Pure: bytes in, values out."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import policy
from email.errors import MessageError
from email.headerregistry import Address, AddressHeader
from email.message import EmailMessage
from email.parser import BytesHeaderParser, BytesParser
from email.utils import getaddresses
from html.parser import HTMLParser

#: Headers with the address of an agent; the last two are written by the receiving server.
ADDRESSED_BY = ("To", "Cc", "Delivered-To", "X-Original-To")
#: Headers that every signature of an e-mail covers.
_SIGNED = ("from", "date", "subject", "message-id")
_HEAD_ENDS = re.compile(rb"\r?\n\r?\n")
_IDS = re.compile(r"<[^<>\s]{3,180}>")
_COMMENT = re.compile(r"\([^()]*\)")
_SIGNATURE = re.compile(r"^-- ?$", re.MULTILINE)
#: The last line of those that mail programs put above quoted text, and how they begin; they may be
#: wrapped before or behind an address.
_ATTRIBUTION = re.compile(r"[^>].{0,200}:[ \t]*")
_ATTRIBUTED = re.compile(r"(?:On|Am|Le|El|Il|Em|Op|Den|På|W dniu)\b.*\d")
#: Lines above a text that Outlook quotes without marks: a rule, and the first header below it.
_ORIGINAL = re.compile(
    r"^(?:-{3,80}[^\n-]{3,40}-{3,80}|_{10,200})[ \t]{0,80}\n\s{0,80}(?=\S{2,12}: )"
    r"|^(?:From|Von|De|Da|Van): [^\n@]*@[^\n]*\n(?=(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado): )",
    re.MULTILINE,
)
#: Limits of a head and of nested parts, whose parsing takes more than linear time.
LARGEST_HEAD = 64 * 1024
MOST_BOUNDARIES = 200
#: Most lines that may begin a part; a long patch stays below it.
MOST_DASHES = 20_000
#: Most characters of HTML that are converted to text.
_LARGEST_HTML = 256 * 1024
_LONGEST_RESULTS = 4096
_SKIPPED = frozenset({"script", "style", "head", "title"})
_BREAKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "blockquote"})


class Unreadable(ValueError):
    """An e-mail with an abnormal structure, which is not parsed."""


def parse(raw: bytes) -> EmailMessage:
    """Parse a whole e-mail. Raises `Unreadable`."""
    head(raw)
    if raw.lower().count(b"boundary") > MOST_BOUNDARIES or raw.count(b"\n--") > MOST_DASHES:
        raise Unreadable("it has too many parts")
    return BytesParser(EmailMessage, policy=policy.default).parsebytes(raw)


def head(raw: bytes) -> EmailMessage:
    """Parse the headers alone, which is fast. Raises `Unreadable`."""
    end = _HEAD_ENDS.search(raw)
    above = raw if end is None else raw[: end.start()]
    if len(above) > LARGEST_HEAD:
        raise Unreadable("its head is too long")
    return BytesHeaderParser(EmailMessage, policy=policy.default).parsebytes(above)


@dataclass(frozen=True)
class From:
    address: str
    name: str

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


def sender(message: EmailMessage) -> From | None:
    """Return the claimed author; None unless all ways of parsing find the same single address.

    Parsers differ on malformed headers, so the receiving server may have authenticated another
    address than the one found here.
    """
    raw = [str(value) for name, value in message.raw_items() if name.lower() == "from"]
    authors = _addresses(message, "From")
    read_otherwise = [address.lower() for _, address in getaddresses(raw)]
    if len(raw) != 1 or len(authors) != 1 or read_otherwise != [authors[0][1]]:
        return None
    name, address = authors[0]
    return From(address, " ".join(name.split())[:100] or address)


def is_for(message: EmailMessage, address: str) -> bool:
    return address in _receivers(message, *ADDRESSED_BY)


def is_written_to(message: EmailMessage, address: str) -> bool:
    """Return whether the author named the address in To or Cc; forwarders can name it elsewhere."""
    return address in _receivers(message, "To", "Cc")


def has_other_readers(message: EmailMessage, address: str) -> bool:
    """Return whether the e-mail was also sent to other addresses."""
    return bool(_receivers(message, "To", "Cc") - {address})


def is_authentic(message: EmailMessage, server: str) -> bool:
    """Return whether the receiving server authenticated the author's domain (RFC 8601).

    Headers of other servers are ignored. Of several headers in its name the topmost counts, which
    it wrote itself: those further down came with the e-mail, and not every server removes them.
    """
    author = sender(message)
    if author is None:
        return False
    headers = (_results(str(header)) for header in message.get_all("Authentication-Results", []))
    own = (parsed[1] for parsed in headers if parsed is not None and parsed[0] == server.lower())
    results = next(own, [])
    dmarc = [result for result in results if result.method == "dmarc"]
    if dmarc:
        return all(
            result.result == "pass"
            and result.about.get("header.from", author.domain) == author.domain
            for result in dmarc
        )
    return any(
        result.result == "pass"
        and (
            (result.method == "dkim" and result.about.get("header.d") == author.domain)
            or (
                result.method == "spf"
                and result.about.get("smtp.mailfrom", "").rpartition("@")[2] == author.domain
            )
        )
        for result in results
    )


def why_automatic(message: EmailMessage) -> str | None:
    """Return why an e-mail is automatic, or None. Answering one could start a loop (RFC 3834)."""
    submitted = str(message.get("Auto-Submitted", "no")).partition(";")[0].strip().lower()
    if submitted != "no":
        return "it says that a program wrote it"
    if str(message.get("Precedence", "")).strip().lower() in {"bulk", "junk", "list", "auto_reply"}:
        return "it was sent to many"
    if any(header.lower().startswith("list-") for header in message):
        return "it came through a mailing list"
    if "X-Autoreply" in message or "X-Autorespond" in message:
        return "it is an automatic reply"
    if "Return-Path" in message and str(message["Return-Path"]).strip() in {"<>", ""}:
        return "it has no sender to answer, as reports about mail have"
    if message.get_content_type() in {"multipart/report", "message/delivery-status"}:
        return "it is a report about mail"
    local = (author.address if (author := sender(message)) else "").partition("@")[0]
    if local in {"mailer-daemon", "postmaster", "no-reply", "noreply"}:
        return "nobody reads what is sent to its sender"
    return None


def ids_answered(message: EmailMessage) -> list[str]:
    """Return the ids of the messages that it answers, nearest first."""
    nearest = _IDS.findall(str(message.get("In-Reply-To", "")))
    return [*nearest, *reversed(_IDS.findall(str(message.get("References", ""))))]


def id_of(message: EmailMessage, raw: bytes) -> str:
    """Return an id that is the same for duplicates: the claimed id with a digest of the content."""
    digest = hashlib.sha256(signed_content(message, raw)).hexdigest()[:16]
    named = _IDS.search(str(message.get("Message-ID", "")))
    return f"{named[0]}#{digest}" if named else f"#{digest}"


def signed_content(message: EmailMessage, raw: bytes) -> bytes:
    """Return the signed parts in canonical form, without differences that a signature tolerates
    (RFC 6376, 3.4: blanks, line ends and folds), so that a replayed e-mail has the same digest."""
    named = ((name.lower(), " ".join(str(value).split())) for name, value in message.raw_items())
    lines = sorted(f"{name}:{value}" for name, value in named if name in _SIGNED)
    end = _HEAD_ENDS.search(raw)
    body = re.sub(rb"[ \t]+", b" ", b"" if end is None else raw[end.end() :])
    plain = b"\n".join(line.rstrip() for line in body.splitlines()).rstrip()
    return "\n".join(lines).encode(errors="replace") + b"\n\n" + plain


def is_recent(message: EmailMessage, now: datetime, most: timedelta) -> bool:
    """Return whether its Date is recent; unlike the time of receipt, that header is signed."""
    date: datetime | None = getattr(message.get("Date"), "datetime", None)
    if date is None:
        return False
    written = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return now - most <= written <= now + timedelta(days=1)


def text(message: EmailMessage, *, answers: bool) -> str:
    """Return the text without the signature; for an answer, also without the quoted text."""
    try:
        part = message.get_body(("plain", "html"))
        content = part.get_content() if part is not None else ""
    except (LookupError, MessageError, UnicodeError):
        return ""
    if part is not None and part.get_content_type() == "text/html":
        content = _plain(content[:_LARGEST_HTML])
    written = str(content).replace("\r\n", "\n").replace("\0", "")
    if answers:
        written = _without_quote(written)
    return _SIGNATURE.split(written)[0].strip()


def files(message: EmailMessage) -> Iterator[tuple[int, str, str, bytes]]:
    """Yield the number, name, media type and bytes of each file."""
    for number, part in enumerate(message.iter_attachments()):
        name = (part.get_filename() or f"file-{number + 1}").replace("\\", "/")
        name = "".join(char for char in name.rpartition("/")[2] if char.isprintable())[:120]
        try:
            content = part.get_payload(decode=True)
        except (LookupError, MessageError, ValueError):
            content = None
        if isinstance(content, bytes):
            yield number, name or f"file-{number + 1}", part.get_content_type(), content


def plain_address(text: str) -> str | None:
    """Return an address in its canonical form; None if the text is not exactly one address."""
    try:
        address = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError):
        return None
    plain = address.addr_spec.lower()
    right = "@" in plain and plain.isascii() and plain.isprintable() and plain == text.lower()
    return plain if right and not set('<>,;:"\\ ()') & set(plain) else None


def _receivers(message: EmailMessage, *headers: str) -> set[str]:
    return {address for header in headers for _, address in _addresses(message, header)}


def _addresses(message: EmailMessage, header: str) -> list[tuple[str, str]]:
    """Return the names and addresses of a header. Names are decoded after the split, so that an
    address encoded within a name is not counted."""
    addresses: list[tuple[str, str]] = []
    for value in message.get_all(header, []):
        if isinstance(value, AddressHeader):
            addresses += [(address.display_name, address.addr_spec) for address in value.addresses]
        else:
            addresses += getaddresses([str(value)])
    return [(name, address.lower()) for name, address in addresses if "@" in address]


@dataclass(frozen=True)
class _Result:
    method: str
    result: str
    about: dict[str, str]


def _results(header: str) -> tuple[str, list[_Result]] | None:
    """Parse an authentication header into its server and results: `server; dkim=pass
    header.d=example.org; …`."""
    plain, before = " ".join(header.split()), ""
    if len(plain) > _LONGEST_RESULTS:
        return None
    while plain != before:  # comments may be nested
        plain, before = _COMMENT.sub(" ", plain), plain
    if "(" in plain or ")" in plain or '"' in plain:
        return None
    server, *parts = (part.strip() for part in plain.split(";"))
    results = []
    for part in parts:
        words = [word.partition("=") for word in part.replace(" =", "=").replace("= ", "=").split()]
        if not words or not words[0][1]:
            continue
        about = {name.lower(): value.lower().lstrip("@") for name, _, value in words[1:]}
        method = words[0][0].partition("/")[0].lower()
        results.append(_Result(method, words[0][2].lower(), about))
    return server.partition(" ")[0].lower(), results


def _without_quote(written: str) -> str:
    """Return the text without a quotation at its end; all of it if it is nothing else."""
    original = _ORIGINAL.search(written)
    if original is not None and written[: original.start()].strip():
        return written[: original.start()]
    lines = written.rstrip().split("\n")
    end = len(lines)
    while end and (lines[end - 1].startswith(">") or not lines[end - 1].strip()):
        end -= 1
    if end == len(lines):
        return written
    if end and _ATTRIBUTION.fullmatch(lines[end - 1]):
        end -= 1
        while end and _goes_on(lines[end - 1], lines[end]):
            end -= 1
    kept = "\n".join(lines[:end])
    return kept if kept.strip() else written


def _goes_on(line: str, below: str) -> bool:
    """Return whether an attribution begins on a line and goes on below it."""
    if not line.strip() or _ATTRIBUTED.match(below):
        return False
    is_wrapped = below.startswith("<") or ("@" in line and "@" not in below)
    return is_wrapped or _ATTRIBUTED.match(line) is not None


class _Plain(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skips = 0
        self._quotes = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._skips += tag in _SKIPPED
        self._quotes += tag == "blockquote"
        if tag in _BREAKS:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        self._skips -= tag in _SKIPPED and self._skips > 0
        if tag == "blockquote" and self._quotes:
            self._quotes -= 1
            self._break()

    def handle_data(self, data: str) -> None:
        if not self._skips:
            self.parts.append(data.replace("\n", " ") if self._quotes else data)

    def _break(self) -> None:
        """Begin a line; a quoted one is marked as in plain text."""
        self.parts.append("\n> " if self._quotes else "\n")


def _plain(html: str) -> str:
    parser = _Plain()
    parser.feed(html)
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
