"""Forges: sites around git remotes, with requests to merge, reviews, checks and issues."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import CompanyId, OutcomeId, RepoId
from remit.model.connections.change import MergeMethod
from remit.model.connections.repo import LONGEST_URL
from remit.model.leased import Polled
from remit.model.text import clean_line

MOST_PEOPLE = 100
LONGEST_LABEL = 100
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[bot\])?")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SCP = re.compile(r"(?:[^@/:]+@)?([^@/:]+):(.+)")


#: GITEA: also Forgejo. NONE: a plain remote that has only branches.
ForgeKind = StrEnum("ForgeKind", "GITHUB GITLAB GITEA NONE")


RequestState = StrEnum("RequestState", "OPEN MERGED CLOSED")


CheckState = StrEnum("CheckState", "PENDING PASSED FAILED")


#: NONE: a comment without a verdict.
Verdict = StrEnum(
    "Verdict", {"APPROVED": "approved", "CHANGES": "changes requested", "NONE": "comment"}
)


@dataclass(frozen=True, slots=True)
class Person:
    login: str
    #: The forge's numeric id.
    id: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request to merge a branch (pull request), as the forge describes it."""

    number: int
    url: str
    branch: str
    #: The commit it would merge, and the target branch.
    head: str
    target: str
    state: RequestState
    body: str = ""
    #: None while the forge has not computed it.
    mergeable: bool | None = None
    merged_commit: str | None = None
    merged_by: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A review or a comment."""

    #: Unique among the reviews and comments of a request.
    id: str
    by: Person
    body: str
    verdict: Verdict = Verdict.NONE
    commit: str | None = None
    path: str | None = None
    line: int | None = None
    #: Whether the line is one of the old file.
    old: bool = False


@dataclass(frozen=True, slots=True)
class ForgeCheck:
    id: str
    name: str
    state: CheckState
    url: str = ""
    #: The forge's summary; the log is fetched separately.
    summary: str = ""
    #: Reference of its log, if the forge has one.
    log: str = ""


@dataclass(frozen=True, slots=True)
class Issue:
    number: int
    url: str
    title: str
    body: str
    by: Person
    #: Time of its last change, in the forge's format.
    updated: str = ""


@dataclass(frozen=True, slots=True)
class ForgeWatch(Polled):
    """Lease of the regular poll of a repository's forge."""

    repo_id: RepoId
    looked_at: Micros | None = None
    #: JSON: state for the next poll, such as the tags of the forge's last responses.
    cursor: str = "{}"


@dataclass(frozen=True, slots=True)
class ForgeIssue:
    """An issue that became an outcome."""

    id: str
    company_id: CompanyId
    repo_id: RepoId
    number: int
    url: str
    #: The person whose label made the issue an outcome.
    labelled_by: str
    outcome_id: OutcomeId
    created_at: Micros
    #: The forge's id of Remit's comment about the outcome.
    told: str | None = None
    told_at: Micros | None = None


def merge_methods(kind: str | None) -> tuple[MergeMethod, ...]:
    """Return the merge methods that a kind of forge offers; a plain remote has all."""
    if kind in (ForgeKind.GITHUB, ForgeKind.GITLAB):
        return (MergeMethod.MERGE, MergeMethod.SQUASH)
    return tuple(MergeMethod)


def commit_id(text: str) -> str:
    if not _COMMIT.fullmatch(text):
        raise ValueError("no commit")
    return text


def host_and_path(url: str) -> tuple[str, str]:
    """Split a repository's address into its host and its path without `.git`."""
    if "://" in url:
        parts = urlsplit(url)
        # The port of ssh is not the API's.
        host = parts.netloc if parts.scheme == "https" else parts.hostname or ""
        path = parts.path
    elif (match := _SCP.fullmatch(url)) and not url.startswith("/"):
        host, path = match[1], match[2]
    else:
        host, path = "", url
    return host, path.strip("/").removesuffix(".git")


def api_address(text: object) -> str:
    """Validate the address of a forge's API; plain http only within the machine or its network."""
    url = clean_line(text, "api", longest=LONGEST_URL).rstrip("/")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    plain = "@" not in url and "?" not in url and "#" not in url and " " not in url
    if not host or not plain or parts.scheme not in ("http", "https"):
        raise BadInput("api must be the address of the forge's API.", "Such as https://host/api/v4")
    if parts.scheme == "http" and not _is_near(host):
        raise BadInput(
            "The token would be sent unencrypted.",
            "Use https, or http with an address of your own network.",
        )
    return url


def _is_near(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_private
    except ValueError:
        return False


def usual_api(kind: ForgeKind, url: str) -> str:
    """Return the default address of the API of a repository's forge."""
    host, _ = host_and_path(url)
    if kind is ForgeKind.GITHUB:
        return "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"
    return f"https://{host}/api/{'v4' if kind is ForgeKind.GITLAB else 'v1'}"


def people(listed: object) -> str:
    """Validate logins of people whom Remit listens to at the forge, as JSON."""
    if isinstance(listed, str):
        listed = listed.replace(",", " ").split()
    if not isinstance(listed, list | tuple) or len(listed) > MOST_PEOPLE:
        raise BadInput(f"people must be at most {MOST_PEOPLE} names.", "Separate them by commas.")
    for name in listed:
        if not isinstance(name, str) or not _LOGIN.fullmatch(name):
            raise BadInput(f"{str(name)[:40]!r} is no name of a person.", "As the forge has it.")
    return json.dumps(sorted({str(name) for name in listed}, key=str.lower))
