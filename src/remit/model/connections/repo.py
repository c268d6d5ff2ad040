"""Repositories that a company lends to its agents: names, addresses and references."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit

from remit.errors import BadInput
from remit.ids import RepoId
from remit.model.registered import Registered
from remit.model.text import clean_line, matching

LONGEST_URL = 2000
LONGEST_REF = 200
LONGEST_USER = 200

#: As in `repo:<name>`; also the name of a folder, so it starts with no dot or dash.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]")
_LOGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
#: `git@host:path`; not a folder, not `transport::address`.
_SCP = re.compile(r"(?:([^@/:]+)@)?([^@/:]+):(?!/?/?:)([^-:].*)")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
#: Characters that git forbids in references, and others that its command line would misread.
_NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|[./]$|^[-./]|^@$")


#: When and where proposals are pushed. AT_ONCE: to a branch of the repository itself. AFTER_LOOK:
#: the same, once a person has looked at the commits. FORK: at once, to another repository.
PushMode = StrEnum("PushMode", {"AT_ONCE": "at_once", "AFTER_LOOK": "after_look", "FORK": "fork"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeSettings:
    """Settings of a repository's forge: API, credentials, and the people it listens to."""

    #: The kind of the forge, and the address of its API; None for branches alone.
    forge: str | None = None
    api: str | None = None
    #: Names of secrets: for the API, if it is not `secret`, and for signatures of webhooks.
    api_secret: str | None = None
    hook: str | None = None
    #: JSON list: logins that Remit listens to, besides those who may push.
    people: str = "[]"
    #: Label that makes an issue an outcome, if one of these people set it.
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings(ForgeSettings):
    """Settings of the way that proposals take to the remote."""

    #: A `PushMode`.
    push: str = PushMode.AT_ONCE.value
    #: Address of the fork that proposals are pushed to, with its user and the name of its secret.
    fork: str | None = None
    fork_username: str | None = None
    fork_secret: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoSpec(PushSettings):
    """The description of a repository."""

    name: str
    url: str
    #: Default branch, tag or commit to clone; None is the remote's own.
    ref: str | None = None
    username: str | None = None
    #: Name of the secret that opens it.
    secret: str | None = None
    #: Whether runs that work in a copy are told the instructions in it, such as AGENTS.md.
    instructions: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo(RepoSpec, Registered):
    id: RepoId
    #: JSON: the checks of each proposed change; see `check.read`.
    checks: str | None = None

    @property
    def pushed_to(self) -> "Repo":
        """Return the repository that proposals are pushed to, with what opens it."""
        if self.push != PushMode.FORK or self.fork is None:
            return self
        return replace(self, url=self.fork, username=self.fork_username, secret=self.fork_secret)

    @property
    def forge_secret(self) -> str | None:
        return self.api_secret or self.secret


def repo_name(text: object) -> str:
    return matching(
        text,
        _NAME,
        "name must be letters, digits, dots, dashes and underscores, at most 64.",
        "Choose a name such as 'website'.",
    )


def repo_url(text: object) -> str:
    """Validate an address for git: it runs no program and holds no password."""
    url = clean_line(text, "url", longest=LONGEST_URL)
    if " " in url or "\\" in url:
        raise _bad_url(url)
    if url.startswith("/"):
        return url
    scheme, colon, rest = url.partition("://")
    if not colon:
        return _checked_scp(url)
    if scheme == "file":
        if not rest.startswith("/"):
            raise _bad_url(url)
        return url
    if scheme not in ("https", "ssh"):
        raise BadInput(
            f"Repositories are not fetched by {scheme[:20]!r}.",
            "Use https://, ssh:// or a folder of this machine.",
        )
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises when it is none
    except ValueError:
        raise _bad_url(url) from None
    if parts.password is not None or (scheme == "https" and "@" in parts.netloc):
        raise BadInput(
            "The url holds a name or a password.",
            "Give the name with username, and keep the password as a secret.",
        )
    host = parts.netloc.rpartition("@")[2]
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not _HOST.fullmatch(bare) or (parts.username and not _LOGIN.fullmatch(parts.username)):
        raise _bad_url(url)
    if parts.query or parts.fragment or not parts.path.strip("/"):
        raise _bad_url(url)
    return url


def _checked_scp(url: str) -> str:
    match = _SCP.fullmatch(url)
    if match is None:
        raise _bad_url(url)
    login, host, _ = match.groups()
    if not _HOST.fullmatch(host) or (login is not None and not _LOGIN.fullmatch(login)):
        raise _bad_url(url)
    return url


def is_https(url: str) -> bool:
    return url.startswith("https://")


def is_local(url: str) -> bool:
    return url.startswith(("/", "file://"))


def site(url: str) -> str:
    """Return scheme and host of an https address, which a password is for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def repo_ref(text: object) -> str:
    """Validate a branch, a tag or a commit in git's form."""
    if (
        not isinstance(text, str)
        or not 0 < len(text) <= LONGEST_REF
        or not text.isprintable()
        or _NOT_IN_REF.search(text)
    ):
        raise BadInput(
            "ref must be the name of a branch or tag, or a commit.",
            "Give it like main, v1.2 or a hash; leave it out for the usual branch.",
        )
    return text


def is_commit(ref: str) -> bool:
    return _COMMIT.fullmatch(ref) is not None


def user_name(text: object) -> str:
    """Validate the user name for the secret at the remote."""
    name = clean_line(text, "username", longest=LONGEST_USER)
    if " " in name:
        raise BadInput("username has a blank.", "Give the name as the remote knows it.")
    return name


def _bad_url(url: str) -> BadInput:
    return BadInput(
        f"{url[:100]!r} is not an address of a repository.",
        "Use https://host/path, ssh://user@host/path, user@host:path or /a/folder.",
    )
