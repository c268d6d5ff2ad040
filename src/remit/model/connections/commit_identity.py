"""Identity of an agent's commits: the agent is the author, and a person answers for it.

The claims of an agent's own commit are ignored: its author, committer, signature and every trailer
that names somebody are replaced by the company's settings.
"""

import re
from dataclasses import dataclass

from remit.errors import BadInput

MOST_CO_AUTHORS = 5
LONGEST_NAMES = 500
_NOT_IN_NAME = re.compile(r"[<>\x00-\x1f\x7f]")
_SOMEBODY = re.compile(r"([^<>,;\x00-\x1f\x7f]{1,80}) <([^\s<>,;@]{1,64}@[^\s<>,;@]{1,190})>")
#: Trailers that attribute a commit: only Remit writes them. git accepts blanks before the colon,
#: and a forge may accept some before the name.
_STANDS_FOR = re.compile(
    r"(?im)^[^\S\n]*(?:[a-z][a-z0-9-]*[-\u2010-\u2015]by|on-behalf-of|accountable|remit-[a-z-]+)"
    r"[^\S\n]*[:=\uff1a].*\n?"
)
#: Characters that are line ends to some programs only.
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    author: str
    committer: str
    trailers: tuple[str, ...] = ()
    #: Name of the secret with the key that signs it.
    signing: str | None = None

    @classmethod
    def of(
        cls,
        agent: str,
        company: str,
        person: str | None,
        *,
        committer: str | None = None,
        co_authors: str | None = None,
        signing: str | None = None,
    ) -> "CommitIdentity":
        domain = f"{_slug(company)}.invalid"
        author = f"{_plain(agent)} <{_slug(agent)}@{domain}>"
        trailers = [
            f"Co-authored-by: {co_author}"
            for co_author in (co_authors or "").split(", ")
            if co_author
        ]
        if person is not None:
            trailers.append(f"Accountable: {_plain(person)}")
        return cls(author, committer or f"Remit <remit@{domain}>", tuple(trailers), signing)

    @property
    def name(self) -> str:
        return named(self.author)[0]

    @property
    def email(self) -> str:
        return named(self.author)[1]

    def message(self, text: str, *more: str) -> str:
        """Return the agent's message with Remit's trailers in place of any others of that kind."""
        lines = _CONTROL.sub("", _LINE_ENDS.sub("\n", text))
        body = _STANDS_FOR.sub("", lines).strip()
        return f"{body or 'Change'}\n\n" + "".join(
            f"{trailer}\n" for trailer in (*more, *self.trailers)
        )


def named(who: str) -> tuple[str, str]:
    """Split `Name <address>` into its name and its address."""
    name, _, address = who.rpartition(" <")
    return name, address.rstrip(">")


def somebody(text: str, field: str) -> str | None:
    """Validate one person or program as `Name <address>`; None for an empty text."""
    person = some_people(text, field)
    if person is not None and ", " in person:
        raise BadInput(f"{field}: must be one name.", "Write it like Acme <bot@acme.example>.")
    return person


def some_people(text: str, field: str) -> str | None:
    """Validate several of them, separated by commas."""
    people = [" ".join(person.split()) for person in re.split(r"[,;\n]", text) if person.strip()]
    if len(people) > MOST_CO_AUTHORS or not all(map(_is_somebody, people)):
        raise BadInput(
            f"{field}: must be at most {MOST_CO_AUTHORS} names with addresses.",
            "Write it like Acme <bot@acme.example>, with commas between several.",
        )
    return ", ".join(people) or None


def _is_somebody(text: str) -> bool:
    # git strips these at both ends of a name; nothing else would be no name.
    return (match := _SOMEBODY.fullmatch(text)) is not None and _plain(match[1]) == match[1]


def _plain(name: str) -> str:
    return _NOT_IN_NAME.sub(" ", name).strip(" .,:;\"'\\") or "agent"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "agent"
