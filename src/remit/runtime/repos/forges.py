"""Access of the loops to forges: opened with the repository's token, for one errand or visit."""

import hmac
import logging
import re
from collections.abc import Mapping
from typing import Any

from remit.channels.contract import Undelivered
from remit.errors import BadInput, RemitError, Unauthenticated
from remit.forges.api import Api, ForgeFailed
from remit.forges.contract import Forge, forge_of
from remit.model.connections.change import Change
from remit.model.connections.forge import ForgeKind, Request, RequestState
from remit.model.connections.repo import Repo
from remit.runtime.secrets.values import SecretOf
from remit.services.changes import watches
from remit.services.command import Gate
from remit.services.connections import repos
from remit.services.identity import as_system
from remit.services.redaction import Known, program_text

#: Status codes after which a retry does not help before the cause is mended.
_FINAL = frozenset({400, 405, 409, 410, 422})
#: Status codes for a request that exists already, such as after a concurrent attempt.
_THERE_ALREADY = frozenset({409, 422})


#: Lines with a leading slash, which GitLab and many bots execute as commands.
_ORDERS = re.compile(r"(?m)^((?:[^\S\n]|[>*+-]|\d+[.)])*)/(?=\w)")
_CALLS = re.compile(r"@(?=[A-Za-z0-9_\[])")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
log = logging.getLogger(__name__)


class Forges:
    def __init__(self, secret_of: SecretOf, *, private: bool = False) -> None:
        self._secret_of = secret_of
        self._private = private

    async def opened(self, repo: Repo, tags: Mapping[str, str] | None = None) -> tuple[Forge, Api]:
        """Open the forge of a repository; its token is only in the headers of requests."""
        token = await self._secret_of(repo.company_id, repo.forge_secret or "")
        token = token.strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise BadInput("The token of the forge is no line of plain text.", "Set it again.")
        return forge_of(repo, token, Known((token,)).out_of, tags, private=self._private)

    async def probe(self, repo: Repo) -> str:
        """Check with one request that the token opens the repository at the forge."""
        forge, _ = await self.opened(repo)
        return await forge.probe()

    async def problem(self, repo: Repo) -> str | None:
        """Return why the token does not open the repository, or None if it does."""
        try:
            await self.probe(repo)
        except ForgeFailed as failed:
            return failed.sentence
        except RemitError as error:
            return error.sentence
        return None

    async def each(self, gate: Gate) -> list[tuple[Repo, str | None]]:
        """Return all repositories with a forge, each with its problem or None."""
        forged_repos = await gate(as_system(), repos.forged)
        return [(repo, await self.problem(repo)) for repo in forged_repos]

    async def rung(self, gate: Gate, repo: str, headers: Mapping[str, str], body: bytes) -> None:
        """Handle a webhook: verify its signature, and make the watch of the repository due soon."""
        hook = await gate(as_system(), watches.hook, repo=repo)
        if hook is not None and signature(ForgeKind(hook["forge"]), headers):
            try:
                secret = (await self._secret_of(hook["company"], hook["hook"])).strip().encode()
            except RemitError as error:  # not shown to the unauthenticated caller
                log.warning("a webhook cannot be checked: %s", error.sentence)
                secret = b""
            if is_signed(ForgeKind(hook["forge"]), secret, headers, body):
                await gate(as_system(), watches.ring, repo=repo)
                return
        raise Unauthenticated("It is not signed with the secret of a repository here.")


def signature(kind: ForgeKind, headers: Mapping[str, str]) -> str:
    """Return the signature of a webhook, from the header of its forge; empty without one."""
    fields = {name.lower(): value for name, value in headers.items()}
    if kind is ForgeKind.GITLAB:
        return fields.get("x-gitlab-token", "")
    digest = fields.get("x-hub-signature-256", "").removeprefix("sha256=")
    if kind is ForgeKind.GITEA and not digest:
        digest = fields.get("x-forgejo-signature") or fields.get("x-gitea-signature", "")
    return digest


def is_signed(kind: ForgeKind, secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """Verify the signature of a webhook, in constant time."""
    wanted = secret
    if kind is not ForgeKind.GITLAB:
        wanted = hmac.new(secret, body, "sha256").hexdigest().encode()
    return bool(secret) and hmac.compare_digest(signature(kind, headers).encode(), wanted)


def without_orders(text: str) -> str:
    """Neutralise commands and mentions in an agent's text for a forge. Remit's account there may do
    more than the agent, and the forge or a bot would obey that account."""
    return _CALLS.sub("@\u200b", _ORDERS.sub(r"\1\\/", _LINE_ENDS.sub("\n", text)))


def undelivered(failed: ForgeFailed) -> Undelivered:
    return Undelivered(
        failed.sentence, for_good=failed.status in _FINAL, retry_after=failed.retry_after
    )


async def ensure_request(forge: Forge, change: Change, identity: Mapping[str, Any]) -> Request:
    """Return the one request for a change at the forge, found and updated, or newly opened."""
    mark = f"Remit-Change: {change.id}"
    made_by = f"Proposed by {identity['agent']} of {identity['company']}"
    if identity.get("person"):
        made_by += f", for {identity['person']}"
    description = without_orders(change.description)
    body = f"{program_text.without(description)}\n\n---\n{made_by}, with Remit.\n\n{mark}"
    title = program_text.without(change.title)
    request = await _found(forge, change, mark)
    if request is None:
        try:
            request = await forge.open(change.remote_branch, change.target, title, body)
        except ForgeFailed as failed:
            if failed.status not in _THERE_ALREADY:
                raise
            request = await _found(forge, change, mark)
            if request is None:
                raise
    elif request.state is RequestState.OPEN:
        request = await forge.update(request.number, change.target, title, body)
    if request.branch != change.remote_branch:
        raise Undelivered("the forge answers with a request for another branch", for_good=True)
    if request.state is RequestState.OPEN and request.head != change.head_commit:
        raise Undelivered("the forge has not seen what was pushed yet")
    return request


async def _found(forge: Forge, change: Change, mark: str) -> Request | None:
    """Find the request of a change, also one that ended before its number was recorded."""
    if change.request_number is not None:
        return await forge.request(change.request_number)
    there = await forge.find(change.remote_branch)
    ours = [
        request for request in there if request.state is RequestState.OPEN or mark in request.body
    ]
    return ours[0] if ours else None
